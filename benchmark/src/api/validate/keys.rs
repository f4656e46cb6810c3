//! Keys of operations where connections walk on their own.

use redisbench_wire::plan;

use crate::api::keys::{KeyPatternSpec, KeyPatternType, each_connection};
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;

/// Checks the keys of operations where connections walk on their own.
pub(super) fn check_per_connection(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) {
    let workload = &spec.workload;
    let own = workload.operations.iter().map(|operation| operation.keys.as_ref().map(|own| own.over(&workload.keys)));
    let all: Vec<_> = own.map(|own| (own.is_some(), own.unwrap_or_else(|| workload.keys.clone()))).collect();
    if !all.iter().any(|(_, keys)| keys.pattern.per_connection) {
        return;
    }
    let (size, most) = (spec.workload.transaction.size, plan::Workload::APART);
    if u64::from(size) * u64::from(spec.load.connections) > most {
        let message = format!(
            "times load.connections, which is {}, must be at most {most} with perConnection: lower one of the two",
            spec.load.connections
        );
        problems.push(Problem::new("spec.workload.transaction.size", size, message));
    }
    for (index, (is_own, keys)) in all.iter().enumerate() {
        let field = if *is_own { format!("operations[{index}].keys") } else { "keys".to_owned() };
        let KeyPatternSpec { kind, per_connection, .. } = keys.pattern;
        let walks = matches!(kind, KeyPatternType::Sequential | KeyPatternType::Partitioned);
        if walks && !per_connection {
            let message = "must be true if it is for another operation, because each connection then numbers its own requests: set \
                           it, or remove the other";
            problems.push(Problem::new(format!("spec.workload.{field}.pattern.perConnection"), false, message));
        }
        // Those of `workload.keys` have a rule.
        let connections = u64::from(spec.load.connections);
        if *is_own && per_connection && kind == KeyPatternType::Partitioned && keys.count < connections {
            let message = each_connection(keys.count, connections);
            problems.push(Problem::new(format!("spec.workload.{field}.count"), "", message));
        }
    }
}

//! Keys of operations: with tags, and where connections walk on their own.

use redisbench_wire::plan;

use crate::api::keys::{KeyPatternSpec, KeyPatternType, KeysSpec, NO_BRACE, NO_PARTS, each_connection, uneven_tags};
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;

/// Checks that an operation's keys can have the tags of `workload.keys`. Those of `workload.keys` have rules.
pub(super) fn check_tags(keys: &KeysSpec, field: &str, problems: &mut Vec<Problem>) {
    let Some(tags) = &keys.tags else { return };
    let mut refuse = |name: &str, message: String| problems.push(Problem::new(format!("{field}.{name}"), "", message));
    if !keys.count.is_multiple_of(tags.count.into()) {
        refuse("count", uneven_tags(keys.count, tags.count));
    }
    if keys.prefix.contains('{') {
        refuse("prefix", NO_BRACE.to_owned());
    }
    if keys.pattern.kind == KeyPatternType::Partitioned || keys.pattern.per_connection {
        refuse("pattern", NO_PARTS.to_owned());
    }
    if keys.pattern.kind == KeyPatternType::Sequential && tags.hot.is_some() {
        let message = "must not be Sequential with keys.tags.hot, because requests then take the tags in turns: set it to \
                       Uniform, or remove keys.tags.hot";
        refuse("pattern.type", message.to_owned());
    }
}

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

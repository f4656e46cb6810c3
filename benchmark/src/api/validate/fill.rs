//! Validation of `spec.workload.onMiss`: the writes that follow missed reads.

use redisbench_wire::plan::{self, Part};

use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::workload::OnMiss;

/// The write for each operation that is a GET.
pub(super) fn check(
    spec: &RedisBenchmarkSpec,
    operations: &[plan::Operation],
    ttl: Option<(i64, i64)>,
    problems: &mut Vec<Problem>,
) -> Vec<plan::Fill> {
    if spec.workload.on_miss == OnMiss::Ignore {
        return Vec::new();
    }
    let fills: Vec<_> = (0..).zip(operations).filter_map(|(index, operation)| fill(index, operation, ttl)).collect();
    if fills.is_empty() && !operations.iter().any(|operation| operation.arguments.is_empty()) {
        let message =
            "has no effect: no operation is a GET of one key, such as GET __key__; add one, or set it to Ignore";
        problems.push(Problem::new("spec.workload.onMiss", "Fill", message));
    }
    fills
}

fn fill(index: u32, operation: &plan::Operation, ttl: Option<(i64, i64)>) -> Option<plan::Fill> {
    let [name, key] = operation.arguments.as_slice() else { return None };
    matches!(name.as_slice(), [Part::Literal(name)] if name.eq_ignore_ascii_case("GET")).then(|| {
        let literal = |text: &str| vec![Part::Literal(text.to_owned())];
        let mut arguments = vec![literal("SET"), key.clone(), vec![Part::Data]];
        if let Some((least, most)) = ttl {
            arguments.extend([literal("EX"), vec![Part::Integer { least, most, width: 0 }]]);
        }
        plan::Fill { operation: index, arguments }
    })
}

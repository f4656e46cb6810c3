//! Rules of `workload.keys.file`. Shards check the number of its lines.

use redisbench_wire::plan::Lines;

use super::super::forms::unsupported;
use super::super::rule::Rule;

const KEYS: &str = "spec.workload.keys";

pub(super) fn all() -> Vec<Rule> {
    const MOST: u32 = Lines::MOST;
    // Its lines are whole keys, and a key may be there twice.
    let features = [
        ("workload.keys.prefix", "self.workload.keys.prefix != 'rb:'"),
        ("workload.keys.width", "self.workload.keys.width > 0"),
        ("workload.keys.tags", "has(self.workload.keys.tags)"),
        (
            "workload.operations.keys.prefix or width",
            "has(self.workload.operations) && self.workload.operations.exists(operation, has(operation.keys) && \
             (has(operation.keys.prefix) || has(operation.keys.width)))",
        ),
    ];
    let lines = unsupported(
        "workload.keys.file",
        "has(self.workload.keys.file)",
        "has whole keys, and does not support",
        &features,
        "change these, or remove it",
    );
    let count = Rule::new(
        KEYS,
        "count",
        format!("!has(self.file) || self.count <= {MOST}"),
        "is %s, more lines than a file of 1 MiB can have: set it to the number of lines in keys.file",
    );
    vec![lines, count.showing(["self.count"])]
}

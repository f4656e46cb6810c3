//! Rules of `workload.keys.file`. Shards check the number of its lines.

use redisbench_wire::plan::Lines;

use super::super::rule::{Rule, SPEC};

const WORKLOAD: &str = "spec.workload";
const KEYS: &str = "spec.workload.keys";

pub(super) fn all() -> Vec<Rule> {
    const MOST: u32 = Lines::MOST;
    let of_numbers = [
        ("prefix", "self.prefix == 'rb:'", "must not be set with keys.file, whose lines are whole keys: remove it"),
        ("width", "self.width == 0", "must not be set with keys.file, whose lines are whole keys: remove it"),
        ("tags", "!has(self.tags)", "is not supported with keys.file: write hash tags into its lines, and remove it"),
    ];
    let of_numbers = of_numbers
        .map(|(field, condition, message)| Rule::new(KEYS, field, format!("!has(self.file) || {condition}"), message));
    let others = [
        Rule::new(
            KEYS,
            "count",
            format!("!has(self.file) || self.count <= {MOST}"),
            "is %s, more lines than a file of 1 MiB can have: set it to the number of lines in keys.file",
        )
        .showing(["self.count"]),
        Rule::new(
            WORKLOAD,
            "operations",
            "!has(self.keys.file) || !has(self.operations) || self.operations.all(operation, !has(operation.keys) || \
             (!has(operation.keys.prefix) && !has(operation.keys.width)))",
            "must not set keys.prefix or keys.width with workload.keys.file, whose lines are whole keys: remove them",
        ),
        Rule::new(
            WORKLOAD,
            "keys.file",
            concat!("!has(self.keys.file) || !", filled!("self.preset")),
            "is not supported with preset, whose tests need keys of their own: remove it, or set operations",
        ),
        Rule::new(
            SPEC,
            "workload.keys.file",
            "!has(self.workload.keys.file) || self.verify.mode == 'None'",
            "is not supported with verify, because a key may be there twice: remove it, or set verify.mode to None",
        ),
    ];
    of_numbers.into_iter().chain(others).collect()
}

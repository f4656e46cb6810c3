//! Rules of `load.nodesPerShard`.

use super::super::forms::unsupported;
use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    let features = [
        ("workload.keys.pattern.type other than Uniform", "self.workload.keys.pattern.type != 'Uniform'"),
        (
            "workload.operations.keys.pattern.type other than Uniform",
            "has(self.workload.operations) && self.workload.operations.exists(operation, has(operation.keys) && \
             has(operation.keys.pattern) && operation.keys.pattern.type != 'Uniform')",
        ),
        (
            "__sequence__",
            "has(self.workload.operations) && \
             self.workload.operations.exists(operation, operation.command.contains('__sequence__'))",
        ),
        ("workload.mix", "self.workload.mix != 'Random'"),
        ("workload.transaction.size", "self.workload.transaction.size > 0"),
        ("workload.caching", "has(self.workload.caching)"),
        ("verify.mode Values", "self.verify.mode == 'Values'"),
    ];
    let of_clusters = Rule::new(
        SPEC,
        "load.nodesPerShard",
        "!has(self.load.nodesPerShard) || self.targets.all(target, target.type == 'Cluster')",
        "is only valid for targets of type Cluster, and target %s is another: remove it",
    );
    vec![
        unsupported(
            "load.nodesPerShard",
            "has(self.load.nodesPerShard)",
            "gives shards different keys, and does not support",
            &features,
            "change these, or remove it",
        ),
        of_clusters.showing(["self.targets.filter(target, target.type != 'Cluster')[0].name"]),
    ]
}

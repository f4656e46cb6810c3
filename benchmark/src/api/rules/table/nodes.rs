//! Rules of `load.nodesPerShard`.

use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    let unsupported = [
        ("workload.keys.pattern.type", "self.workload.keys.pattern.type == 'Uniform'", "set it to Uniform"),
        (
            "workload.operations",
            "!has(self.workload.operations) || self.workload.operations.all(operation, !has(operation.keys) || \
             !has(operation.keys.pattern) || operation.keys.pattern.type == 'Uniform')",
            "set their keys.pattern.type to Uniform",
        ),
        ("workload.mix", "self.workload.mix == 'Random'", "set it to Random"),
        ("workload.transaction.size", "self.workload.transaction.size == 0", "set it to 0"),
        ("workload.caching", "!has(self.workload.caching)", "remove it"),
        ("verify.mode", "self.verify.mode != 'Values'", "set it to Replies"),
    ];
    let unsupported = unsupported.map(|(field, condition, fix)| {
        let message =
            format!("is not supported with load.nodesPerShard, whose shards draw other keys: {fix}, or remove it");
        Rule::new(SPEC, field, format!("!has(self.load.nodesPerShard) || {condition}"), message)
    });
    let of_clusters = Rule::new(
        SPEC,
        "load.nodesPerShard",
        "!has(self.load.nodesPerShard) || self.targets.all(target, target.type == 'Cluster')",
        "is only valid for targets of type Cluster, and target %s is another: remove it",
    );
    let of_clusters = of_clusters.showing(["self.targets.filter(target, target.type != 'Cluster')[0].name"]);
    unsupported.into_iter().chain([of_clusters]).collect()
}

//! Rules of `workload.caching`.

use super::super::forms::unsupported;
use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    let features = [
        ("workload.transaction.size", "self.workload.transaction.size > 0"),
        ("workload.wait.replicas", "self.workload.wait.replicas > 0"),
        // Hits are not sent, so they fill no batch.
        ("load.pipelineMode Batch", "self.load.pipelineMode == 'Batch'"),
    ];
    let all = unsupported(
        "workload.caching",
        "has(self.workload.caching)",
        "does not support",
        &features,
        "change these, or remove it",
    );
    let others = [
        Rule::new(
            SPEC,
            "workload.caching",
            "!has(self.workload.caching) || self.targets.all(target, target.protocol == 'RESP3')",
            "requires RESP3, whose connections receive invalidation messages: set protocol of target %s to RESP3, or remove it",
        )
        .showing(["self.targets.filter(target, target.protocol != 'RESP3')[0].name"]),
        Rule::new(
            "spec.workload.caching",
            "prefixes",
            "self.type == 'Broadcast' || !has(self.prefixes) || self.prefixes.size() == 0",
            "are only valid for type Broadcast: remove them, or set type to Broadcast",
        ),
        Rule::new(
            "spec.workload.caching",
            "prefixes",
            "!has(self.prefixes) || self.prefixes.all(prefix, self.prefixes.exists_one(other, prefix.startsWith(other)))",
            "have one that begins with another, %s, which servers refuse: remove one of the two",
        )
        .showing(["self.prefixes.filter(other, \
                   self.prefixes.exists(prefix, prefix != other && prefix.startsWith(other)))[0]"]),
    ];
    [all].into_iter().chain(others).collect()
}

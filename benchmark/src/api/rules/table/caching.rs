//! Rules of `workload.caching`.

use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    let unsupported = [
        ("transaction.size", "self.workload.transaction.size == 0", "0"),
        ("wait.replicas", "self.workload.wait.replicas == 0", "0"),
    ];
    let unsupported = unsupported.map(|(field, is_unset, unset)| {
        Rule::new(
            SPEC,
            format!("workload.{field}"),
            format!("!has(self.workload.caching) || {is_unset}"),
            format!("is not supported with workload.caching: set it to {unset}, or remove caching"),
        )
    });
    let others = [
        Rule::new(
            SPEC,
            "workload.caching",
            "!has(self.workload.caching) || self.targets.all(target, target.protocol == 'RESP3')",
            "requires RESP3, whose connections receive invalidation messages: set protocol of target %s to RESP3, or remove it",
        )
        .showing(["self.targets.filter(target, target.protocol != 'RESP3')[0].name"]),
        Rule::new(
            SPEC,
            "load.pipelineMode",
            "!has(self.workload.caching) || self.load.pipelineMode != 'Batch'",
            "Batch is not supported with workload.caching, whose hits are not sent: set Window, or remove caching",
        ),
        Rule::new(
            "spec.workload.caching",
            "prefixes",
            "self.type == 'Broadcast' || !has(self.prefixes) || self.prefixes.size() == 0",
            "are only valid for type Broadcast: remove them, or set type to Broadcast",
        ),
    ];
    unsupported.into_iter().chain(others).collect()
}

//! Rules of `workload.trace`.

use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    let unsupported = [
        ("workload.mix", "self.workload.mix == 'Random'", "set it to Random"),
        ("workload.transaction.size", "self.workload.transaction.size == 0", "set it to 0"),
        ("workload.wait.replicas", "self.workload.wait.replicas == 0", "set it to 0"),
        ("workload.onMiss", "self.workload.onMiss == 'Ignore'", "set it to Ignore"),
        ("workload.caching", "!has(self.workload.caching)", "remove it"),
        ("workload.values.content.type", "self.workload.values.content.type != 'File'", "set it to Random"),
        ("workload.keys.file", "!has(self.workload.keys.file)", "remove it"),
        ("verify.mode", "self.verify.mode == 'None'", "set it to None"),
        ("cleanup.keys", "self.cleanup.keys == 'Keep'", "set it to Keep"),
        ("load.nodesPerShard", "!has(self.load.nodesPerShard)", "remove it"),
        ("load.clients", concat!("!", filled!("self.load.clients")), "remove them"),
        ("load.requests", "!has(self.load.requests)", "set load.duration instead, or remove it"),
        (
            "load.requestsPerConnection",
            "!has(self.load.requestsPerConnection)",
            "set load.duration instead, or remove it",
        ),
        ("load.pipelineMode", "self.load.pipelineMode == 'Window'", "set it to Window"),
        (
            "load.openLoop.arrival",
            "!has(self.load.openLoop) || self.load.openLoop.arrival == 'Constant'",
            "set it to Constant, or set workload.trace.pace for the recorded times",
        ),
        (
            "targets",
            "self.targets.all(target, !has(target.pool) || target.pool.distribution != 'Even')",
            "set pool.distribution to ByKey",
        ),
    ];
    let unsupported = unsupported.map(|(field, condition, fix)| {
        let message = format!("is not supported with workload.trace, whose commands keep their order per key: {fix}");
        Rule::new(SPEC, field, format!("!has(self.workload.trace) || {condition}"), message)
    });
    let pace = Rule::new(
        SPEC,
        "workload.trace.pace",
        concat!(
            "!has(self.workload.trace) || !has(self.workload.trace.pace) || self.load.type == 'OpenLoop' && !has(self.search) && \
             !(has(self.load.openLoop) && has(self.load.openLoop.rate)) && !",
            filled!("self.load.stages")
        ),
        "requires an open loop without a rate: set load.type to OpenLoop and remove load.openLoop.rate, load.stages and search, \
         or remove it",
    );
    unsupported.into_iter().chain([pace]).collect()
}

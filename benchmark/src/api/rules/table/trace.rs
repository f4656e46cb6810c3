//! Rules of `workload.trace`.

use super::super::forms::unsupported;
use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    let features = [
        ("workload.mix", "self.workload.mix != 'Random'"),
        ("workload.transaction.size", "self.workload.transaction.size > 0"),
        ("workload.wait.replicas", "self.workload.wait.replicas > 0"),
        ("workload.onMiss", "self.workload.onMiss != 'Ignore'"),
        ("workload.caching", "has(self.workload.caching)"),
        ("workload.values.content.type File", "self.workload.values.content.type == 'File'"),
        ("workload.keys.file", "has(self.workload.keys.file)"),
        ("verify.mode other than None", "self.verify.mode != 'None'"),
        ("cleanup.keys", "self.cleanup.keys != 'Keep'"),
        ("load.nodesPerShard", "has(self.load.nodesPerShard)"),
        ("load.clients", "has(self.load.clients)"),
        ("load.requests", "has(self.load.requests)"),
        ("load.requestsPerConnection", "has(self.load.requestsPerConnection)"),
        ("load.pipelineMode", "self.load.pipelineMode != 'Window'"),
        (
            "load.openLoop.arrival (see trace.pace)",
            "has(self.load.openLoop) && self.load.openLoop.arrival != 'Constant'",
        ),
        (
            "targets.pool.distribution Even",
            "self.targets.exists(target, has(target.pool) && target.pool.distribution == 'Even')",
        ),
    ];
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
    vec![
        unsupported(
            "workload.trace",
            "has(self.workload.trace)",
            "keeps the order of the commands of each key, and does not support",
            &features,
            "remove or change these, or remove it",
        ),
        pace,
    ]
}

//! Rules of `perConnection` in key patterns. What an operation's keys take from those of the workload is checked in `api/validate/keys.rs`.

use super::super::super::keys;
use super::super::forms::unsupported;
use super::super::rule::{Rule, SPEC};

/// CEL: some pattern has it.
pub(super) const SET: &str = "self.workload.keys.pattern.perConnection || has(self.workload.operations) && \
                   self.workload.operations.exists(operation, has(operation.keys) && has(operation.keys.pattern) && \
                   operation.keys.pattern.perConnection)";

pub(super) fn all() -> Vec<Rule> {
    // The schedule, the key or the check selects the connection.
    let features = [
        ("load.type OpenLoop", "self.load.type == 'OpenLoop'"),
        ("load.closedLoop.concurrency", "has(self.load.closedLoop) && has(self.load.closedLoop.concurrency)"),
        ("targets.type Cluster or Pool", "self.targets.exists(target, target.type in ['Cluster', 'Pool'])"),
        ("verify.mode other than None", "self.verify.mode != 'None'"),
        ("workload.caching", "has(self.workload.caching)"),
    ];
    vec![
        unsupported(
            "workload.keys.pattern.perConnection",
            SET,
            "makes connections select their requests, and does not support",
            &features,
            "change these, or remove perConnection",
        ),
        Rule::new(
            SPEC,
            "workload.keys.count",
            "self.workload.keys.pattern.type != 'Partitioned' || !self.workload.keys.pattern.perConnection || \
             self.workload.keys.count >= self.load.connections",
            keys::each_connection("%s", "%s"),
        )
        .showing(["self.workload.keys.count", "self.load.connections"]),
    ]
}

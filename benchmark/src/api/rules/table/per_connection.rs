//! Rules of `perConnection` in key patterns. What an operation's keys take from those of the workload is checked in `api/validate/keys.rs`.

use super::super::super::keys;
use super::super::rule::{Rule, SPEC};

/// No pattern has it.
macro_rules! unset {
    () => {
        "!(self.workload.keys.pattern.perConnection || has(self.workload.operations) && \
         self.workload.operations.exists(operation, has(operation.keys) && has(operation.keys.pattern) && \
         operation.keys.pattern.perConnection))"
    };
}

const FIELD: &str = "workload.keys.pattern.perConnection";

pub(super) fn all() -> Vec<Rule> {
    vec![
        Rule::new(
            SPEC,
            FIELD,
            concat!(
                unset!(),
                " || self.load.type == 'ClosedLoop' && !(has(self.load.closedLoop) && has(self.load.closedLoop.concurrency))"
            ),
            "requires load.type ClosedLoop without closedLoop.concurrency, where connections select their requests: set it, or \
             remove perConnection",
        ),
        Rule::new(
            SPEC,
            FIELD,
            concat!(unset!(), " || self.targets.all(target, target.type in ['Standalone', 'Sentinel'])"),
            "is only valid for targets of type Standalone or Sentinel, because in a Cluster or Pool the key selects the \
             connection: remove it",
        ),
        Rule::new(
            SPEC,
            FIELD,
            concat!(unset!(), " || self.verify.mode == 'None' && !has(self.workload.caching)"),
            "is not supported with verify or workload.caching, which assign requests to connections: remove perConnection, or set \
             verify.mode to None and remove caching",
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

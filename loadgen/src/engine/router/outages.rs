//! Outages: slots without replies, from when to when, while the cold side looks for another owner.
//!
//! An outage opens when a request fails at a node, or cannot be sent because the node has no connection. It begins when that request was
//! sent or due, but not before the node's last reply without an error. It closes with the first such reply from the node that owns the
//! slots then. A node that answers other requests meanwhile closes it at once, so single failures are dropped as too short. An idle
//! connection that breaks is no outage: no request failed. The hot path only notes when a node last answered.

use redisbench_wire::limits;
use redisbench_wire::topology::{Outage, SlotRange};

/// The outages of one load.
#[derive(Debug, Default)]
pub(super) struct Outages {
    pub open: Vec<Open>,
    pub closed: Vec<Outage>,
    pub left_out: u64,
    /// A node has been silent for a while, but nothing has failed yet.
    pub silence: bool,
    pub next_call: u64,
}

/// An outage that has not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub slots: Vec<SlotRange>,
    pub reads: bool,
    /// Label of the node that failed.
    pub node: String,
    pub since: u64,
    /// The node that should reply now.
    pub owner: usize,
}

impl Outages {
    pub(super) fn close(&mut self, open: &Open, until: u64, lasting: bool) {
        if until.saturating_sub(open.since) < Outage::SHORTEST_NANOSECONDS {
            return;
        }
        let room = limits::OUTAGES.saturating_sub(self.closed.len());
        self.left_out += open.slots.len().saturating_sub(room) as u64;
        self.closed.extend(open.slots.iter().take(room).map(|slots| Outage {
            slots: *slots,
            reads: open.reads,
            node: open.node.clone(),
            from_nanoseconds: open.since,
            until_nanoseconds: until,
            lasting,
        }));
    }
}

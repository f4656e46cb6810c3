//! The findings of a look at the target.

use redisbench_wire::ShardFailure;

use super::advice;
use crate::cluster::Topology;
use crate::engine;

/// The finding of a look at the target.
#[derive(Debug)]
pub enum Finding {
    /// The target is up but not ready, and will become ready by itself.
    Waiting(String),
    /// A possibly temporary problem; a failure if it lasts.
    Obstacle(ShardFailure),
    /// A permanent problem.
    Failed(ShardFailure),
    /// The target matches the plan.
    Found(Box<FoundTarget>),
    /// The current map of a known cluster.
    Map(Topology),
}

/// The engine's view of the target.
#[derive(Debug)]
pub struct FoundTarget {
    pub topology: Topology,
    /// For each operation, whether it only reads.
    pub reads: Vec<bool>,
    pub access: engine::Access,
    /// True if the handshake sets a client name.
    pub named: bool,
    /// True if the inspected server may evict keys; assumed for all.
    pub may_evict: bool,
}

pub(super) fn wrong_topology(message: &str) -> Finding {
    Finding::Failed(advice::wrong_topology(message))
}

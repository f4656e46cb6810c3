//! State shared by the workers of an engine.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use redisbench_wire::plan::ShardPlan;
use tokio::sync::mpsc;

use super::api::EngineEvent;
use super::own::OwnNodes;
use crate::selfcheck::{Meter, Threads};
use crate::workload::{PreloadWalk, Workload};

/// Shared by the workers of an engine. Sending and receiving a request touches none of it.
#[derive(Debug)]
pub(super) struct Common {
    pub plan: ShardPlan,
    pub trial: Arc<Workload>,
    /// The steps of the preload, in order.
    pub preload: Vec<PreloadWalk>,
    pub last_read: Option<Arc<Workload>>,
    /// The nodes that the shard loads, if not all.
    pub own: Option<Arc<OwnNodes>>,
    pub may_evict: bool,
    /// Each worker's share of a processor, in millionths.
    pub processor: u64,
    /// Per operation, whether a replica may serve it.
    pub reads: Vec<bool>,
    pub events: mpsc::Sender<EngineEvent>,
    /// Ready connections of all workers.
    pub ready: AtomicU32,
    /// Wanted connections of all workers.
    pub wanted: AtomicU32,
    pub threads: Arc<Threads>,
    pub meter: Arc<Meter>,
}

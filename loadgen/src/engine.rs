//! The engine: worker threads that make connections, preload, and send a trial's requests, and the handle with which
//! the cold side commands them.

mod api;
mod cpus;

pub use api::{ConnectFailure, EngineConfig, EngineError, EngineEvent, Handshake};
pub use cpus::available_workers;

use std::sync::Arc;

use redisbench_wire::Detail;
use redisbench_wire::snapshot::Snapshot;
use tokio::sync::mpsc;

use crate::cluster::Topology;

/// A running engine. Dropping it stops its threads.
#[derive(Debug)]
pub struct Engine {}

impl Engine {
    /// Starts the worker threads. They do nothing until told to.
    ///
    /// # Errors
    /// When the plan cannot be run or the kernel refuses a thread.
    pub fn spawn(_config: EngineConfig, _events: mpsc::Sender<EngineEvent>) -> Result<Self, EngineError> {
        Err(EngineError::Unreachable)
    }

    /// How many workers were started.
    pub fn workers(&self) -> usize {
        0
    }

    /// Makes all connections, and keeps them made until [`Self::stop`]. They are pinged every 5 s while idle.
    ///
    /// # Errors
    /// When a worker cannot be reached.
    pub fn connect(&self) -> Result<(), EngineError> {
        Err(EngineError::Unreachable)
    }

    /// Writes this shard's keys as the plan says. Ends with [`EngineEvent::Preloaded`], at once if there is nothing to
    /// do, or [`EngineEvent::PreloadFailed`].
    ///
    /// # Errors
    /// When a worker cannot be reached.
    pub fn preload(&self) -> Result<(), EngineError> {
        Err(EngineError::Unreachable)
    }

    /// Runs the trial from `start_nanoseconds` of the monotonic clock on ([`monotonic_nanoseconds`]). Ends with
    /// [`EngineEvent::Finished`].
    ///
    /// # Errors
    /// When a worker cannot be reached.
    pub fn start(&self, _start_nanoseconds: u64, _attempt: u32) -> Result<(), EngineError> {
        Err(EngineError::Unreachable)
    }

    /// Stops the load (preload or trial) at once. What was measured is kept; requests in flight stay counted as such.
    ///
    /// # Errors
    /// When a worker cannot be reached.
    pub fn abort(&self) -> Result<(), EngineError> {
        Err(EngineError::Unreachable)
    }

    /// Stops the load if there is any, drops what was measured, and makes ready for another [`Self::start`]. The
    /// preload's counts are kept.
    ///
    /// # Errors
    /// When a worker cannot be reached.
    pub fn rearm(&self) -> Result<(), EngineError> {
        Err(EngineError::Unreachable)
    }

    /// Replaces the servers' map, as an answer to [`EngineEvent::TopologyStale`].
    ///
    /// # Errors
    /// When a worker cannot be reached.
    pub fn update_topology(&self, _topology: &Arc<Topology>) -> Result<(), EngineError> {
        Err(EngineError::Unreachable)
    }

    /// The cumulative snapshot of all workers.
    ///
    /// # Errors
    /// When a worker cannot be reached.
    #[allow(clippy::unused_async)]
    pub async fn snapshot(&self, _detail: Detail) -> Result<Snapshot, EngineError> {
        Err(EngineError::Unreachable)
    }

    /// Stops the load, closes all connections and joins the threads, which takes some milliseconds.
    pub fn stop(self) {}
}

/// Reads the monotonic clock that the engine's instants are on, in nanoseconds.
pub fn monotonic_nanoseconds() -> u64 {
    0
}

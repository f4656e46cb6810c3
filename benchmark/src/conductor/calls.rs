//! Calls from the conductor to a shard, and their errors. The conductor reaches shards only through [`ShardCalls`].

use std::future::Future;
use std::net::SocketAddr;

use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{
    AbortRequest, AcceptedStart, CleanupState, ClockReading, Detail, EpochRequest, MeasureRequest, PlanRequest,
    ProbeRequest, ProbeState, Refusal, RefusalCode, ShardState, StartRequest,
};

/// Address and identity of one incarnation of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Counted from 0.
    pub shard: u32,
    /// Identity of the process: the pod's UID on Kubernetes. Every answer must contain it.
    pub incarnation: String,
    /// Address of its control API.
    pub address: SocketAddr,
    /// The machine that it runs on, for the breakdown per shard; may be empty.
    pub host: String,
}

/// Why a call to a shard gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No answer, or one from another process. The trial may be unaffected.
    #[error("failed to reach the shard: {0}")]
    Unreachable(Unreachable),
    /// The shard refused the call.
    #[error("the shard refused: {0}")]
    Refused(Refusal),
}

/// Why a shard could not be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// No answer to the dial within its timeout: packets are dropped on the way, or the machine is gone.
    #[error("the connection to {0} timed out (does a NetworkPolicy block it?)")]
    DialTimedOut(SocketAddr),
    /// The connection could not be made, or broke.
    #[error("{0}")]
    Connection(String),
    /// The whole call timed out.
    #[error("timed out after {} ms", .0.as_millis())]
    TimedOut(std::time::Duration),
    /// The answer violates the contract or its bounds.
    #[error("invalid reply: {0}")]
    Malformed(String),
    /// Another process answered: wire version, run, incarnation or trial differ.
    #[error("another process replied: {0}")]
    Foreign(String),
}

impl CallError {
    /// Whether another conductor has taken over.
    pub fn is_stale_epoch(&self) -> bool {
        self.refusal() == Some(RefusalCode::StaleEpoch)
    }

    pub fn refusal(&self) -> Option<RefusalCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::Unreachable(_) => None,
        }
    }
}

impl From<Unreachable> for CallError {
    fn from(how: Unreachable) -> Self {
        Self::Unreachable(how)
    }
}

/// The calls of [`redisbench_wire::path`]. Every implementation bounds the time of each call and checks that the answer comes from the
/// endpoint's incarnation. The conductor adds only the timeouts of the protocol.
pub trait ShardCalls: Send + Sync + 'static {
    /// Reads the shard's monotonic clock.
    fn clock(&self, shard: &Endpoint) -> impl Future<Output = Result<ClockReading, CallError>> + Send;

    /// Reads the shard's state in its trial.
    fn state(&self, shard: &Endpoint) -> impl Future<Output = Result<ShardState, CallError>> + Send;

    /// Sends the plan: connect, preload, arm.
    fn put_plan(
        &self,
        shard: &Endpoint,
        trial: u32,
        request: &PlanRequest,
    ) -> impl Future<Output = Result<ShardState, CallError>> + Send;

    /// Orders the start instant, on the shard's clock.
    fn start(
        &self,
        shard: &Endpoint,
        trial: u32,
        request: &StartRequest,
    ) -> impl Future<Output = Result<AcceptedStart, CallError>> + Send;

    /// Ends the warm-up at an instant that all shards share.
    fn measure(
        &self,
        shard: &Endpoint,
        trial: u32,
        request: &MeasureRequest,
    ) -> impl Future<Output = Result<ShardState, CallError>> + Send;

    /// Fetches counters and histograms so far, and the seconds from `from` on.
    fn snapshot(
        &self,
        shard: &Endpoint,
        trial: u32,
        detail: Detail,
        from: u32,
    ) -> impl Future<Output = Result<Snapshot, CallError>> + Send;

    /// Stops the trial now.
    fn abort(
        &self,
        shard: &Endpoint,
        trial: u32,
        request: &AbortRequest,
    ) -> impl Future<Output = Result<ShardState, CallError>> + Send;

    /// Runs the same load with half of the connections, and returns the outcome.
    fn probe(
        &self,
        shard: &Endpoint,
        trial: u32,
        request: &ProbeRequest,
    ) -> impl Future<Output = Result<ProbeState, CallError>> + Send;

    /// Deletes the shard's part of the keys, and returns the progress.
    fn cleanup(
        &self,
        shard: &Endpoint,
        request: &EpochRequest,
    ) -> impl Future<Output = Result<CleanupState, CallError>> + Send;

    /// Closes every connection and drops the measurements. The answer comes once that is done.
    fn drain(
        &self,
        shard: &Endpoint,
        request: &EpochRequest,
    ) -> impl Future<Output = Result<ShardState, CallError>> + Send;

    /// Lets the shard exit with 0: its result is safe.
    fn release(
        &self,
        shard: &Endpoint,
        request: &EpochRequest,
    ) -> impl Future<Output = Result<ShardState, CallError>> + Send;
}

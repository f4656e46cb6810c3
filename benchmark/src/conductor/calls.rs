//! What the conductor asks of a shard, and how that can fail. The conductor knows shards only through [`ShardCalls`].

use std::future::Future;
use std::net::SocketAddr;

use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{
    AbortRequest, AcceptedStart, CleanupState, ClockReading, Detail, EpochRequest, MeasureRequest, PlanRequest,
    ProbeRequest, ProbeState, Refusal, RefusalCode, ShardState, StartRequest,
};

/// Where one incarnation of a shard listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The shard's index, from 0.
    pub shard: u32,
    /// The identity of the process: the pod's UID on Kubernetes. Every answer must name it.
    pub incarnation: String,
    /// Where its control API listens.
    pub address: SocketAddr,
    /// The machine that it runs on, for the breakdown per shard; may be empty.
    pub host: String,
}

/// Why a call to a shard gave no answer to use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No answer, or not from the process that was meant. It says nothing about the trial.
    #[error("failed to reach the shard: {0}")]
    Unreachable(Unreachable),
    /// The shard answered that it will not.
    #[error("the shard refused: {0}")]
    Refused(Refusal),
}

/// How a shard could not be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// Nothing answered the dial in time. Packets are dropped on the way, or the machine is gone.
    #[error("no answer to the connection attempt to {0} (a NetworkPolicy in the way?)")]
    DialTimedOut(SocketAddr),
    /// The connection could not be made, or broke.
    #[error("{0}")]
    Connection(String),
    /// The whole call took too long.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(std::time::Duration),
    /// The answer is not the contract's, or beyond its bounds.
    #[error("the answer cannot be used: {0}")]
    Malformed(String),
    /// Another process answered: wire version, run, incarnation or trial differ.
    #[error("another process answered: {0}")]
    Foreign(String),
}

impl CallError {
    /// Whether another conductor has taken over.
    pub fn is_stale_epoch(&self) -> bool {
        self.refusal() == Some(RefusalCode::StaleEpoch)
    }

    /// The class of the refusal, if it is one.
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

/// The calls of [`redisbench_wire::path`]. Every implementation bounds the time of each call, and checks that each
/// answer comes from the endpoint's incarnation; the conductor adds no timeout but those of the protocol.
pub trait ShardCalls: Send + Sync + 'static {
    /// The shard's monotonic clock.
    fn clock(&self, shard: &Endpoint) -> impl Future<Output = Result<ClockReading, CallError>> + Send;

    /// Where the shard is in its trial.
    fn state(&self, shard: &Endpoint) -> impl Future<Output = Result<ShardState, CallError>> + Send;

    /// Hands over the plan: connect, preload, arm.
    fn put_plan(
        &self,
        shard: &Endpoint,
        request: &PlanRequest,
    ) -> impl Future<Output = Result<ShardState, CallError>> + Send;

    /// Names the start instant on the shard's clock.
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

    /// The counters and histograms so far, and the seconds from `from` on.
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

    /// Has the shard run the same load with half of the connections, and tells what came of it.
    fn probe(
        &self,
        shard: &Endpoint,
        trial: u32,
        request: &ProbeRequest,
    ) -> impl Future<Output = Result<ProbeState, CallError>> + Send;

    /// Has the shard delete its part of the keys, and tells how far that is.
    fn cleanup(
        &self,
        shard: &Endpoint,
        request: &EpochRequest,
    ) -> impl Future<Output = Result<CleanupState, CallError>> + Send;

    /// Has the shard close every connection and drop what it measured. Answered once that is done.
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

//! Calls from the conductor to a shard as data, their replies and errors. The conductor reaches shards only through [`ShardCalls`].

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, StreamExt as _};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{
    AbortRequest, AcceptedStart, AfterRequest, CleanupState, ClockReading, Detail, EpochRequest, PlanRequest,
    ProbeState, Refusal, RefusalCode, ShardState, StartRequest,
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
    /// The shard was not called, because its answer would need memory that other answers take.
    #[error("waited {} s for memory to read its result: see redisbench_result_reads_waiting", .0.as_secs())]
    NoMemory(std::time::Duration),
}

impl Unreachable {
    /// Returns true if no process replied. Another call would only wait for another timeout.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::DialTimedOut(_) | Self::Connection(_) | Self::TimedOut(_))
    }
}

impl CallError {
    /// Returns whether another conductor has taken over.
    pub fn is_stale_epoch(&self) -> bool {
        self.refusal() == Some(RefusalCode::StaleEpoch)
    }

    /// The reason without its kind.
    pub fn why(&self) -> String {
        match self {
            Self::Unreachable(how) => how.to_string(),
            Self::Refused(refusal) => refusal.to_string(),
        }
    }

    /// A refusal is an answer, so the shard is reachable; its state decides what the refusal means.
    pub fn unreachable(self) -> Option<Unreachable> {
        match self {
            Self::Unreachable(how) => Some(how),
            Self::Refused(_) => None,
        }
    }

    /// The outcome for metrics: one of a few values.
    fn outcome(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Unreachable(Unreachable::DialTimedOut(_)) => "dial_timeout",
            Self::Unreachable(Unreachable::Connection(_)) => "connection",
            Self::Unreachable(Unreachable::TimedOut(_)) => "timeout",
            Self::Unreachable(Unreachable::Malformed(_)) => "malformed",
            Self::Unreachable(Unreachable::Foreign(_)) => "foreign",
            Self::Unreachable(Unreachable::NoMemory(_)) => "no_memory",
        }
    }

    pub fn refusal(&self) -> Option<RefusalCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::Unreachable(_) => None,
        }
    }
}

/// Calls by name and outcome, of all clients that share it.
#[derive(Debug, Default)]
pub struct CallCounts(Mutex<BTreeMap<(&'static str, &'static str), u64>>);

impl CallCounts {
    pub(super) fn count(&self, call: &Call, result: &Result<Reply, CallError>) {
        let outcome = result.as_ref().err().map_or("success", CallError::outcome);
        *self.lock().entry((call.name(), outcome)).or_default() += 1;
    }

    /// The number of calls with each name and outcome.
    pub fn all(&self) -> Vec<((&'static str, &'static str), u64)> {
        self.lock().iter().map(|(key, count)| (*key, *count)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(&'static str, &'static str), u64>> {
        // Counts are consistent between calls.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Unreachable> for CallError {
    fn from(how: Unreachable) -> Self {
        Self::Unreachable(how)
    }
}

/// A call of [`redisbench_wire::path`]. The first number is the trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Reads the shard's monotonic clock.
    Clock,
    /// Reads the shard's state in its trial.
    State,
    /// Sends the plan: connect, preload, arm.
    Plan(u32, PlanRequest),
    /// Orders the start instant, on the shard's clock.
    Start(u32, StartRequest),
    /// Ends the warm-up at an instant that all shards share.
    Measure(u32, AfterRequest),
    /// Fetches counters and histograms so far, and the seconds from the last number on.
    Snapshot(u32, Detail, u32),
    /// Stops the trial now.
    Abort(u32, AbortRequest),
    /// Runs the same load with half of the connections, and returns the outcome.
    Probe(u32, AfterRequest),
    /// Deletes the shard's part of the keys, and returns the progress.
    Cleanup(EpochRequest),
    /// Closes every connection and drops the measurements. The reply comes once that is done.
    Drain(EpochRequest),
    /// Lets the shard exit with 0: its result is safe.
    Release(EpochRequest),
}

impl Call {
    /// The name for metrics.
    fn name(&self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::State => "state",
            Self::Plan(..) => "plan",
            Self::Start(..) => "start",
            Self::Measure(..) => "measure",
            Self::Snapshot(..) => "snapshot",
            Self::Abort(..) => "abort",
            Self::Probe(..) => "probe",
            Self::Cleanup(_) => "cleanup",
            Self::Drain(_) => "drain",
            Self::Release(_) => "release",
        }
    }

    /// The conductor's epoch, of every call that may change something.
    pub fn epoch(&self) -> Option<u64> {
        match self {
            Self::Clock | Self::State | Self::Snapshot(..) => None,
            Self::Plan(_, request) => Some(request.epoch),
            Self::Start(_, request) => Some(request.epoch),
            Self::Measure(_, request) | Self::Probe(_, request) => Some(request.epoch),
            Self::Abort(_, request) => Some(request.epoch),
            Self::Cleanup(request) | Self::Drain(request) | Self::Release(request) => Some(request.epoch),
        }
    }
}

/// The reply to a [`Call`]. Most calls reply with the shard's state.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Clock(ClockReading),
    State(Box<ShardState>),
    Start(AcceptedStart),
    Snapshot(Box<Snapshot>),
    Probe(Box<ProbeState>),
    Cleanup(CleanupState),
}

impl Reply {
    pub(super) fn state(self) -> Result<ShardState, CallError> {
        if let Self::State(state) = self { Ok(*state) } else { unexpected() }
    }

    pub(super) fn snapshot(self) -> Result<Snapshot, CallError> {
        if let Self::Snapshot(snapshot) = self { Ok(*snapshot) } else { unexpected() }
    }

    pub(super) fn cleanup(self) -> Result<CleanupState, CallError> {
        if let Self::Cleanup(state) = self { Ok(state) } else { unexpected() }
    }
}

fn unexpected<T>() -> Result<T, CallError> {
    Err(Unreachable::Malformed("a reply to another call".to_owned()).into())
}

/// Upper bound of concurrent calls to shards that reply in time.
pub const CALLS_IN_FLIGHT: usize = 64;

/// Makes calls. Every implementation bounds the time of each call and checks that the reply comes from the endpoint's incarnation. The
/// conductor adds only the timeouts of the protocol.
pub trait ShardCalls: Send + Sync + 'static {
    fn call(&self, shard: &Endpoint, call: &Call) -> impl Future<Output = Result<Reply, CallError>> + Send;
}

/// Makes one call to several shards, at most [`CALLS_IN_FLIGHT`] at once.
pub async fn call_all<C: ShardCalls>(
    calls: Arc<C>,
    shards: Vec<Endpoint>,
    call: Call,
) -> Vec<(Endpoint, Result<Reply, CallError>)> {
    let (calls, call) = (&calls, &call);
    let one = |shard: Endpoint| async move {
        let reply = calls.call(&shard, call).await;
        (shard, reply)
    };
    let replies: Vec<_> = shards.into_iter().map(one).collect();
    stream::iter(replies).buffer_unordered(CALLS_IN_FLIGHT).collect().await
}

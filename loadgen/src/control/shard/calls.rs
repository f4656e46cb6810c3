//! The conductor's calls and their answers.

use std::sync::Arc;

use redisbench_wire::{
    AbortRequest, AcceptedStart, AfterRequest, CleanupState, Detail, EpochRequest, PlanRequest, ProbeState, Refusal,
    ShardState, StartRequest,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::control::driver::Driver;
use crate::target::ServerView;

/// An answer and the trial that it refers to.
#[derive(Debug)]
pub struct ShardAnswer<T> {
    /// The requested trial, else the present one.
    pub trial: Option<u32>,
    pub body: T,
}

/// Channel for the answer to a call.
pub type ReplySender<T> = oneshot::Sender<ShardAnswer<Result<T, Refusal>>>;

/// Sources of a snapshot.
#[derive(Debug)]
pub struct Sources {
    /// The measurement.
    pub driver: Arc<dyn Driver>,
    /// The servers' statistics, if the plan asks for them.
    pub servers: Option<ServerView>,
    /// True if nothing but the load was sent until now, so that the servers' counters belong to the load.
    pub load_was_last: bool,
    /// Cancelled once a signal to terminate has stopped the load.
    pub terminated: CancellationToken,
}

/// A call with a valid credential.
#[derive(Debug)]
pub enum ShardCall {
    /// `GET /v1/state`.
    State(ReplySender<ShardState>),
    /// `PUT /v1/trials/{t}`.
    Plan(u32, PlanRequest, ReplySender<ShardState>),
    /// `PUT /v1/trials/{t}/start`.
    Start(u32, StartRequest, ReplySender<AcceptedStart>),
    /// `PUT /v1/trials/{t}/measure`.
    Measure(u32, AfterRequest, ReplySender<ShardState>),
    /// `PUT /v1/trials/{t}/probe`.
    Probe(u32, AfterRequest, ReplySender<ProbeState>),
    /// `PUT /v1/trials/{t}/abort`.
    Abort(u32, AbortRequest, ReplySender<ShardState>),
    /// `GET /v1/trials/{t}/snapshot`. Returns the sources, so that encoding blocks no other call.
    Snapshot(u32, Detail, ReplySender<Sources>),
    /// `PUT /v1/cleanup`.
    Cleanup(EpochRequest, ReplySender<CleanupState>),
    /// `PUT /v1/drain`.
    Drain(EpochRequest, ReplySender<ShardState>),
    /// `PUT /v1/release`.
    Release(EpochRequest, ReplySender<ShardState>),
}

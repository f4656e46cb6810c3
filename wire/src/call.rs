//! The calls to a shard. `GET` reads, `PUT` is idempotent, and every `PUT` has the conductor's epoch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::plan::TrialPlan;

/// The paths of the calls. `{trial}` stands for the number of a trial: see [`of_trial`](path::of_trial).
pub mod path {
    /// `GET` -> [`super::ClockReading`].
    pub const CLOCK: &str = "/v1/clock";
    /// `GET` -> [`super::ShardState`].
    pub const STATE: &str = "/v1/state";
    /// `PUT` [`super::EpochRequest`] -> [`super::CleanupState`]: delete this shard's part of the keys. A repeated call returns the
    /// progress.
    pub const CLEANUP: &str = "/v1/cleanup";
    /// `PUT` [`super::EpochRequest`] -> [`super::ShardState`]: the trial's result is stored; drop it and close every connection. Returns
    /// once none is left.
    pub const DRAIN: &str = "/v1/drain";
    /// `PUT` [`super::EpochRequest`] -> [`super::ShardState`]: the result is stored; exit with 0.
    pub const RELEASE: &str = "/v1/release";
    /// `PUT` [`super::PlanRequest`] -> [`super::ShardState`]: connect, preload, arm.
    pub const TRIAL: &str = "/v1/trials/{trial}";
    /// `PUT` [`super::StartRequest`] -> [`super::AcceptedStart`].
    pub const START: &str = "/v1/trials/{trial}/start";
    /// `PUT` [`super::AfterRequest`] -> [`super::ShardState`]: end the warm-up early, at this instant.
    pub const MEASURE: &str = "/v1/trials/{trial}/measure";
    /// `PUT` [`super::AfterRequest`] -> [`crate::ProbeState`]: after the trial, repeat the load with half of the connections. A repeated
    /// call returns the outcome.
    pub const PROBE: &str = "/v1/trials/{trial}/probe";
    /// `GET` with `?detail=live|full&from=SECOND` -> [`crate::snapshot::Snapshot`], with the timeline from that second on.
    pub const SNAPSHOT: &str = "/v1/trials/{trial}/snapshot";
    /// `PUT` [`super::AbortRequest`] -> [`super::ShardState`].
    pub const ABORT: &str = "/v1/trials/{trial}/abort";

    /// `path` with the number of its trial, if it has one.
    pub fn of_trial(path: &str, trial: Option<u32>) -> String {
        trial.map_or_else(|| path.to_owned(), |trial| path.replace("{trial}", &trial.to_string()))
    }

    /// [`SNAPSHOT`] with trial and query.
    pub fn snapshot(trial: u32, detail: super::Detail, from: u32) -> String {
        let detail = match detail {
            super::Detail::Live => "live",
            super::Detail::Full => "full",
        };
        format!("{}?detail={detail}&from={from}", of_trial(SNAPSHOT, Some(trial)))
    }
}

/// The amount of detail in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Counters and the total's histograms.
    Live,
    /// Everything, including operations, nodes and series. Available once the trial has finished.
    Full,
}

/// The answer to [`path::CLOCK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClockReading {
    /// `CLOCK_MONOTONIC` of the shard, in nanoseconds, read while the call was answered.
    #[serde(deserialize_with = "bounded::instant")]
    pub monotonic_nanoseconds: u64,
}

/// The body of calls without other parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpochRequest {
    /// The conductor's epoch.
    pub epoch: u64,
}

/// The body of `PUT /v1/trials/{t}`. Repeating a hash returns 200; a different hash is refused with [`crate::RefusalCode::PlanConflict`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// [`TrialPlan::hash`] of the plan.
    pub hash: String,
    /// The plan of all shards.
    pub plan: Arc<TrialPlan>,
}

/// The body of `PUT /v1/trials/{t}/start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// The attempt, from 1. For each attempt, the first accepted instant is final.
    pub attempt: u32,
    /// The time at which to send the first warm-up request: nanoseconds on this shard's monotonic clock.
    pub start_nanoseconds: u64,
}

/// The start that a shard accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedStart {
    /// The attempt, from 1.
    #[serde(deserialize_with = "bounded::attempt")]
    pub attempt: u32,
    /// Nanoseconds on this shard's monotonic clock.
    #[serde(deserialize_with = "bounded::instant")]
    pub start_nanoseconds: u64,
}

/// The body of `PUT /v1/trials/{t}/measure` and of `PUT /v1/trials/{t}/probe`. For each attempt, the first accepted instant is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// The attempt that runs, or that was measured, from 1.
    pub attempt: u32,
    /// The beginning of the measurement or the probe, in nanoseconds after the start instant of that attempt. The same for all shards.
    pub after_nanoseconds: u64,
}

/// The body of `PUT /v1/trials/{t}/abort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// The attempt to abort. None aborts any attempt.
    pub attempt: Option<u32>,
    /// The action after the load has stopped.
    pub then: AbortThen,
}

/// A shard's action after the load has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AbortThen {
    /// Ends the trial and keeps its result for collection.
    Stop,
    /// Drops the measurement, keeps the preload, and arms again for the next attempt.
    Rearm,
}

/// The phase of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ShardPhase {
    /// No plan yet.
    Idle,
    /// Connecting, preloading, or reconnecting after connections broke while armed.
    Preparing,
    /// Ready to start.
    Armed,
    /// A start instant was accepted, and the trial has not finished.
    Running,
    /// The trial has finished, and the full snapshot is available.
    Finished,
    /// The trial cannot continue; `failure` gives the reason.
    Failed,
}

/// The answer to [`path::STATE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardState {
    /// The phase of the shard.
    pub phase: ShardPhase,
    /// The reason, in phase Failed.
    pub failure: Option<ShardFailure>,
    /// The hash of the accepted plan.
    #[serde(default, deserialize_with = "bounded::optional_name")]
    pub plan_hash: Option<String>,
    /// The accepted start of the current attempt.
    pub accepted: Option<AcceptedStart>,
    /// The highest epoch received.
    pub epoch: u64,
    /// Progress of phase Preparing.
    pub preparation: Preparation,
}

/// Progress of phase Preparing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    /// Connections that are ready.
    pub connected: u32,
    /// Connections to open.
    pub connections: u32,
    /// Commands of this shard's preload that succeeded.
    #[serde(deserialize_with = "bounded::count")]
    pub preload_done: u64,
    /// Commands of this shard's preload.
    #[serde(deserialize_with = "bounded::count")]
    pub preload_commands: u64,
    /// The last temporary obstacle, such as a refused connection.
    #[serde(default, deserialize_with = "bounded::optional_message")]
    pub waiting_for: Option<String>,
}

/// The answer to [`path::CLEANUP`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanupState {
    /// Keys that existed and were deleted.
    #[serde(deserialize_with = "bounded::count")]
    pub removed_keys: u64,
    /// True if none of this shard's keys is left to delete.
    pub done: bool,
    /// Why it failed. Contains no credential.
    #[serde(default, deserialize_with = "bounded::optional_message")]
    pub failure: Option<String>,
}

/// Why a shard failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardFailure {
    /// The class.
    pub reason: FailureReason,
    /// The problem and how to fix it, for people. Contains no credential.
    #[serde(deserialize_with = "bounded::message")]
    pub message: String,
}

/// The class of a [`ShardFailure`]. Each ends the run, because a retry without a change would fail again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureReason {
    /// This shard cannot run the plan.
    BadPlan,
    /// The server refused the credentials, or requires some.
    AuthenticationFailed,
    /// The TLS handshake with the server failed.
    TlsFailed,
    /// No endpoint's name could be resolved.
    NameNotResolved,
    /// No endpoint answered within the connect timeout and its retries.
    Unreachable,
    /// The server does not have the topology of the target's type.
    WrongTopology,
    /// The server refused a command of the workload.
    CommandRefused,
    /// Preloading failed.
    PreloadFailed,
    /// This process lacks a resource, such as file descriptors.
    Resources,
    /// A limit of the plan has passed without contact with the conductor.
    LimitPassed,
    /// A bug in the load generator.
    Internal,
}

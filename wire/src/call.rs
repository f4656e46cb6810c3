//! The calls that a shard answers. `GET` reads, `PUT` is idempotent, and every `PUT` carries the conductor's epoch.

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::plan::ShardPlan;

/// The paths of the calls.
pub mod path {
    /// `GET` -> [`super::ClockReading`].
    pub const CLOCK: &str = "/v1/clock";
    /// `GET` -> [`super::ShardState`].
    pub const STATE: &str = "/v1/state";
    /// `PUT` [`super::EpochRequest`] -> [`super::CleanupState`]: delete this shard's part of the keys. Asked again, it
    /// tells how far that is.
    pub const CLEANUP: &str = "/v1/cleanup";
    /// `PUT` [`super::EpochRequest`] -> [`super::ShardState`]: the trial is over and its result is safe, so drop what was
    /// measured and close every connection. Answered once none is left.
    pub const DRAIN: &str = "/v1/drain";
    /// `PUT` [`super::EpochRequest`] -> [`super::ShardState`]: the result is safe, exit with 0.
    pub const RELEASE: &str = "/v1/release";

    /// `PUT` [`super::PlanRequest`] -> [`super::ShardState`]: connect, preload, arm.
    pub fn trial(trial: u32) -> String {
        format!("/v1/trials/{trial}")
    }

    /// `PUT` [`super::StartRequest`] -> [`super::AcceptedStart`].
    pub fn start(trial: u32) -> String {
        format!("/v1/trials/{trial}/start")
    }

    /// `PUT` [`super::MeasureRequest`] -> [`super::ShardState`]: the warm-up ends at this instant, before its time.
    pub fn measure(trial: u32) -> String {
        format!("/v1/trials/{trial}/measure")
    }

    /// `PUT` [`crate::ProbeRequest`] -> [`crate::ProbeState`]: once the trial is over, the same load with half of the
    /// connections. Asked again, it tells what came of it.
    pub fn probe(trial: u32) -> String {
        format!("/v1/trials/{trial}/probe")
    }

    /// `GET` with `?detail=live|full&from=SECOND` -> [`crate::snapshot::Snapshot`], with the seconds from that one on.
    pub fn snapshot(trial: u32, detail: super::Detail, from: u32) -> String {
        let detail = match detail {
            super::Detail::Live => "live",
            super::Detail::Full => "full",
        };
        format!("/v1/trials/{trial}/snapshot?detail={detail}&from={from}")
    }

    /// `PUT` [`super::AbortRequest`] -> [`super::ShardState`].
    pub fn abort(trial: u32) -> String {
        format!("/v1/trials/{trial}/abort")
    }
}

/// How much a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Counters and the total's histograms.
    Live,
    /// Everything: operations, nodes and series too. Answered once the trial is finished.
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

/// The body of calls that need nothing but the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpochRequest {
    /// The conductor's epoch.
    pub epoch: u64,
}

/// The body of `PUT /v1/trials/{t}`. The same hash again is answered with 200, another with
/// [`crate::RefusalCode::PlanConflict`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// [`ShardPlan::hash`] of the plan.
    pub hash: String,
    /// What this shard shall do.
    pub plan: ShardPlan,
}

/// The body of `PUT /v1/trials/{t}/start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// The attempt, from 1. The first instant accepted for an attempt stands.
    pub attempt: u32,
    /// When to send the first warm-up request: nanoseconds on this shard's monotonic clock.
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

/// The body of `PUT /v1/trials/{t}/measure`. The first instant accepted for an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MeasureRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// The attempt, from 1.
    pub attempt: u32,
    /// When the measurement begins, in nanoseconds after the start instant: the same for all shards.
    pub after_nanoseconds: u64,
}

/// The body of `PUT /v1/trials/{t}/abort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// The attempt to abort; none aborts whatever there is.
    pub attempt: Option<u32>,
    /// What comes after.
    pub then: AbortThen,
}

/// What a shard does once the load has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AbortThen {
    /// The trial is over: what was measured is kept for collection.
    Stop,
    /// What was measured is dropped, the preload is kept, and the shard arms again for the next attempt.
    Rearm,
}

/// Where a shard is in its trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ShardPhase {
    /// No plan yet.
    Idle,
    /// Connecting or preloading; or mending connections that broke while armed.
    Preparing,
    /// Ready to start.
    Armed,
    /// A start instant was accepted, and the trial is not over.
    Running,
    /// The trial is over; the full snapshot is ready.
    Finished,
    /// The trial cannot go on; `failure` says why.
    Failed,
}

/// The answer to [`path::STATE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardState {
    /// Where the shard is.
    pub phase: ShardPhase,
    /// Why, in phase Failed.
    pub failure: Option<ShardFailure>,
    /// The hash of the accepted plan.
    #[serde(default, deserialize_with = "bounded::optional_name")]
    pub plan_hash: Option<String>,
    /// The accepted start of the present attempt.
    pub accepted: Option<AcceptedStart>,
    /// The highest epoch seen.
    pub epoch: u64,
    /// How far phase Preparing has come.
    pub preparation: Preparation,
}

/// Progress of phase Preparing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    /// Connections that are ready.
    pub connected: u32,
    /// Connections wanted.
    pub connections: u32,
    /// Keys that this shard has written or found.
    #[serde(deserialize_with = "bounded::count")]
    pub preloaded_keys: u64,
    /// Keys that this shard shall preload.
    #[serde(deserialize_with = "bounded::count")]
    pub preload_keys: u64,
    /// The last obstacle that may pass by itself, such as a refused connection.
    #[serde(default, deserialize_with = "bounded::optional_message")]
    pub waiting_for: Option<String>,
}

/// The answer to [`path::CLEANUP`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanupState {
    /// Keys that were there and are deleted.
    #[serde(deserialize_with = "bounded::count")]
    pub removed_keys: u64,
    /// None of this shard's keys is left to delete.
    pub done: bool,
    /// Why it will not be done. Holds no credential.
    #[serde(default, deserialize_with = "bounded::optional_message")]
    pub failure: Option<String>,
}

/// Why a shard failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardFailure {
    /// The class.
    pub reason: FailureReason,
    /// What happened and what to do, for people. Holds no credential.
    #[serde(deserialize_with = "bounded::message")]
    pub message: String,
}

/// The class of a [`ShardFailure`]. All of them end the run: trying again without a change would fail again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureReason {
    /// The plan cannot be run by this shard.
    BadPlan,
    /// The server refused the credentials, or wants some.
    AuthenticationFailed,
    /// TLS to the server could not be agreed.
    TlsFailed,
    /// No endpoint's name could be resolved.
    NameNotResolved,
    /// No endpoint answered within the connect timeout and its retries.
    Unreachable,
    /// The server is not what the target's type says.
    WrongTopology,
    /// The server refused a command of the workload.
    CommandRefused,
    /// Preloading failed.
    PreloadFailed,
    /// This process lacks a resource, such as file descriptors.
    Resources,
    /// A limit of the plan was passed without a word from the conductor.
    LimitPassed,
    /// A fault of the load generator itself.
    Internal,
}

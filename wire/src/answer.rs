use serde::{Deserialize, Serialize};

use crate::{WIRE_VERSION, bounded};

/// The envelope of every answer of a shard. If version, run or incarnation do not match, the shard is unreachable and the body must be
/// dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer<T> {
    /// [`WIRE_VERSION`] of the shard.
    pub wire: u32,
    /// The run's identity, as in the plan and in the benchmark's `status.runId`.
    #[serde(deserialize_with = "bounded::name")]
    pub run: String,
    /// The identity of this process: the pod's UID on Kubernetes.
    #[serde(deserialize_with = "bounded::name")]
    pub incarnation: String,
    /// The trial that the body is about, if any.
    pub trial: Option<u32>,
    /// The type of the call, or a [`Refusal`] with an HTTP status of 400 or more.
    pub body: T,
}

impl<T> Answer<T> {
    /// Wraps `body` in an answer of this version.
    pub fn new(run: impl Into<String>, incarnation: impl Into<String>, trial: Option<u32>, body: T) -> Self {
        Self { wire: WIRE_VERSION, run: run.into(), incarnation: incarnation.into(), trial, body }
    }
}

/// Why a shard refused a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{code:?}: {message}")]
pub struct Refusal {
    /// The class, which determines the conductor's next step.
    pub code: RefusalCode,
    /// Text for people.
    #[serde(deserialize_with = "bounded::message")]
    pub message: String,
}

/// The class of a [`Refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalCode {
    /// No or a wrong credential (401).
    Unauthorized,
    /// The call has a lower epoch than an earlier one: another conductor has taken over (409).
    StaleEpoch,
    /// A different plan was accepted for this trial (409).
    PlanConflict,
    /// The call is not possible in the shard's phase (409).
    WrongPhase,
    /// The start instant has passed, and none was accepted for this attempt (409).
    InstantPassed,
    /// No such trial or call (404).
    Unknown,
    /// The body does not parse as the call's type (422).
    Malformed,
    /// The body is larger than [`crate::limits::REQUEST_BYTES`] (413).
    TooLarge,
    /// The shard could not answer now; retry (503).
    Unavailable,
}

impl RefusalCode {
    /// The HTTP status of this refusal.
    pub fn status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::Unknown => 404,
            Self::StaleEpoch | Self::PlanConflict | Self::WrongPhase | Self::InstantPassed => 409,
            Self::TooLarge => 413,
            Self::Malformed => 422,
            Self::Unavailable => 503,
        }
    }
}

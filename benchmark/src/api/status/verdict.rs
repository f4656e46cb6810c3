//! Whether the numbers can be trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a result can be trusted, and what limited it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// `Valid`; `Degraded`: use with care; `Invalid`: do not use.
    pub value: VerdictValue,
    /// Why it is not Valid, and notes of severity `Valid`, which change nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub reasons: Vec<VerdictReason>,
    /// What kept the throughput from being higher.
    pub limited_by: LimitedBy,
}

/// How far a result can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum VerdictValue {
    /// As far as was looked, the numbers are what they say.
    Valid,
    /// Use with care.
    Degraded,
    /// Do not use.
    Invalid,
}

/// One reason why a result is not Valid, or a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerdictReason {
    /// The class.
    pub reason: ReasonKind,
    /// How bad it is; `Valid` is a note.
    pub severity: VerdictValue,
    /// What was found, in numbers, and what to do.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// The class of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReasonKind {
    /// A shard was lost, and its requests with it.
    ShardLost,
    /// Shards did not start together.
    StartSkew,
    /// The shards' clocks were not known well enough to say that they started together.
    ClockUncertain,
    /// The target rate was not achieved.
    RateMissed,
    /// Too many requests failed or were not sent.
    Errors,
    /// Slots, or the whole target, got no answers for a while.
    Unavailable,
    /// Requests took longer than a histogram holds.
    Overflow,
    /// Shards lacked processor time.
    GeneratorCPU,
    /// Shards sent requests late by their own doing.
    SendLate,
    /// A trial of several was not Valid.
    Trial,
    /// Replies were of another type than they must be, or held values that nobody wrote, and count as successes.
    WrongReplies,
    /// The target has lost acknowledged writes or keys. A note: what was measured is what it is.
    DataLost,
    /// Some keys could not be read when the load was over. A note.
    KeysUnread,
    /// Nobody checked whose certificates the target has. A note: the verdict stays what it is.
    NotVerified,
}

/// What kept the throughput from being higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LimitedBy {
    /// The target rate was met: more was not asked for.
    Rate,
    /// The processors of the load generator.
    GeneratorCPU,
    /// The evidence does not decide.
    Unknown,
}

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
    #[schemars(length(max = 32))]
    pub reasons: Vec<VerdictReason>,
    /// What kept the throughput from being higher.
    pub limited_by: LimitedBy,
    /// Which part of it: of `Target` the node's id and `MainThread`, as `redis:6379/MainThread`, the id alone if that server was
    /// full in another way, or `Path` for what is before the servers, or keeps them from working without their knowing; of
    /// `GeneratorNetwork` `Uplink` or `Downlink`; of `Unknown` `Path` if it may be either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub component: Option<String>,
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
    /// Requests of a constant rate were due faster than they ended, from the beginning of the measurement to its end.
    Backlog,
    /// Too many requests failed or were not sent.
    Errors,
    /// Slots, or the whole target, got no answers for a while.
    Unavailable,
    /// Requests took longer than a histogram holds.
    Overflow,
    /// Shards lacked processor time. A note, if for too short to decide p99.
    GeneratorCPU,
    /// Shards sent requests late by their own doing.
    SendLate,
    /// Shards left replies unread by their own doing.
    ReceiveLate,
    /// More than a fifth of p50, p99 or p99.9 is the load generator's own, or may be, as its workers had too little time to spare.
    GeneratorDelay,
    /// A trial of several was not Valid.
    Trial,
    /// A search ended where the load generator was at its end: the target may hold a higher rate.
    GeneratorLimited,
    /// Replies were of another type than they must be, or held values that nobody wrote, and count as successes.
    WrongReplies,
    /// The target has lost acknowledged writes or keys. A note: what was measured is what it is.
    DataLost,
    /// Some keys could not be read when the load was over. A note.
    KeysUnread,
    /// Nobody checked whose certificates the target has. A note: the verdict stays what it is.
    NotVerified,
    /// The target's servers executed more or fewer commands than were sent to them.
    Unreconciled,
    /// What the servers executed could not be compared with what was sent to them. A note.
    NotReconciled,
    /// The target removed keys for want of memory.
    Evictions,
    /// A server forked while it was measured, to save or for a replica. A note.
    Forked,
    /// WAIT ended before as many replicas had the write as were asked for. A note.
    UnderReplicated,
    /// Most reads found nothing, and nothing had been preloaded. A note.
    Misses,
    /// A primary took over from another, or a server went, while it was measured.
    TopologyChanged,
    /// The throughput or the response time was not the same from the beginning of the measurement to its end.
    Unsteady,
}

impl ReasonKind {
    /// Whether it says that response times hold what the load generator did, not the target.
    pub fn is_of_the_generator(self) -> bool {
        matches!(self, Self::GeneratorCPU | Self::SendLate | Self::ReceiveLate | Self::GeneratorDelay)
    }
}

/// What kept the throughput from being higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LimitedBy {
    /// The target rate was met: more was not asked for.
    Rate,
    /// The target, or what is between it and the load generator.
    Target,
    /// The processors of the load generator.
    GeneratorCPU,
    /// The network of the load generator's machines.
    GeneratorNetwork,
    /// There were too few connections, or requests in flight on them.
    Connections,
    /// The evidence does not decide.
    Unknown,
}

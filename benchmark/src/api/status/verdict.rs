//! The trustworthiness of the numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The trustworthiness of a result, and what limited the throughput.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// `Valid`; `Degraded`: use with care; `Invalid`: do not use.
    pub value: VerdictValue,
    /// Why it is not Valid, and notes of severity `Valid`, which change nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub reasons: Vec<VerdictReason>,
    /// The factor that limited the throughput.
    pub limited_by: LimitedBy,
    /// The limiting component. For `Target`: the node's id and `MainThread`, as `redis:6379/MainThread`; the id alone if that server was
    /// saturated otherwise; or `Path` for a limit before the servers, or one that they do not notice. For `GeneratorNetwork`: `Uplink` or
    /// `Downlink`. For `Unknown`: `Path` if it may be either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub component: Option<String>,
}

/// The trustworthiness of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum VerdictValue {
    /// As far as was checked, the numbers are correct.
    Valid,
    /// Use with care.
    Degraded,
    /// Do not use.
    Invalid,
}

/// A reason why a result is not Valid, or a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerdictReason {
    /// The class of the reason.
    pub reason: ReasonKind,
    /// The severity; `Valid` is a note.
    pub severity: VerdictValue,
    /// The finding in numbers, and what to do.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// The class of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReasonKind {
    /// A shard was lost before it gave its result.
    ShardLost,
    /// Shards did not start together.
    StartSkew,
    /// The shards' clocks are too uncertain to judge whether they started together.
    ClockUncertain,
    /// No request was sent in the measurement.
    NothingMeasured,
    /// The target rate was not achieved.
    RateMissed,
    /// At a constant rate, the backlog grew throughout the measurement or a stage.
    Backlog,
    /// Too many requests failed or were not sent.
    Errors,
    /// Slots, or the whole target, were unavailable for a while.
    Unavailable,
    /// Requests took longer than a histogram holds.
    Overflow,
    /// Shards lacked processor time. A note if too briefly to affect p99.
    GeneratorCPU,
    /// Shards sent requests late by their own delays.
    SendLate,
    /// Shards left replies unread by their own delays.
    ReceiveLate,
    /// More than a fifth of p50, p99 or p99.9 is the load generator's own, or may be because its workers were too busy.
    GeneratorDelay,
    /// One of several trials was not Valid.
    Trial,
    /// A search ended where the load generator was saturated: the target may hold a higher rate.
    GeneratorLimited,
    /// Replies had a wrong type or a value that no client wrote, and count as successes.
    WrongReplies,
    /// The target lost acknowledged writes or keys. A note: the measurements stay correct.
    DataLost,
    /// Some keys could not be read after the load. A note.
    KeysUnread,
    /// The target's certificates were not verified. A note.
    NotVerified,
    /// The target's servers executed more or fewer commands than were sent to them.
    Unreconciled,
    /// The commands executed by the servers could not be compared with those sent. A note.
    NotReconciled,
    /// The target evicted keys for lack of memory.
    Evictions,
    /// A server forked during the measurement, to save or for a replica. A note.
    Forked,
    /// WAIT often returned before enough replicas had the write. A note.
    UnderReplicated,
    /// Most reads found nothing, and nothing was preloaded. A note.
    Misses,
    /// A primary took over from another, or a server left, during the measurement.
    TopologyChanged,
    /// The throughput or the response time drifted or paused during the measurement.
    Unsteady,
}

impl ReasonKind {
    /// Returns whether it means that response times include the load generator's delays, not only the target's.
    pub fn is_of_the_generator(self) -> bool {
        matches!(self, Self::GeneratorCPU | Self::SendLate | Self::ReceiveLate | Self::GeneratorDelay)
    }
}

/// The factor that limited the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LimitedBy {
    /// The target rate was met: no more was requested.
    Rate,
    /// The target, or the path between it and the load generator.
    Target,
    /// The processors of the load generator.
    GeneratorCPU,
    /// The client under test: its threads were busy, or its calls waited for it. Only with `load.clients`.
    Client,
    /// The network of the load generator's machines.
    GeneratorNetwork,
    /// Too few connections, or too few requests in flight on them.
    Connections,
    /// The evidence is inconclusive.
    Unknown,
}

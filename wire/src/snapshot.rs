//! Cumulative counters and histograms of one shard in one trial. They are never deltas, so a lost or repeated snapshot does no harm.

use serde::{Deserialize, Serialize};

pub use crate::cache::{Cache, CacheCounts};
pub use crate::churn::Churn;
pub use crate::client::ClientUsage;
use crate::histogram::EncodedHistogram;
pub use crate::selfcheck::{Environment, Generator, Interface, ReceiveDelay, Sending, delay_step};
pub use crate::server_stats::{ServerCommands, ServerCpu, ServerNode, ServerSample, ServerStats};
pub use crate::tally::Tally;
use crate::timeline::Timeline;
use crate::topology::TopologyReport;
pub use crate::verification::{Finding, FindingKind, Verification, VerificationCounts};
use crate::{bounded, limits};

/// A shard's snapshot. It replaces an earlier one only if it is from the accepted incarnation and has a higher sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Rises with every snapshot of an incarnation.
    pub sequence: u64,
    /// The shard's index.
    pub shard: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The shard's monotonic clock, read while the call was answered. The conductor uses it as a [`crate::ClockReading`].
    pub taken_nanoseconds: u64,
    /// The stage of the trial.
    pub stage: Stage,
    /// True if the trial was stopped before its planned end.
    pub aborted: bool,
    /// True if the process was told to terminate while the load ran, so that it stopped the load and exits soon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminated: bool,
    /// The times of the trial on the shard's monotonic clock.
    pub window: Window,
    /// The measured requests.
    pub total: Tally,
    /// The warm-up's requests, which are not in any histogram.
    pub warmup: Tally,
    /// Keys that the preload of this shard wrote, or found to exist.
    pub preloaded_keys: u64,
    /// Preload commands that were answered, as the servers' own statistics count them.
    pub preload_commands: u64,
    /// Latency of all measured requests.
    pub latency: Latency,
    /// Completions over time from the start instant. Empty in a live snapshot.
    pub series: Series,
    /// The timeline from the requested second on.
    #[serde(default)]
    pub timeline: Timeline,
    /// Per operation, in the plan's order. Empty in a live snapshot, or without that breakdown.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::OPERATIONS}>")]
    pub operations: Vec<OperationTally>,
    /// Per Redis node. Empty in a live snapshot, or without that breakdown.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::NODES}>")]
    pub nodes: Vec<NodeTally>,
    /// Errors of the measured requests by kind.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::ERROR_KINDS}>")]
    pub errors: Vec<ErrorTally>,
    /// Results of checking replies. None if nothing is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Counts of client-side caches. None without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Connections made while measuring. None if connections have no lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<Churn>,
    /// Cost of a client library. None for the engine, and before the load has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientUsage>,
    /// The load generator's measurements of itself.
    pub generator: Generator,
    /// Changes and outages of the target.
    #[serde(default)]
    pub topology: TopologyReport,
    /// INFO of the target's servers. Only from shard 0, and only if the plan asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServerStats>,
}

impl Snapshot {
    /// Returns whether the load ended early because the process was told to terminate.
    pub fn is_cut_short(&self) -> bool {
        self.aborted && self.terminated
    }
}

/// The stage of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// A start was accepted, and its instant has not come.
    #[default]
    Waiting,
    /// Sending requests that count separately.
    Warmup,
    /// Sending requests that count.
    Measuring,
    /// Waiting for requests in flight; sending nothing.
    Draining,
    /// Every request has an outcome.
    Done,
}

/// The times of a trial on the shard's monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// The start instant: the first warm-up request.
    pub start_nanoseconds: u64,
    /// The due time of the shard's first request. The start instant in a closed loop.
    #[serde(default)]
    pub first_due_nanoseconds: u64,
    /// The actual send of the first request; 0 before.
    pub first_send_nanoseconds: u64,
    /// The beginning of the measurement.
    pub measure_from_nanoseconds: u64,
    /// The end of the measurement. If a number of requests ends it: when the shard's first worker had none left; 0 before.
    pub measure_to_nanoseconds: u64,
    /// The time of the last request's outcome; 0 before.
    pub drained_nanoseconds: u64,
}

/// Latency histograms of a set of requests, with the bounds of [`crate::histogram::Kind::Request`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// Response time of succeeded requests. Its count plus the overflow is `succeeded`.
    pub response: EncodedHistogram,
    /// Service time of succeeded requests. None in a closed loop, where it equals the response time.
    pub service: Option<EncodedHistogram>,
    /// Response time of requests that got an error reply. None if there were none.
    pub error_replies: Option<EncodedHistogram>,
    /// Lateness: actual send minus due time. None in a closed loop and in live snapshots.
    pub lateness: Option<EncodedHistogram>,
}

/// Completions of measured and warm-up requests over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// The length of one point: 100 ms, or 1 s for runs of more than 10 minutes. 0 if empty.
    pub interval_nanoseconds: u64,
    /// Successful completions per point. The first point begins at the start instant.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::SERIES_POINTS}>")]
    pub completed: Vec<u64>,
}

/// The requests of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationTally {
    /// The name in the plan.
    #[serde(deserialize_with = "bounded::name")]
    pub name: String,
    /// Its requests. Its bytes are those of its commands, their fills and the replies. The total has more: PING, ASKING and messages that
    /// answer no request.
    pub tally: Tally,
    /// Nil replies: misses, for commands that read.
    pub nil_replies: u64,
    /// Its latency.
    pub latency: Latency,
}

/// The requests of one Redis node. `H` is the form of the histogram.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTally<H = EncodedHistogram> {
    /// The node's id in a cluster, otherwise its address.
    #[serde(deserialize_with = "bounded::name")]
    pub id: String,
    /// `host:port`.
    #[serde(deserialize_with = "bounded::name")]
    pub address: String,
    /// Slots that it owned at the end, or served reads for. 0 if standalone.
    pub slots: u32,
    /// True if it is a replica that reads were sent to.
    #[serde(default)]
    pub replica: bool,
    /// Connections that the shard kept to it at the end.
    #[serde(default)]
    pub connections: u32,
    /// Requests whose final reply came from it, or that ended while waiting for it.
    pub requests: u64,
    /// Errors among these.
    pub errors: u64,
    /// Redirects that it replied with.
    pub redirects: u64,
    /// Service time of the successful requests, with the bounds of [`crate::histogram::Kind::Node`].
    pub service: H,
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorTally {
    /// `Timeout`, `ConnectionReset`, or the first word of the server's error, such as `WRONGTYPE`.
    // Also ConnectionRefused, ConnectionClosed, Protocol and RedirectLimit, and Other beyond the maximum number of kinds.
    #[serde(deserialize_with = "bounded::name")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub kind: String,
    /// The number of errors.
    pub count: u64,
    /// The first message of this kind.
    #[serde(deserialize_with = "bounded::message")]
    #[cfg_attr(feature = "schema", schemars(length(max = 256)))]
    pub first_message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up() {
        let mut a = Tally { scheduled: 6, succeeded: 1, errors: 2, unsent: 2, in_flight: 1, ..Tally::default() };
        assert!(a.balances());
        a.add(&Tally { scheduled: 1, succeeded: 1, overflow_max_nanoseconds: 7, ..Tally::default() });
        assert!(a.balances());
        assert_eq!((a.scheduled, a.overflow_max_nanoseconds), (7, 7));
        a.add(&Tally { scheduled: 1, ..Tally::default() });
        assert!(!a.balances());
    }

    #[test]
    fn absurd_counts_do_not_wrap() {
        let mut absurd = Tally { scheduled: u64::MAX, succeeded: u64::MAX, errors: u64::MAX, ..Tally::default() };
        absurd.add(&absurd.clone());
        assert_eq!(absurd.scheduled, u64::MAX);
        assert!(!absurd.balances());
    }
}

//! The outcome of each shard, and its measurements of itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::requests::Requests;

/// The measurements of one shard, also of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardResult {
    /// The shard's index.
    pub index: u32,
    /// The Kubernetes node, or the machine, it ran on.
    #[schemars(length(max = 256))]
    pub node: String,
    /// The outcome: `Finished` with its full result, or `Lost`.
    pub state: ShardOutcome,
    /// Its requests by outcome.
    pub requests: Requests,
    /// Its 99th percentile of response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// CPU time of its busiest worker over wall time, in percent.
    pub busiest_worker_percent: u32,
    /// Time that a worker was ready without a processor, over wall time, in percent, for the worker that waited longest.
    #[serde(default)]
    pub run_queue_percent: u32,
    /// Steal time of its machine's processors, in percent.
    #[serde(default)]
    pub stolen_percent: u32,
    /// Time for which its CPU limit throttled it.
    pub throttled_milliseconds: u64,
    /// The second of its measurement in which it most lacked processor time, relative to the verdict's bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_second: Option<WorstSecond>,
    /// Its 99th percentile of send lateness. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness_p99_nanoseconds: Option<u64>,
    /// Its longest send lateness. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness_max_nanoseconds: Option<u64>,
    /// Total time by which its workers turned to requests more than 1 ms late although these could have been sent. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_milliseconds: Option<u64>,
    /// The unused share of the requests that its ready connections had room for, in percent. Connections waited for the shard, or for their
    /// turn on a node with full connections. Only in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_percent: Option<u32>,
    /// The 99th percentile of the time that replies waited in the kernel until the shard read them, on one connection in 16. Rounded up by
    /// at most a quarter. Not set on UNIX sockets and with client libraries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_delay_p99_nanoseconds: Option<u64>,
    /// The longest such wait, as in `receiveDelayP99Nanoseconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_delay_max_nanoseconds: Option<u64>,
    /// The share of time, in percent over some of its connections, in which the target had no room for sent data because it did not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_peer_limited_percent: Option<u32>,
    /// The share of time, in percent over some of its connections, in which data was on the network or waited there. Acknowledgements come
    /// with replies, so it includes the target's own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_network_percent: Option<u32>,
    /// Bytes per second that its network interface received in the busiest 100 ms, other traffic included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_received_bytes_per_second: Option<u64>,
    /// Bytes per second that its network interface sent in the busiest 100 ms, other traffic included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_sent_bytes_per_second: Option<u64>,
    /// Connections that broke and were reopened.
    pub reconnects: u64,
    /// The time from the first shard's first request to its own.
    pub start_skew_microseconds: u64,
}

/// A second in which a shard lacked processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorstSecond {
    /// The worst shortage relative to its bound.
    pub lack: Lack,
    /// The start of the second, after the start of the measurement.
    pub after_milliseconds: u64,
    /// The share in that second, in percent.
    pub percent: u32,
    /// The share of the measurement in seconds beyond the bound, in hundredths of a percent.
    pub beyond_basis_points: u32,
}

/// A shortage of a shard, with its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Lack {
    /// Time of its busiest worker, which ran all the time: 95 %.
    BusiestWorker,
    /// A processor for a worker that was ready: 20 %.
    RunQueue,
    /// Time that its CPU limit throttled it: 5 %.
    Throttled,
    /// Steal time: 10 %.
    Stolen,
    /// Processors of its machine, for which all workers on it waited together: 20 %.
    Machine,
}

/// The outcome of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ShardOutcome {
    /// It gave its full result.
    Finished,
    /// It was lost. Its last snapshot counts.
    Lost,
}

//! What became of each shard, and what it found of itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Requests;

/// What one shard measured, and of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardResult {
    /// Its index.
    pub index: u32,
    /// The Kubernetes node, or the machine, it ran on.
    #[schemars(length(max = 256))]
    pub node: String,
    /// Whether it gave its result, or was lost.
    pub state: ShardOutcome,
    /// Where its requests went.
    pub requests: Requests,
    /// Its 99th percentile of response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// CPU time of its busiest worker over wall time, in percent.
    pub busiest_worker_percent: u32,
    /// Time that a worker was ready and had no processor, over wall time, in percent: of the one that waited longest.
    #[serde(default)]
    pub run_queue_percent: u32,
    /// Time of its machine's processors that a hypervisor gave to other machines, in percent.
    #[serde(default)]
    pub stolen_percent: u32,
    /// Time for which its CPU limit held it back.
    pub throttled_milliseconds: u64,
    /// The second of its measurement in which it lacked processor time most, by the bounds of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_second: Option<WorstSecond>,
    /// Its 99th percentile of send lateness. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness_p99_nanoseconds: Option<u64>,
    /// Its longest send lateness. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness_max_nanoseconds: Option<u64>,
    /// Time by which its workers turned to requests more than a millisecond after they were due although these could have
    /// been sent. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_milliseconds: Option<u64>,
    /// Of the requests that its ready connections had room for, the share that was not in flight, in percent: connections
    /// waited for the shard, or for their turn on a node whose connections were full. Only in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_percent: Option<u32>,
    /// 99 % of the replies that were looked at, those of one connection in 16, waited no longer than this in the kernel until
    /// the shard read them. Within steps of a quarter; not within TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_delay_p99_nanoseconds: Option<u64>,
    /// The longest of these waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_delay_max_nanoseconds: Option<u64>,
    /// Of the time of some of its connections, the share in which the target had no room for what was sent, in percent: it
    /// did not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_peer_limited_percent: Option<u32>,
    /// Of the same time, the share in which something was on the network, or waited there, in percent. Acknowledgements ride
    /// on replies, so the target's own time is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_network_percent: Option<u32>,
    /// Bytes per second that its network interface received in the 100 ms in which these were most, other traffic included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_received_bytes_per_second: Option<u64>,
    /// Bytes per second that its network interface sent in the 100 ms in which these were most, other traffic included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_sent_bytes_per_second: Option<u64>,
    /// Connections that broke and were made again.
    pub reconnects: u64,
    /// Its first request after the first shard's.
    pub start_skew_microseconds: u64,
}

/// A second in which a shard lacked processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorstSecond {
    /// What it lacked most, by its bound.
    pub lack: Lack,
    /// When it began, after the measurement did.
    pub after_milliseconds: u64,
    /// The share in that second, in percent.
    pub percent: u32,
    /// The share of the measurement in seconds beyond the bound, in hundredths of a percent.
    pub beyond_basis_points: u32,
}

/// What a shard may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Lack {
    /// Time of its busiest worker, which ran all the time: 95 %.
    BusiestWorker,
    /// A processor for a worker that was ready: 20 %.
    RunQueue,
    /// Time of its CPU limit: 5 %.
    Throttled,
    /// Time that a hypervisor gave to other machines: 10 %.
    Stolen,
    /// Processors of its machine, for which all workers on it waited together: 20 %.
    Machine,
}

/// How a shard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ShardOutcome {
    /// It gave its whole result.
    Finished,
    /// It was lost; what was last heard of it counts.
    Lost,
}

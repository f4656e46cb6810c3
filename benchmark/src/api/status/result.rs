//! The measurements of a trial.

use redisbench_wire::plan::{Arrival, PipelineMode};
use redisbench_wire::snapshot::ErrorTally;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache::CacheResult;
use super::client::ClientResult;
use super::connections::ConnectionsResult;
use super::latencies::Latencies;
use super::requests::{Requests, TrialRequests};
use super::shard::ShardResult;
use super::verification::VerificationResult;
use crate::api::fields::is_zero;
use crate::api::load::{LoadType, RampSpec};

/// The measurements of a trial, merged over all shards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialResult {
    /// The kind of load. Do not compare latencies of loads that differ here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadResult>,
    /// The measured requests by outcome.
    pub requests: Requests,
    /// Successful requests per second, in the common window.
    pub throughput: Throughput,
    /// Bytes per second, in the common window.
    pub bandwidth: Bandwidth,
    /// From the due time (open loop) or the send (closed loop) to the complete reply, over all scheduled requests. A request without an
    /// answer counts as longer than any answered one.
    pub response_time: Latencies,
    /// Response time of successful requests alone. Set only if some did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_of_succeeded: Option<Latencies>,
    /// From the send to the complete reply, over successful requests. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latencies>,
    /// From the due time to the send, over all sent requests. Only in an open loop. It is the part of the response time before the target
    /// saw the request: delays of the load generator, and waits for room in a connection's pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness: Option<Latencies>,
    /// The load generator's own part of p50, p99 and p99.9 of response time, over successful requests; only known ones are listed. More
    /// than a fifth makes the result Degraded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub generator_share: Vec<GeneratorShare>,
    /// The distribution of response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<EncodedHistogramStatus>,
    /// Results per stage of the load, in order, if there are several; only stages with a whole second in the common window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub stages: Vec<StageResult>,
    /// Results per operation of the mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub operations: Vec<OperationResult>,
    /// Results per Redis node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub nodes: Vec<NodeResult>,
    /// Errors by kind, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub errors: Vec<ErrorTally>,
    /// Results per shard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub shards: Vec<ShardResult>,
    /// The number of entries that each list here omits. The artifacts have all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// The findings about the target's replies. Only if `verify` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationResult>,
    /// Counts of client-side caches. Only with `workload.caching`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// The client that sent the requests. Only with `load.clients`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub clients: Vec<ClientResult>,
    /// Connections made while measuring. Only with `load.connectionLifetime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsResult>,
    /// Requests of the warm-up. No other number includes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Requests>,
    /// The keys and commands of the preload. No other number includes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload: Option<PreloadResult>,
}

impl TrialResult {
    /// Successes per second of a part of the requests: its share of all successes, of the rate over the common window.
    pub fn rate_of(&self, part: &Requests) -> f64 {
        let share = part.succeeded as f64 / self.requests.succeeded.max(1) as f64;
        self.throughput.achieved_per_second as f64 * share
    }
}

/// The kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadResult {
    /// `OpenLoop` sends at a rate. `ClosedLoop` sends the next request when one was answered.
    #[serde(rename = "type")]
    pub kind: LoadType,
    /// The distribution of due times. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
    /// The grid to which due times were rounded up; 0 is exact. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_grid_nanoseconds: Option<u64>,
    /// The refill of a connection's pipeline. Only in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_mode: Option<PipelineMode>,
    /// The maximum requests in flight in the whole benchmark. Only in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
}

/// Successful requests per second, in the common window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Throughput {
    /// The mean requested rate over the common window. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_per_second: Option<u64>,
    /// The mean rate over the common window.
    pub achieved_per_second: u64,
    /// Requests in the slowest whole second.
    pub min_per_second: u64,
    /// Requests in the fastest whole second.
    pub max_per_second: u64,
}

/// Bytes per second, in the common window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bandwidth {
    /// Bytes per second written to the target.
    pub sent_bytes_per_second: u64,
    /// Bytes per second read from the target.
    pub received_bytes_per_second: u64,
}

/// The load generator's own part of a percentile of response time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GeneratorShare {
    /// The percentile: `50`, `99` or `99.9`.
    #[schemars(length(max = 8))]
    pub percentile: String,
    /// The percentile over successful requests.
    pub of_nanoseconds: u64,
    /// A lower bound of how much shorter the percentile would be if each request were sent as soon as it was due and had room.
    pub sending_nanoseconds: u64,
    /// The time that replies waited in the kernel until the shard read them, at this percentile. Late reads add at most this. Not set if it
    /// is unknown, as on UNIX sockets and with client libraries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading_nanoseconds: Option<u64>,
    /// Sending and reading together as a share of the percentile, in hundredths of a percent. A lower bound if reading is unknown.
    pub basis_points: u32,
}

impl GeneratorShare {
    /// Returns true if a part of it is known: a closed loop has only the reading.
    pub fn is_known(&self) -> bool {
        self.reading_nanoseconds.is_some() || self.sending_nanoseconds > 0
    }
}

/// A full distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncodedHistogramStatus {
    /// `HdrV2DeflateBase64`, which any `HdrHistogram` tool reads. In nanoseconds, over successful requests.
    #[schemars(length(max = 32))]
    pub encoding: String,
    /// The encoded histogram.
    #[schemars(length(max = 65536))]
    pub data: String,
}

/// The measurements of one stage of the load. A second counts for a stage if no other stage overlaps it. The rest of it may be warm-up, or
/// after the last stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageResult {
    /// The position in `load.stages`, from 0.
    pub index: u32,
    /// The stage's name in the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub name: Option<String>,
    /// The start of the stage, after the start of the load. The first stage starts when the warm-up ends.
    pub from_milliseconds: u64,
    /// The end of the stage, or its planned end if the load stopped earlier.
    pub to_milliseconds: u64,
    /// The requested rate at its start and at its end.
    pub rate: RampSpec,
    /// The number of whole seconds behind `targetPerSecond` and `achievedPerSecond`.
    pub seconds: u32,
    /// The mean requested rate over `seconds`.
    pub target_per_second: u64,
    /// Successful requests per second over `seconds`.
    pub achieved_per_second: u64,
    /// Requests that ended in the stage. The last stage includes those that ended afterwards.
    pub requests: TrialRequests,
    /// Response time of its requests, rounded up by at most 3.2 %.
    pub response_time: Latencies,
    /// Service time of the successful ones, rounded up by at most 3.2 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latencies>,
}

/// The measurements of one operation of the mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationResult {
    /// The operation's name in the spec.
    #[schemars(length(max = 32))]
    pub name: String,
    /// Its requests by outcome.
    pub requests: Requests,
    /// Replies that were not empty. Hits and misses sum to `succeeded`.
    pub hits: u64,
    /// Replies that were nil or empty.
    pub misses: u64,
    /// Bytes of its commands and replies. The total has a few more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Response time, defined as in the total.
    pub response_time: Latencies,
    /// Service time, defined as in the total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latencies>,
}

/// The measurements of one Redis node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// The node's id in the cluster, or its address.
    #[schemars(length(max = 256))]
    pub id: String,
    /// The address, as `host:port`.
    #[schemars(length(max = 262))]
    pub address: String,
    /// Slots that it owned at the end; for a replica, slots whose reads it served. 0 if standalone.
    pub slots: u32,
    /// Its role at the end. Only in a Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<NodeRole>,
    /// Connections of all shards to it at the end. Missing if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Requests that got their last answer from it, or ended while it held them. All nodes sum to the total without the unsent.
    pub requests: u64,
    /// Errors among its requests.
    pub errors: u64,
    /// Redirects that it replied with.
    pub redirects: u64,
    /// Service time of successful requests.
    pub service_time: Latencies,
    /// Its requests in percent of the mean over all nodes: 100 is even.
    pub imbalance_percent: u64,
    /// The server's own statistics. Only with `measurement.serverStats`, and if the server reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerResult>,
}

/// The server's own statistics, from INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerResult {
    /// CPU time of its main thread over the measured window, in hundredths of a percent of one processor. Of the whole process if it does
    /// not separate threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_mean_basis_points: Option<u32>,
    /// Like `cpuMeanBasisPoints`, in the busiest second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_max_basis_points: Option<u32>,
    /// The seconds together in which it was at 95 % or more, as far as INFO was asked once a second. If requests fell behind their rate only
    /// in these, the server limited the throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_full_milliseconds: Option<u64>,
    /// `used_memory` before the load.
    pub memory_before_bytes: u64,
    /// `used_memory` after the load.
    pub memory_after_bytes: u64,
    /// Keys in all databases before the load.
    pub keys_before: u64,
    /// Keys in all databases after the load.
    pub keys_after: u64,
    /// Keys that it evicted for lack of memory during the load.
    pub evicted_keys: u64,
    /// Keys that expired during the load.
    pub expired_keys: u64,
    /// Reads that found their key, as it counts them.
    pub keyspace_hits: u64,
    /// Reads that did not find their key.
    pub keyspace_misses: u64,
    /// The maximum number of connected clients.
    pub most_clients: u64,
}

/// The role of a Cluster node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NodeRole {
    /// Serves writes, and reads unless they go to replicas.
    Primary,
    /// Serves only reads.
    Replica,
}

/// The number of entries omitted from each list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    /// Omitted stages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stages: u64,
    /// Omitted operations.
    pub operations: u64,
    /// Omitted nodes.
    pub nodes: u64,
    /// Omitted kinds of error.
    pub errors: u64,
    /// Omitted shards.
    pub shards: u64,
    /// Omitted wrong replies, of those that shards kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings: u64,
    /// True if intervals of percentiles of stages, operations and nodes are omitted for lack of room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub percentiles: bool,
    /// True if the distribution of response time is omitted for lack of room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub histogram: bool,
}

/// The keys and commands of the preload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreloadResult {
    /// Keys written or found.
    pub keys: u64,
    /// Preload commands sent and answered, as the target counts them.
    pub commands: u64,
}

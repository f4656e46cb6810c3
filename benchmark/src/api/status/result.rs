//! What a trial measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ShardResult, TrialRequests, VerificationResult, is_zero};
use crate::api::spec::{Arrival, LoadType, PipelineMode, RampSpec};

/// What a trial measured, merged over all shards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialResult {
    /// How requests came about. Latencies of loads that differ here are not to be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadResult>,
    /// Where the measured requests went.
    pub requests: Requests,
    /// Successful requests over time, in the common window.
    pub throughput: Throughput,
    /// Bytes over time.
    pub bandwidth: Bandwidth,
    /// From when a request was due (open loop) or sent (closed loop) until its reply was complete, over all scheduled
    /// requests: one without an answer counts as longer than any that was answered.
    pub response_time: Latencies,
    /// The same over successful requests alone. Only where some failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_of_succeeded: Option<Latencies>,
    /// From when a request was sent until its reply was complete, over successful requests. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latencies>,
    /// From when a request was due until it was sent, over all that were sent. Only in an open loop. It is the part of the
    /// response time that the target has not seen: waiting for the load generator, or for room in a connection's pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness: Option<Latencies>,
    /// How much of p50, p99 and p99.9 of response time is the load generator's own, over successful requests; of those that are
    /// known. What is more than a fifth of one makes the result Degraded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub generator_share: Vec<GeneratorShare>,
    /// The whole distribution of response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<EncodedHistogramStatus>,
    /// Per stage of the load, in order, of several: those that have a whole second in the common window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub stages: Vec<StageResult>,
    /// Per operation of the mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub operations: Vec<OperationResult>,
    /// Per Redis node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub nodes: Vec<NodeResult>,
    /// Errors by kind, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub errors: Vec<ErrorResult>,
    /// Per shard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub shards: Vec<ShardResult>,
    /// How many entries each of the lists above leaves out. All of them are in the artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// What was found of the target's answers. Only if `verify` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationResult>,
    /// Requests of the warm-up. They are in no other number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Requests>,
    /// What the preload wrote. It is in no other number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload: Option<PreloadResult>,
}

/// How requests came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadResult {
    /// At a rate, or the next when one was answered.
    #[serde(rename = "type")]
    pub kind: LoadType,
    /// How requests were spread in time. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
    /// The grid that due times were rounded up to; 0 is exact. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_grid_nanoseconds: Option<u64>,
    /// How a connection went on after a reply. Only in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_mode: Option<PipelineMode>,
    /// The most requests in flight in the whole benchmark. Only in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
}

/// Where requests went: scheduled = succeeded + errors + unsent (+ inFlight + unknown).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// Requests whose slot in the schedule came.
    pub scheduled: u64,
    /// Answered without an error.
    pub succeeded: u64,
    /// Ended in an error of any kind.
    pub errors: u64,
    /// Never sent. Those that the next two do not count waited longer than `unsentAfter` for room in a connection's
    /// pipeline.
    pub unsent: u64,
    /// Of the unsent, those that waited longer than `unsentAfter` while there was no connection to their server.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent_not_connected: u64,
    /// Of the unsent, those that had waited for less than `unsentAfter` when the load ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent_at_end: u64,
    /// Waited for a reply when the run was aborted, or when a lost shard was last heard.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: u64,
    /// What a lost shard would have sent after it was last heard.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Of the errors, those without a reply: timeouts and broken connections.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Sent more than a millisecond after they were due.
    pub late: u64,
    /// Took one redirect of the cluster or more.
    pub redirected: u64,
    /// Redirects that were answered: commands that a node refused and the next one got.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redirect_hops: u64,
    /// Answers that a server cannot serve this for now (TRYAGAIN, CLUSTERDOWN, LOADING), each followed by a pause and
    /// another send. Where the pauses come to the request's timeout, it is an error of that kind.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deferral_hops: u64,
    /// Of these, CLUSTERDOWN. What neither this nor the next counts is TRYAGAIN.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cluster_down_hops: u64,
    /// Of these, LOADING.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loading_hops: u64,
    /// Commands of transactions: so many as were in those that succeeded, without MULTI, EXEC and WAIT.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commands: u64,
    /// Succeeded, but when `workload.wait.timeout` was over, fewer replicas had it than `workload.wait.replicas`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub under_replicated: u64,
    /// Keys that a read had missed and that were written then. They are not among the requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fills: u64,
    /// Writes of such keys that failed. They are not among the requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fill_errors: u64,
    /// Succeeded after more than 600 s, which no histogram holds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overflow: u64,
}

/// Successful requests over time, in the common window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Throughput {
    /// The rate asked for: its mean over the common window. Only in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_per_second: Option<u64>,
    /// The mean over the common window.
    pub achieved_per_second: u64,
    /// The slowest whole second.
    pub min_per_second: u64,
    /// The fastest whole second.
    pub max_per_second: u64,
}

/// Bytes over time, in the common window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bandwidth {
    /// Bytes per second written to the target.
    pub sent_bytes_per_second: u64,
    /// Bytes per second read from the target.
    pub received_bytes_per_second: u64,
}

/// Quantiles of a latency, in nanoseconds. One that is not known is not set: there were too few requests for it, fewer than 10 on
/// either side of it on average, or too many of them had no answer. `percentiles` says which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Latencies {
    /// The mean. Not set where a request had no answer, or one after more than 600 s: nobody knows what it would add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_nanoseconds: Option<u64>,
    /// Half were at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_nanoseconds: Option<u64>,
    /// 90 % were at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_nanoseconds: Option<u64>,
    /// 95 % were at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_nanoseconds: Option<u64>,
    /// 99 % were at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// 99.9 % were at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_nanoseconds: Option<u64>,
    /// 99.99 % were at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999_nanoseconds: Option<u64>,
    /// The longest of those that were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nanoseconds: Option<u64>,
    /// The percentiles that `measurement.percentiles` asks for, each with how far it can be trusted. Only in the full result where
    /// the status would be too long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub percentiles: Vec<Percentile>,
}

/// A percentile, and how far it can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Percentile {
    /// Which, such as `99.9`.
    #[schemars(length(max = 8))]
    pub percentile: String,
    /// So many per cent of the requests were at most this long. Not set if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<u64>,
    /// The lower end of the interval that holds the percentile of endlessly many such requests with 95 % confidence, if requests
    /// do not depend on each other. Between trials it differs by more: `repeats` shows by how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_nanoseconds: Option<u64>,
    /// Its upper end. Not set if it reaches into requests that had no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_nanoseconds: Option<u64>,
    /// The percentile is not known, but it is more than this: too many requests had no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_than_nanoseconds: Option<u64>,
    /// The percentile is not known: it takes this many requests, and there were fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_requests: Option<u64>,
}

/// How much of a percentile of response time is the load generator's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GeneratorShare {
    /// Which: `50`, `99` or `99.9`.
    #[schemars(length(max = 8))]
    pub percentile: String,
    /// The percentile over the successful requests.
    pub of_nanoseconds: u64,
    /// How much shorter it would be had each request been sent as soon as it was due and there was room: at least this.
    pub sending_nanoseconds: u64,
    /// For how long replies lay in the kernel before the shard read them, at this percentile: at most this is in it.
    pub reading_nanoseconds: u64,
    /// Both together as a share of the percentile, in hundredths of a per cent.
    pub basis_points: u32,
}

/// A whole distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncodedHistogramStatus {
    /// `HdrV2DeflateBase64`: any `HdrHistogram` tool reads it. In nanoseconds, of the successful requests.
    #[schemars(length(max = 32))]
    pub encoding: String,
    /// The data.
    #[schemars(length(max = 65536))]
    pub data: String,
}

/// What one stage of the load measured. A second of the load counts for a stage if it overlaps no other one: it belongs wholly to the
/// stage, or the rest of it is warm-up or comes after the last stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageResult {
    /// Its place in `load.stages`, from 0.
    pub index: u32,
    /// Its name in the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub name: Option<String>,
    /// When it began, after the start of the load: the first stage begins when the warm-up ends.
    pub from_milliseconds: u64,
    /// When it ended, or was to end if the load was stopped before.
    pub to_milliseconds: u64,
    /// The rate asked for at its beginning and at its end.
    pub rate: RampSpec,
    /// How many whole seconds of it the next two are over.
    pub seconds: u32,
    /// The rate asked for: its mean over these seconds.
    pub target_per_second: u64,
    /// Successful requests per second over these seconds.
    pub achieved_per_second: u64,
    /// Requests that had their outcome in the stage, and in the last stage those that had it afterwards.
    pub requests: TrialRequests,
    /// Response time of these requests, rounded up by at most 3.2 %.
    pub response_time: Latencies,
    /// Service time of those that succeeded, rounded up by at most 3.2 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latencies>,
}

/// What one operation of the mix measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationResult {
    /// Its name in the spec.
    #[schemars(length(max = 32))]
    pub name: String,
    /// Where its requests went.
    pub requests: Requests,
    /// Replies that held something. Together with the misses they are `succeeded`.
    pub hits: u64,
    /// Replies that were nil.
    pub misses: u64,
    /// As in the total.
    pub response_time: Latencies,
    /// As in the total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Latencies>,
}

/// What one Redis node answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// Its id in the cluster, or its address.
    #[schemars(length(max = 256))]
    pub id: String,
    /// `host:port`.
    #[schemars(length(max = 262))]
    pub address: String,
    /// Slots it owned at the end; of a replica, slots that it was read from for. 0 if standalone.
    pub slots: u32,
    /// Whether it was primary or replica at the end. Only of a Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<NodeRole>,
    /// Requests whose last answer it gave, or that ended while it held them. Over all nodes they sum to the total
    /// without the unsent.
    pub requests: u64,
    /// Of these, errors.
    pub errors: u64,
    /// Redirects it answered with.
    pub redirects: u64,
    /// Service time of successful requests.
    pub service_time: Latencies,
    /// Its requests over the mean of all nodes, in hundredths: 100 is even.
    pub imbalance_percent: u64,
    /// What the server said of itself. Only with `measurement.serverStats`, and where the server told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerResult>,
}

/// What a server said of itself, in its answers to INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerResult {
    /// Processor time of its main thread over the measured window, in hundredths of a per cent of one processor; of the
    /// whole process where it does not tell threads apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_mean_basis_points: Option<u32>,
    /// The same in the second in which it was highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_max_basis_points: Option<u32>,
    /// `used_memory` before the load.
    pub memory_before_bytes: u64,
    /// `used_memory` after it.
    pub memory_after_bytes: u64,
    /// Keys of all databases before the load.
    pub keys_before: u64,
    /// Keys of all databases after it.
    pub keys_after: u64,
    /// Keys that it removed for want of memory while the load ran.
    pub evicted_keys: u64,
    /// Keys that it removed because their time was over.
    pub expired_keys: u64,
    /// Reads that found their key, by its own count.
    pub keyspace_hits: u64,
    /// Reads that did not.
    pub keyspace_misses: u64,
    /// The most connections that it had.
    pub most_clients: u64,
}

/// What a node of a Cluster was there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NodeRole {
    /// Writes, and reads unless they are led to replicas.
    Primary,
    /// Reads alone.
    Replica,
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorResult {
    /// `Timeout`, `ConnectionReset`, or the first word of the server's error, such as `WRONGTYPE`.
    #[schemars(length(max = 64))]
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The first message of this kind.
    #[schemars(length(max = 256))]
    pub first_message: String,
}

/// How many entries lists leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    /// Of the stages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stages: u64,
    /// Of the operations.
    pub operations: u64,
    /// Of the nodes.
    pub nodes: u64,
    /// Of the kinds of error.
    pub errors: u64,
    /// Of the shards.
    pub shards: u64,
    /// Of the answers that are wrong, as far as shards kept them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings: u64,
    /// Whether the intervals of percentiles of stages, operations and nodes were left out, because they would not have fitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub percentiles: bool,
    /// Whether the distribution of response time was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub histogram: bool,
}

/// What the preload wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreloadResult {
    /// Keys written or found.
    pub keys: u64,
    /// Commands sent for it and answered, as the target's own count has them.
    pub commands: u64,
}

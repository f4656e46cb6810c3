//! `status`: what the operator reports. Integers carry their unit in the name; `summary` is for people.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{Arrival, LoadType, PipelineMode};

/// How far a benchmark is, and what it measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisBenchmarkStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where the benchmark is.
    #[serde(default)]
    pub phase: Phase,
    /// The run's identity. From the moment it exists the spec is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub run_id: Option<String>,
    /// How many conductors the run has had. Raised by each before it first commands a shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conductor_epoch: Option<u64>,
    /// The present or last trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialStatus>,
    /// The columns of `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Shards by state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardCounts>,
    /// How well the shards measured together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronization: Option<Synchronization>,
    /// The running trial so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What was measured, once the trial is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TrialResult>,
    /// Whether the result can be trusted, and what limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Where the whole result is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub artifacts: Vec<Artifact>,
    /// Accepted, Finished, Complete, Valid, Failed, Reconciling and Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Where a benchmark is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Waits to be accepted, or is held back.
    #[default]
    Pending,
    /// Shards come up, connect and preload.
    Preparing,
    /// Shards make load.
    Running,
    /// Held back by `suspend`.
    Suspended,
    /// Results are fetched, merged and written.
    Collecting,
    /// Measured to the end. The verdict says what it is worth.
    Succeeded,
    /// Could not be measured; the condition `Failed` says why.
    Failed,
    /// Stopped by `abort`.
    Aborted,
}

impl Phase {
    /// Whether the benchmark is over.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Aborted)
    }
}

/// The present or last trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialStatus {
    /// Counts from 0.
    pub index: u32,
    /// How many trials the run has.
    pub of: u32,
    /// Which try at this trial, from 1.
    pub attempt: u32,
    /// The start instant: when all shards begin together. Not set before it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
}

/// The columns of `kubectl get`, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Achieved requests per second, such as `2.00M/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub rate: Option<String>,
    /// The 99th percentile of response time, such as `1.45 ms`; with `>` where too many requests failed to know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub p99: Option<String>,
    /// Errors and unsent requests with their share, such as `320 (0.0003 %)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 48))]
    pub errors: Option<String>,
    /// Shards that are where they should be, of all, such as `8/8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub shards: Option<String>,
    /// The verdict, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub verdict: Option<String>,
}

/// Shards by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardCounts {
    /// How many the spec asks for.
    pub desired: u32,
    /// Ready to start.
    pub armed: u32,
    /// Making load.
    pub running: u32,
    /// Done with the trial.
    pub finished: u32,
    /// Gone before they could give their result.
    pub lost: u32,
    /// Not answering now; they may come back.
    pub unreachable: u32,
}

/// How well the shards measured together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Synchronization {
    /// From the first shard's first request to the last shard's.
    pub start_skew_microseconds: u64,
    /// How well the worst-known clock of a shard is known.
    pub clock_uncertainty_microseconds: u64,
    /// The time during which all shards were measuring.
    pub common_window_milliseconds: u64,
}

/// The running trial so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// 0 to 100: of the preload while preparing, of warm-up and measurement while running.
    #[schemars(range(min = 0, max = 100))]
    pub percent: u32,
    /// Successful requests per second since the last look.
    pub achieved_per_second: u64,
    /// The 99th percentile of response time so far. Not set while nothing was measured, or beyond what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
}

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
    /// The whole distribution of response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<EncodedHistogramStatus>,
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

/// Quantiles of a latency, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Latencies {
    /// The mean of those that were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_nanoseconds: Option<u64>,
    /// Half were at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_nanoseconds: Option<u64>,
    /// 90 % were at most this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_nanoseconds: Option<u64>,
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
    /// Quantiles that cannot be told, because too many requests had no answer: all that is known is a bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub beyond: Vec<Beyond>,
}

/// A quantile of which only a bound is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Beyond {
    /// Which: `p50`, `p90`, `p99`, `p999` or `p9999`.
    #[schemars(length(max = 8))]
    pub quantile: String,
    /// It is longer than this.
    pub more_than_nanoseconds: u64,
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
    /// Slots it owned at the end; 0 if standalone.
    pub slots: u32,
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

/// How a shard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ShardOutcome {
    /// It gave its whole result.
    Finished,
    /// It was lost; what was last heard of it counts.
    Lost,
}

/// How many entries lists leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    /// Of the operations.
    pub operations: u64,
    /// Of the nodes.
    pub nodes: u64,
    /// Of the kinds of error.
    pub errors: u64,
    /// Of the shards.
    pub shards: u64,
    /// Whether the distribution of response time was left out, because it would not have fitted.
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
    /// Requests took longer than a histogram holds.
    Overflow,
    /// Shards lacked processor time.
    GeneratorCPU,
    /// Shards sent requests late by their own doing.
    SendLate,
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

/// Where a part of the whole result is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// What it is, such as `result.json`; of several parts, `result.json.000` and so on, to be joined in order.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The ConfigMap that holds it, under its name as key.
    #[schemars(length(max = 253))]
    pub config_map: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

//! `spec`: the load test that a user asks for. The doc comments are the text of `kubectl explain`.
//!
//! Bounds of single fields are part of the schema here. Rules across fields are in [`super::rules`].

#![allow(clippy::duplicated_attributes, reason = "every printer column has its type and path")]

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use redisbench_wire::limits;
use redisbench_wire::plan::{Arrival, PipelineMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::ClientSpec;
use super::comparison::ComparisonSpec;
use super::duration::GoDuration;
use super::experiment::{RepeatsSpec, SweepOrder, SweepSpec};
use super::lifetime::ConnectionLifetimeSpec;
pub use super::measurement::{BreakdownKind, MeasurementSpec};
use super::safety::SafetySpec;
use super::search::SearchSpec;
use super::status::RedisBenchmarkStatus;
use super::target::TargetSpec;
use super::template::ShardTemplate;
use super::threshold::ThresholdSpec;
use super::verify::VerifySpec;
use super::workload::{PreloadSpec, WorkloadSpec};

/// Names of targets, operations and the like: a DNS label.
pub const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// Desired load test. Immutable once the run has begun (`status.runId` exists), except for `suspend` and `abort`.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "redisbench.dev",
    version = "v1alpha1",
    kind = "RedisBenchmark",
    plural = "redisbenchmarks",
    singular = "redisbenchmark",
    shortname = "rbench",
    category = "redisbench",
    namespaced,
    crates(kube_core = "::kube_core"),
    status = "RedisBenchmarkStatus",
    derive = "PartialEq",
    doc = "A load test of a Redis: the operator runs it on many pods that start together, and merges what they measured.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Verdict", type_ = "string", json_path = ".status.summary.verdict"),
    printcolumn(name = "Shards", type_ = "string", json_path = ".status.summary.shards"),
    printcolumn(name = "Rate", type_ = "string", json_path = ".status.summary.rate"),
    printcolumn(name = "p99", type_ = "string", json_path = ".status.summary.p99"),
    printcolumn(name = "Errors", type_ = "string", json_path = ".status.summary.errors"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RedisBenchmarkSpec {
    /// Suspends the benchmark. Nothing is created before it runs; a running trial finishes first. Default false. Can be changed at any
    /// time.
    #[serde(default)]
    pub suspend: bool,
    /// Stops the benchmark permanently. The results so far are kept and marked as aborted. Default false. Can be set to true at any time,
    /// but not back to false.
    #[serde(default)]
    pub abort: bool,
    /// Redis servers under test, 1 to 8. Two or more are compared as set in `comparison`.
    #[schemars(
        length(min = 1, max = 8),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub targets: Vec<TargetSpec>,
    /// Commands, keys and values that the load sends.
    pub workload: WorkloadSpec,
    /// Keys written before the measurement. Default: none.
    #[serde(default)]
    pub preload: PreloadSpec,
    /// Checks of the target's replies. Default: none.
    #[serde(default)]
    pub verify: VerifySpec,
    /// Cleanup of the keys after the load. Default: keys are kept.
    #[serde(default)]
    pub cleanup: CleanupSpec,
    /// Rate, connections and length of the load.
    pub load: LoadSpec,
    /// Number of runs of each trial. Default: one.
    #[serde(default)]
    pub repeats: RepeatsSpec,
    /// Comparison of several targets, or with a previous run. Required with several targets. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonSpec>,
    /// Fields of this spec that take several values, up to 3. Each combination is one trial; at most 250 trials including repeats. These
    /// values override the field itself. Not set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["field"]))]
    pub sweep: Vec<SweepSpec>,
    /// Order in which the combinations of `sweep` run. Default `Random`.
    #[serde(default)]
    pub sweep_order: SweepOrder,
    /// Searches for the highest rate at which an objective holds, instead of measuring at one rate. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSpec>,
    /// Pods that generate the load.
    #[serde(default)]
    pub shards: ShardsSpec,
    /// Limits that the measurement must meet, up to 32. The condition `ThresholdsMet` and the exit code of the command line report whether
    /// it does. Not set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub thresholds: Vec<ThresholdSpec>,
    /// Breakdowns, percentiles, and evidence for the verdict.
    #[serde(default)]
    pub measurement: MeasurementSpec,
    /// Protection of other users of the target from destructive commands and unattended load.
    #[serde(default)]
    pub safety: SafetySpec,
    /// Seconds after the end until the benchmark and everything that it created are deleted: 0 (at once) to 2147483647. Not set by default:
    /// never deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub ttl_seconds_after_finished: Option<u32>,
}

/// Cleanup of the keys after the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CleanupSpec {
    /// `Keep` leaves all keys. `DeletePrefix` deletes the keys of the workload and of its operations by name (`UNLINK`), including those
    /// that existed before: the prefix with each of the `count` numbers from `start`, and no other key. This takes up to a minute after the
    /// load, also after an abort. Remaining keys are reported and change neither phase nor verdict. Default `Keep`.
    #[serde(default)]
    pub keys: CleanupKeys,
}

/// Cleanup of the keys after the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CleanupKeys {
    /// Leaves all keys.
    #[default]
    Keep,
    /// Deletes the keyspace, key by key.
    DeletePrefix,
}

/// Rate, connections and length of the load. At most one of `duration`, `requests`, `requestsPerConnection` and `stages` can be set.
/// Without any, the load runs until it is aborted, for at most 48h.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadSpec {
    /// `OpenLoop` sends at a fixed rate, even if earlier requests have no reply yet, like independent users. `ClosedLoop` keeps
    /// `connections` x `pipeline` requests in flight, or `closedLoop.concurrency`, so the target sets the pace.
    #[serde(rename = "type")]
    pub kind: LoadType,
    /// Settings for type `OpenLoop`. Required for it, unless `stages` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopSpec>,
    /// Settings for type `ClosedLoop`. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<ClosedLoopSpec>,
    /// Ramps: successive parts of an open loop with changing rates, up to 64. They replace `openLoop.rate` and `duration`: together they
    /// are the length of the measurement, 1s to 48h. The warm-up runs at the initial rate of the first stage. Each stage has its own rates
    /// and latencies in `status.result.stages`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub stages: Vec<StageSpec>,
    /// Connections of the whole benchmark, split evenly over the shards: at least one per shard, at most 1000000. Default 50.
    #[serde(default = "default_connections")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: u32,
    /// Clients that send the requests, up to 8. Two or more are compared as set in `comparison`. Not set by default: the engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub clients: Vec<ClientSpec>,
    /// Maximum new connections per second of the whole benchmark, 1 to 1000000, for servers that limit it, such as managed ones. Reconnects
    /// count too. Not set by default: no rate limit, but at most 64 at a time per worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connect_rate: Option<u32>,
    /// Lifetime of connections, which are then closed and made again. Not set by default: connections are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_lifetime: Option<ConnectionLifetimeSpec>,
    /// Maximum requests in flight per connection, 1 to 10000. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 10_000))]
    pub pipeline: u32,
    /// How a connection of a closed loop keeps requests in flight. `Window` sends the next request after each reply. `Batch` sends
    /// `pipeline` requests, then waits for all replies, like `redis-benchmark -P`. `Batch` is not available for a Cluster or with
    /// `closedLoop.concurrency`. Default `Window`.
    #[serde(default)]
    pub pipeline_mode: PipelineMode,
    /// Length of the measurement after the warm-up, 1s to 48h. If neither this nor `requests`, `requestsPerConnection` or `stages` is set,
    /// the load runs until it is aborted, for at most 48h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<GoDuration>,
    /// Number of measured requests of the whole benchmark, after the warm-up: at least one per shard, at most 1000000000000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub requests: Option<u64>,
    /// Like `requests`, per connection, 1 to 1000000: the total is this times `connections`, as with `memtier_benchmark -n`. Connections
    /// share the total, so a slow one does not delay the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_connection: Option<u64>,
    /// Time limit for `requests` or `requestsPerConnection`, and only valid with one of them: 1s to 48h. The load then ends, even if
    /// requests remain. Default 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<GoDuration>,
    /// Length of the load before the measurement, which is counted separately: 0s to 1h. Default 5s.
    #[serde(default = "default_warmup")]
    pub warmup: GoDuration,
    /// End of the warm-up. `ByTime`: after `warmup`. `WhenSettled`: once the throughput has had no drift for ten seconds, and no later than
    /// `warmup`, which must be 15s or more; the verdict reports if it had not settled by then. `WhenSettled` requires `duration`. Default
    /// `ByTime`.
    #[serde(default)]
    pub warmup_ends: WarmupEnds,
    /// Timeouts of connections and requests.
    #[serde(default)]
    pub timeouts: TimeoutsSpec,
}

/// End of a warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WarmupEnds {
    /// After its full length.
    #[default]
    ByTime,
    /// As soon as the throughput has settled.
    WhenSettled,
}

/// Open or closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoadType {
    /// Sends at a fixed rate.
    OpenLoop,
    /// Sends the next request after a reply.
    ClosedLoop,
}

/// Load by callers that wait for replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClosedLoopSpec {
    /// Number of callers that share the connections, and so of requests in flight in the whole benchmark. Each caller has one request at a
    /// time, on the next connection with room. At least one per shard, at most `connections` x `pipeline`, which is also the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub concurrency: Option<u32>,
}

/// Load at a rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenLoopSpec {
    /// Requests per second of the whole benchmark, 1 to 1000000000. Required, unless `stages` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rate: Option<u64>,
    /// Distribution of due times. `Constant` spaces requests evenly. `Poisson` spaces them at random by the seed with this mean rate, like
    /// many independent callers. Default `Constant`.
    #[serde(default)]
    pub arrival: Arrival,
    /// Grid to which due times are rounded up, 0s to 100ms. A coarser grid causes fewer wake-ups, but sends requests in bursts. On a grid,
    /// workers do not wake up early, so requests leave tens of microseconds late. Default 0s: exact due times.
    #[serde(default = "default_pacing_grid")]
    pub pacing_grid: GoDuration,
    /// Time after its due time at which a request that could not be sent is counted as unsent, 1ms to 10m. Default 10s.
    #[serde(default = "default_unsent_after")]
    pub unsent_after: GoDuration,
}

/// Part of the measurement in which the rate changes linearly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageSpec {
    /// Name of the stage in the result: lower-case letters, digits and `-`, at most 32, unique among the stages. Not set by default:
    /// results name the stage by its position, such as `stages[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: Option<String>,
    /// Length of the stage, 1ms to 48h. A stage has its own result if it contains a whole second of the load.
    pub duration: GoDuration,
    /// Rates at the start and end of the stage.
    pub rate: RampSpec,
}

/// Rate that changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RampSpec {
    /// Requests per second of the whole benchmark at the start, 1 to 1000000000.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub from: u64,
    /// Requests per second of the whole benchmark at the end, 1 to 1000000000. The rate is constant if this equals `from`.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub to: u64,
}

/// Timeouts of connections and requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutsSpec {
    /// Timeout from the start of a connection until it is ready, 1ms to 10m. Default 5s.
    #[serde(default = "default_connect_timeout")]
    pub connect: GoDuration,
    /// Timeout from sending a request to its reply, 1ms to 10m. Default 1s.
    #[serde(default = "default_request_timeout")]
    pub request: GoDuration,
}

/// Pods that generate the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardsSpec {
    /// Number of pods, 1 to 5000. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = limits::SHARDS))]
    pub count: u32,
    /// Reaction to the loss of a shard during the measurement. `Invalidate` lets the others finish; the verdict is Invalid. `Abort` stops
    /// the others and fails the run. `Restart` repeats the trial with all shards, at most twice, then acts like `Abort`. Default
    /// `Invalidate`.
    #[serde(default)]
    pub on_lost: OnLost,
    /// Placement of the shards. `Spread` prefers different nodes. `OnePerNode` leaves a shard pending rather than put two on one node.
    /// `Any` leaves it to the scheduler. Default `Spread`.
    #[serde(default)]
    pub placement: Placement,
    /// Maximum difference between the start times of shards, 1ms to 1m. A larger one lowers the verdict. A run does not start until shard
    /// clocks are known to within half of this. Default 20ms.
    #[serde(default = "default_max_start_skew")]
    pub max_start_skew: GoDuration,
    /// Timeout until all shards are ready, 10s to 24h. Extended while the preload progresses. Default 10m.
    #[serde(default = "default_prepare_timeout")]
    pub prepare_timeout: GoDuration,
    /// Timeout for a shard's result after the end of the load, 5s to 1h. The shard is then lost. Default 2m.
    #[serde(default = "default_collect_timeout")]
    pub collect_timeout: GoDuration,
    /// Labels added to the Job of the shards, such as `kueue.x-k8s.io/queue-name`; at most 32, with values of up to 63 characters. Labels
    /// set by redisbench cannot be replaced. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub job_labels: BTreeMap<String, String>,
    /// Settings of the shards' pods.
    #[serde(default, skip_serializing_if = "is_default")]
    pub template: ShardTemplate,
}

/// Reaction to the loss of a shard during the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnLost {
    /// The others finish; the verdict is Invalid.
    #[default]
    Invalidate,
    /// The others are stopped, and the run fails.
    Abort,
    /// All shards arm again for another attempt, at most twice; then like `Abort`.
    Restart,
}

/// Placement of the shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Placement {
    /// On different nodes where possible.
    #[default]
    Spread,
    /// Never two on one node.
    OnePerNode,
    /// As the scheduler chooses.
    Any,
}

impl Default for OpenLoopSpec {
    fn default() -> Self {
        Self {
            rate: None,
            arrival: Arrival::default(),
            pacing_grid: default_pacing_grid(),
            unsent_after: default_unsent_after(),
        }
    }
}

impl Default for TimeoutsSpec {
    fn default() -> Self {
        Self { connect: default_connect_timeout(), request: default_request_timeout() }
    }
}

impl Default for ShardsSpec {
    fn default() -> Self {
        Self {
            count: default_one(),
            on_lost: OnLost::default(),
            placement: Placement::default(),
            max_start_skew: default_max_start_skew(),
            prepare_timeout: default_prepare_timeout(),
            collect_timeout: default_collect_timeout(),
            job_labels: BTreeMap::new(),
            template: ShardTemplate::default(),
        }
    }
}

pub(super) fn default_one() -> u32 {
    1
}

fn default_connections() -> u32 {
    50
}

fn default_warmup() -> GoDuration {
    GoDuration::new("5s")
}

fn default_pacing_grid() -> GoDuration {
    GoDuration::new("0s")
}

fn default_unsent_after() -> GoDuration {
    GoDuration::new("10s")
}

fn default_connect_timeout() -> GoDuration {
    GoDuration::new("5s")
}

fn default_request_timeout() -> GoDuration {
    GoDuration::new("1s")
}

fn default_max_start_skew() -> GoDuration {
    GoDuration::new("20ms")
}

fn default_prepare_timeout() -> GoDuration {
    GoDuration::new("10m")
}

fn default_collect_timeout() -> GoDuration {
    GoDuration::new("2m")
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

//! `spec`: what the user asks for. The doc comments are the text of `kubectl explain`.
//!
//! Bounds that the API server can judge stand here as schema; the rules across fields are in [`super::rules`].

#![allow(clippy::duplicated_attributes, reason = "every printer column has its type and path")]

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::ComparisonSpec;
use super::duration::GoDuration;
use super::experiment::{RepeatsSpec, SweepOrder, SweepSpec};
pub use super::measurement::{BreakdownKind, MeasurementSpec};
use super::safety::SafetySpec;
use super::search::SearchSpec;
use super::status::RedisBenchmarkStatus;
use super::target::TargetSpec;
use super::template::ShardTemplate;
use super::threshold::ThresholdSpec;
use super::verify::VerifySpec;
use super::workload::{PreloadSpec, WorkloadSpec};

/// Names of targets and operations: a DNS label.
pub const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// What to measure and how. Fixed once the run has begun (`status.runId` exists), but for `suspend` and `abort`.
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
    /// Holds the benchmark back: before it runs, nothing is created; a running trial finishes first. Default false. May
    /// be changed at any time.
    #[serde(default)]
    pub suspend: bool,
    /// Stops the benchmark for good; what was measured until then is kept and marked. Default false. May be set to true
    /// at any time, and not back.
    #[serde(default)]
    pub abort: bool,
    /// The Redis under test; two to eight are compared, which `comparison` says how.
    #[schemars(
        length(min = 1, max = 8),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub targets: Vec<TargetSpec>,
    /// What is asked of the target.
    pub workload: WorkloadSpec,
    /// What is written before the measurement. Default: nothing.
    #[serde(default)]
    pub preload: PreloadSpec,
    /// What is checked of the target's answers. Default: nothing.
    #[serde(default)]
    pub verify: VerifySpec,
    /// What happens to the keys when the load is over. Default: they are kept.
    #[serde(default)]
    pub cleanup: CleanupSpec,
    /// How fast, over how many connections and for how long.
    pub load: LoadSpec,
    /// How often everything is run. Default: once.
    #[serde(default)]
    pub repeats: RepeatsSpec,
    /// How several targets are compared. Not set by default, and required with several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonSpec>,
    /// Fields of this spec that take several values, up to three: a trial for each combination, at most 250 with all
    /// repeats. What is written at the field itself does not count then. Not set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["field"]))]
    pub sweep: Vec<SweepSpec>,
    /// In which order the combinations of `sweep` are run. Default `Random`.
    #[serde(default)]
    pub sweep_order: SweepOrder,
    /// Searches the highest rate at which an objective holds, instead of measuring at one. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSpec>,
    /// The pods that make the load.
    #[serde(default)]
    pub shards: ShardsSpec,
    /// What the measurement must keep to, up to 32. The condition `ThresholdsMet` and the exit code of the command line say
    /// whether it does. Not set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub thresholds: Vec<ThresholdSpec>,
    /// What is measured beside the total, and what is looked at to say what the numbers are worth.
    #[serde(default)]
    pub measurement: MeasurementSpec,
    /// What the load may do to others on the target. Default: no harm.
    #[serde(default)]
    pub safety: SafetySpec,
    /// Deletes the benchmark and all it made this many seconds after it finished; 0 at once, at most 2147483647. Not set
    /// by default: kept until someone deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub ttl_seconds_after_finished: Option<u32>,
}

/// What happens to the keys when the load is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CleanupSpec {
    /// `Keep` leaves all keys. `DeletePrefix` deletes the keys of the workload and of its operations by name (`UNLINK`),
    /// also those that were there before: the prefix with each number from `start`, `count` of them, and no other key.
    /// It takes up to a minute after the load, also after an abort. What is left is told, and changes neither phase nor
    /// verdict. Default `Keep`.
    #[serde(default)]
    pub keys: CleanupKeys,
}

/// What happens to the keys when the load is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CleanupKeys {
    /// They stay.
    #[default]
    Keep,
    /// The key space is deleted, key by key.
    DeletePrefix,
}

/// How fast, over how many connections and for how long. At most one of `duration`, `requests`, `requestsPerConnection` and `stages` is
/// set; without any, the load runs until it is aborted, for 48 h at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadSpec {
    /// `OpenLoop` sends at a rate, whether or not earlier requests were answered, as independent users do. `ClosedLoop`
    /// keeps `connections` x `pipeline` requests in flight, or `closedLoop.concurrency`, so the target sets the pace.
    #[serde(rename = "type")]
    pub kind: LoadType,
    /// For type `OpenLoop`, and required then, but for a load of `stages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopSpec>,
    /// For type `ClosedLoop`. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<ClosedLoopSpec>,
    /// Ramps: an open loop whose rate changes, one stage after the other, up to 64. They take the place of
    /// `openLoop.rate` and of `duration`: the measurement is as long as all of them, 1s to 48h. The warm-up is at the rate
    /// at which the first begins. Each has its own rates and latencies in `status.result.stages`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub stages: Vec<StageSpec>,
    /// Connections of the whole benchmark, split evenly over the shards: at least one for each shard, at most 1000000.
    /// Default 50.
    #[serde(default = "default_connections")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: u32,
    /// How many connections the whole benchmark begins in a second at most, 1 to 1000000: for servers that limit it, as
    /// managed ones do. It holds for connections that are made again too. Not set by default: without a limit, at most 64 at
    /// a time in each worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connect_rate: Option<u32>,
    /// The most requests in flight per connection, 1 to 10000. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 10_000))]
    pub pipeline: u32,
    /// How a connection of a closed loop keeps requests in flight. `Window` sends the next as soon as one was answered.
    /// `Batch` sends `pipeline` of them, and the next when all were answered, as `redis-benchmark -P` does; not for a
    /// Cluster, and not with `closedLoop.concurrency`. Default `Window`.
    #[serde(default)]
    pub pipeline_mode: PipelineMode,
    /// How long the measurement is, after the warm-up: 1s to 48h. If neither it nor `requests`, `requestsPerConnection` or
    /// `stages` is set, the load goes on until it is aborted, at most 48h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<GoDuration>,
    /// How many requests are measured, after the warm-up, by the whole benchmark: at least one for each shard, at most
    /// 1000000000000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub requests: Option<u64>,
    /// The same by connection, 1 to 1000000: `connections` times as many requests are measured, as with `memtier_benchmark
    /// -n`. Which connection makes how many of them is left to the load: a slow one does not hold the others up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_connection: Option<u64>,
    /// The longest that `requests` or `requestsPerConnection` may take, 1s to 48h: what is not sent by then is not sent.
    /// Only with one of these; 1h if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<GoDuration>,
    /// Load before the measurement, which counts apart: 0s to 1h. Default 5s.
    #[serde(default = "default_warmup")]
    pub warmup: GoDuration,
    /// What ends the warm-up. `ByTime`: `warmup`. `WhenSettled`: when the throughput of ten seconds had no drift, and `warmup`,
    /// 15s or more, at the latest; the verdict says if it had not settled by then. Only with `duration`. Default `ByTime`.
    #[serde(default)]
    pub warmup_ends: WarmupEnds,
    /// Time limits of single steps.
    #[serde(default)]
    pub timeouts: TimeoutsSpec,
}

/// What ends a warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WarmupEnds {
    /// Its length.
    #[default]
    ByTime,
    /// That the throughput has settled.
    WhenSettled,
}

/// How requests come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoadType {
    /// At a rate.
    OpenLoop,
    /// The next when one was answered.
    ClosedLoop,
}

/// How a connection of a closed loop keeps requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PipelineMode {
    /// The next as soon as one was answered.
    #[default]
    Window,
    /// The next batch when all of the one before were answered.
    Batch,
}

/// Load by callers that wait for replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClosedLoopSpec {
    /// How many callers share the connections, each with one request at a time on whichever connection has room, in
    /// turn: so many requests are in flight in the whole benchmark. At least one for each shard, at most `connections` x
    /// `pipeline`. Not set by default: as many as that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub concurrency: Option<u32>,
}

/// Load at a rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenLoopSpec {
    /// Requests per second of the whole benchmark, 1 to 1000000000. Required, but for a load of `stages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rate: Option<u64>,
    /// When requests are due. `Constant` spaces them evenly. `Poisson` spaces them as requests of many independent callers
    /// come: at random by the seed, with this rate as their mean. Default `Constant`.
    #[serde(default)]
    pub arrival: Arrival,
    /// Rounds due times up to a grid, 0s to 100ms: fewer wake-ups, but requests come in bursts. Default 0s: exact.
    #[serde(default = "default_pacing_grid")]
    pub pacing_grid: GoDuration,
    /// A request that could not be sent this long after it was due is counted as unsent, 1ms to 10m. Default 10s.
    #[serde(default = "default_unsent_after")]
    pub unsent_after: GoDuration,
}

/// When requests of an open loop are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Arrival {
    /// Evenly spaced.
    #[default]
    Constant,
    /// At random, as from many independent callers.
    Poisson,
}

/// A part of the measurement in which the rate goes from one to another in a straight line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageSpec {
    /// Names the stage in the result: lower-case letters, digits and `-`, at most 32, unique among the stages. Not set by default:
    /// results name the stage by its place, such as `stages[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: Option<String>,
    /// How long it is: 1ms to 48h. A stage has a result of its own if it has a whole second of the load.
    pub duration: GoDuration,
    /// The rate at its beginning and at its end.
    pub rate: RampSpec,
}

/// A rate that changes in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RampSpec {
    /// Requests per second of the whole benchmark at the beginning, 1 to 1000000000.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub from: u64,
    /// The same at the end, 1 to 1000000000. The same as `from` is a constant rate.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub to: u64,
}

/// Time limits of single steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutsSpec {
    /// From the start of a connection until it is ready, 1ms to 10m. Default 5s.
    #[serde(default = "default_connect_timeout")]
    pub connect: GoDuration,
    /// From the send of a request until its reply, 1ms to 10m. Default 1s.
    #[serde(default = "default_request_timeout")]
    pub request: GoDuration,
}

/// The pods that make the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardsSpec {
    /// How many pods, 1 to 2000. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 2000))]
    pub count: u32,
    /// What happens when a shard is lost while it measures. `Invalidate` lets the others finish, and the verdict says
    /// Invalid. `Abort` stops them, and the run has failed. `Restart` begins the trial again with all shards, at most
    /// twice, then does as `Abort`. Default `Invalidate`.
    #[serde(default)]
    pub on_lost: OnLost,
    /// `Spread` puts shards on different nodes where it can. `OnePerNode` leaves a shard pending rather than put two on
    /// one node. `Any` lets the scheduler choose. Default `Spread`.
    #[serde(default)]
    pub placement: Placement,
    /// How far apart shards may start before the verdict doubts the result, 1ms to 1m. A run does not start while the
    /// clocks of its shards are known less well than half of this. Default 20ms.
    #[serde(default = "default_max_start_skew")]
    pub max_start_skew: GoDuration,
    /// How long shards may take until all are ready, 10s to 24h; prolonged while the preload advances. Default 10m.
    #[serde(default = "default_prepare_timeout")]
    pub prepare_timeout: GoDuration,
    /// How long after the end a shard's result is waited for before the shard counts as lost, 5s to 1h. Default 2m.
    #[serde(default = "default_collect_timeout")]
    pub collect_timeout: GoDuration,
    /// What may be said about the pods.
    #[serde(default, skip_serializing_if = "is_default")]
    pub template: ShardTemplate,
}

/// What happens when a shard is lost while it measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnLost {
    /// The others finish; the verdict is Invalid.
    #[default]
    Invalidate,
    /// The others are stopped, and the run has failed.
    Abort,
    /// All shards arm again for the next attempt, at most twice; then as Abort.
    Restart,
}

/// Where shards go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Placement {
    /// On different nodes where possible.
    #[default]
    Spread,
    /// Never two on one node.
    OnePerNode,
    /// Wherever the scheduler likes.
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
            template: ShardTemplate::default(),
        }
    }
}

fn default_one() -> u32 {
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

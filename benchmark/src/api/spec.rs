//! `spec`: the load test that a user asks for. The doc comments are the text of `kubectl explain`.
//!
//! Bounds of single fields are part of the schema here. Rules across fields are in [`super::rules`].

#![allow(clippy::duplicated_attributes, reason = "every printer column has its type and path")]

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use redisbench_wire::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::ComparisonSpec;
use super::duration::GoDuration;
use super::fields::default_one;
use super::load::LoadSpec;
pub use super::measurement::{BreakdownKind, MeasurementSpec};
use super::repeats::RepeatsSpec;
use super::safety::SafetySpec;
use super::search::SearchSpec;
use super::status::RedisBenchmarkStatus;
use super::sweep::{SweepOrder, SweepSpec};
use super::target::TargetSpec;
use super::template::ShardTemplate;
use super::threshold::ThresholdSpec;
use super::verify::VerifySpec;
use super::workload::{PreloadSpec, WorkloadSpec};

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

impl RedisBenchmarkSpec {
    /// The names of what a comparison compares: clients if there are several, otherwise targets.
    pub fn subjects(&self) -> Vec<&str> {
        if self.load.clients.len() > 1 {
            return self.load.clients.iter().map(|client| client.name.as_str()).collect();
        }
        self.targets.iter().map(|target| target.name.as_str()).collect()
    }
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
    /// Settings of the shards' pods. `kubectl explain pod.spec` has the fields below `affinity`, `tolerations` and the like.
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

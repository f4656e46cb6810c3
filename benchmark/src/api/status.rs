//! `status`: the operator's report. Integers carry their unit in the name; `summary` is for people.

mod cache;
mod cell;
mod client;
mod comparison;
mod connections;
mod latencies;
mod progress;
mod requests;
mod result;
mod search;
mod setting;
mod shard;
mod threshold;
mod topology;
mod trial;
mod verdict;
mod verification;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::is_zero;

pub use cache::{CacheResult, TrialCache};
pub use cell::{CellCache, CellResult, LatencySpread, OperationRepeats, OperationRun, ShareSpread, ThroughputSpread};
pub use client::ClientResult;
pub use comparison::{ComparisonOutcome, ComparisonResult, MetricComparison};
pub use connections::ConnectionsResult;
pub use latencies::{Latencies, Percentile};
pub use progress::{NodeProgress, Progress, ShardProgress};
pub use requests::{Requests, TrialRequests};
pub use result::{
    Bandwidth, EncodedHistogramStatus, GeneratorShare, LoadResult, NodeResult, NodeRole, OperationResult,
    PreloadResult, ServerResult, StageResult, Throughput, TrialResult, Truncated,
};
pub use search::{CellSearch, SearchEnding, SearchResult, SearchStep, StepOutcome};
pub use setting::Setting;
pub use shard::{Lack, ShardOutcome, ShardResult, WorstSecond};
pub use threshold::{ThresholdOutcome, ThresholdStatus};
pub use topology::{TopologyChange, TopologyStatus, Unavailability};
pub use trial::{TrialLine, TrialOutcome, TrialStatus};
pub use verdict::{LimitedBy, ReasonKind, Verdict, VerdictReason, VerdictValue};
pub use verification::{FindingResult, VerificationResult};

/// The progress and results of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisBenchmarkStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The phase of the benchmark.
    #[serde(default)]
    pub phase: Phase,
    /// The run's identity. Once set, the spec is immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub run_id: Option<String>,
    /// The conductor's epoch. Each trial and takeover raises it before commanding a shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conductor_epoch: Option<u64>,
    /// Conductors of the run that failed because of a bug in the operator. After the first, another takes over; after the second, the run
    /// fails.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conductor_failures: u64,
    /// A hash of the trials compiled from the spec. An operator that compiles others fails the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub plan_hash: Option<String>,
    /// The current or last trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialStatus>,
    /// Text for the columns of `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The number of shards in each state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardCounts>,
    /// The synchronization of the shards' measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronization: Option<Synchronization>,
    /// The progress of the running trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The target's servers, their changes, and outages of slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyStatus>,
    /// The measurements, once the trial has finished. With several trials, `trials` has the summaries and `artifacts` lists the full
    /// results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TrialResult>,
    /// The trustworthiness of the result, and what limited the throughput. With several trials, their worst verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The outcome of each entry of `spec.thresholds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub thresholds: Vec<ThresholdStatus>,
    /// One line per finished trial, if the benchmark has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 250))]
    pub trials: Vec<TrialLine>,
    /// The spread between the repeats of each cell, once two of them have finished. Lists the first cells of many; the artifact
    /// `experiment.json` has all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub repeats: Vec<CellResult>,
    /// The number of cells omitted from `repeats`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats_left_out: u64,
    /// The comparison of the targets, once the run has finished: one entry per target other than the baseline, at each swept setting. Lists
    /// the first of many; the artifact `experiment.json` has all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 42))]
    pub comparison: Vec<ComparisonResult>,
    /// The number of entries omitted from `comparison`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub comparison_left_out: u64,
    /// The result of a search; while it runs, the result so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchResult>,
    /// The results of several searches, one for each cell and repeat, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub searches: Vec<CellSearch>,
    /// The ConfigMaps that hold the full result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub artifacts: Vec<Artifact>,
    /// Accepted, Finished, Complete, Valid, Failed, Reconciling and Stalled; Verified if `verify` is set, and `ThresholdsMet` if there are
    /// thresholds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The phase of a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Waiting for a valid spec.
    #[default]
    Pending,
    /// Shards start, connect and preload.
    Preparing,
    /// Shards generate load.
    Running,
    /// Held back by `suspend`.
    Suspended,
    /// The operator fetches, merges and writes results.
    Collecting,
    /// Measured to the end. The verdict rates the result.
    Succeeded,
    /// Could not be measured; the condition `Failed` has the reason.
    Failed,
    /// Stopped by `abort`.
    Aborted,
}

impl Phase {
    /// Returns whether the benchmark has finished.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Aborted)
    }
}

/// Text for the columns of `kubectl get`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Successful requests per second, such as `2.00M/s`. For a search, the highest rate that holds: `>= 2.00M/s` if the target may hold
    /// more, `< 1.00k/s` if not even the lowest holds, and not set without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub rate: Option<String>,
    /// The 99th percentile of response time, such as `1.45 ms`; a lower bound with `>` if too many had no answer. Not set below 1,000
    /// requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub p99: Option<String>,
    /// Errors and unsent requests with their share, such as `320 (0.0003 %)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 48))]
    pub errors: Option<String>,
    /// Shards that are as far as the phase expects, of all, such as `8/8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub shards: Option<String>,
    /// The verdict, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub verdict: Option<String>,
}

/// The number of shards in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardCounts {
    /// Shards that the spec asks for.
    pub desired: u32,
    /// Shards that are armed or started.
    pub armed: u32,
    /// Shards that generate load.
    pub running: u32,
    /// Shards that gave their final result.
    pub finished: u32,
    /// Shards that were lost before their final result.
    pub lost: u32,
    /// Shards that do not answer now; they may recover.
    pub unreachable: u32,
}

/// The synchronization of the shards' measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Synchronization {
    /// The time from the first shard's first request to the last shard's, each against its own schedule.
    pub start_skew_microseconds: u64,
    /// The uncertainty of the least certain shard clock.
    pub clock_uncertainty_microseconds: u64,
    /// The length of the warm-up: `load.warmup`, or less if it ended once the throughput had settled.
    #[serde(default)]
    pub warmup_milliseconds: u64,
    /// The time during which all shards were measuring.
    pub common_window_milliseconds: u64,
}

/// A part of the full result, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The name, such as `result.json`; with several trials, `trial-0.result.json` and so on, and `experiment.json`. Parts such as
    /// `result.json.000` are to be joined in order.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The ConfigMap that holds it, with `name` as the key.
    #[schemars(length(max = 253))]
    pub config_map: String,
}

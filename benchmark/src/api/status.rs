//! `status`: what the operator reports. Integers carry their unit in the name; `summary` is for people.

mod cell;
mod comparison;
mod result;
mod search;
mod shard;
mod threshold;
mod topology;
mod trial;
mod verdict;
mod verification;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cell::{CellResult, LatencySpread, ShareSpread, ThroughputSpread};
pub use comparison::{ComparisonOutcome, ComparisonResult, MetricComparison};
pub use result::{
    Bandwidth, EncodedHistogramStatus, ErrorResult, GeneratorShare, Latencies, LoadResult, NodeResult, NodeRole,
    OperationResult, Percentile, PreloadResult, Requests, ServerResult, StageResult, Throughput, TrialResult,
    Truncated,
};
pub use search::{SearchEnding, SearchResult, SearchStep, StepOutcome};
pub use shard::{Lack, ShardOutcome, ShardResult, WorstSecond};
pub use threshold::{ThresholdOutcome, ThresholdStatus};
pub use topology::{ChangeKind, TopologyChange, TopologyStatus, Unavailability};
pub use trial::{TrialLine, TrialOutcome, TrialRequests, TrialStatus};
pub use verdict::{LimitedBy, ReasonKind, Verdict, VerdictReason, VerdictValue};
pub use verification::{FindingKind, FindingResult, VerificationResult};

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
    /// Says which plan of trials was compiled from the spec. An operator that compiles another one fails the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub plan_hash: Option<String>,
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
    /// The target's servers, what became of them, and when slots got no answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyStatus>,
    /// What was measured, once the trial is over. Of several trials, `trials` has the summaries and `artifacts` name the
    /// whole results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TrialResult>,
    /// Whether the result can be trusted, and what limited it. Of several trials, the worst verdict there was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What became of `spec.thresholds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub thresholds: Vec<ThresholdStatus>,
    /// One line for each trial that is over, of a benchmark that has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 250))]
    pub trials: Vec<TrialLine>,
    /// How far the repeats of each cell are apart, as soon as two of them are over. Of many cells the first; the artifact
    /// `experiment.json` holds all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub repeats: Vec<CellResult>,
    /// How many cells `repeats` leaves out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats_left_out: u64,
    /// What the comparison of the targets came to, once the run is over: one entry for each but the baseline, at each setting
    /// of what is swept. Of many the first; the artifact `experiment.json` holds all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 42))]
    pub comparison: Vec<ComparisonResult>,
    /// How many entries `comparison` leaves out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub comparison_left_out: u64,
    /// What a search found; while it goes on, what it has found so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchResult>,
    /// Where the whole result is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub artifacts: Vec<Artifact>,
    /// Accepted, Finished, Complete, Valid, Failed, Reconciling and Stalled; Verified if something was to be, and
    /// `ThresholdsMet` if there are thresholds.
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

/// The columns of `kubectl get`, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Achieved requests per second, such as `2.00M/s`. Of a search what it found: the highest rate that holds, `>= 2.00M/s`
    /// where the target may hold more, `< 1.00k/s` if not even the lowest holds, and nothing if there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub rate: Option<String>,
    /// The 99th percentile of response time, such as `1.45 ms`; with `>` where too many requests failed to know it. Nothing below
    /// 1,000 requests, which it takes.
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
    /// How long the warm-up was: `load.warmup`, or less if it ended once the throughput had settled.
    #[serde(default)]
    pub warmup_milliseconds: u64,
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
    /// Successful requests per second over the last five whole seconds that all shards have completed.
    pub achieved_per_second: u64,
    /// The 99th percentile of response time of successful requests over the same seconds, rounded up by at most 3.2 %. Not set
    /// while fewer than the 1,000 requests that it takes were measured in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// Whether the warm-up has finished and requests count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measuring: bool,
}

/// Where a part of the whole result is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// What it is, such as `result.json`; of several trials, `trial-0.result.json` and so on, and `experiment.json`; of several parts,
    /// `result.json.000` and so on, to be joined in order.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The ConfigMap that holds it, under its name as key.
    #[schemars(length(max = 253))]
    pub config_map: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it by reference")]
pub(crate) fn is_zero(value: &u64) -> bool {
    *value == 0
}

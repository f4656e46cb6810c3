//! What a comparison of targets came to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::comparison::ComparisonMetric;

/// One target beside the baseline, at one setting of what is swept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonResult {
    /// The target's name.
    #[schemars(length(max = 32))]
    pub target: String,
    /// The name of the target that it is compared with, or of the benchmark.
    #[schemars(length(max = 46))]
    pub baseline: String,
    /// The test that both ran, of several presets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub preset: Option<String>,
    /// The swept fields with the values that both ran at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Pairs of trials that count: one of each, side by side. 0 if they ran at different times.
    pub pairs: u32,
    /// The target's trials that count.
    pub trials: u32,
    /// The baseline's trials that count.
    pub baseline_trials: u32,
    /// Trials of both that do not count: not measured to their end, or Invalid.
    #[serde(default, skip_serializing_if = "crate::api::status::is_zero")]
    pub left_out: u64,
    /// What keeps the outcome from being about the targets, such as a load generator that was the limit of some trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub caution: Option<String>,
    /// What it came to in the metric that was asked for.
    pub outcome: ComparisonOutcome,
    /// By metric; the one that was asked for is the first.
    #[schemars(length(max = 5))]
    pub metrics: Vec<MetricComparison>,
}

/// One metric of a target beside the baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricComparison {
    /// Which metric.
    pub metric: ComparisonMetric,
    /// What it came to.
    pub outcome: ComparisonOutcome,
    /// The target's value over the baseline's: the geometric mean of all pairs, in millionths. 1020000 is 2 % more. Not set if
    /// one of the trials does not know its value, as are the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_millionths: Option<u64>,
    /// The lower end of the ratio's confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_millionths: Option<u64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_millionths: Option<u64>,
    /// How sure the interval is. More than was asked for where several metrics share it.
    pub confidence_basis_points: u32,
    /// The ratio in the first block of trials, in which caches and processors may have been cold. It counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_ratio_millionths: Option<u64>,
    /// The ratio in all other blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_ratio_millionths: Option<u64>,
    /// Only if Inconclusive: the smallest difference that so many trials with this spread would have shown in four of five
    /// comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable_basis_points: Option<u64>,
}

/// What a comparison came to. Faster is better in the metric's own direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ComparisonOutcome {
    /// More throughput or less latency than the baseline: the interval excludes 1.
    Faster,
    /// Less throughput or more latency than the baseline: the interval excludes 1.
    Slower,
    /// All of the interval is within the minimum effect.
    NoDifference,
    /// So many trials do not say.
    Inconclusive,
}

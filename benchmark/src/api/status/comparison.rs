//! The result of a comparison of targets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::comparison::ComparisonMetric;

/// A target against the baseline, at one swept setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonResult {
    /// The name of the target or client.
    #[schemars(length(max = 32))]
    pub target: String,
    /// The name of the baseline: a target, a client or a benchmark.
    #[schemars(length(max = 46))]
    pub baseline: String,
    /// The test that both ran, if there are several presets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub preset: Option<String>,
    /// The swept fields and their values, the same for both.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Pairs of trials that count: one of each, side by side. 0 if they ran at different times.
    pub pairs: u32,
    /// The target's trials that count.
    pub trials: u32,
    /// The baseline's trials that count.
    pub baseline_trials: u32,
    /// Trials of both that do not count: not measured to the end, or Invalid.
    #[serde(default, skip_serializing_if = "crate::api::fields::is_zero")]
    pub left_out: u64,
    /// Why the outcome may not be about the targets, such as a load generator that limited some trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub caution: Option<String>,
    /// The outcome for the requested metric.
    pub outcome: ComparisonOutcome,
    /// The results by metric, the requested one first.
    #[schemars(length(max = 6))]
    pub metrics: Vec<MetricComparison>,
}

/// One metric of a target against the baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricComparison {
    /// The compared metric.
    pub metric: ComparisonMetric,
    /// The outcome for this metric.
    pub outcome: ComparisonOutcome,
    /// The target's value over the baseline's: the geometric mean of all pairs, in millionths. 1020000 is 2 % more. Not set, like the other
    /// ratios, if a trial has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_millionths: Option<u64>,
    /// The lower end of the ratio's confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_millionths: Option<u64>,
    /// The upper end of the ratio's confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_millionths: Option<u64>,
    /// The confidence of the interval, in hundredths of a percent. More than requested if several metrics share it.
    pub confidence_basis_points: u32,
    /// The ratio in the first block of trials, when caches and processors may have been cold. It counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_ratio_millionths: Option<u64>,
    /// The ratio in all other blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_ratio_millionths: Option<u64>,
    /// Only if Inconclusive: the smallest difference that this number of trials with this spread would show in four of five comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable_basis_points: Option<u64>,
}

/// The outcome of a comparison. Faster is better in the metric's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ComparisonOutcome {
    /// More throughput or less latency than the baseline: the interval excludes 1.
    Faster,
    /// Less throughput or more latency than the baseline: the interval excludes 1.
    Slower,
    /// The whole interval is within the minimum effect.
    NoDifference,
    /// The trials do not decide.
    Inconclusive,
}

//! `spec.comparison`: several targets measured in turns, or a target and a previous run. The doc comments are the text of `kubectl
//! explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns::NAME_PATTERN;

/// Minimum number of pairs: fewer could only show differences that need no test.
pub const FEWEST_PAIRS: u32 = 5;

/// Compares targets, or clients, with one of them: faster, slower or the same. Their trials alternate, A B B A B A A B and so on, so that changes over
/// time affect all of them: `repeats.count` trials of each, at least 5, for each setting of `sweep` or of several presets. Or compares with
/// a previous benchmark, whose trials did not alternate with these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonSpec {
    /// Name of the target or client that the others are compared with. Exactly one of this and `benchmark` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub baseline: Option<String>,
    /// Name of a finished benchmark in the same namespace that the only target is compared with. It must have the same workload and load,
    /// and at least 5 repeats. Anything else that changed between the two runs counts as a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 46), pattern(NAME_PATTERN))]
    pub benchmark: Option<String>,
    /// Primary metric of the comparison. The others are tested too, with a correction for their number (Holm), because among many metrics
    /// one differs by chance. Default `Throughput`, the only one with `search`: it compares the rates found.
    #[serde(default)]
    pub metric: ComparisonMetric,
    /// Confidence in hundredths of a percent, 5000 to 9999. Default 9500: one of twenty comparisons of identical targets reports a
    /// difference.
    #[serde(default = "default_confidence")]
    #[schemars(range(min = 5_000, max = 9_999))]
    pub confidence_basis_points: u32,
    /// Smallest difference that matters, in hundredths of a percent of the baseline's value, 1 to 10000. Targets that are surely closer
    /// than this are reported as the same. Default 200, which is 2 %.
    #[serde(default = "default_effect")]
    #[schemars(range(min = 1, max = 10_000))]
    pub minimum_effect_basis_points: u32,
}

/// Metric of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ComparisonMetric {
    /// Successful requests per second.
    #[default]
    Throughput,
    /// Mean response time.
    MeanResponseTime,
    /// Median response time.
    P50,
    /// 99th percentile of response time.
    P99,
    /// 99.9th percentile of response time.
    P999,
    /// Processor time of the shards per request, with `load.clients`.
    CpuPerRequest,
}

impl ComparisonMetric {
    /// All metrics, in order of declaration.
    pub const ALL: [Self; 6] =
        [Self::Throughput, Self::MeanResponseTime, Self::P50, Self::P99, Self::P999, Self::CpuPerRequest];
}

fn default_confidence() -> u32 {
    9_500
}

fn default_effect() -> u32 {
    200
}

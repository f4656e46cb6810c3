//! `spec.comparison`: two targets or more, measured in turns. The doc comments are the text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::spec::{NAME_PATTERN, RedisBenchmarkSpec};

/// The fewest pairs of trials: fewer could show only what nobody needs a test for.
pub const FEWEST_PAIRS: u32 = 5;

/// Says whether targets are faster or slower than one of them, or the same. Their trials take turns, A B B A B A A B and so
/// on, so that what changes over time is in all of them: `repeats.count` of each, at least 5. With `sweep` or several presets,
/// so many for each setting. Or against a benchmark of before, whose trials did not take turns with these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonSpec {
    /// The name of the target that the others are compared with. Either this or `benchmark`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub baseline: Option<String>,
    /// The name of a finished benchmark in the same namespace that the only target is compared with: of the same workload and
    /// load, and repeated at least 5 times. Whatever else changed between the two runs counts as a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 46), pattern(NAME_PATTERN))]
    pub benchmark: Option<String>,
    /// What the comparison is about. The other metrics are judged as well, more carefully the more there are (Holm), because
    /// among many one differs by chance. Default `Throughput`.
    #[serde(default)]
    pub metric: ComparisonMetric,
    /// How sure to be, in hundredths of a per cent, 5000 to 9999. Default 9500: of twenty comparisons of the same with the
    /// same, one finds a difference.
    #[serde(default = "default_confidence")]
    #[schemars(range(min = 5_000, max = 9_999))]
    pub confidence_basis_points: u32,
    /// The smallest difference that matters, in hundredths of a per cent of the baseline's value, 1 to 10000: targets that are
    /// surely closer to each other are called the same. Default 200, which is 2 %.
    #[serde(default = "default_effect")]
    #[schemars(range(min = 1, max = 10_000))]
    pub minimum_effect_basis_points: u32,
}

/// A metric of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ComparisonMetric {
    /// Successful requests per second.
    #[default]
    Throughput,
    /// The mean of response time.
    MeanResponseTime,
    /// The median of response time.
    P50,
    /// The 99th percentile of response time.
    P99,
    /// The 99.9th percentile of response time.
    P999,
}

impl ComparisonMetric {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [Self::Throughput, Self::MeanResponseTime, Self::P50, Self::P99, Self::P999];
}

fn default_confidence() -> u32 {
    9_500
}

fn default_effect() -> u32 {
    200
}

/// What is wrong with a comparison, or with several targets without one.
pub(crate) fn check(spec: &RedisBenchmarkSpec) -> Vec<Problem> {
    let names: Vec<&str> = spec.targets.iter().map(|target| target.name.as_str()).collect();
    let mut problems = Vec::new();
    let Some(comparison) = &spec.comparison else {
        if names.len() > 1 {
            let message = "several targets are compared: set comparison, such as comparison: {baseline: NAME}, or remove all but one";
            problems.push(Problem::new("spec.targets", names.join(", "), message));
        }
        return problems;
    };
    match (&comparison.baseline, &comparison.benchmark) {
        (Some(_), Some(_)) | (None, None) => {
            let message =
                "must have either baseline, the name of a target, or benchmark, the name of a finished benchmark";
            problems.push(Problem::new("spec.comparison", "", message));
        }
        (None, Some(benchmark)) if names.len() > 1 => {
            let message = "takes one target: remove the others, or set comparison.baseline instead";
            problems.push(Problem::new("spec.comparison.benchmark", benchmark, message));
        }
        (Some(_), None) if names.len() < 2 => {
            let message = "takes two targets or more: add some, or remove comparison";
            problems.push(Problem::new("spec.comparison", names.join(", "), message));
        }
        (Some(baseline), None) if !names.contains(&baseline.as_str()) => {
            let message = format!("is no target; there are {}", names.join(", "));
            problems.push(Problem::new("spec.comparison.baseline", baseline, message));
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    if spec.repeats.count < FEWEST_PAIRS {
        let message = format!("must be at least {FEWEST_PAIRS} with comparison: that many trials of each target");
        problems.push(Problem::new("spec.repeats.count", spec.repeats.count, message));
    }
    // All pods have one set of Secrets.
    let first = spec.targets.first();
    let other = spec
        .targets
        .iter()
        .find(|target| first.is_some_and(|first| first.auth != target.auth || first.tls != target.tls));
    if let Some(other) = other {
        let message =
            "must have the same auth and tls as the first one: the shards of a run are given one set of Secrets";
        problems.push(Problem::new("spec.targets", &other.name, message));
    }
    problems
}

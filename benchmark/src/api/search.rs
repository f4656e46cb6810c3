//! `spec.search`: the highest rate at which an objective holds. The doc comments are the text of `kubectl explain`.

use std::time::Duration;

use redisbench_statistics::search::{self, Limits, Objective};
use redisbench_wire::plan::Arrival;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::patterns::QUANTILE_PATTERN;

/// Searches for the highest rate at which an objective holds. Each step is one trial. The search doubles the rate from the lowest one, then
/// bisects, then confirms the answer with three new trials. A step measures for at least 10s, longer if the quantile needs it, and at least
/// for `load.duration`. With `sweep`, several targets, presets or repeats, up to 10 searches run one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchSpec {
    /// Condition that must hold. In addition, at least 99 % of the rate must be achieved, and no backlog may grow.
    pub objective: ObjectiveSpec,
    /// Range and precision of the search.
    pub rate: SearchRateSpec,
}

/// Condition that must hold at a rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectiveSpec {
    /// Metric of the objective. Default `ResponseTime`.
    #[serde(default)]
    pub metric: ObjectiveMetric,
    /// Quantile of `ResponseTime`, required for it, such as `"0.99"`; 0.5 to 0.9999. Requests without a reply count as slower than any with
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), regex(pattern = QUANTILE_PATTERN))]
    pub quantile: Option<String>,
    /// Maximum of the quantile of `ResponseTime`, required for it, such as 2ms; 1us to 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<GoDuration>,
    /// Maximum share of failed or unsent requests for `ErrorRate`, required for it, in hundredths of a percent; 0 to 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub max_basis_points: Option<u32>,
    /// Minimum share of the rate that must be achieved for `AchievedRate`, required for it, in hundredths of a percent; 9900 to 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 9_900, max = 10_000))]
    pub min_basis_points: Option<u32>,
}

/// Metric of an objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ObjectiveMetric {
    /// A quantile of the response time.
    #[default]
    ResponseTime,
    /// Share of failed or unsent requests.
    ErrorRate,
    /// Achieved share of the rate.
    AchievedRate,
}

/// Range and precision of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchRateSpec {
    /// Lowest rate of the whole benchmark in requests per second, 1 to 1000000000.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub min: u64,
    /// Highest rate in requests per second, `min` to 1000000000.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max: u64,
    /// Maximum error of the answer in hundredths of a percent, 10 to 2000. Default 200, which is 2 %.
    #[serde(default = "default_tolerance")]
    #[schemars(range(min = 10, max = 2_000))]
    pub tolerance_basis_points: u32,
}

fn default_tolerance() -> u32 {
    200
}

/// Validated search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Condition that must hold.
    pub objective: Objective,
    /// Range and precision.
    pub limits: Limits,
    /// Distribution of due times in each step.
    pub arrivals: Arrival,
}

impl Search {
    /// The minimum measured time of a step at this rate.
    pub fn shortest(&self, rate: u64) -> Duration {
        search::shortest(rate, self.arrivals == Arrival::Poisson, &self.objective)
    }
}

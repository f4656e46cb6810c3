//! `spec.search`: the highest rate at which an objective holds. The doc comments are the text of `kubectl explain`.

use std::time::Duration;

use redisbench_statistics::search::{self, Arrivals, Limits, MOST_STEPS};
use redisbench_wire::plan::Arrival;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::experiment::MOST_TRIALS;
use super::problem::Problem;
use super::spec::RedisBenchmarkSpec;
use super::threshold::QUANTILE_PATTERN;
use super::validate::{Durations, HOUR, MILLISECOND};

const WHOLE: f64 = 10_000.0;

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
    pub objective: search::Objective,
    /// Range and precision.
    pub limits: Limits,
    /// Distribution of due times in each step.
    pub arrivals: Arrivals,
}

/// Longest measurement that a step may need.
const LONGEST_STEP: Duration = HOUR;

/// Steps that each of several searches can take.
pub const FEWEST_STEPS: u64 = 25;

/// Maximum searches of a benchmark.
pub const MOST_SEARCHES: u64 = MOST_TRIALS / FEWEST_STEPS;

/// Number of searches of `spec`, if it has a search: one for each combination of target or client, swept values, preset and repeat.
pub fn searches(spec: &RedisBenchmarkSpec) -> u64 {
    let sweep = spec.sweep.iter().map(|entry| entry.values.len());
    let parts = sweep.chain([spec.subjects().len(), spec.workload.preset.len().max(1)]);
    parts.fold(u64::from(spec.repeats.count), |searches, part| searches.saturating_mul(part as u64))
}

/// The most steps of each of `searches`.
fn most_steps(searches: u64) -> usize {
    usize::try_from(MOST_TRIALS / searches.max(1)).unwrap_or(MOST_STEPS).min(MOST_STEPS)
}

/// Checks `spec.search`. Returns none if it is invalid.
pub(crate) fn check(spec: &RedisBenchmarkSpec, search: &SearchSpec, problems: &mut Vec<Problem>) -> Option<Search> {
    let before = problems.len();
    let load = &spec.load;
    if load.warmup.parse().is_ok_and(|warmup| warmup < search::DISCARDED) {
        let message = "must be at least 2s with search: the first 2s of each step are discarded";
        problems.push(Problem::new("spec.load.warmup", &load.warmup, message));
    }
    let rate = &search.rate;
    let objective = objective(&search.objective, problems)?;
    let poisson = load.open_loop.as_ref().is_some_and(|open| open.arrival == Arrival::Poisson);
    let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
    let shortest = search::shortest(rate.min, arrivals, &objective);
    if shortest > LONGEST_STEP {
        let message = format!(
            "needs more than {} per step for the required 100 requests beyond the quantile: raise it, or set a lower \
             quantile",
            GoDuration::from(LONGEST_STEP)
        );
        problems.push(Problem::new("spec.search.rate.min", rate.min, message));
    }
    let tolerance = f64::from(rate.tolerance_basis_points) / WHOLE;
    let searches = searches(spec);
    if searches > MOST_SEARCHES {
        let message = format!(
            "runs {searches} times, once for each combination of sweep, targets or clients, workload.preset and repeats.count; the \
             maximum is {MOST_SEARCHES}, with {FEWEST_STEPS} steps each: remove values, or lower repeats.count"
        );
        problems.push(Problem::new("spec.search", "", message));
        return None;
    }
    let limits = Limits { min: rate.min, max: rate.max, tolerance, steps: most_steps(searches) };
    let usual = limits.usual_steps();
    if searches > 1 && usual > limits.steps {
        let message = format!(
            "is a range that takes up to {usual} steps from search.rate.min, {}, with this tolerance, but each of the \
             {searches} searches can take {}: narrow the range, or raise search.rate.toleranceBasisPoints",
            rate.min, limits.steps
        );
        problems.push(Problem::new("spec.search.rate.max", rate.max, message));
    }
    (problems.len() == before).then_some(Search { objective, limits, arrivals })
}

fn objective(spec: &ObjectiveSpec, problems: &mut Vec<Problem>) -> Option<search::Objective> {
    let share = |basis_points: u32| f64::from(basis_points) / WHOLE;
    match spec.metric {
        ObjectiveMetric::ResponseTime => {
            let (quantile, max) = (spec.quantile.as_ref()?, spec.max.as_ref()?);
            let mut durations = Durations { problems, within: "spec.search.objective" };
            let max = durations.between("max", max, MILLISECOND / 1000, 10 * super::validate::MINUTE);
            let max_nanoseconds = super::validate::nanoseconds(max);
            let known = quantile.parse().ok().filter(|quantile| (0.5..=0.9999).contains(quantile));
            if known.is_none() {
                let message = "must be from \"0.5\" to \"0.9999\", such as \"0.99\"";
                problems.push(Problem::new("spec.search.objective.quantile", quantile, message));
            }
            Some(search::Objective::Quantile { quantile: known?, max_nanoseconds })
        }
        ObjectiveMetric::ErrorRate => Some(search::Objective::ErrorRate { max: share(spec.max_basis_points?) }),
        ObjectiveMetric::AchievedRate => Some(search::Objective::Achieved { min: share(spec.min_basis_points?) }),
    }
}

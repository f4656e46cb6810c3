//! Validation of `spec.search`.

use std::time::Duration;

use redisbench_statistics::search::{self, Limits, MOST_STEPS};
use redisbench_wire::plan::Arrival;

use super::streams;
use crate::api::duration::{Durations, GoDuration, HOUR, MILLISECOND, MINUTE, nanoseconds};
use crate::api::problem::Problem;
use crate::api::search::{ObjectiveMetric, ObjectiveSpec, Search, SearchSpec};
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::sweep::MOST_TRIALS;

const WHOLE: f64 = 10_000.0;

/// Longest measurement that a step may need.
const LONGEST_STEP: Duration = HOUR;

/// Steps that each of several searches can take.
const FEWEST_STEPS: u64 = 25;

/// Maximum searches of a benchmark.
const MOST_SEARCHES: u64 = MOST_TRIALS / FEWEST_STEPS;

/// Number of combinations of target or client, swept values, preset and repeat. Each is a trial of `spec`, or a search.
pub(crate) fn combinations(spec: &RedisBenchmarkSpec) -> u64 {
    let sweep = spec.sweep.iter().map(|entry| entry.values.len());
    let parts = sweep.chain([spec.subjects().len(), spec.workload.preset.len().max(1)]);
    parts.fold(u64::from(spec.repeats.count), |combinations, part| combinations.saturating_mul(part as u64))
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
    let arrivals = load.open_loop.as_ref().map_or_else(Arrival::default, |open| open.arrival);
    let shortest = search::shortest(rate.min, arrivals == Arrival::Poisson, &objective);
    if shortest > LONGEST_STEP {
        let message = format!(
            "needs more than {} per step for the required 100 requests beyond the quantile: raise it, or set a lower \
             quantile",
            GoDuration::from(LONGEST_STEP)
        );
        problems.push(Problem::new("spec.search.rate.min", rate.min, message));
    }
    problems.extend(streams::too_high(spec, rate.max));
    let tolerance = f64::from(rate.tolerance_basis_points) / WHOLE;
    let searches = combinations(spec);
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
            let max = durations.between("max", max, MILLISECOND / 1000, 10 * MINUTE);
            let max_nanoseconds = nanoseconds(max);
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

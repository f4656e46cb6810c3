//! Judges whether one step of a search met its objective.

use std::time::Duration;

/// The minimum measured time of each step.
pub const SHORTEST: Duration = Duration::from_secs(10);

/// The time discarded at the beginning of each step.
pub const DISCARDED: Duration = Duration::from_secs(2);

/// The minimum number of requests beyond the quantile, so that it is not left to chance.
pub const BEYOND: f64 = 100.0;

/// The minimum share of the scheduled rate that must be achieved.
pub const ACHIEVED: f64 = 0.99;

/// In standard deviations: a Poisson count is further below its mean than this in one of 31,000 steps.
const DEVIATIONS: f64 = 4.0;

/// The condition that must hold at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// A quantile of response time. Requests without a reply count as longer than all others.
    Quantile {
        /// Such as 0.99; above 0 and below 1.
        quantile: f64,
        /// The maximum of the quantile.
        max_nanoseconds: u64,
    },
    /// The share of requests that fail or are not sent.
    ErrorRate {
        /// Such as 0.001.
        max: f64,
    },
    /// The share of the scheduled rate that is achieved. Every objective requires at least [`ACHIEVED`].
    Achieved {
        /// Such as 0.999.
        min: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Known, in nanoseconds.
    Nanoseconds(u64),
    /// Longer than any answered request, because too many had no reply.
    Beyond,
}

/// The measurements of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepMeasurement {
    /// Requests of the previous step still in flight when this one began. Must be 0.
    pub in_flight_before: u64,
    /// The time discarded at its beginning.
    pub discarded: Duration,
    pub measured: Duration,
    /// Requests that were due in the measured time.
    pub scheduled: u64,
    /// Of these, requests that failed or were not sent.
    pub failed: u64,
    /// The scheduled rate, in requests per second over the common window of all shards.
    pub scheduled_per_second: f64,
    /// The rate of successful completions over the same window.
    pub achieved_per_second: f64,
    /// Poisson arrivals instead of evenly spaced ones.
    pub poisson: bool,
    /// The objective's quantile of response time, if it has one.
    pub quantile: Option<Observed>,
    /// Backlog growth in requests per second, if any: see [`crate::backlog::growth`].
    pub backlog_growth: Option<f64>,
}

/// The judgement of a step against its objective, with the reason of a miss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement<F = Failure, U = Unusable> {
    Passed,
    Failed(F),
    /// Inconclusive; the step is repeated.
    Unusable(U),
}

/// Why an objective did not hold. Of several reasons, the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    /// The achieved share of the scheduled rate is too small.
    Behind { achieved: f64, min: f64 },
    Backlog {
        /// Its growth in requests per second.
        per_second: f64,
    },
    /// The quantile is too long, or beyond all answered requests.
    Latency { observed: Observed, max_nanoseconds: u64 },
    /// Too many requests failed.
    Errors { share: f64, max: f64 },
}

/// Why a step is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// This many requests of the previous step were still in flight.
    NotDrained(u64),
    /// Less was discarded than [`DISCARDED`].
    DiscardedTooShort(Duration),
    /// The measured time was too short for the rate and quantile; contains the required time.
    TooShort(Duration),
    /// The time was sufficient, but fewer requests were due than the quantile needs; contains their number.
    TooFew(u64),
    /// The objective needs a quantile that was not measured.
    NoQuantile,
}

/// The minimum measured time of a step at this rate: [`SHORTEST`], and for a quantile long enough for [`BEYOND`] requests beyond it.
/// With `poisson` arrivals, chance may leave fewer than the rate gives: their standard deviation is the root of their mean. So the mean is
/// chosen such that [`DEVIATIONS`] below it are still enough.
pub fn shortest(rate: u64, poisson: bool, objective: &Objective) -> Duration {
    let mut needed = requests(objective);
    if poisson && needed > 0.0 {
        // Solves m - d sqrt(m) = n for the mean m.
        needed = (DEVIATIONS / 2.0 + (DEVIATIONS * DEVIATIONS / 4.0 + needed).sqrt()).powi(2);
    }
    let needed = needed / (rate.max(1) as f64);
    // Saturates: the check of the spec rejects such durations.
    SHORTEST.max(Duration::try_from_secs_f64(needed).unwrap_or(Duration::MAX))
}

/// The number of requests that the objective needs.
fn requests(objective: &Objective) -> f64 {
    match objective {
        // A quantile such as 0.99 has no exact form; the factor absorbs the rounding error.
        Objective::Quantile { quantile, .. } => (BEYOND / (1.0 - quantile) * (1.0 - 1e-6)).ceil(),
        Objective::ErrorRate { .. } | Objective::Achieved { .. } => 0.0,
    }
}

pub fn judge(rate: u64, objective: &Objective, step: &StepMeasurement) -> Judgement {
    if let Some(unusable) = unusable(rate, objective, step) {
        return Judgement::Unusable(unusable);
    }
    match failure(objective, step) {
        Some(failure) => Judgement::Failed(failure),
        None => Judgement::Passed,
    }
}

fn unusable(rate: u64, objective: &Objective, step: &StepMeasurement) -> Option<Unusable> {
    let shortest = shortest(rate, step.poisson, objective);
    // Start instants and windows are cut to the shards' clocks, so up to a hundredth may be missing.
    let lacks = |is: Duration, wanted: Duration| is < wanted.mul_f64(0.99);
    if step.in_flight_before > 0 {
        Some(Unusable::NotDrained(step.in_flight_before))
    } else if lacks(step.discarded, DISCARDED) {
        Some(Unusable::DiscardedTooShort(step.discarded))
    } else if shortest == Duration::MAX || lacks(step.measured, shortest) {
        Some(Unusable::TooShort(shortest))
    } else if (step.scheduled as f64) < 0.99 * requests(objective) {
        Some(Unusable::TooFew(step.scheduled))
    } else if matches!(objective, Objective::Quantile { .. }) && step.quantile.is_none() {
        Some(Unusable::NoQuantile)
    } else {
        None
    }
}

fn failure(objective: &Objective, step: &StepMeasurement) -> Option<Failure> {
    let errors = step.failed as f64 / step.scheduled.max(1) as f64;
    let wanted = match *objective {
        Objective::Achieved { min } => min.max(ACHIEVED),
        // Allowed errors do not count as achieved; the rest must be.
        Objective::ErrorRate { .. } => ACHIEVED * (1.0 - errors),
        Objective::Quantile { .. } => ACHIEVED,
    };
    let achieved = step.achieved_per_second / step.scheduled_per_second;
    match *objective {
        Objective::ErrorRate { max } if errors > max => return Some(Failure::Errors { share: errors, max }),
        Objective::Quantile { max_nanoseconds, .. } => match step.quantile {
            Some(Observed::Nanoseconds(nanoseconds)) if nanoseconds <= max_nanoseconds => {}
            Some(observed) => return Some(Failure::Latency { observed, max_nanoseconds }),
            None => {}
        },
        _ => {}
    }
    // 0 over 0 is NaN, and nothing was achieved.
    if achieved.is_nan() || achieved < wanted {
        return Some(Failure::Behind { achieved, min: wanted });
    }
    step.backlog_growth.map(|per_second| Failure::Backlog { per_second })
}

#[cfg(test)]
pub(super) mod tests;

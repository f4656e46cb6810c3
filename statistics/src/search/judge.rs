//! Whether one step of a search held its objective.

use std::time::Duration;

/// What is measured in each step, at the least.
pub const SHORTEST: Duration = Duration::from_secs(10);

/// What is discarded at the beginning of each step.
pub const DISCARDED: Duration = Duration::from_secs(2);

/// So many requests must lie beyond the quantile, for it to be more than chance.
pub const BEYOND: f64 = 100.0;

/// The share of the scheduled rate that must be achieved.
pub const ACHIEVED: f64 = 0.99;

/// In standard deviations: a Poisson count is further below its mean than this in one step of 31,000.
const DEVIATIONS: f64 = 4.0;

/// What must hold at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// A quantile of response time, requests without an answer counted as longer than any.
    Quantile {
        /// Such as 0.99; above 0 and below 1.
        quantile: f64,
        /// The longest it may be.
        max_nanoseconds: u64,
    },
    /// The share of requests that fail or are not sent.
    ErrorRate {
        /// Such as 0.001.
        max: f64,
    },
    /// The share of the scheduled rate that is achieved. It must be at least [`ACHIEVED`] whatever the objective is.
    Achieved {
        /// Such as 0.999.
        min: f64,
    },
}

/// A quantile as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// It is known, in nanoseconds.
    Nanoseconds(u64),
    /// More requests had no answer than it leaves out: it is longer than any that had one.
    Beyond,
}

/// A step that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Requests in flight when the step began: of the one before, and to be none.
    pub in_flight_before: u64,
    /// How long was discarded at its beginning.
    pub discarded: Duration,
    /// How long was measured.
    pub measured: Duration,
    /// Requests that were due while it was measured.
    pub scheduled: u64,
    /// Of these, those that failed or were not sent.
    pub failed: u64,
    /// The rate that was scheduled, in requests per second over the window in which all shards measured.
    pub scheduled_per_second: f64,
    /// The rate of successful completions, over the same window.
    pub achieved_per_second: f64,
    /// How its requests were spread.
    pub arrivals: Arrivals,
    /// The objective's quantile of response time, if it is about one.
    pub quantile: Option<Observed>,
    /// By how many requests each second the backlog grew, if it did: see [`crate::backlog::growth`].
    pub backlog_growth: Option<f64>,
}

/// What a step comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// The objective held.
    Passed,
    /// It did not.
    Failed(Failure),
    /// The step does not say.
    Unusable(Unusable),
}

/// Why an objective did not hold; of several reasons, the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    /// The share of the scheduled rate that was achieved is too small.
    Behind {
        /// What was achieved.
        achieved: f64,
        /// What is asked for.
        min: f64,
    },
    /// More requests were due than ended, more and more.
    Backlog {
        /// By how many requests it grew each second.
        per_second: f64,
    },
    /// The quantile is too long, or beyond what had an answer.
    Latency {
        /// How long it is.
        observed: Observed,
        /// How long it may be.
        max_nanoseconds: u64,
    },
    /// Too many requests failed.
    Errors {
        /// Their share.
        share: f64,
        /// What it may be.
        max: f64,
    },
}

/// Why a step does not say whether its objective held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// So many requests of the step before were in flight.
    NotDrained(u64),
    /// Less was discarded than [`DISCARDED`].
    DiscardedTooShort(Duration),
    /// It was too short for its rate and quantile; how long it must be.
    TooShort(Duration),
    /// It was long enough, but fewer requests were due than the quantile needs: so many.
    TooFew(u64),
    /// The objective is about a quantile that was not measured.
    NoQuantile,
}

/// How the requests of a step are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal distances: their number follows from the rate.
    Constant,
    /// By chance: their number is a Poisson variable, whose standard deviation is the root of its mean.
    Poisson,
}

/// How long a step at this rate must measure: [`SHORTEST`], and for a quantile until [`BEYOND`] requests lie beyond it. Of
/// Poisson arrivals fewer come by chance, so these get as many on the mean as leave enough at [`DEVIATIONS`] below it.
pub fn shortest(rate: u64, arrivals: Arrivals, objective: &Objective) -> Duration {
    let needed = match (requests(objective), arrivals) {
        (needed, Arrivals::Constant) => needed,
        (0.0, Arrivals::Poisson) => 0.0,
        // The mean m with m - d sqrt(m) = n.
        (needed, Arrivals::Poisson) => (DEVIATIONS / 2.0 + (DEVIATIONS * DEVIATIONS / 4.0 + needed).sqrt()).powi(2),
    };
    let needed = needed / (rate.max(1) as f64);
    // What no duration holds is as long as one can be: whoever asks for it is told so where the spec is checked.
    SHORTEST.max(Duration::try_from_secs_f64(needed).unwrap_or(Duration::MAX))
}

/// How many requests the objective needs.
fn requests(objective: &Objective) -> f64 {
    match objective {
        // A quantile such as 0.99 has no exact form: a millionth less is the same number.
        Objective::Quantile { quantile, .. } => (BEYOND / (1.0 - quantile) * (1.0 - 1e-6)).ceil(),
        Objective::ErrorRate { .. } | Objective::Achieved { .. } => 0.0,
    }
}

/// Whether the objective held in a step at `rate`.
pub fn judge(rate: u64, objective: &Objective, step: &Measured) -> Judgement {
    if let Some(unusable) = unusable(rate, objective, step) {
        return Judgement::Unusable(unusable);
    }
    match failure(objective, step) {
        Some(failure) => Judgement::Failed(failure),
        None => Judgement::Passed,
    }
}

fn unusable(rate: u64, objective: &Objective, step: &Measured) -> Option<Unusable> {
    let shortest = shortest(rate, step.arrivals, objective);
    // Start instants and windows are cut to the shards' clocks: what lacks less than a hundredth is no other step.
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

fn failure(objective: &Objective, step: &Measured) -> Option<Failure> {
    let errors = step.failed as f64 / step.scheduled.max(1) as f64;
    let wanted = match *objective {
        Objective::Achieved { min } => min.max(ACHIEVED),
        // Errors that are allowed are not achieved; what did not fail must be.
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
    // A rate of 0 over 0 is no number, and nothing was achieved.
    if achieved.is_nan() || achieved < wanted {
        return Some(Failure::Behind { achieved, min: wanted });
    }
    step.backlog_growth.map(|per_second| Failure::Backlog { per_second })
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;

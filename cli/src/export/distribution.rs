//! Response times of all requests of a trial. Requests without an answer count as longer than any answer.

use hdrhistogram::Histogram;
use redisbench_benchmark::report::Measurement;
use redisbench_wire::histogram::Kind;

use super::error::ExportError;

/// A step, as a part of the distance that remains to 1: about seven steps halve it.
const STEP: f64 = 0.1;

pub struct Distribution {
    /// Of answered requests, in nanoseconds. Requests that took longer than a histogram holds are missing.
    pub answered: Histogram<u64>,
    /// Number of all scheduled requests.
    pub all: u64,
}

#[derive(Debug, PartialEq)]
pub struct Step {
    /// This share of all requests ...
    pub quantile: f64,
    /// ... and so this number of them ...
    pub count: u64,
    /// ... took at most this long.
    pub nanoseconds: u64,
}

impl Distribution {
    pub fn of(trial: &Measurement) -> Result<Self, ExportError> {
        let none = || ExportError::NoDistribution(trial.trial.index);
        let total = &trial.histograms.as_ref().ok_or_else(none)?.total;
        let mut answered = total.response.decode(Kind::Request)?;
        let requests = &trial.result.requests;
        match &total.error_replies {
            Some(errors) => errors.add_to(&mut answered, Kind::Request)?,
            None if requests.errors > requests.unanswered => return Err(none()),
            None => {}
        }
        Ok(Self { all: requests.scheduled.max(answered.len()), answered })
    }

    /// Requests whose response time is unknown.
    pub fn unknown(&self) -> u64 {
        self.all - self.answered.len()
    }

    /// Points for a plot, from the shortest to the longest known response time: some for each halving of the distance to 1.
    pub fn steps(&self) -> Vec<Step> {
        let (mut steps, mut count, mut next) = (Vec::new(), 0, 0.0);
        for bucket in self.answered.iter_recorded() {
            count += bucket.count_since_last_iteration();
            let quantile = count as f64 / self.all as f64;
            let is_last = count == self.answered.len();
            if quantile >= next || is_last {
                let nanoseconds = bucket.value_iterated_to().min(self.answered.max());
                steps.push(Step { quantile, count, nanoseconds });
            }
            // Beyond the last bucket, and at 1, there is no next step.
            while !is_last && next <= quantile {
                next += (1.0 - next) * STEP;
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::api::status::Requests;

    use super::*;
    use crate::export::sample;

    #[test]
    fn quantiles_are_those_of_all_requests() {
        let mut trial = sample::trial();
        let known = Distribution::of(&trial).unwrap();
        assert_eq!((known.all, known.unknown()), (1_000, 0));
        assert_eq!(known.steps().last().unwrap().count, 1_000);
        // A tenth was never sent.
        trial.result.requests = Requests { scheduled: 1_111, unsent: 111, ..trial.result.requests };
        let censored = Distribution::of(&trial).unwrap();
        assert_eq!(censored.unknown(), 111);
        let last = censored.steps().pop().unwrap();
        assert_eq!((last.count, last.nanoseconds), (1_000, known.steps().last().unwrap().nanoseconds));
        assert!((last.quantile - 1_000.0 / 1_111.0).abs() < 1e-12, "{last:?}");
    }

    #[test]
    fn steps_get_closer_towards_the_end() {
        let steps = Distribution::of(&sample::trial()).unwrap().steps();
        assert!(steps.is_sorted_by(|a, b| a.quantile < b.quantile && a.nanoseconds < b.nanoseconds), "{steps:?}");
        let between = |low: f64, high: f64| steps.iter().filter(|step| (low..high).contains(&step.quantile)).count();
        assert!(between(0.9, 0.99) >= 5 && between(0.0, 0.5) >= 5, "{steps:?}");
    }

    #[test]
    fn a_status_does_not_have_the_times_of_error_replies() {
        let mut trial = sample::trial();
        trial.result.requests = Requests { scheduled: 1_010, errors: 10, unanswered: 4, ..trial.result.requests };
        assert!(matches!(Distribution::of(&trial), Err(ExportError::NoDistribution(0))));
        trial.histograms = None;
        assert!(matches!(Distribution::of(&trial), Err(ExportError::NoDistribution(0))));
    }
}

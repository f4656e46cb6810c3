//! Quantiles of what was measured. Requests without an answer are not dropped: they count as longer than any answer.

use hdrhistogram::Histogram;
use redisbench_wire::histogram::HIGHEST_NANOSECONDS;

use crate::api::status::{Beyond, Latencies};
use crate::merge::Measured;

/// The quantiles of a status: their names, and themselves in millionths.
const QUANTILES: [(&str, u32); 5] =
    [("p50", 500_000), ("p90", 900_000), ("p99", 990_000), ("p999", 999_000), ("p9999", 999_900)];
const WHOLE: u32 = 1_000_000;

/// A quantile over requests of which some had no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Censored {
    /// It is so many nanoseconds.
    Known(u64),
    /// Too many requests had no answer, or one beyond what a histogram holds: it is more than so many nanoseconds.
    MoreThan(u64),
}

/// Response time over all scheduled requests: those without an answer are right-censored.
pub fn response_time(measured: &Measured) -> Latencies {
    let answered = answered(measured);
    latencies(&Requests::all(measured, &answered))
}

/// The quantile of response time, in millionths, over all scheduled requests but those that wait for their outcome; none
/// of none.
pub fn response_time_quantile(measured: &Measured, millionths: u32) -> Option<Censored> {
    let answered = answered(measured);
    let all = Requests::all(measured, &answered);
    Requests { censored: all.censored - measured.tally.in_flight, ..all }.quantile(millionths)
}

/// Response time over the succeeded requests alone.
pub fn response_time_of_succeeded(measured: &Measured) -> Latencies {
    let tally = &measured.tally;
    latencies(&Requests {
        answered: &measured.response,
        overflow: tally.overflow,
        overflow_max: tally.overflow_max_nanoseconds,
        censored: 0,
    })
}

/// A latency that is known of succeeded requests only.
pub fn plain(histogram: &Histogram<u64>) -> Latencies {
    latencies(&Requests::answered(histogram))
}

/// The quantile, in millionths, of `histogram`, at rank ceil(q n); none if it is empty.
pub fn quantile(histogram: &Histogram<u64>, millionths: u32) -> Option<u64> {
    at_rank(histogram, rank(histogram.len(), millionths))
}

/// Response times of what succeeded, and of what was answered with an error.
fn answered(measured: &Measured) -> Histogram<u64> {
    let mut answered = measured.response.clone();
    if let Some(errors) = &measured.error_replies {
        // Both have the bounds of their kind, so the sum does.
        let _ = answered.add(errors);
    }
    answered
}

/// Requests of which quantiles are asked.
#[derive(Clone, Copy)]
struct Requests<'a> {
    /// Those with an answer that a histogram holds.
    answered: &'a Histogram<u64>,
    /// Those that took longer than a histogram holds.
    overflow: u64,
    /// At most so long, in nanoseconds.
    overflow_max: u64,
    /// Those without an answer, which count as longer than any that had one.
    censored: u64,
}

impl<'a> Requests<'a> {
    fn all(measured: &Measured, answered: &'a Histogram<u64>) -> Self {
        let tally = &measured.tally;
        Self {
            answered,
            overflow: tally.overflow,
            overflow_max: tally.overflow_max_nanoseconds,
            censored: tally.unanswered + tally.unsent + tally.in_flight + measured.unknown,
        }
    }

    fn answered(answered: &'a Histogram<u64>) -> Self {
        Self { answered, overflow: 0, overflow_max: 0, censored: 0 }
    }

    fn count(&self) -> u64 {
        self.answered.len() + self.overflow + self.censored
    }

    /// The longest that is known.
    fn max(&self) -> u64 {
        if self.overflow > 0 { self.overflow_max } else { self.answered.max() }
    }

    fn quantile(&self, millionths: u32) -> Option<Censored> {
        let all = self.count();
        let rank = rank(all, millionths);
        if all == 0 {
            None
        } else if self.is_censored(millionths) {
            Some(Censored::MoreThan(self.max()))
        } else if rank <= self.answered.len() {
            at_rank(self.answered, rank).map(Censored::Known)
        } else {
            Some(Censored::MoreThan(HIGHEST_NANOSECONDS))
        }
    }

    /// Whether the share of those without an answer is 1 - q or more, so that nobody can tell the quantile q.
    fn is_censored(&self, millionths: u32) -> bool {
        let beyond = u128::from(WHOLE.saturating_sub(millionths)) * u128::from(self.count());
        self.censored > 0 && u128::from(self.censored) * u128::from(WHOLE) >= beyond
    }
}

/// The mean is of what the histogram holds.
fn latencies(requests: &Requests<'_>) -> Latencies {
    if requests.count() == 0 {
        return Latencies::default();
    }
    let mut beyond = Vec::new();
    let mut values = [None; QUANTILES.len()];
    for (value, (name, quantile)) in values.iter_mut().zip(QUANTILES) {
        match requests.quantile(quantile) {
            Some(Censored::Known(nanoseconds)) => *value = Some(nanoseconds),
            Some(Censored::MoreThan(more_than_nanoseconds)) => {
                beyond.push(Beyond { quantile: name.to_owned(), more_than_nanoseconds });
            }
            None => {}
        }
    }
    let [p50, p90, p99, p999, p9999] = values;
    let answered = requests.answered;
    Latencies {
        mean_nanoseconds: (!answered.is_empty()).then(|| round(answered.mean())),
        p50_nanoseconds: p50,
        p90_nanoseconds: p90,
        p99_nanoseconds: p99,
        p999_nanoseconds: p999,
        p9999_nanoseconds: p9999,
        max_nanoseconds: (answered.len() + requests.overflow > 0).then(|| requests.max()),
        beyond,
    }
}

/// The smallest rank, from 1, at which at least this share of `count` is reached. Exact: no floats.
fn rank(count: u64, millionths: u32) -> u64 {
    let rank = (u128::from(count) * u128::from(millionths)).div_ceil(u128::from(WHOLE));
    u64::try_from(rank).unwrap_or(u64::MAX).max(1)
}

fn at_rank(histogram: &Histogram<u64>, rank: u64) -> Option<u64> {
    let mut seen = 0;
    histogram.iter_recorded().find_map(|bucket| {
        seen += bucket.count_since_last_iteration();
        // The bucket's upper end, but never more than was seen.
        (seen >= rank).then(|| bucket.value_iterated_to().min(histogram.max()))
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of values below 600 s")]
pub(crate) fn round(mean: f64) -> u64 {
    mean.round() as u64
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;

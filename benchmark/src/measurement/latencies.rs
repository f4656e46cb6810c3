//! Quantiles of latencies. Requests without an answer are not dropped: they count as longer than any answer.

use hdrhistogram::Histogram;
use redisbench_statistics::ranks;
use redisbench_wire::histogram::HIGHEST_NANOSECONDS;
use redisbench_wire::snapshot::Tally;

use super::measured::Measured;
use crate::api::status::{Latencies, Percentile};
use crate::human;
use crate::quantile::Quantile;

const WHOLE: u32 = 1_000_000;

/// A quantile over requests, some of them without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Censored {
    /// In nanoseconds.
    Known(u64),
    /// Lower bound in nanoseconds: too many requests had no answer, or one beyond the range of a histogram.
    MoreThan(u64),
}

/// The 95 % confidence interval of a quantile, for independent requests. In nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub low: u64,
    /// None if it is among requests without an answer.
    pub high: Option<u64>,
}

/// Response time over all scheduled requests: those without an answer are right-censored.
pub fn response_time(measured: &Measured, percentiles: &[Quantile]) -> Latencies {
    latencies(&Population::of(measured, &answered(measured)), percentiles)
}

/// One percentile of [`response_time`].
pub fn response_time_at(measured: &Measured, quantile: Quantile) -> Percentile {
    Population::of(measured, &answered(measured)).percentile(quantile)
}

/// A quantile of [`response_time`], if `answered` holds the times of succeeded requests and of error replies. `unknown` requests are not in
/// the tally. None if there are too few requests, or only a bound is known.
pub fn response_time_of_answered(
    answered: &Histogram<u64>,
    tally: &Tally,
    unknown: u64,
    quantile: Quantile,
) -> Option<u64> {
    Population::all(answered, tally, unknown).known(quantile)
}

/// A quantile of response time over all scheduled requests except those in flight; none if there are too few.
pub fn response_time_quantile(measured: &Measured, quantile: Quantile) -> Option<Censored> {
    Population::finished(measured, &answered(measured)).quantile(quantile)
}

/// The interval of [`response_time_quantile`].
pub fn response_time_interval(measured: &Measured, quantile: Quantile) -> Option<Interval> {
    Population::finished(measured, &answered(measured)).interval(quantile)
}

/// Response time over succeeded requests only.
pub fn response_time_of_succeeded(measured: &Measured, percentiles: &[Quantile]) -> Latencies {
    let tally = &measured.tally;
    let succeeded = Population {
        overflow: tally.overflow,
        overflow_max: tally.overflow_max_nanoseconds,
        ..Population::answered(&measured.response)
    };
    latencies(&succeeded, percentiles)
}

/// Latencies of a histogram that holds only succeeded requests.
pub fn plain(histogram: &Histogram<u64>, percentiles: &[Quantile]) -> Latencies {
    latencies(&Population::answered(histogram), percentiles)
}

/// A quantile of `histogram`; none if it has too few values.
pub fn known(histogram: &Histogram<u64>, quantile: Quantile) -> Option<u64> {
    (histogram.len() >= quantile.needs()).then(|| self::quantile(histogram, quantile.millionths())).flatten()
}

/// The interval of [`known`].
pub fn interval(histogram: &Histogram<u64>, quantile: Quantile) -> Option<Interval> {
    Population::answered(histogram).interval(quantile)
}

/// A quantile of `histogram`, in millionths, at rank ceil(q n), for any number of values; none if it is empty.
pub fn quantile(histogram: &Histogram<u64>, millionths: u32) -> Option<u64> {
    let rank = rank(histogram.len(), millionths);
    ranks(histogram).find(|(last, _)| *last >= rank).map(|(_, value)| value)
}

/// A point of the curve of a latency by percentile.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    pub quantile: Quantile,
    /// The percentile with its interval, or why it is unknown.
    pub percentile: Percentile,
    /// The value at the quantile's rank, also of too few requests; none if that request had no answer.
    pub at_rank: Option<u64>,
}

/// The curve of [`response_time`].
pub fn curve(measured: &Measured, quantiles: &[Quantile]) -> Vec<CurvePoint> {
    let answered = answered(measured);
    let all = Population::of(measured, &answered);
    let point = |&quantile: &Quantile| CurvePoint {
        quantile,
        percentile: all.percentile(quantile),
        at_rank: all.at_rank(rank(all.count(), quantile.millionths())),
    };
    quantiles.iter().map(point).collect()
}

/// Response times of succeeded requests and of error replies.
fn answered(measured: &Measured) -> Histogram<u64> {
    let mut answered = measured.response.clone();
    if let Some(errors) = &measured.error_replies {
        // Both have the bounds of their kind, so the sum does.
        let _ = answered.add(errors);
    }
    answered
}

/// The requests to take quantiles of.
struct Population<'a> {
    /// Answered within the range of a histogram.
    answered: &'a Histogram<u64>,
    /// The last rank of each of its buckets with the bucket's value, in order: a curve asks for hundreds of ranks.
    ranks: Vec<(u64, u64)>,
    /// Answered beyond the range of a histogram.
    overflow: u64,
    /// Longest of `overflow`, in nanoseconds.
    overflow_max: u64,
    /// Without an answer; they count as longer than any answer.
    censored: u64,
}

impl<'a> Population<'a> {
    fn of(measured: &Measured, answered: &'a Histogram<u64>) -> Self {
        Self::all(answered, &measured.tally, measured.unknown)
    }

    fn all(answered: &'a Histogram<u64>, tally: &Tally, unknown: u64) -> Self {
        Self {
            overflow: tally.overflow,
            overflow_max: tally.overflow_max_nanoseconds,
            censored: tally.unanswered + tally.unsent + tally.in_flight + unknown,
            ..Self::answered(answered)
        }
    }

    /// All except those in flight.
    fn finished(measured: &Measured, answered: &'a Histogram<u64>) -> Self {
        let all = Self::of(measured, answered);
        Self { censored: all.censored - measured.tally.in_flight, ..all }
    }

    fn answered(answered: &'a Histogram<u64>) -> Self {
        Self { answered, ranks: ranks(answered).collect(), overflow: 0, overflow_max: 0, censored: 0 }
    }

    /// None beyond the answered requests.
    fn at_rank(&self, rank: u64) -> Option<u64> {
        let bucket = self.ranks.partition_point(|(last, _)| *last < rank);
        self.ranks.get(bucket).map(|(_, value)| *value)
    }

    fn count(&self) -> u64 {
        self.answered.len() + self.overflow + self.censored
    }

    /// The longest known latency.
    fn max(&self) -> u64 {
        if self.overflow > 0 { self.overflow_max } else { self.answered.max() }
    }

    /// None if there are too few requests.
    fn quantile(&self, quantile: Quantile) -> Option<Censored> {
        let (all, millionths) = (self.count(), quantile.millionths());
        let rank = rank(all, millionths);
        if all < quantile.needs() {
            None
        } else if self.is_censored(millionths) {
            Some(Censored::MoreThan(self.max()))
        } else if rank <= self.answered.len() {
            self.at_rank(rank).map(Censored::Known)
        } else {
            Some(Censored::MoreThan(HIGHEST_NANOSECONDS))
        }
    }

    /// None if the quantile has no ends: it is the maximum, or there are too few requests.
    fn interval(&self, quantile: Quantile) -> Option<Interval> {
        let (low, high) = ranks::interval(self.count(), quantile.millionths())?;
        // An end beyond the answered requests is unknown.
        Some(Interval { low: self.at_rank(low)?, high: self.at_rank(high) })
    }

    /// None if there are too few requests, or only a bound is known.
    fn known(&self, quantile: Quantile) -> Option<u64> {
        match self.quantile(quantile) {
            Some(Censored::Known(nanoseconds)) => Some(nanoseconds),
            Some(Censored::MoreThan(_)) | None => None,
        }
    }

    /// The quantile with its confidence interval, or the reason why it is unknown.
    fn percentile(&self, quantile: Quantile) -> Percentile {
        let mut found = Percentile { percentile: quantile.percent(), ..Percentile::default() };
        match self.quantile(quantile) {
            Some(Censored::Known(nanoseconds)) => {
                let interval = self.interval(quantile);
                found.nanoseconds = Some(nanoseconds);
                found.low_nanoseconds = interval.map(|interval| interval.low);
                found.high_nanoseconds = interval.and_then(|interval| interval.high);
            }
            Some(Censored::MoreThan(nanoseconds)) => found.more_than_nanoseconds = Some(nanoseconds),
            None => found.needed_requests = Some(quantile.needs()),
        }
        found
    }

    /// Returns whether the share of requests without an answer is 1 - q or more, so that the quantile q is unknown.
    fn is_censored(&self, millionths: u32) -> bool {
        let beyond = u128::from(WHOLE.saturating_sub(millionths)) * u128::from(self.count());
        self.censored > 0 && u128::from(self.censored) * u128::from(WHOLE) >= beyond
    }
}

fn latencies(requests: &Population<'_>, percentiles: &[Quantile]) -> Latencies {
    if requests.count() == 0 {
        return Latencies::default();
    }
    let known = |quantile| requests.known(quantile);
    let answered = requests.answered;
    // Requests without an answer, or beyond the range of a histogram, have no exact time for a mean.
    let whole = requests.censored == 0 && requests.overflow == 0;
    Latencies {
        mean_nanoseconds: (whole && !answered.is_empty()).then(|| round(answered.mean())),
        p50_nanoseconds: known(Quantile::P50),
        p90_nanoseconds: known(Quantile::P90),
        p95_nanoseconds: known(Quantile::P95),
        p99_nanoseconds: known(Quantile::P99),
        p999_nanoseconds: known(Quantile::P999),
        p9999_nanoseconds: known(Quantile::P9999),
        max_nanoseconds: (answered.len() + requests.overflow > 0).then(|| requests.max()),
        percentiles: percentiles.iter().map(|quantile| requests.percentile(*quantile)).collect(),
    }
}

/// The smallest rank, from 1, that covers this share of `count`. Exact: no floats.
fn rank(count: u64, millionths: u32) -> u64 {
    let rank = (u128::from(count) * u128::from(millionths)).div_ceil(u128::from(WHOLE));
    u64::try_from(rank).unwrap_or(u64::MAX).max(1)
}

/// The last rank of each bucket that has values, and its upper end, capped at the maximum.
fn ranks(histogram: &Histogram<u64>) -> impl Iterator<Item = (u64, u64)> {
    let longest = histogram.max();
    histogram.iter_recorded().scan(0, move |seen, bucket| {
        *seen += bucket.count_since_last_iteration();
        Some((*seen, bucket.value_iterated_to().min(longest)))
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of values below 600 s")]
pub(crate) fn round(mean: f64) -> u64 {
    mean.round() as u64
}

/// Formats a percentile of latencies: `1.45 ms`, or `> 1.00 s` if only a bound is known. None if there are too few requests.
pub fn percentile(found: &Percentile) -> Option<String> {
    let beyond = |nanoseconds| format!("> {}", human::latency(nanoseconds));
    found.nanoseconds.map(human::latency).or(found.more_than_nanoseconds.map(beyond))
}

#[cfg(test)]
mod tests;

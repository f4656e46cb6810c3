//! Quantiles of what was measured. Requests without an answer are not dropped: they count as longer than any answer.

use hdrhistogram::Histogram;
use redisbench_wire::histogram::HIGHEST_NANOSECONDS;

use crate::api::status::{Beyond, Latencies};
use crate::merge::Measured;

/// The quantiles of a status: their names, and themselves in hundredths of a per cent.
const QUANTILES: [(&str, u64); 5] = [("p50", 5_000), ("p90", 9_000), ("p99", 9_900), ("p999", 9_990), ("p9999", 9_999)];
const WHOLE: u64 = 10_000;

/// Response time over all scheduled requests: those without an answer are right-censored.
pub fn response_time(measured: &Measured) -> Latencies {
    let tally = &measured.tally;
    let mut answered = measured.response.clone();
    if let Some(errors) = &measured.error_replies {
        // Both have the bounds of their kind, so the sum does.
        let _ = answered.add(errors);
    }
    let censored = tally.unanswered + tally.unsent + tally.in_flight + measured.unknown;
    latencies(&answered, tally.overflow, tally.overflow_max_nanoseconds, censored)
}

/// Response time over the succeeded requests alone.
pub fn response_time_of_succeeded(measured: &Measured) -> Latencies {
    let tally = &measured.tally;
    latencies(&measured.response, tally.overflow, tally.overflow_max_nanoseconds, 0)
}

/// A latency that is known of succeeded requests only.
pub fn plain(histogram: &Histogram<u64>) -> Latencies {
    latencies(histogram, 0, 0, 0)
}

/// The quantile `hundredths_of_percent` / 10000 of `histogram`, at rank ceil(q n); none if it is empty.
pub fn quantile(histogram: &Histogram<u64>, hundredths_of_percent: u64) -> Option<u64> {
    at_rank(histogram, rank(histogram.len(), hundredths_of_percent))
}

/// `overflow` requests took longer than a histogram holds, at most `overflow_max`; `censored` had no answer, and count
/// as longer than any that had one. The mean is of what the histogram holds.
fn latencies(answered: &Histogram<u64>, overflow: u64, overflow_max: u64, censored: u64) -> Latencies {
    let known = answered.len() + overflow;
    let all = known + censored;
    if all == 0 {
        return Latencies::default();
    }
    let max = if overflow > 0 { overflow_max } else { answered.max() };
    let mut beyond = Vec::new();
    let mut values = [None; QUANTILES.len()];
    for (value, (name, quantile)) in values.iter_mut().zip(QUANTILES) {
        let rank = rank(all, quantile);
        let more_than_nanoseconds = if is_censored(censored, all, quantile) {
            max
        } else if rank <= answered.len() {
            *value = at_rank(answered, rank);
            continue;
        } else {
            HIGHEST_NANOSECONDS
        };
        beyond.push(Beyond { quantile: name.to_owned(), more_than_nanoseconds });
    }
    let [p50, p90, p99, p999, p9999] = values;
    Latencies {
        mean_nanoseconds: (!answered.is_empty()).then(|| round(answered.mean())),
        p50_nanoseconds: p50,
        p90_nanoseconds: p90,
        p99_nanoseconds: p99,
        p999_nanoseconds: p999,
        p9999_nanoseconds: p9999,
        max_nanoseconds: (known > 0).then_some(max),
        beyond,
    }
}

/// Whether the share of `censored` in `all` is 1 - q or more, so that nobody can tell the quantile q.
fn is_censored(censored: u64, all: u64, hundredths_of_percent: u64) -> bool {
    u128::from(censored) * u128::from(WHOLE) >= u128::from(WHOLE - hundredths_of_percent) * u128::from(all)
}

/// The smallest rank, from 1, at which at least this share of `count` is reached. Exact: no floats.
fn rank(count: u64, hundredths_of_percent: u64) -> u64 {
    let rank = (u128::from(count) * u128::from(hundredths_of_percent)).div_ceil(u128::from(WHOLE));
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
fn round(mean: f64) -> u64 {
    mean.round() as u64
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;

//! Spread of one metric over several trials, in the integers of a status.

use redisbench_statistics::{Confidence, Direction, summarize};

use crate::api::status::{LatencySpread, ShareSpread, ThroughputSpread};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    mean: u64,
    median: u64,
    standard_deviation: u64,
    low: u64,
    high: u64,
    best_trial: u32,
    worst_trial: u32,
}

impl Spread {
    /// From pairs of trial index and value; none for fewer than two.
    pub(super) fn of(values: &[(u32, u64)], direction: Direction) -> Option<Self> {
        let plain: Vec<f64> = values.iter().map(|(_, value)| *value as f64).collect();
        let summary = summarize(&plain, direction, Confidence::USUAL)?;
        let interval = summary.interval?;
        Some(Self {
            mean: whole(summary.mean),
            median: whole(summary.median),
            standard_deviation: whole(summary.standard_deviation?),
            low: whole(interval.lower),
            high: whole(interval.upper),
            best_trial: values.get(summary.best)?.0,
            worst_trial: values.get(summary.worst)?.0,
        })
    }

    pub(super) fn throughput(self) -> ThroughputSpread {
        ThroughputSpread {
            mean_per_second: self.mean,
            median_per_second: self.median,
            standard_deviation_per_second: self.standard_deviation,
            low_per_second: self.low,
            high_per_second: self.high,
            best_trial: self.best_trial,
            worst_trial: self.worst_trial,
        }
    }

    pub(super) fn latency(self) -> LatencySpread {
        LatencySpread {
            mean_nanoseconds: self.mean,
            median_nanoseconds: self.median,
            standard_deviation_nanoseconds: self.standard_deviation,
            low_nanoseconds: self.low,
            high_nanoseconds: self.high,
            best_trial: self.best_trial,
            worst_trial: self.worst_trial,
        }
    }

    pub(super) fn share(self) -> ShareSpread {
        ShareSpread {
            mean_millionths: self.mean,
            median_millionths: self.median,
            standard_deviation_millionths: self.standard_deviation,
            low_millionths: self.low,
            high_millionths: self.high,
            best_trial: self.best_trial,
            worst_trial: self.worst_trial,
        }
    }
}

/// Rounds to the nearest integer. Negative values, which these metrics cannot have, give 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "conversions of floats stop at the ends")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

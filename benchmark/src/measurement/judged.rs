//! Thresholds with what was observed of their metrics.

use std::cmp::Ordering;
use std::time::Duration;

use super::latencies::{Censored, Interval};
use crate::api::Threshold;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub threshold: Threshold,
    pub standing: ThresholdState,
}

/// Observed value of a threshold's metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// A quantile.
    Latency(Censored),
    /// Failed requests of all requests.
    Errors {
        /// Failed or not sent.
        failed: u64,
        /// All requests with an outcome.
        of: u64,
    },
    /// Successful requests per second.
    PerSecond(u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThresholdState {
    /// The worst observation; none before anything could be judged.
    pub worst: Option<Worst>,
    /// Judged windows; 0 for a threshold on the whole.
    pub windows: u64,
    /// Windows in which the threshold did not hold.
    pub failed_windows: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst {
    pub observed: Observed,
    /// The interval of a known quantile of the whole measurement.
    pub interval: Option<Interval>,
    /// True if the threshold allows it.
    pub holds: bool,
    /// The node, if each node is judged separately.
    pub node: Option<String>,
    /// End of the window, since the measurement began; none for the whole.
    pub at: Option<Duration>,
}

impl ThresholdState {
    /// Returns whether everything judged holds; none if nothing was judged.
    pub fn holds(&self) -> Option<bool> {
        self.worst.as_ref().map(|worst| worst.holds)
    }
}

impl Observed {
    /// Returns whether it is worse than `other`, which must be of the same metric.
    fn is_worse_than(self, other: Self) -> bool {
        let order = match (self, other) {
            (Self::Latency(a), Self::Latency(b)) => match (a, b) {
                (Censored::Known(a), Censored::Known(b)) | (Censored::MoreThan(a), Censored::MoreThan(b)) => a.cmp(&b),
                (Censored::MoreThan(_), Censored::Known(_)) => Ordering::Greater,
                (Censored::Known(_), Censored::MoreThan(_)) => Ordering::Less,
            },
            (Self::Errors { failed: a, of: of_a }, Self::Errors { failed: b, of: of_b }) => {
                (u128::from(a) * u128::from(of_b)).cmp(&(u128::from(b) * u128::from(of_a)))
            }
            (Self::PerSecond(a), Self::PerSecond(b)) => b.cmp(&a),
            _ => Ordering::Equal,
        };
        order == Ordering::Greater
    }
}

impl Worst {
    /// Returns whether it is worse than `other`, which must be of the same threshold.
    pub fn is_worse_than(&self, other: &Self) -> bool {
        (other.holds && !self.holds) || (other.holds == self.holds && self.observed.is_worse_than(other.observed))
    }
}

//! Validated limits that a measurement must meet.

use std::time::Duration;

use crate::human;
use crate::quantile::Quantile;

/// Limit that the measurement must meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Name in the status.
    pub name: String,
    /// Metric and its bound.
    pub limit: Limit,
    /// Requests that it applies to.
    pub scope: Scope,
    /// Length of each window to judge; none for the whole measurement.
    pub window: Option<Duration>,
    /// Stops the load as soon as the threshold is violated.
    pub abort_on_fail: bool,
}

/// Metric and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Time from the due time to the reply.
    ResponseTime {
        /// Quantile to compare.
        quantile: Quantile,
        /// Maximum of the quantile.
        max: Duration,
    },
    /// Time from sending to the reply.
    ServiceTime {
        /// Quantile to compare.
        quantile: Quantile,
        /// Maximum of the quantile.
        max: Duration,
    },
    /// Share of requests that failed or were not sent.
    ErrorRate {
        /// Maximum, in hundredths of a percent.
        max_basis_points: u32,
    },
    /// Successful requests per second.
    Throughput {
        /// Minimum.
        min_per_second: u64,
    },
}

/// Requests that a threshold applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All requests.
    Total,
    /// Requests of one operation.
    Operation(String),
    /// Requests of each Redis node separately.
    EachNode,
}

impl Threshold {
    /// Returns whether the threshold is judged while the load runs.
    pub(crate) fn is_watched(&self) -> bool {
        self.abort_on_fail || self.window.is_some()
    }

    /// Metric and scope for display, such as `p99 of response time of get`.
    pub fn subject(&self) -> String {
        let what = match &self.limit {
            Limit::ResponseTime { quantile, .. } => format!("{} of response time", quantile.name()),
            Limit::ServiceTime { quantile, .. } => format!("{} of service time", quantile.name()),
            Limit::ErrorRate { .. } => "the error rate".to_owned(),
            Limit::Throughput { .. } => "the throughput".to_owned(),
        };
        match &self.scope {
            Scope::Total => what,
            Scope::Operation(name) => format!("{what} of {name}"),
            Scope::EachNode => format!("{what} of each node"),
        }
    }

    /// Bound for display, such as `at most 2.00 ms`.
    pub fn allowed(&self) -> String {
        match &self.limit {
            Limit::ResponseTime { max, .. } | Limit::ServiceTime { max, .. } => {
                format!("at most {}", human::latency(nanoseconds(*max)))
            }
            Limit::ErrorRate { max_basis_points } => {
                format!("at most {}.{:02} %", max_basis_points / 100, max_basis_points % 100)
            }
            Limit::Throughput { min_per_second } => format!("at least {}", human::rate(*min_per_second)),
        }
    }
}

/// Returns whether nodes need per-second counts, so that `thresholds` can be judged while the load runs.
pub fn watches_nodes(thresholds: &[Threshold]) -> bool {
    thresholds.iter().any(|threshold| threshold.scope == Scope::EachNode && threshold.is_watched())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

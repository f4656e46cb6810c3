//! What a measurement must keep to, checked.

use std::time::Duration;

use crate::human;
use crate::quantile::Quantile;

/// One thing that the measurement must keep to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// What it is called.
    pub name: String,
    /// What it allows.
    pub limit: Limit,
    /// What it is about.
    pub scope: Scope,
    /// Every stretch of so long is judged; none for the whole measurement.
    pub window: Option<Duration>,
    /// The load stops as soon as it does not hold.
    pub abort_on_fail: bool,
}

/// What a threshold allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// From the due time until the answer.
    ResponseTime {
        /// At this quantile.
        quantile: Quantile,
        /// At most.
        max: Duration,
    },
    /// From the send until the answer.
    ServiceTime {
        /// At this quantile.
        quantile: Quantile,
        /// At most.
        max: Duration,
    },
    /// Requests that failed or were not sent, of all.
    ErrorRate {
        /// At most, in hundredths of a per cent.
        max_basis_points: u32,
    },
    /// Successful requests per second.
    Throughput {
        /// At least.
        min_per_second: u64,
    },
}

/// What a threshold is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All requests.
    Total,
    /// Those of one operation.
    Operation(String),
    /// Those of each Redis node by itself.
    EachNode,
}

impl Threshold {
    /// Whether it is judged while the load runs.
    pub(crate) fn is_watched(&self) -> bool {
        self.abort_on_fail || self.window.is_some()
    }

    /// What it compares, for people, such as `p99 of response time of get`.
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

    /// What it allows, for people, such as `at most 2.00 ms`.
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

/// Whether nodes must be counted by the second, so that `thresholds` can be judged while the load runs.
pub fn watches_nodes(thresholds: &[Threshold]) -> bool {
    thresholds.iter().any(|threshold| threshold.scope == Scope::EachNode && threshold.is_watched())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

//! Judges thresholds: over the whole measurement or in every window; over all requests, one operation's, or each node's. Pure.
//!
//! Everything is judged on the merge of all shards, never per shard. A quantile covers all requests; those without an answer count as
//! longer than any answer.

mod observation;
mod watch;

use std::cmp::Ordering;
use std::time::Duration;

pub use observation::Observation;
use observation::Part;
pub use watch::{Watch, watched_seconds};

use crate::api::{Limit, Scope, Threshold};
use crate::human;
use crate::measurement::latencies::{Censored, Interval};

/// Expected number of failed requests at the bound before an error rate is judged during the load.
const FAILED: u64 = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub threshold: Threshold,
    pub standing: Standing,
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
pub struct Standing {
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
    /// Whether the threshold allows it.
    pub holds: bool,
    /// The node, if each node is judged separately.
    pub node: Option<String>,
    /// End of the window, since the measurement began; none for the whole.
    pub at: Option<Duration>,
}

impl Standing {
    /// Whether everything judged holds; none if nothing was judged.
    pub fn holds(&self) -> Option<bool> {
        self.worst.as_ref().map(|worst| worst.holds)
    }
}

impl Limit {
    /// Whether `observed`, which must be of its metric, is allowed.
    fn allows(&self, observed: Observed) -> bool {
        match (*self, observed) {
            (Self::ResponseTime { max, .. } | Self::ServiceTime { max, .. }, Observed::Latency(latency)) => {
                match latency {
                    Censored::Known(nanoseconds) => Duration::from_nanos(nanoseconds) <= max,
                    // The value may be anything above.
                    Censored::MoreThan(_) => false,
                }
            }
            (Self::ErrorRate { max_basis_points }, Observed::Errors { failed, of }) => {
                u128::from(failed) * 10_000 <= u128::from(of) * u128::from(max_basis_points)
            }
            (Self::Throughput { min_per_second }, Observed::PerSecond(per_second)) => per_second >= min_per_second,
            _ => false,
        }
    }

    /// Returns true if a quantile's bound lies within its `interval`. The outcome is then not clear.
    fn is_within(&self, interval: Interval) -> bool {
        match *self {
            Self::ResponseTime { max, .. } | Self::ServiceTime { max, .. } => {
                let above = |nanoseconds| Duration::from_nanos(nanoseconds) > max;
                !above(interval.low) && interval.high.is_none_or(above)
            }
            Self::ErrorRate { .. } | Self::Throughput { .. } => false,
        }
    }

    /// Minimum number of requests before it is judged during the load. A quantile has its own minimum.
    fn least(&self) -> u64 {
        match self {
            Self::ErrorRate { max_basis_points } => FAILED * 10_000 / u64::from(*max_basis_points).max(100),
            Self::ResponseTime { .. } | Self::ServiceTime { .. } | Self::Throughput { .. } => 0,
        }
    }

    /// Why it could not be judged, for people.
    fn too_few(&self) -> String {
        match self {
            Self::ResponseTime { quantile, .. } | Self::ServiceTime { quantile, .. } => {
                format!("fewer than the required {} requests", human::count(quantile.needs()))
            }
            Self::ErrorRate { .. } | Self::Throughput { .. } => "too few requests".to_owned(),
        }
    }
}

impl Observed {
    /// Whether it is worse than `other`, which must be of the same metric.
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

impl Threshold {
    /// Judges the whole measurement. None for a threshold on windows, which [`Watch`] has judged.
    pub fn judge(&self, observation: &Observation) -> Option<Standing> {
        if self.window.is_some() {
            return None;
        }
        let worst = self.worst_part(observation, 0, None).map(|(worst, part)| {
            let is_known = matches!(worst.observed, Observed::Latency(Censored::Known(_)));
            Worst { interval: is_known.then(|| part.interval(&self.limit)).flatten(), ..worst }
        });
        Some(Standing { worst, ..Standing::default() })
    }

    /// The worst observation of its scope in `observation`, ignoring parts with fewer than `least` requests.
    fn worst(&self, observation: &Observation, least: u64, at: Option<Duration>) -> Option<Worst> {
        self.worst_part(observation, least, at).map(|(worst, _)| worst)
    }

    /// Like `worst`, with the part that was observed. Without the interval, which takes longer than the quantile.
    fn worst_part<'a>(
        &'a self,
        observation: &'a Observation,
        least: u64,
        at: Option<Duration>,
    ) -> Option<(Worst, &'a Part)> {
        let mut worst: Option<(Worst, &Part)> = None;
        for part in observation.parts(&self.scope) {
            let Some(observed) = part.observe(&self.limit).filter(|_| part.finished() >= least) else { continue };
            let holds = self.limit.allows(observed);
            let found = Worst { observed, interval: None, holds, node: part.node.clone(), at };
            if worst.as_ref().is_none_or(|(worst, _)| found.is_worse_than(worst)) {
                worst = Some((found, part));
            }
        }
        worst
    }

    /// Observed and allowed value, for people.
    pub fn describe(&self, standing: &Standing) -> String {
        let (subject, allowed) = (self.subject(), self.allowed());
        let window = self.window.map(|window| format!(" over {}", human::seconds(window))).unwrap_or_default();
        let Some(worst) = &standing.worst else {
            let why = self.limit.too_few();
            return format!("{subject}{window} could not be judged: {why}; must be {allowed}");
        };
        let observed = match worst.observed {
            Observed::Latency(Censored::Known(nanoseconds)) => {
                let interval = worst.interval.map(|interval| format!(" ({})", describe(interval))).unwrap_or_default();
                format!("{}{interval}", human::latency(nanoseconds))
            }
            Observed::Latency(Censored::MoreThan(nanoseconds)) => {
                format!("unknown, more than {}, because too many requests got no reply", human::latency(nanoseconds))
            }
            Observed::Errors { failed, of } => human::share(failed, of),
            Observed::PerSecond(per_second) => human::rate(per_second),
        };
        let node = worst.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
        let at = worst.at.map(|at| format!(", {} after the measurement began", human::seconds(at))).unwrap_or_default();
        let windows = match (standing.windows, standing.failed_windows) {
            (0, _) => String::new(),
            (windows, failed) => format!(" ({failed} of {windows} windows failed)"),
        };
        let is = if self.window.is_some() { "was at worst" } else { "is" };
        let is_unclear = worst.interval.is_some_and(|interval| self.limit.is_within(interval));
        let unclear = if is_unclear { "; not clear: the interval includes the bound" } else { "" };
        format!("{subject}{window} {is} {observed}{node}{at}; must be {allowed}{windows}{unclear}")
    }
}

fn describe(interval: Interval) -> String {
    let low = human::latency(interval.low);
    match interval.high {
        Some(high) => format!("95 % interval {low} to {}", human::latency(high)),
        None => format!("95 % interval from {low}, upper end unknown"),
    }
}

impl Worst {
    /// Whether it is worse than `other`, which must be of the same threshold.
    pub fn is_worse_than(&self, other: &Self) -> bool {
        (other.holds && !self.holds) || (other.holds == self.holds && self.observed.is_worse_than(other.observed))
    }
}

#[cfg(test)]
mod tests;

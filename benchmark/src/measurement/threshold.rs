//! Judges thresholds: over the whole measurement or in every window; over all requests, one operation's, or each node's. Pure.
//!
//! Everything is judged on the merge of all shards, never per shard. A quantile covers all requests; those without an answer count as
//! longer than any answer.

mod observation;
mod watch;

use std::time::Duration;

pub use observation::Observation;
use observation::Part;
pub use watch::{Watch, watched_seconds};

use crate::api::{Limit, Threshold};
use crate::human;
use crate::measurement::judged::{Observed, ThresholdState, Worst};
use crate::measurement::latencies::{Censored, Interval};

/// Expected number of failed requests at the bound before an error rate is judged during the load.
const FAILED: u64 = 10;

impl Limit {
    /// Returns whether `observed`, which must be of its metric, is allowed.
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

impl Threshold {
    /// Judges the whole measurement. None for a threshold on windows, which [`Watch`] has judged.
    pub fn judge(&self, observation: &Observation) -> Option<ThresholdState> {
        if self.window.is_some() {
            return None;
        }
        let worst = self.worst_part(observation, 0, None).map(|(worst, part)| {
            let is_known = matches!(worst.observed, Observed::Latency(Censored::Known(_)));
            Worst { interval: is_known.then(|| part.interval(&self.limit)).flatten(), ..worst }
        });
        Some(ThresholdState { worst, ..ThresholdState::default() })
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
    pub fn describe(&self, standing: &ThresholdState) -> String {
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

#[cfg(test)]
mod tests;

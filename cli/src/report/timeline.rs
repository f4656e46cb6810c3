//! The axis of time, with the target's outages and changes on it.

use redisbench_benchmark::api::status::{Synchronization, TopologyStatus};

use super::chart::{Axis, Mark};

/// The most events that are drawn.
const EVENTS: usize = 200;

/// Outages and changes of the target, in seconds after the start.
#[derive(Clone, Debug, Default)]
pub struct Events {
    outages: Vec<(f64, f64)>,
    changes: Vec<f64>,
}

impl Events {
    pub fn new(topology: &TopologyStatus, synchronization: &Synchronization) -> Self {
        // Their times count from the start of the measurement.
        let at = |milliseconds: i64| (synchronization.warmup_milliseconds as f64 + milliseconds as f64) / 1e3;
        let outages = topology.unavailability.iter().take(EVENTS).map(|time| {
            (at(time.start_milliseconds), at(time.start_milliseconds) + time.length_milliseconds as f64 / 1e3)
        });
        let changes = topology.changes.iter().take(EVENTS).map(|change| at(change.milliseconds));
        Self { outages: outages.collect(), changes: changes.collect() }
    }

    /// Stretches for outages and lines for changes.
    pub fn marks(&self) -> Vec<Mark> {
        let outages = self.outages.iter().map(|(from, to)| Mark::Stretch(*from..*to));
        outages.chain(self.changes.iter().map(|at| Mark::Place(*at))).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.outages.is_empty() && self.changes.is_empty()
    }
}

/// The axis of the seconds after the start.
pub fn axis(from: u32, to: u32) -> Axis {
    let range = f64::from(from)..f64::from(to.max(from.saturating_add(1)));
    Axis::counted("seconds after the start", range)
}

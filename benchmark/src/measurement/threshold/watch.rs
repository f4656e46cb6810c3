//! Judges thresholds while the load runs: windows, and which threshold stops the load.
//!
//! Windows are whole seconds that all shards have completed, so they are exact at any polling interval.

use std::ops::Range;
use std::time::Duration;

use redisbench_wire::timeline::{History, Sum};

use super::observation::Observation;
use crate::api::{Limit, Threshold};
use crate::measurement::judged::{Judged, ThresholdState};

/// Windows advance by this fraction of their length.
const STEPS: u32 = 10;

/// A throughput since the beginning is judged only once it covers this many seconds: in fewer, a slow first second decides it.
const THROUGHPUT_SECONDS: u32 = 5;

/// The longest window of `thresholds`, in whole seconds.
pub fn watched_seconds(thresholds: &[Threshold]) -> usize {
    let windows = thresholds.iter().filter_map(|threshold| threshold.window);
    windows.map(whole_seconds).max().map_or(0, |seconds| seconds as usize)
}

fn whole_seconds(window: Duration) -> u32 {
    u32::try_from(window.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u32::MAX).max(1)
}

/// Judges the thresholds on everything measured so far.
#[derive(Debug)]
pub struct Watch {
    thresholds: Vec<Threshold>,
    standings: Vec<ThresholdState>,
    /// Names of the parts of a second.
    operations: Vec<String>,
    /// The first second that has not been judged; none before the measurement.
    next: Option<u32>,
    /// Sum of all measured seconds before `next`.
    so_far: Sum,
    /// Before this second, only minutes are kept, which cannot be split into windows.
    coarse_until: u32,
}

impl Watch {
    /// Continues from `standings` of an earlier watch, unless their windows can be judged again. Standings of other thresholds are ignored.
    /// `operations` names the parts that shards count separately.
    pub fn new(thresholds: Vec<Threshold>, standings: Vec<ThresholdState>, operations: Vec<String>) -> Self {
        let mut standings = if standings.len() == thresholds.len() { standings } else { Vec::new() };
        standings.resize_with(thresholds.len(), ThresholdState::default);
        Self { thresholds, standings, operations, next: None, so_far: Sum::default(), coarse_until: 0 }
    }

    /// Resets for another attempt.
    pub fn forget(&mut self) {
        self.standings.fill(ThresholdState::default());
        (self.next, self.so_far, self.coarse_until) = (None, Sum::default(), 0);
    }

    pub fn judged(&self) -> Vec<Judged> {
        let both = self.thresholds.iter().zip(&self.standings);
        both.map(|(threshold, standing)| Judged { threshold: threshold.clone(), standing: standing.clone() }).collect()
    }

    /// Judges the seconds of `history` that have become complete and lie in `measured`. Returns the message of the first broken threshold
    /// that stops the load, if any.
    pub fn look(&mut self, history: &History, measured: Range<u32>) -> Option<String> {
        if !self.thresholds.iter().any(Threshold::is_watched) {
            return None;
        }
        let until = history.complete().min(measured.end);
        while self.next.unwrap_or(measured.start) < until {
            let second = self.next.unwrap_or(measured.start);
            let end = second + 1;
            self.meet(history, second);
            history.since(second).take_while(|span| span.end() <= end).for_each(|span| self.so_far.add(span));
            self.next = Some(end);
            self.judge(history, end, measured.start);
            if let Some(broken) = self.broken() {
                return Some(broken);
            }
        }
        None
    }

    /// Notes the resolution at which `second` is kept.
    fn meet(&mut self, history: &History, second: u32) {
        let longer = history.since(second).next().filter(|span| span.second <= second && span.seconds > 1);
        if let Some(longer) = longer {
            self.coarse_until = longer.end();
        } else if self.next.is_none() {
            // Every window will be judged again.
            self.standings.fill(ThresholdState::default());
        }
    }

    /// Judges what ends with the second before `end`. The measurement began with the second `start`.
    fn judge(&mut self, history: &History, end: u32, start: u32) {
        let age = end - start;
        let Self { thresholds, standings, operations, so_far, coarse_until, .. } = self;
        let mut whole = None;
        let mut windows: Vec<(u32, Observation)> = Vec::new();
        for (threshold, standing) in thresholds.iter().zip(standings) {
            let Some(seconds) = threshold.window.map(whole_seconds) else {
                let young = matches!(threshold.limit, Limit::Throughput { .. }) && age < THROUGHPUT_SECONDS;
                if threshold.abort_on_fail && !young {
                    let observation = whole.get_or_insert_with(|| {
                        Observation::of_seconds(&so_far.span(0, 1), operations, age, Some(start))
                    });
                    standing.worst = threshold.worst(observation, threshold.limit.least(), None);
                }
                continue;
            };
            let whole_one = age >= seconds && end - seconds >= *coarse_until;
            if !whole_one || !(age - seconds).is_multiple_of((seconds / STEPS).max(1)) {
                continue;
            }
            if !windows.iter().any(|(known, _)| *known == seconds) {
                let mut sum = Sum::default();
                let spans = history.since(end - seconds).take_while(|span| span.end() <= end);
                spans.for_each(|span| sum.add(span));
                // A node without requests in the window is judged with zero.
                sum.know_nodes(so_far);
                windows.push((seconds, Observation::of_seconds(&sum.take(0, 1), operations, seconds, None)));
            }
            if let Some((_, observation)) = windows.iter().find(|(known, _)| *known == seconds) {
                note(threshold, standing, observation, Duration::from_secs(age.into()));
            }
        }
    }

    fn broken(&self) -> Option<String> {
        let broken = self.thresholds.iter().zip(&self.standings);
        broken
            .filter(|(threshold, standing)| threshold.abort_on_fail && standing.holds() == Some(false))
            .map(|(threshold, standing)| format!("threshold {}: {}", threshold.name, threshold.describe(standing)))
            .next()
    }
}

fn note(threshold: &Threshold, standing: &mut ThresholdState, window: &Observation, at: Duration) {
    let Some(found) = threshold.worst(window, threshold.limit.least(), Some(at)) else { return };
    standing.windows += 1;
    standing.failed_windows += u64::from(!found.holds);
    if standing.worst.as_ref().is_none_or(|worst| found.is_worse_than(worst)) {
        standing.worst = Some(found);
    }
}

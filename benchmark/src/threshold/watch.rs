//! Thresholds while the load runs: windows, and what stops the load.

use std::collections::VecDeque;
use std::time::Duration;

use redisbench_wire::snapshot::{Snapshot, Stage};

use super::sight::measured_nanoseconds;
use super::{Judged, Sight, Standing, Threshold};

/// Windows follow one another by so many parts of their length.
const STEPS: u32 = 10;

/// Judges what shards have measured so far, look by look.
#[derive(Debug)]
pub struct Watch {
    thresholds: Vec<Threshold>,
    standings: Vec<Standing>,
    /// Former looks for windows of one length, oldest first; by the length.
    windows: Vec<(Duration, VecDeque<Look>)>,
}

#[derive(Debug)]
struct Look {
    /// Since the measurement began.
    at: Duration,
    sight: Sight,
}

impl Watch {
    /// Goes on from `standings`, which another watch of the same thresholds may have left; of others, nothing is taken.
    pub fn new(thresholds: Vec<Threshold>, standings: Vec<Standing>) -> Self {
        let mut windows: Vec<(Duration, VecDeque<Look>)> = Vec::new();
        for window in thresholds.iter().filter_map(|threshold| threshold.window) {
            if !windows.iter().any(|(known, _)| *known == window) {
                windows.push((window, VecDeque::new()));
            }
        }
        let mut standings = if standings.len() == thresholds.len() { standings } else { Vec::new() };
        standings.resize_with(thresholds.len(), Standing::default);
        Self { thresholds, standings, windows }
    }

    /// Another attempt begins: what was seen is of the one before.
    pub fn forget(&mut self) {
        self.standings.fill(Standing::default());
        self.windows.iter_mut().for_each(|(_, looks)| looks.clear());
    }

    /// How each threshold stands.
    pub fn judged(&self) -> Vec<Judged> {
        let both = self.thresholds.iter().zip(&self.standings);
        both.map(|(threshold, standing)| Judged { threshold: threshold.clone(), standing: standing.clone() }).collect()
    }

    /// Whether there is anything to judge before the end.
    pub fn is_needed(&self) -> bool {
        self.thresholds.iter().any(|threshold| threshold.window.is_some() || threshold.abort_on_fail)
    }

    /// Judges the newest snapshots, of which all must be measuring: before and after there is load that does not count.
    /// Gives what the first threshold that stops the load has to say, if one does.
    pub fn look(&mut self, snapshots: &[&Snapshot]) -> Option<String> {
        let measuring = !snapshots.is_empty() && snapshots.iter().all(|snapshot| snapshot.stage == Stage::Measuring);
        if !self.is_needed() || !measuring {
            return None;
        }
        let sight = match Sight::so_far(snapshots, &self.thresholds) {
            Ok(sight) => sight,
            Err(error) => {
                // The final merge refuses it with a message.
                tracing::warn!(%error, "a live histogram cannot be judged");
                return None;
            }
        };
        self.see(Duration::from_nanos(measured_nanoseconds(snapshots)), &sight)
    }

    /// Judges `sight`, taken `at` after the measurement began.
    fn see(&mut self, at: Duration, sight: &Sight) -> Option<String> {
        for (threshold, standing) in self.thresholds.iter().zip(&mut self.standings) {
            if threshold.window.is_none() && threshold.abort_on_fail {
                standing.worst = threshold.worst(sight, threshold.limit.least(), None);
            }
        }
        for (window, looks) in &mut self.windows {
            // Of those that are old enough the newest is where the window begins.
            while looks.get(1).is_some_and(|next| next.at + *window <= at) {
                looks.pop_front();
            }
            let step = (*window / STEPS).max(Duration::from_secs(1));
            // A little sooner is soon enough: looks come once a second, and not to the millisecond.
            if looks.back().is_some_and(|newest| at < newest.at + step * 3 / 4) {
                continue;
            }
            if let Some(oldest) = looks.front().filter(|oldest| oldest.at + *window <= at) {
                let length = u64::try_from(at.saturating_sub(oldest.at).as_nanos()).unwrap_or(u64::MAX);
                let Some(since) = sight.since(&oldest.sight, length) else {
                    looks.clear();
                    continue;
                };
                for (threshold, standing) in self.thresholds.iter().zip(&mut self.standings) {
                    if threshold.window == Some(*window) {
                        note(threshold, standing, &since, at);
                    }
                }
            }
            looks.push_back(Look { at, sight: sight.clone() });
        }
        let broken = self.thresholds.iter().zip(&self.standings);
        broken
            .filter(|(threshold, standing)| threshold.abort_on_fail && standing.holds() == Some(false))
            .map(|(threshold, standing)| format!("threshold {}: {}", threshold.name, threshold.describe(standing)))
            .next()
    }
}

fn note(threshold: &Threshold, standing: &mut Standing, window: &Sight, at: Duration) {
    let Some(found) = threshold.worst(window, threshold.limit.least(), Some(at)) else { return };
    standing.windows += 1;
    standing.failed_windows += u64::from(!found.holds);
    if standing.worst.as_ref().is_none_or(|worst| found.is_worse_than(worst)) {
        standing.worst = Some(found);
    }
}

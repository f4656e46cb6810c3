//! The contents of the view. Pure: a benchmark at an instant is folded into the state.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::{Phase, Progress};

use super::reason::{Reason, reasons};
use super::state::{has_unknown_end, state, troubles};

/// The most points of the plot. Beyond, every other one is dropped, and points are taken half as often.
const POINTS: usize = 600;
/// The most notes that are kept for the view.
const NOTES: usize = 3;

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub name: String,
    /// Phase, trial and time, or what is being waited for.
    pub state: String,
    pub progress: Progress,
    /// True if `progress` is that of the load.
    pub is_running: bool,
    /// True if `progress` has no percentage.
    pub is_open_ended: bool,
    /// Errors and unsent requests of the trial, with their share.
    pub errors: Option<String>,
    /// Shards of the trial.
    pub shards: u32,
    pub topology: Option<String>,
    pub reasons: Vec<Reason>,
    /// Rate and p99 over the time of the trial.
    pub points: VecDeque<ProgressPoint>,
    /// Seconds between points.
    pub(super) interval: u32,
    /// The trial and its attempt.
    pub(super) trial: Option<(u32, u32)>,
    pub notes: VecDeque<String>,
}

/// The last seconds at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgressPoint {
    /// Seconds since the trial began.
    pub second: u32,
    pub per_second: u64,
    pub p99: Option<u64>,
}

impl Model {
    /// Takes over the state of `benchmark` at `now`.
    pub fn update(&mut self, benchmark: &RedisBenchmark, now: Timestamp) {
        self.name = benchmark.metadata.name.clone().unwrap_or_default();
        let Some(status) = &benchmark.status else { return };
        let words: Vec<String> = state(&benchmark.spec, status, now).into_iter().chain(troubles(status)).collect();
        self.state = words.join("   ");
        self.progress = status.progress.clone().unwrap_or_default();
        self.is_running = status.phase == Phase::Running && status.progress.is_some();
        self.is_open_ended = self.is_running && has_unknown_end(&benchmark.spec);
        self.errors = status.summary.as_ref().and_then(|summary| summary.errors.clone());
        self.shards = status.shards.map_or(0, |shards| shards.desired);
        self.topology = status.topology.as_ref().map(|servers| {
            let (changes, outages) = (servers.changes.len(), servers.unavailability.len());
            format!(
                "{} primaries, {} replicas, {changes} changes, {outages} outages",
                servers.primaries, servers.replicas
            )
        });
        self.reasons = reasons(status);
        if let Some(trial) = status.trial.as_ref().filter(|_| self.is_running) {
            let start = trial.start_at.as_ref().map_or(now, |at| at.0);
            self.add_point((trial.index, trial.attempt), start, now);
        }
    }

    fn add_point(&mut self, trial: (u32, u32), start: Timestamp, now: Timestamp) {
        if self.trial != Some(trial) {
            self.points.clear();
            self.interval = 1;
            self.trial = Some(trial);
        }
        let elapsed = Duration::try_from(now.duration_since(start)).unwrap_or_default();
        let second = u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX);
        if self.points.back().is_some_and(|last| second < last.second.saturating_add(self.interval)) {
            return;
        }
        if self.points.len() == POINTS {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval = self.interval.saturating_mul(2);
        }
        let Progress { achieved_per_second: per_second, p99_nanoseconds: p99, .. } = self.progress;
        self.points.push_back(ProgressPoint { second, per_second, p99 });
    }

    /// Adds a note, the last line of the view.
    pub fn note(&mut self, text: &str) {
        if self.notes.len() == NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(text.lines().next().unwrap_or_default().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::export::sample;

    fn benchmark(trial: u32, rate: u64) -> RedisBenchmark {
        let status = json!({
            "phase": "Running",
            "trial": {"index": trial, "of": 2, "attempt": 1, "startAt": "1970-01-01T00:00:00.000000Z"},
            "progress": {"percent": 30, "achievedPerSecond": rate},
            "thresholds": [{"name": "slow", "outcome": "Failed", "message": "p99 is 2 ms; must be at most 1 ms"}],
        });
        serde_json::from_value(sample::object(&status)).unwrap()
    }

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    #[test]
    fn a_point_is_taken_each_second_and_a_new_trial_begins_anew() {
        let mut model = Model::default();
        for half in 0..10 {
            model.update(&benchmark(0, 100 + half), at(i64::try_from(half).unwrap() * 500));
        }
        let rates: Vec<_> = model.points.iter().map(|point| (point.second, point.per_second)).collect();
        assert_eq!(rates, [(0, 100), (1, 102), (2, 104), (3, 106), (4, 108)]);
        assert_eq!(model.reasons[0].name, "threshold slow");
        model.update(&benchmark(1, 7), at(60_000));
        assert_eq!(model.points.len(), 1);
    }

    #[test]
    fn a_long_trial_keeps_its_whole_course() {
        let (mut model, benchmark) = (Model::default(), benchmark(0, 1));
        for second in 0..10_000 {
            model.update(&benchmark, at(second * 1_000));
        }
        assert!(model.points.len() <= POINTS && model.points.len() > POINTS / 3, "{}", model.points.len());
        assert_eq!(model.points.front().unwrap().second, 0);
        assert!(model.points.back().unwrap().second > 9_900);
    }

    #[test]
    fn only_the_last_notes_are_shown() {
        let mut model = Model::default();
        (0..5).for_each(|note| model.note(&format!("{note}\nmore")));
        assert_eq!(model.notes, ["2", "3", "4"]);
    }
}

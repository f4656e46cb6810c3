//! Status of a run in progress.

use std::time::Duration;

use super::conditions::{Conditions, Truth, condition, reason};
use super::{Subject, thresholds, trial};
use crate::api::RedisBenchmarkStatus;
use crate::api::status::{self, Phase, Summary, Synchronization};
use crate::conductor::{ConductStage, LivePicture, Progress, ShardPresence};
use crate::quantile::Quantile;
use crate::{human, measurement::latencies, measurement::topology};

impl Subject<'_> {
    /// Before any shard has been observed. `how` describes the current step.
    pub fn preparing(&self, status: &mut RedisBenchmarkStatus, how: &str) {
        let desired = self.shards;
        status.phase = Phase::Preparing;
        status.shards = Some(status::ShardCounts { desired, ..status::ShardCounts::default() });
        status.summary = Some(Summary { shards: Some(format!("0/{desired}")), ..Summary::default() });
        self.in_progress(status, how);
    }

    /// While a conductor reports `progress`.
    pub fn running(&self, status: &mut RedisBenchmarkStatus, progress: &Progress, presence: &[ShardPresence]) {
        let is_same_attempt = status
            .trial
            .as_ref()
            .is_some_and(|trial| (trial.index, trial.attempt) == (progress.trial, progress.attempt));
        status.phase = match progress.stage {
            ConductStage::Preparing => Phase::Preparing,
            // A new conductor has not yet seen that the load has ended.
            ConductStage::Running if status.phase == Phase::Collecting && is_same_attempt => Phase::Collecting,
            ConductStage::Running => Phase::Running,
            ConductStage::Collecting | ConductStage::Done => Phase::Collecting,
        };
        if progress.attempt > 0 && progress.start_at_unix_nanoseconds.is_some() {
            status.trial =
                Some(trial(progress.trial, progress.of, progress.attempt, progress.start_at_unix_nanoseconds));
        }
        let counts = &progress.shards;
        status.shards = Some(status::ShardCounts {
            desired: self.shards,
            armed: counts.armed,
            running: counts.running,
            finished: counts.finished,
            lost: counts.lost,
            unreachable: counts.unreachable,
        });
        status.progress = live_progress(progress);
        if let Some(live) = &progress.live {
            status.topology = Some(topology::shortened(live.topology.report(progress.start_at_unix_nanoseconds)));
        }
        let several = (progress.of > 1).then_some(progress.trial);
        let stand = thresholds::running(&progress.thresholds, several);
        status.thresholds = thresholds::worse(&status.thresholds, &stand);
        status.synchronization = synchronization(progress).or(status.synchronization);
        status.summary = Some(self.live_summary(progress));
        self.in_progress(status, &self.describe(progress, presence));
    }

    /// Sets the conditions of a run in progress. `how` describes the current step.
    pub fn in_progress(&self, status: &mut RedisBenchmarkStatus, how: &str) {
        Conditions::new(status, self.generation, self.now)
            .set(condition::ACCEPTED, true, reason::ACCEPTED, "the spec is valid")
            .set(condition::FINISHED, false, reason::IN_PROGRESS, how)
            .set(condition::COMPLETE, false, reason::IN_PROGRESS, "the measurement has not completed yet")
            .set(condition::VALID, Truth::Unknown, reason::NOT_JUDGED, "judged when the benchmark finishes")
            .set(condition::FAILED, false, reason::NO_OBSTACLE, "no failure")
            .set(condition::RECONCILING, true, reason::IN_PROGRESS, how)
            .set(condition::STALLED, false, reason::NO_OBSTACLE, "not stalled");
    }

    /// Describes the current step, for people.
    fn describe(&self, progress: &Progress, presence: &[ShardPresence]) -> String {
        let desired = self.shards;
        let counts = &progress.shards;
        // Shards that this trial does not need may still be replaced.
        let presence = presence.get(..desired as usize).unwrap_or(presence);
        match progress.stage {
            ConductStage::Preparing => {
                let hindered = presence.iter().enumerate().find_map(|(shard, presence)| match presence {
                    ShardPresence::Absent { why: Some(why) } | ShardPresence::Gone { why, .. } => {
                        Some(format!("shard {shard}: {why}"))
                    }
                    _ => None,
                });
                match hindered.or_else(|| progress.preparation.waiting_for.clone()) {
                    Some(what) => format!("{} of {desired} shards are armed; {what}", counts.armed),
                    None => format!("{} of {desired} shards are armed", counts.armed),
                }
            }
            ConductStage::Running => format!("{} of {desired} shards are running", counts.running),
            ConductStage::Collecting | ConductStage::Done => {
                format!("{} of {desired} shards returned their results", counts.finished)
            }
        }
    }

    fn live_summary(&self, progress: &Progress) -> Summary {
        let counts = &progress.shards;
        let there = match progress.stage {
            ConductStage::Preparing => counts.armed,
            _ => counts.running + counts.finished,
        };
        let shards = Some(format!("{there}/{}", self.shards));
        let Some(live) = progress.live.as_ref().filter(|_| progress.stage != ConductStage::Preparing) else {
            return Summary { shards, ..Summary::default() };
        };
        Summary {
            rate: Some(human::rate(live.achieved_per_second)),
            p99: recent_p99(live).map(human::latency),
            errors: Some(human::share(live.total.errors + live.total.unsent, live.total.scheduled)),
            shards,
            verdict: None,
        }
    }
}

fn live_progress(progress: &Progress) -> Option<status::Progress> {
    if progress.stage == ConductStage::Preparing {
        let preparation = &progress.preparation;
        let percent = match preparation.preload_keys {
            0 => 0,
            keys => u32::try_from(preparation.preloaded_keys.min(keys) * 100 / keys).unwrap_or(100),
        };
        return Some(status::Progress { percent, ..status::Progress::default() });
    }
    let live = progress.live.as_ref()?;
    Some(status::Progress {
        percent: u32::from(live.percent.min(100)),
        achieved_per_second: live.achieved_per_second,
        p99_nanoseconds: recent_p99(live),
        measuring: live.measuring,
    })
}

/// None if the last seconds have too few requests, as in a result.
fn recent_p99(live: &LivePicture) -> Option<u64> {
    latencies::known(&live.recent.as_ref()?.response, Quantile::P99)
}

fn synchronization(progress: &Progress) -> Option<Synchronization> {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Some(Synchronization {
        start_skew_microseconds: progress.start_skew.map_or(0, micros),
        clock_uncertainty_microseconds: micros(progress.clock_uncertainty?),
        warmup_milliseconds: 0,
        common_window_milliseconds: 0,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redisbench_wire::histogram::Kind;
    use redisbench_wire::snapshot::Tally;

    use super::*;
    use crate::conductor::RecentLatency;
    use crate::measurement::topology::MergedTopology;

    /// The progress shown with this many measured requests in the last seconds.
    fn shown(requests: u64) -> status::Progress {
        let mut response = Kind::Request.empty();
        response.record_n(1_000_000, requests).unwrap();
        let recent = (requests > 0).then_some(RecentLatency { response, service: None });
        let live = LivePicture {
            total: Tally::default(),
            warmup: Tally::default(),
            response: Kind::Request.empty(),
            errors: Vec::new(),
            verification: None,
            percent: 50,
            achieved_per_second: requests / 5,
            recent,
            measuring: true,
            topology: MergedTopology::default(),
        };
        let live = Some(Arc::new(live));
        live_progress(&Progress { stage: ConductStage::Running, live, ..Progress::default() }).unwrap()
    }

    #[test]
    fn a_live_quantile_takes_as_many_requests_as_one_of_a_result() {
        let p99 = [0, 1, 999, 1_000].map(|requests| shown(requests).p99_nanoseconds.is_some());
        assert_eq!(p99, [false, false, false, true]);
        assert!(shown(1).measuring, "however few requests there are");
    }
}

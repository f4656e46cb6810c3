//! Status of a run in progress.

use std::cmp::Reverse;
use std::time::Duration;

use super::conditions::{Conditions, Truth, condition, reason};
use super::{Subject, thresholds, trial};
use crate::api::RedisBenchmarkStatus;
use crate::api::status::{self, NodeProgress, Phase, ShardProgress, Summary, Synchronization, VerdictReason};
use crate::conductor::{ConductProgress, ConductStage, LivePicture, LiveShard, QUEUED, ShardPresence};
use crate::quantile::Quantile;
use crate::verdict::{SoFar, so_far};
use crate::{human, measurement::latencies, measurement::topology};

/// The most shards and nodes in a status, which the operator writes every few seconds.
const LISTED: usize = 16;

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
    pub fn running(&self, status: &mut RedisBenchmarkStatus, progress: &ConductProgress, presence: &[ShardPresence]) {
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
        status.shards = Some(status::ShardCounts { desired: self.shards, ..progress.shards });
        status.progress = self.live_progress(progress);
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
    fn describe(&self, progress: &ConductProgress, presence: &[ShardPresence]) -> String {
        let desired = self.shards;
        let counts = &progress.shards;
        // Shards that this trial does not need may still be replaced.
        let presence = presence.get(..desired as usize).unwrap_or(presence);
        let (shards, are) = (human::counted(desired.into(), "shard"), human::are(desired.into()));
        match progress.stage {
            ConductStage::Preparing => {
                let hindered = presence.iter().enumerate().find_map(|(shard, presence)| match presence {
                    ShardPresence::Absent { why: Some(why) }
                    | ShardPresence::Leaving { why, .. }
                    | ShardPresence::Gone { why, .. } => Some(format!("shard {shard}: {why}")),
                    ShardPresence::Queued => Some(format!("shard {shard}: {QUEUED}")),
                    _ => None,
                });
                match hindered.or_else(|| progress.waiting_for.clone()) {
                    Some(what) => format!("{} of {shards} {are} armed; {what}", counts.armed),
                    None => format!("{} of {shards} {are} armed", counts.armed),
                }
            }
            ConductStage::Running => format!("{} of {shards} {are} running", counts.running),
            ConductStage::Collecting | ConductStage::Done => {
                format!("{} of {shards} returned their results", counts.finished)
            }
        }
    }

    fn live_summary(&self, progress: &ConductProgress) -> Summary {
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
            p99: recent(live, Quantile::P99).map(human::latency),
            errors: Some(human::share(live.total.errors + live.total.unsent, live.total.scheduled)),
            shards,
            verdict: None,
        }
    }

    fn live_progress(&self, progress: &ConductProgress) -> Option<status::Progress> {
        if progress.stage == ConductStage::Preparing {
            return Some(status::Progress { percent: progress.preloaded_percent, ..status::Progress::default() });
        }
        let live = progress.live.as_ref()?;
        let (nodes, nodes_left_out) = nodes(&live.nodes);
        Some(status::Progress {
            percent: u32::from(live.percent.min(100)),
            achieved_per_second: live.achieved_per_second,
            cache_hits_per_second: live.caches.map(|caches| caches.hits_per_second),
            invalidations_per_second: live.caches.map(|caches| caches.invalidations_per_second),
            p50_nanoseconds: recent(live, Quantile::P50),
            p99_nanoseconds: recent(live, Quantile::P99),
            p999_nanoseconds: recent(live, Quantile::P999),
            measuring: live.measuring,
            reasons: self.reasons(progress, live),
            shards: shards(&live.shards),
            nodes,
            nodes_left_out,
        })
    }

    fn reasons(&self, progress: &ConductProgress, live: &LivePicture) -> Vec<VerdictReason> {
        let counted = SoFar {
            tally: &live.total,
            most_frequent: live.errors.first().map(|(kind, _)| kind.as_str()),
            topology: &live.topology,
            shards: self.shards as usize,
            lost: progress.shards.lost as usize,
            start_skew: progress.start_skew,
            max_start_skew: self.spec.shards.max_start_skew.parse().unwrap_or(Duration::MAX),
            processors: live.shards.iter().map(|shard| &shard.processors).collect(),
        };
        so_far(&counted)
    }
}

/// Those that need attention, at most [`LISTED`], in index order.
fn shards(all: &[LiveShard]) -> Vec<ShardProgress> {
    let mut all: Vec<(u32, &LiveShard)> = (0..).zip(all).collect();
    all.sort_by_key(|(_, shard)| Reverse((shard.lost, shard.unreachable, shard.processors.busiest_worker_millionths)));
    all.truncate(LISTED);
    all.sort_by_key(|(index, _)| *index);
    let progress = |(index, shard): (u32, &LiveShard)| ShardProgress {
        index,
        lost: shard.lost,
        unreachable: shard.unreachable,
        achieved_per_second: shard.achieved_per_second,
        failed_requests: shard.failed,
        busiest_worker_percent: shard.processors.busiest_worker_millionths / 10_000,
        run_queue_percent: shard.processors.run_queue_millionths / 10_000,
    };
    all.into_iter().map(progress).collect()
}

/// The slowest, at most [`LISTED`], and the number of the others.
fn nodes(all: &[NodeProgress]) -> (Vec<NodeProgress>, u64) {
    let mut sorted = all.to_vec();
    sorted.sort_by(|one, other| {
        (Reverse(one.p99_nanoseconds), &one.address).cmp(&(Reverse(other.p99_nanoseconds), &other.address))
    });
    sorted.truncate(LISTED);
    (sorted, all.len().saturating_sub(LISTED) as u64)
}

/// None if the last seconds have too few requests, as in a result.
fn recent(live: &LivePicture, quantile: Quantile) -> Option<u64> {
    latencies::known(&live.recent.as_ref()?.response, quantile)
}

fn synchronization(progress: &ConductProgress) -> Option<Synchronization> {
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
    use redisbench_wire::timeline::Span;

    use super::*;
    use crate::api::status::ReasonKind;
    use crate::conductor::{CacheRates, RecentLatency};
    use crate::measurement::topology::MergedTopology;
    use crate::verdict::ShardProcessors;

    /// A picture with this many measured requests in the last seconds.
    fn picture(requests: u64) -> LivePicture {
        let mut response = Kind::Request.empty();
        response.record_n(1_000_000, requests).unwrap();
        let recent = (requests > 0).then_some(RecentLatency { response, service: None, span: Span::default() });
        LivePicture {
            total: Tally::default(),
            warmup: Tally::default(),
            response: Kind::Request.empty(),
            errors: Vec::new(),
            verification: None,
            percent: 50,
            achieved_per_second: requests / 5,
            recent,
            caches: None,
            measuring: true,
            complete: true,
            snapshot_bytes: 0,
            topology: MergedTopology::default(),
            shards: (0..40)
                .map(|index| {
                    let processors = ShardProcessors { busiest_worker_millionths: index, ..ShardProcessors::default() };
                    LiveShard { lost: index == 39, processors, ..LiveShard::default() }
                })
                .collect(),
            nodes: (0..17)
                .map(|n| NodeProgress { address: n.to_string(), p99_nanoseconds: Some(n), ..NodeProgress::default() })
                .collect(),
        }
    }

    fn shown(live: LivePicture) -> status::Progress {
        let shards = u32::try_from(live.shards.len()).unwrap();
        let live = Some(Arc::new(live));
        let spec = crate::api::read(&crate::sample::object()).unwrap().spec;
        let subject = Subject { spec: &spec, shards, generation: None, now: jiff::Timestamp::UNIX_EPOCH };
        subject
            .live_progress(&ConductProgress { stage: ConductStage::Running, live, ..ConductProgress::default() })
            .unwrap()
    }

    #[test]
    fn a_live_quantile_takes_as_many_requests_as_one_of_a_result() {
        let p99 = [0, 1, 999, 1_000].map(|requests| shown(picture(requests)).p99_nanoseconds.is_some());
        assert_eq!(p99, [false, false, false, true]);
        assert!(shown(picture(1)).measuring, "however few requests there are");
    }

    #[test]
    fn rates_of_caches_are_absent_without_caches() {
        let rates = |caches| {
            let shown = shown(LivePicture { caches, ..picture(1) });
            (shown.cache_hits_per_second, shown.invalidations_per_second)
        };
        assert_eq!(rates(None), (None, None));
        let caches = CacheRates { hits_per_second: 7, invalidations_per_second: 0 };
        assert_eq!(rates(Some(caches)), (Some(7), Some(0)));
    }

    #[test]
    fn the_busiest_shards_and_slowest_nodes_of_many_are_listed() {
        let shown = shown(picture(1_000));
        let shards: Vec<u32> = shown.shards.iter().map(|shard| shard.index).collect();
        assert_eq!(shards, (24..40).collect::<Vec<_>>());
        assert_eq!((shown.nodes.len(), shown.nodes[0].address.as_str(), shown.nodes_left_out), (16, "16", 1));
    }

    #[test]
    fn a_crowded_machine_is_a_reason_although_each_of_its_shards_waits_briefly() {
        let reasons = |count: usize| {
            let processors = ShardProcessors {
                host: "n1".into(),
                processors: 4,
                load_nanoseconds: 10_000_000_000,
                waited_nanoseconds: 500_000_000,
                run_queue_millionths: 50_000,
                ..ShardProcessors::default()
            };
            let shard = LiveShard { processors, ..LiveShard::default() };
            let total = Tally { scheduled: 100_000, succeeded: 100_000, ..Tally::default() };
            let shown = shown(LivePicture { total, shards: vec![shard; count], ..picture(1_000) });
            assert!(shown.shards.len() <= LISTED);
            shown.reasons.into_iter().map(|reason| reason.reason).collect::<Vec<_>>()
        };
        assert_eq!(reasons(200), [ReasonKind::GeneratorCPU]);
        assert_eq!(reasons(2), []);
    }
}

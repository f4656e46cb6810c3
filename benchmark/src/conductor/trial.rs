//! Course of a trial: take over or prepare, start, measure; and the consequence of each stop on the way.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::Probe;
use redisbench_wire::plan::TrialPlan;
use tokio::sync::watch;
use tokio::time::timeout;

use super::barrier::{Missed, Recording};
use super::clock::{ConductorClock, nanoseconds};
use super::intervals::{MISSED_STARTS, RESTARTS};
use super::live;
use super::measure::Measured;
use super::seconds::{self, Course};
use super::settle::Settling;
use super::shards::{self, Shard, Standing};
use super::{
    ConductStage, ConductorConfig, Control, Ending, Failure, Journal, Outcome, Progress, ShardCalls, ShardOutcome,
    ShardPresence, reason,
};
use crate::measurement::threshold::{Watch, watched_seconds};

/// Upper bound of concurrent calls.
pub const CALLS_IN_FLIGHT: usize = 64;

pub struct Conductor<C, J> {
    pub config: ConductorConfig,
    pub calls: Arc<C>,
    pub journal: J,
    pub presence: watch::Receiver<Vec<ShardPresence>>,
    pub progress: watch::Sender<Progress>,
    pub clock: ConductorClock,
    pub trial: u32,
    pub shards: Vec<Shard>,
    pub attempt: u32,
    /// No shard has a connection of the previous trial.
    pub drained: bool,
    /// The last attempt that was given up, while no attempt has been measured.
    pub missed: u32,
    pub recording: Recording,
    /// Merged seconds of all shards.
    pub course: Course,
    /// Thresholds that may stop the load early.
    pub watch: Watch,
    /// Whether the warm-up's early end was ordered.
    pub settling: Settling,
    /// Results of the probe with half of the connections, one per shard.
    pub probes: Vec<Probe>,
    pub start_at_unix_nanoseconds: Option<u64>,
    /// On the conductor's clock.
    pub start_at: Option<i64>,
    /// The start is known only by the time of day.
    pub start_is_rough: bool,
    /// Half of the worst round trip when the start was ordered; none if another conductor ordered it.
    pub clock_uncertainty: Option<Duration>,
}

/// Why a trial stops early.
#[derive(Debug)]
pub enum Stop {
    Failed(Failure),
    Superseded,
    Aborted,
}

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    pub fn new(
        mut config: ConductorConfig,
        calls: Arc<C>,
        journal: J,
        presence: watch::Receiver<Vec<ShardPresence>>,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let (plan, trial) = (&config.plan, config.trial);
        let hash = plan.hash(&config.run, trial);
        let shard = |index| Shard::new(plan.part(&config.run, trial, index), hash.clone());
        let shards: Vec<_> = (0..plan.shards).map(shard).collect();
        let operations = parts(plan);
        let course = Course::new(operations.len(), watched_seconds(&config.thresholds));
        let thresholds = std::mem::take(&mut config.thresholds);
        Self {
            drained: trial == 0,
            trial,
            attempt: config.resume.map_or(0, |record| record.attempt).max(config.attempts),
            missed: if config.resume.is_some() { 0 } else { config.attempts },
            recording: Recording::default(),
            course,
            watch: Watch::new(thresholds, std::mem::take(&mut config.standings), operations),
            settling: Settling::default(),
            probes: Vec::new(),
            start_at_unix_nanoseconds: None,
            start_at: None,
            start_is_rough: false,
            clock_uncertainty: None,
            clock: ConductorClock::begin(),
            config,
            calls,
            journal,
            presence,
            progress,
            shards,
        }
    }

    pub async fn conduct(mut self, control: watch::Receiver<Control>) -> Outcome {
        // An abort cancels the current wait; calls that shards may have received are undone by the abort.
        let course = tokio::select! {
            biased;
            () = abort_wanted(control.clone(), self.progress.subscribe()) => Err(Stop::Aborted),
            course = self.run() => course,
        };
        let course = match course {
            // An abort also cancels the probe, and the trial stays complete.
            Ok(()) => tokio::select! {
                biased;
                () = aborted(control) => Ok(()),
                closer = self.look_closer() => closer,
            },
            stopped => stopped,
        };
        let mut ending = match course {
            Ok(()) => Ending::Completed,
            Err(Stop::Superseded) => Ending::Superseded,
            Err(Stop::Failed(failure)) => self.stop(Ending::Failed(failure)).await,
            Err(Stop::Aborted) => match self.stop(Ending::Aborted).await {
                Ending::Aborted if self.was_over() => Ending::Completed,
                ending => ending,
            },
        };
        // The measurement is safe. From here on only another conductor changes the result.
        let cleanup = if self.config.cleanup && ending != Ending::Superseded {
            let cleanup = self.clean_up().await;
            if cleanup.is_none() {
                ending = Ending::Superseded;
            }
            cleanup
        } else {
            None
        };
        self.publish(ConductStage::Done);
        Outcome { cleanup, ..self.outcome(ending) }
    }

    async fn run(&mut self) -> Result<(), Stop> {
        let mut started = self.take_over().await?;
        let (mut misses, mut restarts) = (0, 0);
        loop {
            if !started {
                self.prepare().await?;
                let Err(why_not) = self.start().await? else {
                    started = true;
                    continue;
                };
                if restarts == 0 {
                    self.missed = self.attempt;
                }
                match why_not {
                    // No shard has received it, so only time is lost.
                    Missed::NotRecorded(why) => self.wait_for_journal(why).await?,
                    Missed::NotAcknowledged(why) => {
                        misses += 1;
                        tracing::warn!(attempt = self.attempt, why, "start missed");
                        if misses == MISSED_STARTS {
                            let message = format!("missed {misses} starts, the last because {why}");
                            return Err(Stop::Failed(Failure::new(reason::START_MISSED, message)));
                        }
                        self.shards.iter_mut().for_each(Shard::give_up_attempt);
                    }
                }
                continue;
            }
            match self.measure(restarts < RESTARTS).await? {
                Measured::ToTheEnd => return Ok(()),
                Measured::Again => restarts += 1,
                Measured::NeverStarted => self.missed = self.attempt,
            }
            started = false;
            self.shards.iter_mut().for_each(Shard::give_up_attempt);
            self.start_at = None;
            self.start_at_unix_nanoseconds = None;
            self.watch.forget();
            self.course.forget();
            self.settling = Settling::default();
            // The live picture of the previous attempt is void.
            self.publish(ConductStage::Preparing);
        }
    }

    /// Waits until the platform reports a change, at most `at_most`.
    pub async fn pause(&mut self, at_most: Duration) {
        let presence = &mut self.presence;
        let news = async {
            if presence.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        // The timeout is the usual case.
        let _ = timeout(at_most, news).await;
    }

    /// The platform's newest report on each shard. A missing entry counts as absent without a reason.
    pub fn seen(&mut self) -> Vec<ShardPresence> {
        let mut seen = self.presence.borrow_and_update().clone();
        seen.resize(self.shards.len(), ShardPresence::Absent { why: None });
        seen
    }

    /// Planned end of every shard's load, on the conductor's clock.
    pub fn end_at(&self) -> Option<i64> {
        let longest = self.shards.iter().map(Shard::length).max().unwrap_or_default();
        self.start_at.map(|start| start.saturating_add(nanoseconds(longest)))
    }

    /// Publishes the trial's progress with the merged picture.
    pub fn publish(&self, stage: ConductStage) {
        let since_start = self.start_at.map(|start| self.clock.now() - start);
        let history = self.course.history();
        let live = since_start.and_then(|since_start| live::of(&self.shards, history, since_start)).map(Arc::new);
        let progress = Progress { live, ..self.counted(stage) };
        self.progress.send_replace(progress);
    }

    /// Fails if a threshold that stops the load does not hold.
    pub fn look_at_thresholds(&mut self) -> Result<(), Stop> {
        if self.shards.iter().any(|shard| shard.snapshot.is_none()) {
            return Ok(());
        }
        let broken =
            seconds::measured(&self.shards).and_then(|measured| self.watch.look(self.course.history(), measured));
        match broken {
            Some(why) => Err(Stop::Failed(Failure::new(reason::THRESHOLD_FAILED, why))),
            None => Ok(()),
        }
    }

    /// Publishes the trial's progress with the previous picture: merging is too expensive for every step.
    pub fn publish_counts(&self, stage: ConductStage) {
        let progress = self.counted(stage);
        self.progress.send_if_modified(|known| {
            let live = known.live.take();
            let news = *known != progress;
            *known = Progress { live, ..progress };
            news
        });
    }

    fn counted(&self, stage: ConductStage) -> Progress {
        Progress {
            stage,
            trial: self.trial,
            of: self.config.of,
            attempt: self.attempt,
            missed: self.missed,
            start_at_unix_nanoseconds: self.start_at_unix_nanoseconds,
            shards: shards::count(&self.shards),
            preparation: live::preparation(&self.shards),
            live: None,
            thresholds: self.watch.judged(),
            start_skew: live::start_skew(&self.shards),
            clock_uncertainty: self.clock_uncertainty.or_else(|| live::clock_uncertainty(&self.shards)),
            oldest_snapshot_age: live::oldest_snapshot_age(&self.shards, self.clock.now()),
        }
    }

    /// Builds the outcome from the current state. Takes the snapshots out of the shards.
    pub fn outcome(&mut self, ending: Ending) -> Outcome {
        let start_skew = live::start_skew(&self.shards);
        let clock_uncertainty = self.clock_uncertainty.or_else(|| live::clock_uncertainty(&self.shards));
        let started = self.start_at_unix_nanoseconds.is_some();
        self.course.advance(&mut self.shards);
        if let Some(measured) = seconds::measured(&self.shards) {
            // Judges all remaining windows: there is no load left to stop.
            while self.watch.look(self.course.history(), measured.clone()).is_some() {}
        }
        let thresholds = self.watch.judged();
        let timeline = self.course.all(&mut self.shards);
        let shards = self.shards.iter_mut().map(|shard| {
            let endpoint = shard.endpoint.clone();
            let snapshot = shard.snapshot.take();
            ShardOutcome {
                shard: shard.plan.shard,
                partial: snapshot.is_some() && shard.standing != Standing::Finished,
                // After a start, every shard without a final snapshot is lost, whether it was stopped or not.
                lost: match &shard.standing {
                    Standing::Finished => None,
                    Standing::Lost(why) => Some(why.clone()),
                    Standing::Failed(failure) if started => Some(failure.message.clone()),
                    _ if started => Some("it was stopped, and its final snapshot is incomplete".to_owned()),
                    _ => None,
                },
                incarnation: endpoint.as_ref().map(|endpoint| endpoint.incarnation.clone()).unwrap_or_default(),
                host: endpoint.map(|endpoint| endpoint.host).unwrap_or_default(),
                snapshot,
                unacknowledged: shard.unacknowledged,
                clock: shard.clock.map(|clock| clock.report()),
            }
        });
        let shards = shards.collect();
        Outcome {
            ending,
            of: self.config.of,
            attempt: self.attempt,
            start_at_unix_nanoseconds: self.start_at_unix_nanoseconds,
            shards,
            timeline,
            start_skew,
            clock_uncertainty,
            thresholds,
            probes: std::mem::take(&mut self.probes),
            cleanup: None,
        }
    }
}

/// Waits for an abort while there is load to stop. An abort during Collecting takes effect only if a new attempt begins.
async fn abort_wanted(control: watch::Receiver<Control>, mut progress: watch::Receiver<Progress>) {
    aborted(control).await;
    if progress.wait_for(|progress| progress.stage != ConductStage::Collecting).await.is_err() {
        // The sender is gone, so no abort can come.
        std::future::pending::<()>().await;
    }
}

async fn aborted(mut control: watch::Receiver<Control>) {
    if control.wait_for(|control| control.abort).await.is_err() {
        // The sender is gone, so no abort can come.
        std::future::pending::<()>().await;
    }
}

/// Names of the operations that shards count separately, or one empty name if they do not.
fn parts(plan: &TrialPlan) -> Vec<String> {
    if plan.breakdown.operation {
        plan.workload.operations.iter().map(|operation| operation.name.clone()).collect()
    } else {
        vec![String::new()]
    }
}

/// Time from the start until every request of `plan` has its outcome.
pub fn planned_length(plan: &TrialPlan) -> Duration {
    Duration::from_nanos(plan.warmup_nanoseconds)
        + Duration::from_nanos(plan.bound.longest_nanoseconds())
        + Duration::from_nanos(plan.timeouts.request_nanoseconds)
}

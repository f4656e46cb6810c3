//! The conductor's state of its trial, shared by all phases.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::Probe;
use redisbench_wire::plan::TrialPlan;
use redisbench_wire::snapshot::Snapshot;

use super::clock::nanoseconds;
use super::event::{Action, Ask, Event, Now};
use super::live;
use super::outbox::Outbox;
use super::recording::Recording;
use super::seconds::{self, Course};
use super::shards::{self, Shard, Standing};
use super::{
    Call, ConductProgress, ConductStage, ConductorConfig, Control, Ending, Endpoint, Failure, Kept, Outcome,
    ShardEvidence, ShardPresence, reason,
};
use crate::measurement::parts::{Parts, kept_bytes};
use crate::measurement::threshold::{Watch, watched_seconds};

/// Pause between two calls to idle shards: far below the ten minutes without contact after which a shard exits, so that some calls may fail.
pub const KEEP_CONTACT: Duration = Duration::from_secs(60);

pub struct Conductor {
    pub config: ConductorConfig,
    pub out: Outbox,
    /// Since the conductor began.
    pub now: Duration,
    /// By the wall clock.
    pub unix_now: u64,
    pub presence: Vec<ShardPresence>,
    /// The presence has changed since it was last used.
    pub news: bool,
    pub control: Control,
    /// Number of shards, the first ones, that this trial has work for.
    pub busy: usize,
    /// The time of the next call to idle shards.
    contact_at: Duration,
    /// As last published.
    pub published: ConductProgress,
    pub shards: Vec<Shard>,
    /// The longest [`Shard::length`].
    longest: Duration,
    pub attempt: u32,
    /// No shard has a connection of the previous trial.
    pub drained: bool,
    /// The last attempt that was given up, while no attempt has been measured.
    pub missed: u32,
    /// Number of missed starts.
    pub misses: u32,
    /// Number of new attempts because of lost shards.
    pub restarts: u32,
    pub recording: Recording,
    /// Merged seconds of all shards.
    pub course: Course,
    /// Histograms of final snapshots that were merged as they arrived.
    pub parts: Parts,
    /// Memory of the final snapshots that are kept whole; none once they are merged as they arrive.
    kept: Option<Kept>,
    /// Thresholds that may stop the load early.
    pub watch: Watch,
    /// The time at which the warm-up's early end was ordered.
    pub settled_at: Option<Duration>,
    /// Results of the probe with half of the connections, one per shard.
    pub probes: Vec<Probe>,
    pub start_at_unix_nanoseconds: Option<u64>,
    /// On the conductor's clock.
    pub start_at: Option<i64>,
    /// The duration of the last exchange of clocks: at least five calls to each shard.
    pub clocks_took: Duration,
    /// The start is known only by the time of day.
    pub start_is_rough: bool,
    /// Half of the worst round trip when the start was ordered; none if another conductor ordered it.
    pub clock_uncertainty: Option<Duration>,
}

/// Result of a phase's step: none while the phase continues, an error if the trial stops early.
pub type Step<T> = Result<Option<T>, Ending>;

impl Conductor {
    pub fn new(mut config: ConductorConfig, presence: Vec<ShardPresence>, now: Now) -> Self {
        let published = ConductProgress::at_first(&config, now.unix_nanoseconds);
        let mut out = Outbox::default();
        out.actions.push(Action::Publish(Box::new(published.clone())));
        let (plan, run, trial) = (&config.plan, &config.run, config.trial);
        let hash = plan.hash(run, trial);
        let shard = |index| Shard::new(plan.part(run, trial, index), hash.clone());
        let shards: Vec<_> = (0..plan.shards).map(shard).collect();
        let operations = parts(plan);
        let course = Course::new(operations.len(), watched_seconds(&config.thresholds));
        let thresholds = std::mem::take(&mut config.thresholds);
        Self {
            out,
            now: now.elapsed,
            unix_now: now.unix_nanoseconds,
            presence,
            news: true,
            control: Control::default(),
            busy: shards.len(),
            contact_at: now.elapsed,
            published,
            drained: config.trial == 0,
            attempt: config.resume.map_or(0, |record| record.attempt).max(config.attempts),
            missed: if config.resume.is_some() { 0 } else { config.attempts },
            misses: 0,
            restarts: 0,
            recording: Recording::default(),
            course,
            parts: Parts::default(),
            kept: Some(Kept::default()),
            watch: Watch::new(thresholds, std::mem::take(&mut config.standings), operations),
            settled_at: None,
            probes: Vec::new(),
            start_at_unix_nanoseconds: None,
            start_at: None,
            clocks_took: Duration::ZERO,
            start_is_rough: false,
            clock_uncertainty: None,
            config,
            longest: longest(&shards),
            shards,
        }
    }

    /// Begins a step at `now`. Calls the shards that have nothing to do, if it is time: a shard exits after long without a call. Errors are
    /// ignored: the trial that needs the shard handles them.
    pub fn begin_step(&mut self, now: Now) {
        (self.now, self.unix_now) = (now.elapsed, now.unix_nanoseconds);
        self.out.begin(now.elapsed);
        if self.now >= self.contact_at {
            self.contact_at = self.now + KEEP_CONTACT;
            let idle: Vec<_> =
                self.present().filter(|(shard, _)| *shard >= self.busy).map(|(_, endpoint)| endpoint).collect();
            if !idle.is_empty() {
                self.out.actions.push(Action::KeepContact(idle));
            }
        }
        self.out.wake_by(self.contact_at);
    }

    /// Endpoints of all present shards with their places, whether this trial needs them or not.
    pub fn present(&self) -> impl Iterator<Item = (usize, Endpoint)> {
        let places = self.presence.iter().enumerate();
        places.filter_map(|(shard, presence)| Some((shard, presence.endpoint()?.clone())))
    }

    /// Notes what concerns every phase. Returns the event for the present one.
    pub fn take_in(&mut self, event: Event) -> Event {
        match event {
            Event::Presence(presence) => (self.presence, self.news) = (presence, true),
            // An abort cannot be taken back.
            Event::Control(control) => self.control.abort |= control.abort,
            Event::Answered(ref answered) => {
                self.out.unanswered = self.out.unanswered.saturating_sub(1);
                if let (Some(shard), Some(at)) = (self.shards.get_mut(answered.ask.shard), answered.arrives_by()) {
                    shard.reached_by = shard.reached_by.max(at);
                }
                return event;
            }
            Event::Recorded(_) | Event::Due => return event,
        }
        Event::Due
    }

    /// The platform's newest report on each shard. A missing entry counts as absent without a reason.
    pub fn seen(&mut self) -> Vec<ShardPresence> {
        self.news = false;
        let mut seen = self.presence.clone();
        seen.resize(self.shards.len(), ShardPresence::Absent { why: None });
        seen
    }

    /// The conductor's clock: nanoseconds since it began.
    pub fn clock(&self) -> i64 {
        nanoseconds(self.now)
    }

    /// A call to the shard, if it has a process.
    pub fn ask(&self, shard: usize, call: Call) -> Option<Ask> {
        let endpoint = self.shards.get(shard)?.endpoint.clone()?;
        Some(Ask { shard, endpoint, call })
    }

    /// Calls the shard, if it has a process.
    pub fn call(&mut self, shard: usize, call: Call) {
        if let Some(ask) = self.ask(shard, call) {
            self.out.call(ask);
        }
    }

    /// Voids the attempt: shards keep process and plan.
    pub fn give_up_attempt(&mut self) {
        self.shards.iter_mut().for_each(Shard::give_up_attempt);
        self.longest = longest(&self.shards);
        (self.parts, self.kept) = (Parts::default(), Some(Kept::default()));
        self.start_at = None;
        self.start_at_unix_nanoseconds = None;
        // The start that the previous conductor recorded is void, too.
        self.config.resume = None;
        self.watch.forget();
        self.course.forget();
        self.settled_at = None;
        // The live picture of the previous attempt is void.
        self.publish(ConductStage::Preparing);
    }

    /// Planned end of every shard's load, on the conductor's clock.
    pub fn end_at(&self) -> Option<i64> {
        self.start_at.map(|start| start.saturating_add(nanoseconds(self.longest)))
    }

    /// Replaces the shard's snapshot, which may end the warm-up earlier than planned.
    pub fn keep(&mut self, index: usize, snapshot: Snapshot) {
        let shard = &mut self.shards[index];
        let before = shard.length();
        shard.keep(snapshot, self.now);
        if shard.length() != before {
            self.longest = longest(&self.shards);
        }
    }

    /// Publishes the trial's progress with the merged picture.
    pub fn publish(&mut self, stage: ConductStage) {
        let since_start = self.start_at.map(|start| self.clock() - start);
        let history = self.course.history();
        let live =
            since_start.and_then(|since_start| live::of(&self.shards, &self.parts, history, since_start)).map(Arc::new);
        self.published = ConductProgress { live, ..self.counted(stage) };
        self.out.actions.push(Action::Publish(Box::new(self.published.clone())));
    }

    /// Fails if a threshold that stops the load does not hold.
    pub fn look_at_thresholds(&mut self) -> Result<(), Ending> {
        if self.shards.iter().any(|shard| shard.snapshot.is_none()) {
            return Ok(());
        }
        let broken =
            seconds::measured(&self.shards).and_then(|measured| self.watch.look(self.course.history(), measured));
        match broken {
            Some(why) => Err(Ending::Failed(Failure::new(reason::THRESHOLD_FAILED, why))),
            None => Ok(()),
        }
    }

    /// Publishes the trial's progress with the previous picture: merging is too expensive for every step.
    pub fn publish_counts(&mut self, stage: ConductStage) {
        let live = self.published.live.take();
        let counted = self.counted(stage);
        let news = counted != self.published;
        self.published = ConductProgress { live, ..counted };
        if news {
            self.out.actions.push(Action::Publish(Box::new(self.published.clone())));
        }
    }

    fn counted(&self, stage: ConductStage) -> ConductProgress {
        ConductProgress {
            stage,
            trial: self.config.trial,
            of: self.config.of,
            attempt: self.attempt,
            missed: self.missed,
            start_at_unix_nanoseconds: self.start_at_unix_nanoseconds,
            shards: shards::count(&self.shards),
            preloaded_percent: live::preloaded_percent(&self.shards),
            waiting_for: live::waiting_for(&self.shards),
            live: None,
            thresholds: self.watch.judged(),
            start_skew: live::start_skew(&self.shards),
            clock_uncertainty: self.clock_uncertainty.or_else(|| live::clock_uncertainty(&self.shards)),
            oldest_snapshot_age: live::oldest_snapshot_age(&self.shards, self.clock()),
        }
    }

    /// The shard's snapshot is the final one: it has finished, or is lost if its process was told to terminate before the end. Merges and
    /// drops the histograms of a finished one, unless there is memory to keep the final snapshots of all shards, so that the full result has
    /// a record of each.
    pub fn finish_shard(&mut self, index: usize) {
        let shard = &mut self.shards[index];
        if shard.is_cut_short() {
            return shard.cut_short();
        }
        shard.standing = Standing::Finished;
        let bytes = shard.snapshot.as_ref().map_or(0, kept_bytes);
        if let Some(kept) = &mut self.kept {
            if kept.grow(&self.config.memory, bytes) {
                return;
            }
            self.kept = None;
            let all = self.shards.len();
            (0..all).for_each(|index| self.merge_histograms(index));
        } else {
            self.merge_histograms(index);
        }
    }

    fn merge_histograms(&mut self, index: usize) {
        let shard = &mut self.shards[index];
        let Some(snapshot) = shard.snapshot.as_mut().filter(|_| shard.standing == Standing::Finished) else { return };
        match self.parts.take(snapshot) {
            Ok(own) => shard.own_latency = Some(own),
            // The final merge fails with the same error.
            Err(error) => tracing::warn!(shard = shard.index(), %error, "failed to merge a final snapshot"),
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
            let how = shard.unreachable.as_ref().map(|how| format!(": {how}")).unwrap_or_default();
            let snapshot = shard.snapshot.take();
            ShardEvidence {
                shard: shard.plan.shard,
                partial: snapshot.is_some() && shard.standing != Standing::Finished,
                // After a start, every shard without a final snapshot is lost, whether it was stopped or not.
                lost: match &shard.standing {
                    Standing::Finished => None,
                    Standing::Lost(why) => Some(why.clone()),
                    Standing::Failed(failure) if started => Some(failure.message.clone()),
                    _ if started => Some(format!("it was stopped, and its final snapshot is incomplete{how}")),
                    _ => None,
                },
                incarnation: endpoint.as_ref().map(|endpoint| endpoint.incarnation.clone()).unwrap_or_default(),
                host: endpoint.map(|endpoint| endpoint.host).unwrap_or_default(),
                snapshot,
                own_latency: shard.own_latency.take(),
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
            parts: std::mem::take(&mut self.parts),
            kept: self.kept.clone().unwrap_or_default(),
            timeline,
            start_skew,
            clock_uncertainty,
            thresholds,
            probes: std::mem::take(&mut self.probes),
            cleanup: None,
        }
    }
}

fn longest(shards: &[Shard]) -> Duration {
    shards.iter().map(Shard::length).max().unwrap_or_default()
}

/// Names of the operations that shards count separately, or one empty name if they do not.
fn parts(plan: &TrialPlan) -> Vec<String> {
    if plan.breakdown.operation {
        plan.operation_names().into_iter().map(str::to_owned).collect()
    } else {
        vec![String::new()]
    }
}

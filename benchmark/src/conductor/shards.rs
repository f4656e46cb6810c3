//! The conductor's record of each shard, and how observations change it. No IO.

use std::time::Duration;

use redisbench_wire::plan::ShardPlan;
use redisbench_wire::snapshot::{Series, Snapshot, Stage, Window};
use redisbench_wire::{ClockReading, Preparation, ShardFailure, ShardPhase, ShardState};

use super::cached::Cached;
use super::clock::{ClockEstimate, nanoseconds};
use super::event::Answered;
use super::held::Held;
use super::intervals::planned_length;
use super::{Endpoint, Failure, GRACE_PERIOD, QUEUED, Reply, ShardCounts, ShardPresence, Unreachable, reason};
use crate::measurement::parts::OwnLatency;

/// Reason for a lost shard whose process is not the one that was started.
pub const REPLACED: &str = "its process was replaced by another";

/// Reason for a lost shard that stopped because of a signal, as long as the platform has not reported why.
const TERMINATED: &str = "its process received SIGTERM";

/// State of a shard as far as the conductor knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No process to dial yet.
    Absent,
    /// A process that has not accepted its plan.
    Unplanned,
    /// It has the plan, and connects or preloads.
    Preparing,
    /// It is armed for an attempt that has not been started.
    Armed,
    /// It holds a start of an attempt that was given up.
    MustRearm,
    /// It accepted the start of the current attempt.
    Running,
    /// Its final snapshot is available.
    Finished,
    /// It reported a permanent failure.
    Failed(ShardFailure),
    /// After the start: its measurements from here on are unknown.
    Lost(String),
}

/// A process that was told to terminate, and still serves what it measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// As the platform reports it. None before that.
    pub why: Option<String>,
    /// Since the conductor began. It has ended by then.
    pub until: Duration,
}

#[derive(Debug)]
pub struct Shard {
    pub plan: ShardPlan,
    pub hash: String,
    pub standing: Standing,
    /// The incarnation that takes part. It never changes after the start.
    pub endpoint: Option<Endpoint>,
    /// Why the platform has no process for it.
    pub absence: Option<String>,
    /// Error of the last call, if it failed.
    pub unreachable: Option<Unreachable>,
    /// No answered or failed call has reached it after this time since the conductor began.
    pub reached_by: Duration,
    /// The beginning of its last poll for snapshots, since the conductor began.
    pub polled_at: Duration,
    pub failures_in_a_row: u32,
    pub preparation: Preparation,
    /// The attempt whose start it holds if that is not the current one, otherwise 0.
    pub held_attempt: u32,
    pub clock: Option<ClockEstimate>,
    /// Without its seconds, which are in `seconds`.
    pub snapshot: Option<Snapshot>,
    /// Set if the histograms of the snapshot, the final one, are merged and dropped.
    pub own_latency: Option<OwnLatency>,
    pub seconds: Held,
    pub cached: Cached,
    /// The arrival of the snapshot, on the conductor's clock.
    pub snapshot_at: i64,
    /// The last snapshot showed no change.
    pub stands_still: bool,
    /// The send of its first request relative to its own schedule, on the conductor's clock; and the clock estimate used.
    pub first_send: Option<(i64, ClockEstimate)>,
    pub unacknowledged: bool,
    /// Counts as running because a start was recorded; it has not confirmed yet that it accepted.
    pub unheard: bool,
    /// Set while its process ends.
    pub leaving: Option<Leaving>,
}

impl Shard {
    /// Time from the start until every request has its outcome, with the actual warm-up or, before that has ended, the planned one.
    pub fn length(&self) -> Duration {
        let window = self.snapshot.as_ref().map(|snapshot| &snapshot.window);
        let warmup = window.filter(|window| self.plan.settle && window.start_nanoseconds > 0);
        let warmup = warmup.map(|window| window.measure_from_nanoseconds.saturating_sub(window.start_nanoseconds));
        let sooner = self.plan.warmup_nanoseconds.saturating_sub(warmup.unwrap_or(u64::MAX));
        planned_length(&self.plan).saturating_sub(Duration::from_nanos(sooner))
    }

    /// Returns true if every request has an outcome, according to the last snapshot.
    pub fn is_done(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| snapshot.stage == Stage::Done)
    }

    /// Applies the reply to [`super::Call::Clock`]. Returns false if it failed.
    pub fn take_clock(&mut self, Answered { sent, received, reply, .. }: Answered) -> bool {
        match reply {
            Ok(Reply::Clock(reading)) => {
                self.exchange_clock(sent, received, reading);
                return true;
            }
            Ok(_) => {}
            Err(error) => self.unreachable = error.unreachable(),
        }
        false
    }

    /// Applies a reading of its clock from a call that was sent and answered at these times.
    pub fn exchange_clock(&mut self, sent: Duration, received: Duration, reading: ClockReading) {
        let estimate = ClockEstimate::from_exchange(nanoseconds(sent), nanoseconds(received), reading);
        self.clock = Some(ClockEstimate::better(self.clock, estimate));
    }

    pub fn new(plan: ShardPlan, hash: String) -> Self {
        Self {
            hash,
            plan,
            standing: Standing::Absent,
            endpoint: None,
            absence: None,
            unreachable: None,
            reached_by: Duration::ZERO,
            polled_at: Duration::ZERO,
            failures_in_a_row: 0,
            preparation: Preparation::default(),
            held_attempt: 0,
            clock: None,
            snapshot: None,
            own_latency: None,
            seconds: Held::default(),
            cached: Cached::default(),
            snapshot_at: 0,
            stands_still: false,
            first_send: None,
            unacknowledged: false,
            unheard: false,
            leaving: None,
        }
    }

    pub fn index(&self) -> u32 {
        self.plan.shard
    }

    /// Applies the platform's report before a start. Any present process takes part.
    ///
    /// # Errors
    /// If the shard is gone and will not be replaced.
    pub fn observe_before_start(&mut self, presence: &ShardPresence) -> Result<(), String> {
        match presence {
            // The failure that the shard reported explains more than its process's exit.
            ShardPresence::Absent { .. }
            | ShardPresence::Queued
            | ShardPresence::Leaving { .. }
            | ShardPresence::Gone { .. }
            | ShardPresence::Done
                if matches!(self.standing, Standing::Failed(_)) =>
            {
                Ok(())
            }
            // It exits once the attempt is aborted. Its replacement starts only then.
            ShardPresence::Leaving { endpoint, .. }
                if self.standing == Standing::MustRearm
                    && self.endpoint.as_ref().is_some_and(|known| known.incarnation == endpoint.incarnation) =>
            {
                Ok(())
            }
            ShardPresence::Present(endpoint) => {
                if self.endpoint.as_ref().is_none_or(|known| known.incarnation != endpoint.incarnation) {
                    *self = Self::new(self.plan.clone(), self.hash.clone());
                    self.standing = Standing::Unplanned;
                }
                self.endpoint = Some(endpoint.clone());
                Ok(())
            }
            ShardPresence::Absent { why } => {
                self.leave(why.clone());
                Ok(())
            }
            ShardPresence::Queued => {
                self.leave(Some(QUEUED.to_owned()));
                Ok(())
            }
            ShardPresence::Leaving { why, .. } | ShardPresence::Gone { why, replaced: true } => {
                self.leave(Some(why.clone()));
                Ok(())
            }
            ShardPresence::Gone { why, replaced: false } => Err(why.clone()),
            ShardPresence::Done => Err("it exited before the start".to_owned()),
        }
    }

    fn leave(&mut self, why: Option<String>) {
        *self = Self::new(self.plan.clone(), self.hash.clone());
        self.absence = why;
    }

    /// Applies the platform's report after the start. A replacement never joins a started trial, and a process that has ended is lost even
    /// if calls still succeed. One that is being terminated is not lost yet. Returns whether the shard was lost just now.
    pub fn observe_after_start(&mut self, presence: &ShardPresence, now: Duration) -> bool {
        if self.standing != Standing::Running {
            return false;
        }
        if let (Some(known), Some(endpoint)) = (&mut self.endpoint, presence.endpoint())
            && known.incarnation == endpoint.incarnation
        {
            *known = endpoint.clone();
            if let ShardPresence::Leaving { why, .. } = presence {
                self.leaves(Some(why), now);
            }
            return false;
        }
        let why = match presence {
            ShardPresence::Present(_) | ShardPresence::Leaving { .. } => REPLACED.to_owned(),
            ShardPresence::Absent { why } => why.clone().unwrap_or_else(|| "its process was deleted".to_owned()),
            ShardPresence::Queued => QUEUED.to_owned(),
            // The cause of its end is more specific than its exit code.
            ShardPresence::Gone { why, .. } => {
                self.leaving.as_ref().and_then(|leaving| leaving.why.as_ref()).unwrap_or(why).clone()
            }
            ShardPresence::Done => "it exited before its final snapshot was fetched".to_owned(),
        };
        self.standing = Standing::Lost(why);
        true
    }

    /// Its process was told to terminate.
    fn leaves(&mut self, why: Option<&String>, now: Duration) {
        let leaving = self.leaving.get_or_insert_with(|| Leaving { why: None, until: now + GRACE_PERIOD });
        leaving.why = why.cloned().or(leaving.why.take());
    }

    /// Returns true if its load ended early because its process was told to terminate, according to the last snapshot.
    pub fn is_cut_short(&self) -> bool {
        self.snapshot.as_ref().is_some_and(Snapshot::is_cut_short)
    }

    /// Its measurement was cut short, and its snapshot has all of it. Like any lost shard it takes no part in the common window, which would
    /// end with it.
    pub fn cut_short(&mut self) {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.series = Series::default();
        }
        let why = self.leaving.as_ref().and_then(|leaving| leaving.why.as_deref());
        self.standing = Standing::Lost(why.unwrap_or(TERMINATED).to_owned());
    }

    /// A running shard whose process has ended by now is lost.
    pub fn has_left(&mut self, now: Duration) {
        if self.standing == Standing::Running
            && let Some(leaving) = self.leaving.as_ref().filter(|leaving| leaving.until <= now)
        {
            let why = leaving.why.as_deref().unwrap_or(TERMINATED);
            tracing::warn!(shard = self.plan.shard, why, "shard lost");
            self.standing = Standing::Lost(why.to_owned());
        }
    }

    /// Applies the shard's own state while it prepares.
    ///
    /// # Errors
    /// If it holds a different plan, which no call can change.
    pub fn observe_state(&mut self, state: ShardState) -> Result<(), Failure> {
        self.preparation = state.preparation;
        self.held_attempt = state.accepted.map_or(0, |accepted| accepted.attempt);
        if state.plan_hash.as_ref().is_some_and(|hash| *hash != self.hash) {
            let message = format!("shard {} has a different plan for this trial; create a new benchmark", self.index());
            return Err(Failure::new(reason::PLAN_CONFLICT, message));
        }
        self.standing = match (state.phase, state.plan_hash) {
            (ShardPhase::Failed, _) => Standing::Failed(failure_of(state.failure)),
            (ShardPhase::Idle, _) | (_, None) => Standing::Unplanned,
            (ShardPhase::Preparing, _) => Standing::Preparing,
            (ShardPhase::Armed, _) if state.accepted.is_none() => Standing::Armed,
            (ShardPhase::Armed | ShardPhase::Running | ShardPhase::Finished, _) => Standing::MustRearm,
        };
        Ok(())
    }

    /// Applies the shard's own state after the start. Returns false if it has the plan and was never started.
    pub fn observe_state_after_start(&mut self, state: ShardState, attempt: u32) -> bool {
        let unheard = std::mem::take(&mut self.unheard);
        if state.phase == ShardPhase::Failed {
            self.standing = Standing::Failed(failure_of(state.failure));
        } else if self.accepted(&state, attempt) {
            return true;
        } else if !unheard {
            self.standing = Standing::Lost(format!("it is {:?} and no longer in attempt {attempt}", state.phase));
        } else if state.phase == ShardPhase::Idle {
            self.standing = Standing::Lost(REPLACED.to_owned());
        } else {
            return false;
        }
        true
    }

    /// The run's failure for this shard's failure after the start.
    pub fn failed_in_trial(&self, failure: &ShardFailure) -> Failure {
        let message = format!("shard {} failed during the trial: {}", self.index(), failure.message);
        Failure::new(format!("{:?}", failure.reason), message)
    }

    /// Why the shard is not armed yet, for people.
    pub fn obstacle(&self) -> String {
        if let Some(unreachable) = &self.unreachable {
            return unreachable.to_string();
        }
        if let Some(why) = &self.preparation.waiting_for {
            return why.clone();
        }
        let Preparation { connected, connections, preload_done, preload_commands, .. } = self.preparation;
        match self.standing {
            Standing::Absent => self.absence.clone().unwrap_or_else(|| "its process has not started yet".to_owned()),
            Standing::Preparing if connected < connections => format!("{connected} of {connections} connections"),
            Standing::Preparing => format!("{preload_done} of {preload_commands} commands of the preload answered"),
            Standing::MustRearm => "it has not aborted the previous attempt yet".to_owned(),
            _ => "it has not replied yet".to_owned(),
        }
    }

    /// Replaces the kept snapshot.
    pub fn keep(&mut self, mut snapshot: Snapshot, now: Duration) {
        self.seconds.take(std::mem::take(&mut snapshot.timeline));
        if snapshot.terminated {
            self.leaves(None, now);
        }
        self.cached.take(&snapshot);
        self.snapshot = Some(snapshot);
        self.note_first_send();
    }

    /// Records when the first request was sent, relative to the shard's own schedule, using the most precise clock estimate. Later
    /// estimates are blurred by drift, but the first one after a takeover may be poor.
    fn note_first_send(&mut self) {
        let (Some(clock), Some(snapshot)) = (self.clock, &self.snapshot) else { return };
        if snapshot.window.first_send_nanoseconds > 0 {
            let sent = clock.to_conductor(snapshot.window.first_send_nanoseconds);
            let known = self.first_send.map(|(_, known)| known.uncertainty(sent));
            if known.is_none_or(|known| clock.uncertainty(sent) < known) {
                self.first_send = Some((sent.saturating_sub(first_due(&snapshot.window)), clock));
            }
        }
    }

    /// Returns whether the state belongs to this trial and holds an accepted start of `attempt`.
    pub fn accepted(&self, state: &ShardState, attempt: u32) -> bool {
        matches!(state.phase, ShardPhase::Running | ShardPhase::Finished)
            && state.plan_hash.as_ref() == Some(&self.hash)
            && state.accepted.is_some_and(|accepted| accepted.attempt == attempt)
    }

    /// Forgets the attempt, but keeps process and plan.
    pub fn give_up_attempt(&mut self) {
        // The process of a lost shard may still exist, and must then give up the attempt, too.
        if !matches!(self.standing, Standing::Absent | Standing::Unplanned | Standing::Failed(_)) {
            self.standing = Standing::MustRearm;
        }
        (self.snapshot, self.own_latency) = (None, None);
        self.seconds = Held::default();
        self.cached = Cached::default();
        self.stands_still = false;
        self.first_send = None;
        self.clock = None;
        self.unheard = false;
        self.leaving = None;
    }
}

/// The failure of a shard in phase Failed.
pub fn failure_of(failure: Option<ShardFailure>) -> ShardFailure {
    failure.unwrap_or_else(|| ShardFailure {
        reason: redisbench_wire::FailureReason::Internal,
        message: "the shard failed without a reason; see its log".to_owned(),
    })
}

/// The due time of a shard's first request, in nanoseconds after the start. Only the shard can compute it: it follows from its workers'
/// parts of the schedule.
fn first_due(window: &Window) -> i64 {
    i64::try_from(window.first_due_nanoseconds.saturating_sub(window.start_nanoseconds)).unwrap_or(i64::MAX)
}

pub fn count(shards: &[Shard]) -> ShardCounts {
    let mut counts = ShardCounts { desired: u32::try_from(shards.len()).unwrap_or(u32::MAX), ..ShardCounts::default() };
    for shard in shards {
        let standing = &shard.standing;
        counts.armed += u32::from(matches!(standing, Standing::Armed | Standing::Running | Standing::Finished));
        counts.running += u32::from(*standing == Standing::Running);
        counts.finished += u32::from(*standing == Standing::Finished);
        counts.lost += u32::from(matches!(standing, Standing::Lost(_)));
        counts.unreachable +=
            u32::from(shard.unreachable.is_some() && !matches!(standing, Standing::Lost(_) | Standing::Finished));
    }
    counts
}

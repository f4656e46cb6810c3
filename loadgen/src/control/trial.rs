//! The shard's state machine: which call is allowed when, and which actions follow.
//!
//! Pure: `now` is a parameter and effects are returned as [`Action`]s, so tests cover every path without a clock, a listener or a target.
//! Times are nanoseconds of the shard's monotonic clock.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::ShardPlan;
use redisbench_wire::{
    AbortRequest, AbortThen, AcceptedStart, AfterRequest, CleanupState, Detail, EpochRequest, FailureReason,
    PlanRequest, Preparation, Probe, ProbeState, Refusal, RefusalCode, ShardFailure, ShardPhase, ShardState,
    StartRequest,
};

use super::exit::Exit;
use super::plan_check;
use crate::workload::part_of;

#[cfg(test)]
mod hostile;
mod progress;
#[cfg(test)]
mod tests;

/// Events from target, engine and process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The target is up but not ready, and will become ready by itself. Waiting has no limit.
    Waiting(String),
    /// A possibly temporary problem keeps the shard from being ready. Becomes this failure if it lasts.
    Obstacle(ShardFailure),
    /// The target matches the plan; connecting has begun.
    TargetReady,
    /// Progress of connecting.
    Connected { ready: u32, wanted: u32 },
    /// Progress of the preload.
    Preloading {
        /// Commands that succeeded.
        commands: u64,
    },
    /// The preload is complete.
    Preloaded,
    /// An attempt's load has finished or was stopped by [`Action::Stop`].
    LoadEnded { attempt: u32 },
    /// Progress of deleting the keys.
    Cleanup(CleanupState),
    /// The probe has finished.
    Probed(Option<Probe>),
    /// The trial cannot continue.
    Failed(ShardFailure),
    /// A signal asked the process to terminate.
    Terminate,
}

/// Work for the shard's loop. Actions are performed in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Drop the previous trial, look at the target and connect.
    Prepare(ShardPlan),
    /// Write the keys.
    Preload,
    /// Start the load at this instant.
    Start(AcceptedStart),
    /// End the warm-up at this instant.
    Measure(u64),
    /// Stop the load now. [`Event::LoadEnded`] follows.
    Stop,
    /// Stop the load now, because the process was told to terminate. [`Event::LoadEnded`] follows.
    Leave,
    /// Close all connections after the load has ended, and keep the measurement.
    Disconnect,
    /// Run the same load with half of the connections from this instant on. [`Event::Probed`] follows. Every other action ends it.
    Probe(u64),
    /// Stop any load and drop its measurement; keep the connections.
    Rearm,
    /// Delete this shard's part of the keys. [`Event::Cleanup`] follows. [`Action::Prepare`] ends it.
    Cleanup(ShardPlan),
    /// Close all connections and stop looking at the target.
    Discard,
    /// End the process.
    Exit(Exit),
}

/// The time for which a process stays without a call, apart from the limits of its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Without a plan.
    pub idle: Duration,
    /// With a measurement, after a signal to terminate; zero to exit at once.
    pub leaving: Duration,
}

/// The result of a call: its actions, or a refusal.
pub type Accepted = Result<Vec<Action>, Refusal>;

#[derive(Clone, Debug, Default, PartialEq)]
enum Phase {
    #[default]
    Idle,
    Preparing(PrepareStep),
    Armed,
    Running {
        stopping: bool,
    },
    /// `measured` is false if the trial was aborted before its start.
    Finished {
        measured: bool,
    },
    Failed(ShardFailure),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrepareStep {
    /// Resolving and checking the target.
    Target,
    /// Connecting or reconnecting.
    Connect,
    Preload,
}

/// A problem that keeps the shard from being ready.
#[derive(Clone, Debug)]
struct Obstacle {
    since: u64,
    times: u32,
    failure: ShardFailure,
}

/// A shard and its present trial.
#[derive(Debug, Default)]
pub struct Trial {
    run: Arc<str>,
    index: u32,
    epoch: u64,
    phase: Phase,
    plan: Option<(ShardPlan, String)>,
    accepted: Option<AcceptedStart>,
    /// Time from the start to the early end of the warm-up, if ordered.
    measure_after: Option<u64>,
    /// The highest attempt that an abort closed. A late start of it must be refused.
    closed_attempt: u32,
    preloaded: bool,
    /// True if the shard has sent commands that may have created keys.
    wrote: bool,
    cleanup: Option<CleanupState>,
    probe: Option<ProbeState>,
    preparation: Preparation,
    obstacle: Option<Obstacle>,
    last_contact: u64,
    limits: ProcessLimits,
    /// The full snapshot was served.
    collected: bool,
    /// The time at which the process exits, once it was told to terminate.
    leaves_at: Option<u64>,
    /// The planned end of a load that stopped because no call came. Its result is kept as if the load had gone on.
    unattended_end: u64,
    /// The time at which the shard first became ready to start, or last ceased to be because a connection broke.
    armed_since: Option<u64>,
}

impl Trial {
    pub fn new(run: impl Into<Arc<str>>, index: u32, now: u64, limits: ProcessLimits) -> Self {
        Self { run: run.into(), index, last_contact: now, limits, ..Self::default() }
    }

    /// The state that the conductor reads.
    pub fn state(&self) -> ShardState {
        ShardState {
            phase: match self.phase {
                Phase::Idle => ShardPhase::Idle,
                Phase::Preparing(_) => ShardPhase::Preparing,
                Phase::Armed => ShardPhase::Armed,
                Phase::Running { .. } => ShardPhase::Running,
                Phase::Finished { .. } => ShardPhase::Finished,
                Phase::Failed(_) => ShardPhase::Failed,
            },
            failure: match &self.phase {
                Phase::Failed(failure) => Some(failure.clone()),
                _ => None,
            },
            plan_hash: self.plan.as_ref().map(|(_, hash)| hash.clone()),
            accepted: self.accepted,
            epoch: self.epoch,
            preparation: self.preparation.clone(),
        }
    }

    pub fn index(&self) -> Option<u32> {
        self.plan.as_ref().map(|(plan, _)| plan.trial)
    }

    pub fn plan_in_use(&self) -> Option<ShardPlan> {
        self.plan.as_ref().map(|(plan, _)| plan.clone())
    }

    /// True once the conductor has the result of the present trial.
    pub fn is_collected(&self) -> bool {
        self.collected && matches!(self.phase, Phase::Finished { .. })
    }

    /// True while a change of the target's topology matters.
    pub fn wants_target(&self) -> bool {
        matches!(self.phase, Phase::Preparing(_) | Phase::Armed | Phase::Running { .. })
    }

    /// True once the process was told to terminate and stays for its result.
    pub fn is_leaving(&self) -> bool {
        self.leaves_at.is_some()
    }

    /// True if nothing was sent since the load, so that the servers' counters belong to the load.
    pub fn load_was_last(&self) -> bool {
        self.probe.is_none() && self.cleanup.is_none()
    }

    /// Records contact with the conductor. Calls that only read do nothing else.
    pub fn contact(&mut self, now: u64) {
        self.last_contact = self.last_contact.max(now);
    }

    /// `PUT /v1/trials/{t}`.
    ///
    /// # Errors
    /// Refuses a stale epoch, another plan for the present trial, and a new trial before the present one has finished.
    pub fn plan(&mut self, now: u64, trial: u32, request: PlanRequest) -> Accepted {
        self.admit(now, request.epoch)?;
        if let Some((present, hash)) = &self.plan {
            if present.trial == trial && *hash == request.hash {
                return Ok(Vec::new());
            }
            if present.trial == trial {
                return Err(refusal(
                    RefusalCode::PlanConflict,
                    format!("trial {trial} has the plan {hash}, not {}", request.hash),
                ));
            }
            if !matches!(self.phase, Phase::Finished { .. }) || trial < present.trial {
                return Err(self.wrong_phase(&format!("trial {trial} cannot follow trial {} now", present.trial)));
            }
        }
        if self.is_leaving() {
            return Err(self.wrong_phase(&format!("trial {trial} cannot begin, because the process terminates")));
        }
        let plan = request.plan.part(&self.run, trial, self.index);
        self.plan = Some((plan.clone(), request.hash));
        self.wrote = false;
        self.accepted = None;
        self.closed_attempt = 0;
        Ok(self.prepare(plan))
    }

    /// `PUT /v1/trials/{t}/start`. A repeated call returns the accepted instant, even after it has passed.
    ///
    /// # Errors
    /// Refuses a stale epoch, an aborted attempt, any phase but Armed, and an instant that has passed or is further away than a shard may
    /// stay armed.
    pub fn start(
        &mut self,
        now: u64,
        trial: u32,
        request: StartRequest,
    ) -> Result<(AcceptedStart, Vec<Action>), Refusal> {
        self.admit(now, request.epoch)?;
        let plan = self.present(trial)?;
        let StartRequest { attempt, start_nanoseconds, .. } = request;
        if let Some(accepted) = self.accepted.filter(|accepted| accepted.attempt == attempt) {
            return Ok((accepted, Vec::new()));
        }
        if attempt == 0 {
            return Err(refusal(RefusalCode::Malformed, "attempts count from 1, not 0"));
        }
        if attempt <= self.closed_attempt {
            return Err(self.wrong_phase(&format!("attempt {attempt} was aborted")));
        }
        if self.phase != Phase::Armed {
            return Err(self.wrong_phase(&format!("attempt {attempt} cannot start")));
        }
        soon(&plan, now, start_nanoseconds)?;
        let accepted = AcceptedStart { attempt, start_nanoseconds };
        self.accepted = Some(accepted);
        (self.measure_after, self.probe, self.collected) = (None, None, false);
        self.wrote = true;
        self.phase = Phase::Running { stopping: false };
        Ok((accepted, vec![Action::Start(accepted)]))
    }

    /// `PUT /v1/trials/{t}/measure`. A repeated call changes nothing, even after the instant has passed.
    ///
    /// # Errors
    /// Refuses a stale epoch, an attempt that is not running, an instant that has passed, and one at or after the present end of the
    /// warm-up.
    pub fn measure(&mut self, now: u64, trial: u32, request: AfterRequest) -> Accepted {
        self.admit(now, request.epoch)?;
        self.present(trial)?;
        let AfterRequest { attempt, after_nanoseconds, .. } = request;
        let running = self.phase == (Phase::Running { stopping: false });
        let Some(accepted) = self.accepted.filter(|accepted| running && accepted.attempt == attempt) else {
            return Err(self.wrong_phase(&format!("attempt {attempt} is not running")));
        };
        if self.measure_after == Some(after_nanoseconds) {
            return Ok(Vec::new());
        }
        let from = accepted.start_nanoseconds.saturating_add(after_nanoseconds);
        to_come(now, from)?;
        if after_nanoseconds >= self.warmup_nanoseconds() {
            return Err(self.wrong_phase("the warm-up ends earlier"));
        }
        self.measure_after = Some(after_nanoseconds);
        Ok(vec![Action::Measure(from)])
    }

    fn warmup_nanoseconds(&self) -> u64 {
        let planned = self.plan.as_ref().map_or(0, |(plan, _)| plan.warmup_nanoseconds);
        self.measure_after.unwrap_or(planned)
    }

    /// `PUT /v1/trials/{t}/abort`. Closes the named attempt: a late start of it is refused.
    ///
    /// # Errors
    /// Refuses a stale epoch, a trial that is not the present one, and re-arming a failed shard.
    pub fn abort(&mut self, now: u64, trial: u32, request: AbortRequest) -> Accepted {
        self.admit(now, request.epoch)?;
        let plan = self.present(trial)?;
        let present = self.accepted.map(|accepted| accepted.attempt);
        if let (Some(named), Some(present)) = (request.attempt, present)
            && named < present
        {
            return Ok(Vec::new());
        }
        self.closed_attempt = self.closed_attempt.max(request.attempt.or(present).unwrap_or(0));
        if self.is_leaving() && request.then == AbortThen::Rearm {
            // Its replacement comes only once it has exited.
            return Ok(self.exit(Exit::Terminated));
        }
        match (self.phase.clone(), request.then) {
            (Phase::Running { stopping }, AbortThen::Stop) => {
                self.phase = Phase::Running { stopping: true };
                Ok(if stopping { Vec::new() } else { vec![Action::Stop] })
            }
            (Phase::Preparing(_) | Phase::Armed, AbortThen::Stop) => {
                self.phase = Phase::Finished { measured: false };
                Ok(vec![Action::Discard])
            }
            // The cleanup has deleted at least a part of the preloaded keys.
            (Phase::Finished { .. }, AbortThen::Rearm) if self.cleanup.is_some() => {
                self.accepted = None;
                Ok(self.prepare(plan))
            }
            (Phase::Running { .. } | Phase::Finished { measured: true }, AbortThen::Rearm) => {
                self.accepted = None;
                self.armed_since = None;
                self.settle(now);
                Ok(vec![Action::Rearm])
            }
            (Phase::Finished { measured: false }, AbortThen::Rearm) => Ok(self.prepare(plan)),
            (Phase::Failed(failure), AbortThen::Stop) => Ok(vec![Action::Exit(Exit::Failed(failure.reason))]),
            (Phase::Failed(_), AbortThen::Rearm) => Err(self.wrong_phase("the trial cannot be armed again")),
            (Phase::Preparing(_) | Phase::Armed, AbortThen::Rearm) | (Phase::Idle | Phase::Finished { .. }, _) => {
                Ok(Vec::new())
            }
        }
    }

    /// `PUT /v1/trials/{t}/probe`: runs the same load once with half of the connections. A repeated call returns the outcome.
    ///
    /// # Errors
    /// Refuses a stale epoch, a plan without a probe, any attempt but the measured one, a trial whose cleanup has begun, and an instant
    /// that has passed or is further away than a shard may stay armed.
    pub fn probe(&mut self, now: u64, trial: u32, request: AfterRequest) -> Result<(ProbeState, Vec<Action>), Refusal> {
        self.admit(now, request.epoch)?;
        let plan = self.present(trial)?;
        let AfterRequest { attempt, after_nanoseconds, .. } = request;
        let over = self.phase == (Phase::Finished { measured: true }) && self.cleanup.is_none();
        let Some(accepted) = self.accepted.filter(|accepted| over && accepted.attempt == attempt) else {
            return Err(self.wrong_phase(&format!("attempt {attempt} is not the last measured one")));
        };
        if plan.measurement.probe_nanoseconds == 0 {
            return Err(refusal(RefusalCode::Malformed, "the plan does not allow a probe"));
        }
        if let Some(present) = self.probe {
            return Ok((present, Vec::new()));
        }
        let instant = accepted.start_nanoseconds.saturating_add(after_nanoseconds);
        soon(&plan, now, instant)?;
        let state = ProbeState { after_nanoseconds, over: false, probe: None };
        self.probe = Some(state);
        Ok((state, vec![Action::Probe(instant)]))
    }

    /// `PUT /v1/cleanup`: deletes this shard's part of the keys once. A repeated call returns the progress.
    ///
    /// # Errors
    /// Refuses a stale epoch, and a trial that has not finished.
    pub fn cleanup(&mut self, now: u64, request: EpochRequest) -> Result<(CleanupState, Vec<Action>), Refusal> {
        self.admit(now, request.epoch)?;
        let done = CleanupState { done: true, ..CleanupState::default() };
        // A shard that wrote nothing has nothing to delete, and must not need to reach the target for that.
        let Some((plan, _)) = self.plan.as_ref().filter(|_| self.wrote) else { return Ok((done, Vec::new())) };
        if !matches!(self.phase, Phase::Finished { .. }) {
            return Err(self.wrong_phase("keys can be deleted only after the trial has finished"));
        }
        if let Some(present) = &self.cleanup {
            return Ok((present.clone(), Vec::new()));
        }
        self.probe = None;
        let actions = vec![Action::Cleanup(plan.clone())];
        Ok((self.cleanup.insert(CleanupState::default()).clone(), actions))
    }

    /// `PUT /v1/drain`: the conductor has this trial's result and another trial follows. Does nothing without a trial.
    ///
    /// # Errors
    /// Refuses a stale epoch, and a trial that has not finished.
    pub fn drain(&mut self, now: u64, request: EpochRequest) -> Accepted {
        self.admit(now, request.epoch)?;
        match self.phase {
            Phase::Finished { .. } if self.is_leaving() => Ok(self.exit(Exit::Terminated)),
            Phase::Idle | Phase::Finished { measured: false } => Ok(Vec::new()),
            Phase::Finished { measured: true } => {
                self.phase = Phase::Finished { measured: false };
                Ok(vec![Action::Discard])
            }
            _ => Err(self.wrong_phase("connections can be closed only after the trial has finished")),
        }
    }

    /// `PUT /v1/release`: the shard is no longer needed. Allowed in every phase.
    ///
    /// # Errors
    /// Refuses a stale epoch.
    pub fn release(&mut self, now: u64, request: EpochRequest) -> Accepted {
        self.admit(now, request.epoch)?;
        Ok(self.exit(Exit::Released))
    }

    /// Ends the process with the trial's failure, or else with `exit`.
    fn exit(&self, exit: Exit) -> Vec<Action> {
        vec![Action::Exit(match &self.phase {
            Phase::Failed(failure) => Exit::Failed(failure.reason),
            _ => exit,
        })]
    }

    /// Checks whether `GET /v1/trials/{t}/snapshot` may be answered.
    ///
    /// # Errors
    /// Refuses a trial that is not the present one, a live snapshot before the start, and a full one before the end.
    pub fn snapshot(&mut self, now: u64, trial: u32, detail: Detail) -> Result<(), Refusal> {
        self.contact(now);
        self.present(trial)?;
        match (&self.phase, detail) {
            (Phase::Finished { measured: true }, _) | (Phase::Running { .. }, Detail::Live) => {
                self.collected |= detail == Detail::Full;
                Ok(())
            }
            (Phase::Finished { measured: false }, _) => {
                Err(self.wrong_phase("the trial was aborted before its start: nothing was measured"))
            }
            (_, Detail::Live) => Err(self.wrong_phase("there is no snapshot before the start")),
            (_, Detail::Full) => Err(self.wrong_phase("there is no full snapshot before the end")),
        }
    }

    /// Checks the epoch of a mutating call. A higher epoch is kept even if the call is refused afterwards, because it proves that a new
    /// conductor took over.
    fn admit(&mut self, now: u64, epoch: u64) -> Result<(), Refusal> {
        if epoch < self.epoch {
            return Err(refusal(
                RefusalCode::StaleEpoch,
                format!("epoch {epoch} was replaced by epoch {}", self.epoch),
            ));
        }
        self.epoch = epoch;
        self.contact(now);
        Ok(())
    }

    fn present(&self, trial: u32) -> Result<ShardPlan, Refusal> {
        match &self.plan {
            Some((plan, _)) if plan.trial == trial => Ok(plan.clone()),
            _ => Err(refusal(RefusalCode::Unknown, format!("this shard has no trial {trial}"))),
        }
    }

    fn prepare(&mut self, plan: ShardPlan) -> Vec<Action> {
        self.preloaded = !plan.has_preload();
        self.preparation = Preparation {
            connections: plan.connections,
            preload_commands: if self.preloaded { 0 } else { share_of_preload(&plan) },
            ..Preparation::default()
        };
        (self.cleanup, self.probe) = (None, None);
        self.obstacle = None;
        self.armed_since = None;
        if let Err(message) = plan_check::check(&plan) {
            self.phase = Phase::Failed(ShardFailure { reason: FailureReason::BadPlan, message });
            return Vec::new();
        }
        self.phase = Phase::Preparing(PrepareStep::Target);
        vec![Action::Prepare(plan)]
    }

    fn wrong_phase(&self, message: &str) -> Refusal {
        refusal(RefusalCode::WrongPhase, format!("{message}: the shard is {:?}", self.state().phase))
    }
}

pub fn refusal(code: RefusalCode, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into() }
}

/// Refuses an instant that has passed.
fn to_come(now: u64, instant: u64) -> Result<(), Refusal> {
    if instant > now {
        return Ok(());
    }
    Err(refusal(RefusalCode::InstantPassed, format!("the instant passed {} ns ago", now - instant)))
}

/// Also refuses one that is further away than a shard stays armed, as on another machine's clock.
fn soon(plan: &ShardPlan, now: u64, instant: u64) -> Result<(), Refusal> {
    to_come(now, instant)?;
    let (ahead, limit) = (instant - now, plan.limits.armed_nanoseconds);
    if ahead <= limit {
        return Ok(());
    }
    let message = format!("the instant is {ahead} ns away, more than the {limit} ns that a shard stays armed");
    Err(refusal(RefusalCode::Malformed, message))
}

/// The number of commands that the preload of this shard sends.
fn share_of_preload(plan: &ShardPlan) -> u64 {
    let steps = plan.preload_steps.iter().map(|step| (step.keys.count, step.rounds));
    let shares = std::iter::once((plan.preload_commands(), 1)).chain(steps).map(|(count, rounds)| {
        let part = part_of(count, plan.shard.into(), plan.shards.into());
        // The plan is not checked yet, and may be of a shard that it does not have.
        part.end.saturating_sub(part.start).saturating_mul(rounds.into())
    });
    shares.fold(0, u64::saturating_add)
}

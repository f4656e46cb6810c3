//! Reactions to progress of the target and the engine, and to limits.

use std::time::Duration;

use redisbench_wire::{ProbeState, ShardFailure};

use super::{Action, Event, Obstacle, Phase, PrepareStep, Trial, share_of_preload};
use crate::control::exit::Exit;

/// The longest time that an obstacle may last before the shard was first armed. Long enough for a server that is starting, short enough to
/// report a mistake in the manifest within a minute.
pub const PATIENCE_NANOSECONDS: u64 = 20 * 1_000_000_000;

/// The name of the limit that turns a lasting obstacle into a failure.
const OBSTACLE: &str = "the same error for too long";

/// The name of the limit that stops a load but not the process.
const UNATTENDED: &str = "limits.unattended: under load without a call from the conductor";

/// The name of the limit after a signal to terminate.
const LEAVING: &str = "received SIGTERM";

impl Trial {
    /// Applies an event. Events that do not matter in the present phase change nothing.
    pub fn observe(&mut self, now: u64, event: Event) -> Vec<Action> {
        match (event, &self.phase) {
            (Event::Terminate, _) => return self.terminate(now),
            (Event::Waiting(reason), Phase::Preparing(_)) => {
                self.obstacle = None;
                self.preparation.waiting_for = Some(reason);
            }
            (Event::Obstacle(failure), Phase::Preparing(_)) => {
                self.preparation.waiting_for = Some(failure.message.clone());
                let (since, times) = self.obstacle.as_ref().map_or((now, 0), |seen| (seen.since, seen.times));
                self.obstacle = Some(Obstacle { since, times: times.saturating_add(1), failure });
            }
            (Event::TargetReady, Phase::Preparing(PrepareStep::Target)) => {
                self.clear_obstacle();
                self.phase = Phase::Preparing(PrepareStep::Connect);
            }
            (Event::Connected { ready, wanted }, _) => return self.connected(now, ready, wanted),
            (Event::Preloading { commands }, Phase::Preparing(PrepareStep::Preload)) => {
                self.preparation.preload_done = commands;
                self.clear_obstacle();
            }
            (Event::Preloaded, Phase::Preparing(PrepareStep::Preload)) => {
                self.preloaded = true;
                self.preparation.preload_done = self.preparation.preload_commands;
                self.settle(now);
            }
            (Event::Cleanup(state), _) => self.cleanup = self.cleanup.take().map(|_| state),
            (Event::Probed(probe), _) => {
                self.probe = self.probe.map(|state| ProbeState { over: true, probe, ..state });
            }
            (Event::LoadEnded { attempt }, Phase::Running { .. })
                if self.accepted.is_some_and(|accepted| accepted.attempt == attempt) =>
            {
                // The limit on missing contact counts from here, because the conductor may have been away for most of a long load.
                self.contact(now);
                self.phase = Phase::Finished { measured: true };
                if self.is_leaving() {
                    // Another process may take its place before it exits.
                    return vec![Action::Disconnect];
                }
            }
            (Event::Failed(failure), Phase::Preparing(_) | Phase::Armed | Phase::Running { .. }) => {
                return self.fail(now, failure);
            }
            _ => {}
        }
        Vec::new()
    }

    pub fn tick(&mut self, now: u64) -> Vec<Action> {
        let Some((deadline, limit)) = self.limit().filter(|(deadline, _)| *deadline <= now) else {
            return Vec::new();
        };
        if let (OBSTACLE, Some(obstacle)) = (limit, self.obstacle.take()) {
            let Obstacle { since, times, failure } = obstacle;
            let seconds = deadline.saturating_sub(since) / 1_000_000_000;
            let message = format!("{} ({times} times in {seconds} s)", failure.message);
            return self.fail(now, ShardFailure { message, ..failure });
        }
        if limit == UNATTENDED {
            self.phase = Phase::Running { stopping: true };
            self.unattended_end = self.end().unwrap_or_default();
            return vec![Action::Stop];
        }
        if limit == LEAVING {
            return self.exit(Exit::Terminated);
        }
        // Without a measurement, the shard may still take part in an attempt or trial that follows.
        let has_started = self.accepted.is_some() && self.phase != (Phase::Finished { measured: false });
        self.exit(if has_started { Exit::Abandoned(limit) } else { Exit::LimitPassed(limit) })
    }

    /// A shard that has load, or a result that was not collected, stays for some time without load, in which the conductor can collect it.
    fn terminate(&mut self, now: u64) -> Vec<Action> {
        let actions = match self.phase {
            _ if self.limits.leaving.is_zero() => return self.exit(Exit::Terminated),
            Phase::Running { stopping: false } => {
                self.phase = Phase::Running { stopping: true };
                vec![Action::Leave]
            }
            Phase::Running { stopping: true } => Vec::new(),
            Phase::Finished { measured: true } if !self.collected => vec![Action::Disconnect],
            _ => return self.exit(Exit::Terminated),
        };
        self.leaves_at.get_or_insert(now.saturating_add(nanoseconds(self.limits.leaving)));
        actions
    }

    /// Keeps the failure for the conductor. The limit on missing contact counts from here, whenever the last call was.
    fn fail(&mut self, now: u64, failure: ShardFailure) -> Vec<Action> {
        self.contact(now);
        self.phase = Phase::Failed(failure);
        vec![Action::Discard]
    }

    /// The latest time for the next [`Self::tick`].
    pub fn deadline(&self) -> Option<u64> {
        self.limit().map(|(deadline, _)| deadline)
    }

    /// The time by which the load must have ended, if it was started.
    fn end(&self) -> Option<u64> {
        let (plan, _) = self.plan.as_ref()?;
        Some(self.accepted?.start_nanoseconds.saturating_add(plan.limits.trial_nanoseconds))
    }

    fn limit(&self) -> Option<(u64, &'static str)> {
        let leaving = self.leaves_at.map(|at| (at, LEAVING));
        self.limit_of_phase().into_iter().chain(leaving).min_by_key(|(deadline, _)| *deadline)
    }

    fn limit_of_phase(&self) -> Option<(u64, &'static str)> {
        let without_contact = |limit: u64| self.last_contact.saturating_add(limit);
        let Some((plan, _)) = &self.plan else {
            return Some((without_contact(nanoseconds(self.limits.idle)), "no plan and no call from the conductor"));
        };
        let limits = plan.limits;
        let armed = self.armed_since.map(|since| {
            (since.saturating_add(limits.armed_nanoseconds), "limits.armed: armed without a start or a call")
        });
        match self.phase {
            Phase::Idle => armed,
            // The conductor may wait for other shards. It bounds that time itself.
            Phase::Armed => {
                armed.map(|(deadline, limit)| (deadline.max(without_contact(limits.armed_nanoseconds)), limit))
            }
            Phase::Preparing(_) => {
                let contact =
                    (without_contact(limits.armed_nanoseconds), "preparing without a call from the conductor");
                // A target that was reachable before and restarts gets as long as an armed shard.
                let patience = armed.or_else(|| {
                    let obstacle = self.obstacle.as_ref()?;
                    Some((obstacle.since.saturating_add(PATIENCE_NANOSECONDS), OBSTACLE))
                });
                patience.into_iter().chain([contact]).min_by_key(|(deadline, _)| *deadline)
            }
            Phase::Running { stopping } => {
                let trial = self.end().map(|end| (end, "limits.trial: the load did not end"));
                let unattended = (!stopping && limits.unattended_nanoseconds > 0)
                    .then(|| (without_contact(limits.unattended_nanoseconds), UNATTENDED));
                trial.into_iter().chain(unattended).min_by_key(|(deadline, _)| *deadline)
            }
            Phase::Finished { .. } | Phase::Failed(_) => Some((
                without_contact(limits.finished_nanoseconds)
                    .max(self.unattended_end.saturating_add(limits.finished_nanoseconds)),
                "limits.finished: finished without a call from the conductor",
            )),
        }
    }

    fn connected(&mut self, now: u64, ready: u32, wanted: u32) -> Vec<Action> {
        let progress = ready > self.preparation.connected;
        (self.preparation.connected, self.preparation.connections) = (ready, wanted);
        if progress || ready >= wanted {
            self.clear_obstacle();
        }
        if ready == 0 && wanted > 0 && matches!(self.phase, Phase::Preparing(PrepareStep::Connect) | Phase::Armed) {
            self.doubt_keys();
        }
        match self.phase {
            Phase::Preparing(PrepareStep::Connect) if ready >= wanted && !self.preloaded => {
                self.phase = Phase::Preparing(PrepareStep::Preload);
                // The shard was not ready to start, and the preload has a limit of its own.
                self.armed_since = None;
                self.wrote = true;
                vec![Action::Preload]
            }
            Phase::Preparing(PrepareStep::Connect) | Phase::Armed => {
                self.settle(now);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// All connections are lost, so the server may have restarted without its data.
    fn doubt_keys(&mut self) {
        let Some((plan, _)) = self.plan.as_ref().filter(|(plan, _)| plan.has_preload()) else { return };
        self.preparation.preload_commands = share_of_preload(plan);
        self.preparation.preload_done = 0;
        self.preloaded = false;
    }

    /// Arms the shard if all connections are ready, otherwise returns to connecting. Calls may have kept the shard armed for longer than
    /// the limit, so the time to connect again counts from here.
    pub(super) fn settle(&mut self, now: u64) {
        if self.preparation.connected < self.preparation.connections {
            if self.phase == Phase::Armed {
                self.armed_since = Some(now);
            }
            self.phase = Phase::Preparing(PrepareStep::Connect);
            return;
        }
        self.clear_obstacle();
        self.phase = Phase::Armed;
        self.armed_since.get_or_insert(now);
    }

    pub(super) fn clear_obstacle(&mut self) {
        self.obstacle = None;
        self.preparation.waiting_for = None;
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

//! Shards as processes: the load generator's real state machine with simulated events and its own clock.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use redisbench_benchmark::conductor::{Call, Reply};
use redisbench_loadgen::control::trial::{Action, Event, ProcessLimits, Trial, refusal};
use redisbench_wire::plan::{Load, ShardPlan};
use redisbench_wire::{CleanupState, ClockReading, FailureReason, Probe, Refusal, RefusalCode, ShardFailure};

use crate::engine::Engine;
use crate::ground_truth::{Started, Try};
use crate::world::{World, lock};

/// All processes, past and present, by address. Addresses are not reused.
pub type Processes = BTreeMap<IpAddr, Process>;

/// As the operator sets them: no prepare timeout of a scenario is longer.
const LIMITS: ProcessLimits = ProcessLimits { idle: Duration::from_secs(600), leaving: Duration::from_secs(28) };

/// The event of a load that stopped because no call came.
pub const UNATTENDED: &str = "load stopped unattended";

/// One incarnation of a shard.
pub struct Process {
    pub run: String,
    pub shard: u32,
    pub incarnation: String,
    trial: Trial,
    engine: Option<Engine>,
    /// Its clock at the beginning, in nanoseconds, and its drift from true time, in millionths.
    offset: i64,
    drift: i64,
    /// Rises when pending events become obsolete.
    preparation: u32,
    sequence: u64,
    highest_epoch: u64,
    tick_at: Option<u64>,
    /// The true time of the last call to it that counts as contact.
    called_at: Duration,
    /// A signal stopped its load.
    terminated: bool,
    /// It has closed its connections, and keeps only its measurement.
    disconnected: bool,
    pub exited: Option<i32>,
    /// It runs on a lost node, unknown to the cluster.
    pub forsaken: bool,
}

impl Process {
    fn clock(&self, now: Duration) -> u64 {
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        u64::try_from(self.offset + now + now / 1_000_000 * self.drift).unwrap_or(0)
    }

    /// The true time at which the clock shows `at`, in nanoseconds.
    fn truth(&self, at: u64) -> u64 {
        let since = i64::try_from(at).unwrap_or(i64::MAX) - self.offset;
        u64::try_from(since - since / 1_000_000 * self.drift).unwrap_or(0)
    }

    /// Returns whether its load is running or will start.
    pub fn has_load(&self) -> bool {
        self.exited.is_none() && self.engine.as_ref().is_some_and(|engine| !engine.ended && !engine.is_stopped())
    }
}

impl World {
    pub fn begin_process(self: &Arc<Self>, address: IpAddr, shard: u32, incarnation: &str, run: &str) {
        let offset = i64::try_from(self.number() % 1_000_000_000_000).unwrap_or(0);
        let drift = i64::try_from(self.number() % 91).unwrap_or(0) - 45;
        let mut process = Process {
            run: run.to_owned(),
            shard,
            incarnation: incarnation.to_owned(),
            trial: Trial::new(run, shard, 0, LIMITS),
            engine: None,
            offset,
            drift,
            preparation: 0,
            sequence: 0,
            highest_epoch: 0,
            tick_at: None,
            called_at: self.now(),
            terminated: false,
            disconnected: false,
            exited: None,
            forsaken: false,
        };
        process.trial = Trial::new(run, shard, process.clock(self.now()), LIMITS);
        self.tell(format_args!("shard {shard} {incarnation} starts"));
        lock(&self.processes).insert(address, process);
        self.keep_limits(address);
    }

    /// Ends a process with an exit code, as its machine would.
    pub fn kill_process(self: &Arc<Self>, address: IpAddr, code: i32) {
        let mut processes = lock(&self.processes);
        let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
        process.exited = Some(code);
        self.tell(format_args!("shard {} {} exits with {code}", process.shard, process.incarnation));
        let pod = process.incarnation.clone();
        drop(processes);
        let delay = self.between(5, 300);
        self.after(delay, move |world| world.container_ended(&pod, code));
    }

    /// Sends a process SIGTERM.
    pub fn terminate(self: &Arc<Self>, address: IpAddr) {
        self.observe(address, None, Event::Terminate);
    }

    /// Delivers `event` to a shard, unless its preparation is obsolete.
    pub fn observe(self: &Arc<Self>, address: IpAddr, preparation: Option<u32>, event: Event) {
        let mut processes = lock(&self.processes);
        let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
        if preparation.is_some_and(|preparation| preparation != process.preparation) {
            return;
        }
        self.tell(format_args!("shard {} {}: {event:?}", process.shard, process.incarnation));
        let now = process.clock(self.now());
        let actions = process.trial.observe(now, event);
        drop(processes);
        self.perform(address, actions);
    }

    fn perform(self: &Arc<Self>, address: IpAddr, actions: Vec<Action>) {
        for action in actions {
            self.act(address, action);
        }
        self.keep_limits(address);
    }

    fn act(self: &Arc<Self>, address: IpAddr, action: Action) {
        let mut processes = lock(&self.processes);
        let Some(process) = processes.get_mut(&address) else { return };
        let now = process.clock(self.now());
        match action {
            Action::Prepare(plan) => {
                process.engine = None;
                process.preparation += 1;
                let (preparation, run) = (process.preparation, process.run.clone());
                self.check_drained(&processes, &run, plan.trial);
                drop(processes);
                self.prepare(address, preparation, &plan);
            }
            Action::Preload => {
                let (preparation, run) = (process.preparation, process.run.clone());
                let shards = process.trial.plan_in_use().map_or(0, |plan| plan.shards);
                self.check_all_came(&processes, &run, shards);
                drop(processes);
                let half = self.between(1, 1_500);
                self.after(half, move |world| {
                    world.observe(address, Some(preparation), Event::Preloading { commands: 100 });
                    world.after(half, move |world| world.observe(address, Some(preparation), Event::Preloaded));
                });
            }
            Action::Start(start) => {
                let Some(plan) = process.trial.plan_in_use() else { return };
                let rate = match plan.load {
                    Load::OpenLoop { rate_per_second, .. } => rate_per_second,
                    Load::ClosedLoop | Load::Recorded { .. } => 0,
                };
                let overloaded = !self.scenario.holds(plan.trial, rate);
                let engine = Engine::new(plan.clone(), start, overloaded);
                let (run, shard, incarnation) = (process.run.clone(), process.shard, process.incarnation.clone());
                let started = Started {
                    incarnation,
                    epoch: process.highest_epoch,
                    rate,
                    accepted_at: process.truth(now),
                    start_at: process.truth(start.start_nanoseconds),
                    whole: Engine::whole(&plan),
                    terminated: false,
                    ended: None,
                };
                let end = Duration::from_nanos(process.truth(engine.planned_end()));
                process.engine = Some(engine);
                let of = (plan.trial, start.attempt);
                self.note_start(&processes, &run, shard, of, started);
                drop(processes);
                self.end_load_after(end, address, of);
            }
            Action::Measure(from) => {
                let Some(engine) = &mut process.engine else { return };
                engine.measure_from(from);
                let (of, end) = (engine.of_try(), engine.planned_end());
                let end = Duration::from_nanos(process.truth(end));
                drop(processes);
                self.end_load_after(end, address, of);
            }
            Action::Stop | Action::Leave => {
                let Some(engine) = &mut process.engine else { return };
                engine.stop(now);
                let of = engine.of_try();
                if matches!(action, Action::Leave) {
                    self.note_terminated(process, of);
                }
                drop(processes);
                self.end_load_after(self.now(), address, of);
            }
            Action::Probe(instant) => {
                let Some(engine) = &process.engine else { return };
                let (preparation, probe) = (process.preparation, engine.probe());
                let length = Duration::from_nanos(Probe::WARMUP_NANOSECONDS + probe.nanoseconds);
                let end = Duration::from_nanos(process.truth(instant)) + length;
                drop(processes);
                let probe = self.chance(0.9).then_some(probe);
                let wait = (end + self.between(1, 400)).saturating_sub(self.now());
                self.after(wait, move |world| world.observe(address, Some(preparation), Event::Probed(probe)));
            }
            Action::Disconnect => process.disconnected = true,
            Action::Rearm => process.engine = None,
            Action::Cleanup(_) => {
                let preparation = process.preparation;
                drop(processes);
                let half = self.between(1, 3_000);
                let state = |removed_keys, done| Event::Cleanup(CleanupState { removed_keys, done, failure: None });
                self.after(half, move |world| {
                    world.observe(address, Some(preparation), state(100, false));
                    world.after(half, move |world| world.observe(address, Some(preparation), state(200, true)));
                });
            }
            Action::Discard => {
                process.engine = None;
                process.preparation += 1;
            }
            Action::Exit(exit) => {
                let code = i32::from(exit.code());
                drop(processes);
                self.kill_process(address, code);
            }
        }
    }

    /// Trial `trial` starts to connect: no process may have a connection of an earlier trial.
    fn check_drained(&self, processes: &Processes, run: &str, trial: u32) {
        let there = |process: &&Process| process.run == run && !process.forsaken && process.exited.is_none();
        for process in processes.values().filter(there).filter(|process| !process.disconnected) {
            let before = process.engine.as_ref().map(|engine| engine.of_try().0).filter(|before| *before < trial);
            self.check(before.is_none(), || {
                format!("trial {trial} connects, while shard {} is in trial {before:?}", process.shard)
            });
        }
    }

    /// A shard preloads: every shard must have had a process.
    fn check_all_came(&self, processes: &Processes, run: &str, shards: u32) {
        for shard in 0..shards {
            let came = processes.values().any(|process| process.run == run && process.shard == shard);
            self.check(came, || format!("the preload begins before shard {shard} has come"));
        }
    }

    /// A load will begin: there must be no other of this shard in the attempt, and none of another attempt anywhere.
    fn note_start(&self, processes: &Processes, run: &str, shard: u32, attempt: Try, started: Started) {
        let mut ground_truth = lock(&self.ground_truth);
        let truth = ground_truth.run(run);
        if let Some(before) = truth.started.get(&(attempt, shard)) {
            self.violated(format_args!(
                "shard {shard} starts twice in attempt {attempt:?}, first as {}",
                before.incarnation
            ));
        }
        for other in processes.values().filter(|other| other.run == run && !other.forsaken && other.has_load()) {
            let running = other.engine.as_ref().map_or((0, 0), Engine::of_try);
            self.check(running == attempt, || {
                format!("shard {shard} starts in {attempt:?}, while shard {} has load of {running:?}", other.shard)
            });
        }
        self.check(truth.over.is_none_or(|over| over < u64::from(attempt.0)), || {
            format!("shard {shard} starts in trial {}, which has finished", attempt.0)
        });
        truth.started.insert((attempt, shard), started);
    }

    /// A signal stops the load of `attempt`.
    fn note_terminated(&self, process: &mut Process, attempt: Try) {
        process.terminated = true;
        let mut ground_truth = lock(&self.ground_truth);
        if let Some(started) = ground_truth.run(&process.run).started.get_mut(&(attempt, process.shard)) {
            started.terminated = true;
        }
    }

    /// Ends a load once the last replies have come, some time after `end`.
    fn end_load_after(self: &Arc<Self>, end: Duration, address: IpAddr, attempt: Try) {
        let wait = (end + self.between(1, 400)).saturating_sub(self.now());
        self.after(wait, move |world| world.end_load(address, attempt));
    }

    fn end_load(self: &Arc<Self>, address: IpAddr, attempt: Try) {
        let mut processes = lock(&self.processes);
        let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
        let now = process.clock(self.now());
        let (run, shard) = (process.run.clone(), process.shard);
        let Some(engine) = process.engine.as_mut().filter(|engine| engine.of_try() == attempt && !engine.ended) else {
            return;
        };
        engine.ended = true;
        let total = engine.total(now);
        if let Some(started) = lock(&self.ground_truth).run(&run).started.get_mut(&(attempt, shard)) {
            started.ended = Some(total);
        }
        drop(processes);
        self.observe(address, None, Event::LoadEnded { attempt: attempt.1 });
    }

    /// Connects to the target, with possible delays and faults.
    fn prepare(self: &Arc<Self>, address: IpAddr, preparation: u32, plan: &ShardPlan) {
        let wanted = plan.connections;
        let slow = self.chance(self.scenario.slow_shards);
        let (found, connected) = (self.between(1, 300), self.between(1, if slow { 20_000 } else { 700 }));
        if self.chance(0.003) {
            let message = "target redis: the server refused GET".to_owned();
            let failure = ShardFailure { reason: FailureReason::CommandRefused, message };
            self.after(found, move |world| world.observe(address, Some(preparation), Event::Failed(failure)));
            return;
        }
        if slow {
            let message = "connection refused".to_owned();
            let obstacle = ShardFailure { reason: FailureReason::Unreachable, message };
            self.after(found / 2, move |world| world.observe(address, Some(preparation), Event::Obstacle(obstacle)));
        }
        let flaps = self.chance(self.scenario.flapping);
        let (breaks, mended) = (self.between(1, 4_000), self.between(1, 2_000));
        self.after(found, move |world| {
            world.observe(address, Some(preparation), Event::TargetReady);
            world.after(connected, move |world| {
                world.observe(address, Some(preparation), Event::Connected { ready: wanted, wanted });
                if flaps {
                    world.after(breaks, move |world| {
                        world.observe(address, Some(preparation), Event::Connected { ready: wanted - 1, wanted });
                        world.after(mended, move |world| {
                            world.observe(address, Some(preparation), Event::Connected { ready: wanted, wanted });
                        });
                    });
                }
            });
        });
    }

    /// Schedules the limits of the current phase.
    fn keep_limits(self: &Arc<Self>, address: IpAddr) {
        let mut processes = lock(&self.processes);
        let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
        let Some(deadline) = process.trial.deadline() else { return };
        if process.tick_at.is_some_and(|at| at <= deadline) {
            return;
        }
        process.tick_at = Some(deadline);
        // A millisecond later, because drifting clocks are rounded.
        let at = Duration::from_nanos(process.truth(deadline)) + Duration::from_millis(1);
        drop(processes);
        self.after(at.saturating_sub(self.now()), move |world| {
            let mut processes = lock(&world.processes);
            let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
            if process.tick_at.take_if(|at| *at == deadline).is_none() {
                return;
            }
            let now = process.clock(world.now());
            let actions = process.trial.tick(now);
            if actions == [Action::Stop] {
                lock(&world.ground_truth).count(UNATTENDED);
            }
            drop(processes);
            world.perform(address, actions);
        });
    }

    /// Delivers a call. None if there is no process.
    pub fn deliver(self: &Arc<Self>, address: IpAddr, call: Call) -> Option<(String, Result<Reply, Refusal>)> {
        let mut processes = lock(&self.processes);
        let process = processes.get_mut(&address).filter(|process| process.exited.is_none())?;
        lock(&self.ground_truth).calls += 1;
        let now = process.clock(self.now());
        let (shard, incarnation) = (process.shard, process.incarnation.clone());
        if call != Call::Clock {
            let silence = self.now().saturating_sub(std::mem::replace(&mut process.called_at, self.now()));
            self.check(!process.has_load() || silence.as_secs() <= self.scenario.unattended_seconds, || {
                format!("shard {shard} {incarnation} had load for {} s without a call", silence.as_secs())
            });
        }
        let epoch = call.epoch();
        let name = epoch.filter(|_| self.traced).map(|epoch| match &call {
            Call::Plan(..) => format!("plan, epoch {epoch}"),
            other => format!("{other:?}"),
        });
        let trial = &mut process.trial;
        let state = |actions: Vec<Action>| (None, actions);
        let done = match call {
            Call::Clock => Ok((Some(Reply::Clock(ClockReading { monotonic_nanoseconds: now })), Vec::new())),
            Call::State => {
                trial.contact(now);
                Ok(state(Vec::new()))
            }
            Call::Plan(of, request) => trial.plan(now, of, request).map(state),
            Call::Start(of, request) => {
                trial.start(now, of, request).map(|(accepted, actions)| (Some(Reply::Start(accepted)), actions))
            }
            Call::Measure(of, request) => trial.measure(now, of, request).map(state),
            Call::Probe(of, request) => {
                trial.probe(now, of, request).map(|(probe, actions)| (Some(Reply::Probe(Box::new(probe))), actions))
            }
            Call::Abort(of, request) => trial.abort(now, of, request).map(state),
            Call::Cleanup(request) => {
                trial.cleanup(now, request).map(|(cleanup, actions)| (Some(Reply::Cleanup(cleanup)), actions))
            }
            Call::Drain(request) => trial.drain(now, request).map(state),
            Call::Release(request) => trial.release(now, request).map(state),
            Call::Snapshot(of, detail, from) => trial.snapshot(now, of, detail).and_then(|()| {
                let engine = process
                    .engine
                    .as_ref()
                    .ok_or_else(|| refusal(RefusalCode::Unavailable, "the engine has stopped"))?;
                process.sequence += 1;
                let mut snapshot = engine.snapshot(now, process.sequence, (detail, from), "node");
                snapshot.terminated = process.terminated;
                Ok((Some(Reply::Snapshot(Box::new(snapshot))), Vec::new()))
            }),
        };
        let (answer, actions) = match done {
            Ok((reply, actions)) => (Ok(reply.unwrap_or_else(|| Reply::State(Box::new(trial.state())))), actions),
            Err(refusal) => (Err(refusal), Vec::new()),
        };
        if let (Some(epoch), Ok(_)) = (epoch, &answer) {
            self.check(epoch >= process.highest_epoch, || {
                format!("shard {shard} took a call of epoch {epoch} after one of epoch {}", process.highest_epoch)
            });
            process.highest_epoch = process.highest_epoch.max(epoch);
        }
        drop(processes);
        if let Some(name) = name {
            match &answer {
                Ok(_) => self.tell(format_args!("shard {shard} {incarnation} accepts {name}")),
                Err(refused) => self.tell(format_args!("shard {shard} {incarnation} refuses {name}: {refused}")),
            }
        }
        self.perform(address, actions);
        Some((incarnation, answer))
    }
}

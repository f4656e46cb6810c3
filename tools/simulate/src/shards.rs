//! The drivers of the processes: events and calls reach their state machines, and simulated engines and targets perform the actions.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use redisbench_benchmark::conductor::{Call, Reply};
use redisbench_loadgen::control::trial::{Action, Event};
use redisbench_wire::plan::{Load, ShardPlan};
use redisbench_wire::{CleanupState, FailureReason, Probe, Refusal, ShardFailure};

use crate::engine::Engine;
use crate::ground_truth::{Started, Try};
use crate::process::{Process, Processes};
use crate::world::{World, lock};

/// The event of a load that stopped because no call came.
pub const UNATTENDED: &str = "load stopped unattended";

/// Starts a process of a shard.
pub fn begin(world: &Arc<World>, address: IpAddr, shard: u32, incarnation: &str, run: &str) {
    let offset = i64::try_from(world.number() % 1_000_000_000_000).unwrap_or(0);
    let drift = i64::try_from(world.number() % 91).unwrap_or(0) - 45;
    let process = Process::new(run, shard, incarnation, (offset, drift), world.now());
    world.tell(format_args!("shard {shard} {incarnation} starts"));
    lock(&world.processes).insert(address, process);
    keep_limits(world, address);
}

/// Ends a process with an exit code, as its machine would.
pub fn kill(world: &Arc<World>, address: IpAddr, code: i32) {
    let mut processes = lock(&world.processes);
    let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
    process.exited = Some(code);
    world.tell(format_args!("shard {} {} exits with {code}", process.shard, process.incarnation));
    let pod = process.incarnation.clone();
    drop(processes);
    let delay = world.between(5, 300);
    world.after(delay, move |world| (world.on_exit)(world, &pod, code));
}

/// Sends a process SIGTERM.
pub fn terminate(world: &Arc<World>, address: IpAddr) {
    observe(world, address, None, Event::Terminate);
}

/// Delivers `event` to a shard, unless its preparation is obsolete.
fn observe(world: &Arc<World>, address: IpAddr, preparation: Option<u32>, event: Event) {
    let mut processes = lock(&world.processes);
    let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
    if preparation.is_some_and(|preparation| preparation != process.preparation) {
        return;
    }
    world.tell(format_args!("shard {} {}: {event:?}", process.shard, process.incarnation));
    let now = process.clock(world.now());
    let actions = process.trial.observe(now, event);
    drop(processes);
    perform(world, address, actions);
}

fn perform(world: &Arc<World>, address: IpAddr, actions: Vec<Action>) {
    for action in actions {
        act(world, address, action);
    }
    keep_limits(world, address);
}

fn act(world: &Arc<World>, address: IpAddr, action: Action) {
    let mut processes = lock(&world.processes);
    let Some(process) = processes.get_mut(&address) else { return };
    let now = process.clock(world.now());
    match action {
        Action::Prepare(plan) => {
            process.engine = None;
            process.preparation += 1;
            let (preparation, run) = (process.preparation, process.run.clone());
            check_drained(world, &processes, &run, plan.trial);
            drop(processes);
            prepare(world, address, preparation, &plan);
        }
        Action::Preload => {
            let (preparation, run) = (process.preparation, process.run.clone());
            let shards = process.trial.plan_in_use().map_or(0, |plan| plan.shards);
            check_all_came(world, &processes, &run, shards);
            drop(processes);
            let half = world.between(1, 1_500);
            world.after(half, move |world| {
                observe(world, address, Some(preparation), Event::Preloading { commands: 100 });
                world.after(half, move |world| observe(world, address, Some(preparation), Event::Preloaded));
            });
        }
        Action::Start(start) => {
            let Some(plan) = process.trial.plan_in_use() else { return };
            let rate = match plan.load {
                Load::OpenLoop { rate_per_second, .. } => rate_per_second,
                Load::ClosedLoop | Load::Recorded { .. } => 0,
            };
            let overloaded = !world.scenario.holds(plan.trial, rate);
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
            note_start(world, &processes, &run, shard, of, started);
            drop(processes);
            end_load_after(world, end, address, of);
        }
        Action::Measure(from) => {
            let Some(engine) = &mut process.engine else { return };
            engine.measure_from(from);
            let (of, end) = (engine.of_try(), engine.planned_end());
            let end = Duration::from_nanos(process.truth(end));
            drop(processes);
            end_load_after(world, end, address, of);
        }
        Action::Stop | Action::Leave => {
            let Some(engine) = &mut process.engine else { return };
            engine.stop(now);
            let of = engine.of_try();
            if matches!(action, Action::Leave) {
                note_terminated(world, process, of);
            }
            drop(processes);
            end_load_after(world, world.now(), address, of);
        }
        Action::Probe(instant) => {
            let Some(engine) = &process.engine else { return };
            let (preparation, probe) = (process.preparation, engine.probe());
            let length = Duration::from_nanos(Probe::WARMUP_NANOSECONDS + probe.nanoseconds);
            let end = Duration::from_nanos(process.truth(instant)) + length;
            drop(processes);
            let probe = world.chance(0.9).then_some(probe);
            let wait = (end + world.between(1, 400)).saturating_sub(world.now());
            world.after(wait, move |world| observe(world, address, Some(preparation), Event::Probed(probe)));
        }
        Action::Disconnect => process.disconnected = true,
        Action::Rearm => process.engine = None,
        Action::Cleanup(_) => {
            let preparation = process.preparation;
            drop(processes);
            let half = world.between(1, 3_000);
            let state = |removed_keys, done| Event::Cleanup(CleanupState { removed_keys, done, failure: None });
            world.after(half, move |world| {
                observe(world, address, Some(preparation), state(100, false));
                world.after(half, move |world| observe(world, address, Some(preparation), state(200, true)));
            });
        }
        Action::Discard => {
            process.engine = None;
            process.preparation += 1;
        }
        Action::Exit(exit) => {
            let code = i32::from(exit.code());
            drop(processes);
            kill(world, address, code);
        }
    }
}

/// Trial `trial` starts to connect: no process may have a connection of an earlier trial.
fn check_drained(world: &World, processes: &Processes, run: &str, trial: u32) {
    let there = |process: &&Process| process.run == run && !process.forsaken && process.exited.is_none();
    for process in processes.values().filter(there).filter(|process| !process.disconnected) {
        let before = process.engine.as_ref().map(|engine| engine.of_try().0).filter(|before| *before < trial);
        world.check(before.is_none(), || {
            format!("trial {trial} connects, while shard {} is in trial {before:?}", process.shard)
        });
    }
}

/// A shard preloads: every shard must have had a process.
fn check_all_came(world: &World, processes: &Processes, run: &str, shards: u32) {
    for shard in 0..shards {
        let came = processes.values().any(|process| process.run == run && process.shard == shard);
        world.check(came, || format!("the preload begins before shard {shard} has come"));
    }
}

/// A load will begin: there must be no other of this shard in the attempt, and none of another attempt anywhere.
fn note_start(world: &World, processes: &Processes, run: &str, shard: u32, attempt: Try, started: Started) {
    let mut ground_truth = lock(&world.ground_truth);
    let truth = ground_truth.run(run);
    if let Some(before) = truth.started.get(&(attempt, shard)) {
        world.violated(format_args!(
            "shard {shard} starts twice in attempt {attempt:?}, first as {}",
            before.incarnation
        ));
    }
    for other in processes.values().filter(|other| other.run == run && !other.forsaken && other.has_load()) {
        let running = other.engine.as_ref().map_or((0, 0), Engine::of_try);
        world.check(running == attempt, || {
            format!("shard {shard} starts in {attempt:?}, while shard {} has load of {running:?}", other.shard)
        });
    }
    world.check(truth.over.is_none_or(|over| over < u64::from(attempt.0)), || {
        format!("shard {shard} starts in trial {}, which has finished", attempt.0)
    });
    truth.started.insert((attempt, shard), started);
}

/// A signal stops the load of `attempt`.
fn note_terminated(world: &World, process: &mut Process, attempt: Try) {
    process.terminated = true;
    let mut ground_truth = lock(&world.ground_truth);
    if let Some(started) = ground_truth.run(&process.run).started.get_mut(&(attempt, process.shard)) {
        started.terminated = true;
    }
}

/// Ends a load once the last replies have come, some time after `end`.
fn end_load_after(world: &Arc<World>, end: Duration, address: IpAddr, attempt: Try) {
    let wait = (end + world.between(1, 400)).saturating_sub(world.now());
    world.after(wait, move |world| end_load(world, address, attempt));
}

fn end_load(world: &Arc<World>, address: IpAddr, attempt: Try) {
    let mut processes = lock(&world.processes);
    let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
    let now = process.clock(world.now());
    let (run, shard) = (process.run.clone(), process.shard);
    let Some(engine) = process.engine.as_mut().filter(|engine| engine.of_try() == attempt && !engine.ended) else {
        return;
    };
    engine.ended = true;
    let total = engine.total(now);
    if let Some(started) = lock(&world.ground_truth).run(&run).started.get_mut(&(attempt, shard)) {
        started.ended = Some(total);
    }
    drop(processes);
    observe(world, address, None, Event::LoadEnded { attempt: attempt.1 });
}

/// Connects to the target, with possible delays and faults.
fn prepare(world: &Arc<World>, address: IpAddr, preparation: u32, plan: &ShardPlan) {
    let wanted = plan.connections;
    let slow = world.chance(world.scenario.slow_shards);
    let (found, connected) = (world.between(1, 300), world.between(1, if slow { 20_000 } else { 700 }));
    if world.chance(0.003) {
        let message = "target redis: the server refused GET".to_owned();
        let failure = ShardFailure { reason: FailureReason::CommandRefused, message };
        world.after(found, move |world| observe(world, address, Some(preparation), Event::Failed(failure)));
        return;
    }
    if slow {
        let message = "connection refused".to_owned();
        let obstacle = ShardFailure { reason: FailureReason::Unreachable, message };
        world.after(found / 2, move |world| observe(world, address, Some(preparation), Event::Obstacle(obstacle)));
    }
    let flaps = world.chance(world.scenario.flapping);
    let (breaks, mended) = (world.between(1, 4_000), world.between(1, 2_000));
    world.after(found, move |world| {
        observe(world, address, Some(preparation), Event::TargetReady);
        world.after(connected, move |world| {
            observe(world, address, Some(preparation), Event::Connected { ready: wanted, wanted });
            if flaps {
                world.after(breaks, move |world| {
                    observe(world, address, Some(preparation), Event::Connected { ready: wanted - 1, wanted });
                    world.after(mended, move |world| {
                        observe(world, address, Some(preparation), Event::Connected { ready: wanted, wanted });
                    });
                });
            }
        });
    });
}

/// Schedules the limits of the current phase.
fn keep_limits(world: &Arc<World>, address: IpAddr) {
    let mut processes = lock(&world.processes);
    let Some(process) = processes.get_mut(&address).filter(|process| process.exited.is_none()) else { return };
    let Some(deadline) = process.trial.deadline() else { return };
    if process.tick_at.is_some_and(|at| at <= deadline) {
        return;
    }
    process.tick_at = Some(deadline);
    // A millisecond later, because drifting clocks are rounded.
    let at = Duration::from_nanos(process.truth(deadline)) + Duration::from_millis(1);
    drop(processes);
    world.after(at.saturating_sub(world.now()), move |world| {
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
        perform(world, address, actions);
    });
}

/// Delivers a call. None if there is no process.
pub fn deliver(world: &Arc<World>, address: IpAddr, call: Call) -> Option<(String, Result<Reply, Refusal>)> {
    let mut processes = lock(&world.processes);
    let process = processes.get_mut(&address).filter(|process| process.exited.is_none())?;
    lock(&world.ground_truth).calls += 1;
    let now = process.clock(world.now());
    let (shard, incarnation) = (process.shard, process.incarnation.clone());
    if call != Call::Clock {
        let silence = world.now().saturating_sub(std::mem::replace(&mut process.called_at, world.now()));
        world.check(!process.has_load() || silence.as_secs() <= world.scenario.unattended_seconds, || {
            format!("shard {shard} {incarnation} had load for {} s without a call", silence.as_secs())
        });
    }
    let epoch = call.epoch();
    let name = epoch.filter(|_| world.traced).map(|epoch| match &call {
        Call::Plan(..) => format!("plan, epoch {epoch}"),
        other => format!("{other:?}"),
    });
    let (answer, actions) = process.answer(now, call);
    if let (Some(epoch), Ok(_)) = (epoch, &answer) {
        world.check(epoch >= process.highest_epoch, || {
            format!("shard {shard} took a call of epoch {epoch} after one of epoch {}", process.highest_epoch)
        });
        process.highest_epoch = process.highest_epoch.max(epoch);
    }
    drop(processes);
    if let Some(name) = name {
        match &answer {
            Ok(_) => world.tell(format_args!("shard {shard} {incarnation} accepts {name}")),
            Err(refused) => world.tell(format_args!("shard {shard} {incarnation} refuses {name}: {refused}")),
        }
    }
    perform(world, address, actions);
    Some((incarnation, answer))
}

//! The perturbation after a trial whose own numbers do not tell its limit: the same load with half of the connections, on
//! all shards at one instant. Nothing of it is in the trial's numbers. Without it nothing is lost but its evidence.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Bound, Load, Preload, ShardPlan, Verify};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{Detail, Probe, limits};
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};
use tracing::info;

use super::clock::timer_at;
use crate::engine::{Engine, EngineConfig, EngineEvent, monotonic_nanoseconds};

/// As for a trial.
const EVENTS: usize = 256 + limits::WORKERS;
/// For what is in flight at the end, beside the request's own timeout.
const LAST: Duration = Duration::from_secs(2);

/// The plan of the probe: half of the connections, and of the callers. An open loop that is beyond its limit keeps all
/// connections full as a closed loop does; with half of them it would have no schedule that it could keep.
fn halved(plan: &ShardPlan) -> ShardPlan {
    let mut halved = plan.clone();
    halved.connections = (plan.connections / 2).max(1);
    halved.concurrency = plan.concurrency.map(|callers| (callers / 2).max(1));
    halved.load = Load::ClosedLoop;
    halved.warmup_nanoseconds = Probe::WARMUP_NANOSECONDS;
    halved.bound = Bound::Duration { nanoseconds: plan.measurement.probe_nanoseconds };
    halved.settle = false;
    (halved.preload, halved.verify) = (Preload::None, Verify::None);
    (halved.breakdown.operation, halved.breakdown.node) = (false, false);
    halved
}

/// What so many connections hold: requests in flight.
fn room(plan: &ShardPlan, connections: u32) -> u64 {
    plan.concurrency.map_or_else(|| u64::from(connections) * u64::from(plan.pipeline), u64::from)
}

/// Runs the probe at `instant` as `config` says for the trial, whose engine made so many `connections`. None if it could
/// not be run as it should.
pub async fn run(config: EngineConfig, connections: u32, instant: u64) -> Option<Probe> {
    let plan = Arc::clone(&config.plan);
    let halved = Arc::new(halved(&plan));
    let length = Duration::from_nanos(halved.warmup_nanoseconds.saturating_add(plan.measurement.probe_nanoseconds));
    let most = length + Duration::from_nanos(plan.timeouts.request_nanoseconds) + LAST;
    let (sender, mut events) = mpsc::channel(EVENTS);
    let engine = Engine::spawn(EngineConfig { plan: Arc::clone(&halved), ..config }, sender).ok()?;
    let measured = async {
        engine.connect().ok()?;
        tokio::select! {
            () = sleep_until(timer_at(instant)) => return None,
            connected = connected(&mut events) => connected?,
        }
        if monotonic_nanoseconds() >= instant {
            return None;
        }
        engine.start(instant, 1).ok()?;
        sleep_until(timer_at(instant)).await;
        timeout(most, finished(&mut events)).await.ok()??;
        engine.snapshot(Detail::Live).await.ok()
    };
    let snapshot = measured.await;
    let of = (room(&plan, connections), room(&halved, engine.connections()));
    // Joining the engine's threads takes some milliseconds. It cannot fail but by a panic, which is on stderr.
    let _ = tokio::task::spawn_blocking(move || drop(engine)).await;
    let probe = told(&snapshot?, of)?;
    info!(succeeded = probe.succeeded, room = probe.room, "the probe is over");
    Some(probe)
}

async fn connected(events: &mut mpsc::Receiver<EngineEvent>) -> Option<()> {
    while let Some(event) = events.recv().await {
        if matches!(event, EngineEvent::Connected { ready, wanted } if ready == wanted) {
            return Some(());
        }
    }
    None
}

async fn finished(events: &mut mpsc::Receiver<EngineEvent>) -> Option<()> {
    while let Some(event) = events.recv().await {
        match event {
            EngineEvent::Finished { aborted: false, .. } => return Some(()),
            EngineEvent::Finished { .. } | EngineEvent::WorkerFailed { .. } => return None,
            _ => {}
        }
    }
    None
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of values below 600 s")]
fn told(snapshot: &Snapshot, (of_room, room): (u64, u64)) -> Option<Probe> {
    let response = snapshot.latency.response.decode(Kind::Request).ok()?;
    let mut tally = snapshot.total;
    tally.add(&snapshot.warmup);
    let window = snapshot.window;
    Some(Probe {
        room,
        of_room,
        nanoseconds: window.measure_to_nanoseconds.saturating_sub(window.measure_from_nanoseconds),
        succeeded: snapshot.total.succeeded,
        mean_nanoseconds: response.mean() as u64,
        tally,
    })
}

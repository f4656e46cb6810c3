//! A short second load with half of the connections, after a trial whose limiting factor is unclear. All shards run it at one instant. It
//! has the trial's kind of load, at no higher rate, and connects after the trial's connections have closed, so the target never sees more
//! connections than the spec allows. The trial's numbers do not include it. If it fails, only its evidence is missing.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Bound, Load, Preload, ShardPlan, Verify};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{Detail, Probe, limits};
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};
use tracing::info;

use super::driver::{Driver, Spawn};
use crate::clock::timer_at;
use crate::engine::{EngineConfig, EngineEvent, monotonic_nanoseconds};

/// Same size as for a trial.
const EVENTS: usize = 256 + limits::WORKERS;
/// Time for requests in flight at the end, on top of the request timeout, and then for closing the connections.
const LAST: Duration = Duration::from_secs(2);

/// The plan of the probe: half of the connections and of the concurrency. An open loop keeps its rate: above the limit its backlog keeps
/// all connections full, like a closed loop.
fn halved(plan: &ShardPlan) -> ShardPlan {
    let mut halved = plan.with(|plan| {
        plan.warmup_nanoseconds = match plan.load {
            Load::ClosedLoop => Probe::WARMUP_NANOSECONDS,
            Load::OpenLoop { .. } | Load::Recorded { .. } => 0,
        };
        plan.bound = Bound::Duration { nanoseconds: plan.measurement.probe_nanoseconds };
        plan.settle = false;
        (plan.preload, plan.verify) = (Preload::None, Verify::None);
        plan.preload_steps.clear();
        (plan.breakdown.operation, plan.breakdown.node) = (false, false);
    });
    halved.connections = (plan.connections / 2).max(1);
    halved.concurrency = plan.concurrency.map(|callers| (callers / 2).max(1));
    halved
}

/// The most requests in flight over this many connections.
fn room(plan: &ShardPlan, connections: u32) -> u64 {
    plan.concurrency.map_or_else(|| u64::from(connections) * u64::from(plan.pipeline), u64::from)
}

/// Closes the trial's connections and runs the probe at `instant` with the trial's `config`. Returns `None` if the probe failed or was
/// late.
pub async fn run(trial: Arc<dyn Driver>, spawn: &Spawn, config: EngineConfig, instant: u64) -> Option<Probe> {
    let connections = trial.connections();
    trial.disconnect().await.ok()?;
    // The last owner joins the driver's threads, which must not happen on this thread.
    drop(trial);
    let plan = config.plan.clone();
    let halved = halved(&plan);
    let length = Duration::from_nanos(halved.warmup_nanoseconds.saturating_add(plan.measurement.probe_nanoseconds));
    let most = length + Duration::from_nanos(plan.timeouts.request_nanoseconds) + LAST;
    let (sender, mut events) = mpsc::channel(EVENTS);
    let driver = spawn.driver(EngineConfig { plan: halved.clone(), ..config }, sender).ok()?;
    let measured = async {
        driver.connect().ok()?;
        tokio::select! {
            () = sleep_until(timer_at(instant)) => return None,
            connected = connected(&mut events) => connected?,
        }
        if monotonic_nanoseconds() >= instant {
            return None;
        }
        driver.start(instant, 1).ok()?;
        sleep_until(timer_at(instant)).await;
        timeout(most, finished(&mut events)).await.ok()??;
        driver.snapshot_since(Detail::Live, 0).await.ok()
    };
    let snapshot = measured.await;
    let of = (room(&plan, connections), room(&halved, driver.connections()));
    // As after a trial. Beyond that time, the drop closes the connections.
    let _ = timeout(LAST, driver.disconnect()).await;
    // Joining the driver's threads takes some milliseconds. It fails only by a panic, which is on stderr.
    let _ = tokio::task::spawn_blocking(move || drop(driver)).await;
    let probe = told(&snapshot?, of)?;
    info!(succeeded = probe.succeeded, room = probe.room, "the probe has finished");
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
    let latency = &snapshot.latency;
    let service = latency.service.as_ref().unwrap_or(&latency.response).decode(Kind::Request).ok()?;
    let mut tally = snapshot.total;
    tally.add(&snapshot.warmup);
    let window = snapshot.window;
    Some(Probe {
        room,
        of_room,
        nanoseconds: window.measure_to_nanoseconds.saturating_sub(window.measure_from_nanoseconds),
        succeeded: snapshot.total.succeeded,
        mean_nanoseconds: service.mean() as u64,
        tally,
    })
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::TrialPlan;

    use super::*;
    use crate::open_loop::open_loop;
    use crate::sample;

    fn allowed(connections: u32, load: Load) -> ShardPlan {
        let mut plan = TrialPlan { shards: 1, connections, concurrency: Some(5), load, ..sample::plan() };
        plan.measurement.probe_nanoseconds = 2_000_000_000;
        plan.into()
    }

    #[test]
    fn the_probe_is_of_the_trials_kind_at_its_rate_with_half_of_the_connections() {
        for (load, warmup) in [(Load::ClosedLoop, Probe::WARMUP_NANOSECONDS), (open_loop(200), 0)] {
            let probe = halved(&allowed(9, load.clone()));
            assert_eq!((&probe.load, probe.warmup_nanoseconds), (&load, warmup));
            assert_eq!((probe.connections, probe.concurrency), (4, Some(2)));
            assert_eq!(probe.bound, Bound::Duration { nanoseconds: 2_000_000_000 });
            assert_eq!((&probe.preload, probe.verify), (&Preload::None, Verify::None));
        }
        assert_eq!(halved(&allowed(1, Load::ClosedLoop)).connections, 1);
    }
}

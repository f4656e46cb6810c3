//! The real reconciler, conductor and shard state machine in a simulated world, on virtual time, from one seed.
//!
//! `docs/reliability.md` lists the faults and the invariants. Each seed is one world: the same seed always gives the same trace.
//!
//! `world` holds the state: cluster, processes and triggers, which do not depend on it. Everything that acts is a function of the world.

mod api_server;
mod calls;
mod clock;
mod cluster;
mod controllers;
mod engine;
mod ground_truth;
mod inject;
mod operators;
mod oracle;
mod process;
mod scenario;
mod search;
mod shards;
mod triggers;
mod world;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use redisbench_testkit::counts::Counts;
use redisbench_testkit::status;
use tokio::time::sleep;

use crate::api_server::apply_benchmark;
pub use crate::calls::PANICKED;
use crate::cluster::is_terminal;
use crate::operators::Operators;
pub use crate::oracle::COLLECTED;
pub use crate::shards::UNATTENDED;
use crate::triggers::Triggers;
use crate::world::{World, lock};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub violation: Option<String>,
    /// The outcome of the benchmark: its phase, and the verdict if there is one. `Deleted` if it was deleted.
    pub ending: String,
    /// All events, one line each, if traced.
    pub trace: Vec<String>,
    pub calls: u64,
    /// Writes that the API server served.
    pub writes: u64,
    /// Counts of the scenario's faults by kind, and of noteworthy events.
    pub events: Counts,
}

/// Runs the world of `seed`. Tracing has no other effect.
///
/// # Errors
/// If the runtime cannot be created.
pub fn simulate(seed: u64, traced: bool) -> std::io::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(run(seed, traced)))
}

/// Runs `seeds`, in this order, on `jobs` threads. `visit` gets each report, and returns whether to begin further seeds.
///
/// # Errors
/// If a runtime cannot be created.
pub fn simulate_all(
    seeds: impl Iterator<Item = u64> + Send,
    jobs: usize,
    visit: impl Fn(u64, Report) -> bool + Sync,
) -> std::io::Result<()> {
    let seeds = Mutex::new(Some(seeds));
    let work = || -> std::io::Result<()> {
        loop {
            let Some(seed) = lock(&seeds).as_mut().and_then(Iterator::next) else { return Ok(()) };
            if !visit(seed, simulate(seed, false)?) {
                *lock(&seeds) = None;
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

async fn run(seed: u64, traced: bool) -> Report {
    let world = World::new(seed, traced, controllers::end_container);
    let operators = Arc::new(Operators::default());
    world.tell(format_args!("{:?}", world.scenario));
    operators.begin(&world);
    let user_waits = world.between(0, 2_000);
    world.after(user_waits, |world| apply_benchmark(world));
    for (at, fault) in world.scenario.faults.clone() {
        let (world, operators) = (world.clone(), operators.clone());
        tokio::spawn(async move {
            sleep(user_waits + at).await;
            inject::inject(&world, &operators, fault).await;
        });
    }
    let calm_at = user_waits + world.scenario.calm_at();
    sleep(calm_at + Duration::from_secs(1)).await;
    world.tell("calm");
    *lock(&world.triggers) = Triggers::default();
    operators.settle(&world);

    let over = |world: &World| lock(&world.cluster).status().is_none_or(is_terminal);
    let patience = world.scenario.patience();
    wait(&world, patience, over, || format!("no terminal phase {} s after the last fault", patience.as_secs())).await;
    let ending = lock(&world.cluster).status().map_or_else(|| "Deleted".to_owned(), status::ending);
    world.tell(format_args!("finished: {ending}"));
    let no_children = |world: &World| lock(&world.cluster).children().is_empty();
    wait(&world, Duration::from_secs(180), no_children, || "children remain".to_owned()).await;
    let status = lock(&world.cluster).status().cloned();
    if let Some(status) = status {
        oracle::judge(&world, &status);
    }
    quiet(&world).await;
    let mut ground_truth = lock(&world.ground_truth);
    Report {
        violation: world.violation(),
        ending,
        calls: ground_truth.calls,
        writes: ground_truth.writes,
        events: std::mem::take(&mut ground_truth.events),
        trace: world.take_trace(),
    }
}

/// Checks that nothing is written any more, even after another reconciliation, and that no process exceeds its limits.
async fn quiet(world: &Arc<World>) {
    sleep(Duration::from_secs(120)).await;
    let writes = lock(&world.ground_truth).writes;
    for _ in 0..3 {
        lock(&world.cluster).touch();
        sleep(Duration::from_secs(120)).await;
    }
    let written = lock(&world.ground_truth).writes - writes;
    world.check(written == 0, || format!("{written} writes after the end"));
    // A process that is cut off ends by its own limits.
    sleep(Duration::from_secs(1_500)).await;
    let processes = lock(&world.processes);
    for process in processes.values() {
        let alive = process.exited.is_none() && !process.forsaken;
        world.check(!alive && !process.has_load(), || {
            format!("shard {} {} is still running", process.shard, process.incarnation)
        });
    }
}

async fn wait(world: &World, at_most: Duration, holds: impl Fn(&World) -> bool, otherwise: impl FnOnce() -> String) {
    let until = world.now() + at_most;
    while !holds(world) {
        if world.now() >= until {
            return world.violated(otherwise());
        }
        sleep(Duration::from_millis(500)).await;
    }
}

//! The product's reconciler, conductor and shard state machine in a made-up world, on virtual time, from one seed.
//!
//! `docs/reliability.md` says which faults happen there and what must hold. One seed is one world: the same seed always
//! gives the same trace.

mod calls;
mod cluster;
mod engine;
mod judge;
mod ledger;
mod operators;
mod plot;
mod process;
mod world;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cluster::{Kind, address_of};
use crate::operators::Operators;
use crate::plot::Fault;
use crate::world::{World, lock};

/// What came of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The invariant that did not hold.
    pub violation: Option<String>,
    /// How the benchmark ended: its phase, and the verdict if there is one. `Deleted` if it was.
    pub ending: String,
    /// Everything that happened, a line each.
    pub trace: Vec<String>,
    /// Calls that shards answered.
    pub calls: u64,
    /// Writes that the API server served.
    pub writes: u64,
    /// Faults of the plot.
    pub faults: usize,
}

/// Runs the world of `seed`.
///
/// # Errors
/// When the runtime cannot be made.
pub fn simulate(seed: u64) -> std::io::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(run(seed)))
}

async fn run(seed: u64) -> Report {
    let world = World::new(seed);
    let operators = Arc::new(Operators::default());
    world.tell(format_args!("{:?}", world.plot));
    operators.begin(&world);
    let user_waits = world.between(0, 2_000);
    world.after(user_waits, |world| lock(&world.cluster).apply(world.plot.benchmark()));
    for (at, fault) in world.plot.faults.clone() {
        let (world, operators) = (world.clone(), operators.clone());
        tokio::spawn(async move {
            sleep(user_waits + at).await;
            strike(&world, &operators, fault).await;
        });
    }
    let calm_at = user_waits + world.plot.calm_at();
    sleep(calm_at + Duration::from_secs(1)).await;
    world.tell("calm");
    operators.settle(&world);

    let over = |world: &World| lock(&world.cluster).status().is_none_or(|status| is_terminal(&status));
    let patience = world.plot.patience();
    wait(&world, patience, over, || format!("no terminal phase {} s after the last fault", patience.as_secs())).await;
    let ending = ending(&world);
    world.tell(format_args!("over: {ending}"));
    let no_children = |world: &World| lock(&world.cluster).children().is_empty();
    wait(&world, Duration::from_secs(180), no_children, || "children are left".to_owned()).await;
    if let Some(status) = lock(&world.cluster).status() {
        world.judge(&status);
    }
    quiet(&world).await;
    let ledger = lock(&world.ledger);
    Report {
        violation: world.violation(),
        ending,
        calls: ledger.calls,
        writes: ledger.writes,
        faults: world.plot.faults.len(),
        trace: world.take_trace(),
    }
}

/// Nothing is written any more, even when the benchmark is looked at again; and no process outlives its limits.
async fn quiet(world: &Arc<World>) {
    sleep(Duration::from_secs(120)).await;
    let writes = lock(&world.ledger).writes;
    for _ in 0..3 {
        lock(&world.cluster).touch();
        sleep(Duration::from_secs(120)).await;
    }
    let written = lock(&world.ledger).writes - writes;
    world.check(written == 0, || format!("{written} writes when all was over"));
    // Who was cut off from all ends by its own limits.
    sleep(Duration::from_secs(1_500)).await;
    let processes = lock(&world.processes);
    for process in processes.values() {
        let alive = process.exited.is_none() && !process.forsaken;
        world.check(!alive && !process.has_load(), || {
            format!("shard {} {} still runs", process.shard, process.incarnation)
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

fn is_terminal(status: &Value) -> bool {
    matches!(status["phase"].as_str(), Some("Succeeded" | "Failed" | "Aborted"))
}

fn ending(world: &World) -> String {
    let Some(status) = lock(&world.cluster).status() else { return "Deleted".to_owned() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let failed = status["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == "Failed").cloned();
    let reason = failed.filter(|c| c["status"] == "True").map(|c| text(&c["reason"])).unwrap_or_default();
    let mut parts = vec![text(&status["phase"]), reason, text(&status["verdict"]["value"])];
    parts.dedup();
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

async fn strike(world: &Arc<World>, operators: &Arc<Operators>, fault: Fault) {
    world.tell(format_args!("fault: {fault:?}"));
    match fault {
        Fault::KillOperator { successor_after } => {
            operators.kill_leader(world);
            sleep(successor_after).await;
            operators.begin(world);
        }
        Fault::Upgrade => {
            operators.kill_leader(world);
            operators.begin(world);
        }
        Fault::PauseOperator { time, successor_after, both } => {
            let Some(name) = operators.freeze_leader(world) else { return };
            sleep(successor_after).await;
            operators.begin(world);
            sleep(time).await;
            operators.thaw(world, &name);
            sleep(both).await;
            operators.end(world, &name);
        }
        Fault::KillShard { shard } => {
            for pod in world.running_pods(shard) {
                world.kill_process(address_of(pod["metadata"]["uid"].as_str().unwrap_or_default()), 137);
            }
        }
        Fault::EvictShard { shard } => {
            world.running_pods(shard).iter().for_each(|pod| world.delete_pod(pod, true));
        }
        Fault::DeletePod { shard } => world.running_pods(shard).iter().for_each(|pod| world.delete_pod(pod, false)),
        Fault::CutShard { shard, time } => {
            for pod in world.running_pods(shard) {
                let address = address_of(pod["metadata"]["uid"].as_str().unwrap_or_default());
                world.cut(address);
                world.after(time, move |world| world.mend(address));
            }
        }
        Fault::LoseNode { shard } => {
            for pod in world.running_pods(shard) {
                let address = address_of(pod["metadata"]["uid"].as_str().unwrap_or_default());
                world.cut(address);
                let given_up = world.between(2_000, 20_000);
                world.after(given_up, move |world| world.delete_pod(&pod, true));
            }
        }
        Fault::ApiAway { time } => {
            world.set_api_away(true);
            sleep(time).await;
            world.set_api_away(false);
        }
        Fault::Abort => lock(&world.cluster).edit(json!({"abort": true})),
        Fault::Suspend { time } => {
            lock(&world.cluster).edit(json!({"suspend": true}));
            sleep(time).await;
            lock(&world.cluster).edit(json!({"suspend": false}));
        }
        Fault::DeleteBenchmark => world.delete(Kind::Benchmarks),
        Fault::DeleteJob => world.delete(Kind::Jobs),
    }
}

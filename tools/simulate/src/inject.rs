//! Applies faults.

use std::sync::Arc;
use std::time::Duration;

use redisbench_testkit::counts::variant;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::api_server::apply_benchmark;
use crate::cluster::{Kind, address_of, is_terminal};
use crate::controllers::{delete, delete_pod};
use crate::operators::Operators;
use crate::scenario::{Fault, Halt, WATCHFUL};
use crate::shards;
use crate::world::{World, lock};

pub async fn inject(world: &Arc<World>, operators: &Arc<Operators>, fault: Fault) {
    world.tell(format_args!("fault: {fault:?}"));
    lock(&world.ground_truth).count(variant(&fault));
    match fault {
        Fault::Upgrade => {
            operators.kill_leader(world);
            operators.begin(world);
        }
        Fault::HaltOperator(halt) => {
            if let Some(name) = operators.freeze_leader(world) {
                halted(world, operators, &name, halt).await;
            }
        }
        Fault::HaltAtStart(halt, calls) => {
            let name = lock(&world.triggers).lay_halt(calls);
            if let Ok(Ok(name)) = timeout(WATCHFUL, name).await {
                lock(&world.ground_truth).count("- halted while it ordered the start");
                halted(world, operators, &name, halt).await;
            }
        }
        Fault::MissStart { shard, way, suspend } => {
            let lost = lock(&world.triggers).lay_loss(shard, way);
            if let (Ok(Ok(())), Some((after, time))) = (timeout(WATCHFUL, lost).await, suspend) {
                sleep(after).await;
                suspend_for(world, time).await;
            }
        }
        Fault::KillShard(shard) => {
            for pod in running_pods(world, shard) {
                shards::kill(world, address_of(pod["metadata"]["uid"].as_str().unwrap_or_default()), 137);
            }
        }
        Fault::EvictShard(shard) => delete_pods(world, shard, true),
        Fault::DeletePod(shard) => delete_pods(world, shard, false),
        Fault::CutShard(shard, time) => {
            for pod in running_pods(world, shard) {
                let address = address_of(pod["metadata"]["uid"].as_str().unwrap_or_default());
                world.cut(address);
                world.after(time, move |world| world.mend(address));
            }
        }
        Fault::LoseNode(shard) => {
            for pod in running_pods(world, shard) {
                let address = address_of(pod["metadata"]["uid"].as_str().unwrap_or_default());
                world.cut(address);
                let given_up = world.between(2_000, 20_000);
                world.after(given_up, move |world| delete_pod(world, &pod, true));
            }
        }
        Fault::ApiAway(time) => {
            lock(&world.weather).api_away = true;
            sleep(time).await;
            lock(&world.weather).api_away = false;
        }
        Fault::Abort => lock(&world.cluster).edit(json!({"abort": true})),
        Fault::Suspend(time) => suspend_for(world, time).await,
        Fault::DeleteBenchmark => delete(world, Kind::Benchmarks),
        Fault::Recreate(after) => {
            delete(world, Kind::Benchmarks);
            sleep(after).await;
            apply_benchmark(world);
        }
        Fault::TakeName(time) => {
            if lock(&world.cluster).squat() {
                sleep(time).await;
                lock(&world.cluster).leave();
            }
        }
        Fault::BreakWatches(time) => world.break_watches(time),
        Fault::Panic => lock(&world.triggers).lay_panic(),
        Fault::DeleteJob => delete(world, Kind::Jobs),
    }
}

/// Handles the operator `name` after it was halted.
async fn halted(world: &Arc<World>, operators: &Operators, name: &str, halt: Halt) {
    match halt {
        Halt::Killed(successor_after) => {
            operators.end(world, name, "is killed");
            sleep(successor_after).await;
            operators.begin(world);
        }
        Halt::Paused { time, successor_after, both } => {
            sleep(successor_after).await;
            operators.begin(world);
            sleep(time).await;
            operators.thaw(world, name);
            sleep(both).await;
            operators.end(world, name, "notices and exits");
        }
        Halt::Stalled(time) => {
            sleep(time).await;
            operators.thaw(world, name);
        }
    }
}

fn running_pods(world: &World, shard: u32) -> Vec<Value> {
    lock(&world.cluster).running_pods(shard)
}

fn delete_pods(world: &Arc<World>, shard: u32, evicted: bool) {
    for pod in running_pods(world, shard) {
        delete_pod(world, &pod, evicted);
    }
}

async fn suspend_for(world: &World, time: Duration) {
    let between = lock(&world.cluster).status().is_some_and(|status| {
        let is_running = status["phase"] == "Running";
        status["trial"]["startAt"].is_string() && !is_running && !is_terminal(status)
    });
    if between {
        lock(&world.ground_truth).count("- suspended between a missed start and the next");
    }
    lock(&world.cluster).edit(json!({"suspend": true}));
    sleep(time).await;
    lock(&world.cluster).edit(json!({"suspend": false}));
}

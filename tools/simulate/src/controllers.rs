//! Behind the API server: Jobs create pods, pods create processes, and objects without an owner are deleted.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use redisbench_benchmark::conductor::GRACE_PERIOD;
use redisbench_wire::exit::ABANDONED;
use serde_json::Value;

use crate::cluster::{Index, Kind, address_of};
use crate::shards;
use crate::world::{World, lock};

/// The reactions to a served write.
pub fn react(world: &Arc<World>, method: &Method, path: &str, before: Option<Value>) {
    let soon = world.between(5, 400);
    if *method == Method::POST {
        // The owner may have been deleted already.
        world.after(soon * 3, collect_garbage);
    }
    match (method.as_str(), before) {
        ("POST", _) if path.ends_with("/jobs") => world.after(soon, sync_jobs),
        ("DELETE", Some(pod)) if Kind::of(path) == Some(Kind::Pods) => end_pod(world, &pod),
        ("DELETE", Some(_)) => world.after(soon, collect_garbage),
        _ => {}
    }
}

/// The user deletes the benchmark, or someone deletes its Job by mistake.
pub fn delete(world: &Arc<World>, kind: Kind) {
    lock(&world.cluster).remove_all(kind);
    let soon = world.between(5, world.scenario.garbage);
    world.after(soon, collect_garbage);
}

/// Deletes a pod. Evicted pods also get the condition for it.
pub fn delete_pod(world: &Arc<World>, pod: &Value, evicted: bool) {
    let mut cluster = lock(&world.cluster);
    if evicted {
        cluster.mark_disrupted(pod);
    }
    cluster.mark_deleted(pod, world.now().as_secs());
    drop(cluster);
    end_pod(world, pod);
}

/// Deletes objects without an owner.
fn collect_garbage(world: &Arc<World>) {
    let (pods, deleted) = lock(&world.cluster).collect_garbage(world.now().as_secs());
    for pod in &pods {
        end_pod(world, pod);
    }
    if deleted {
        let soon = world.between(5, 400);
        world.after(soon, collect_garbage);
    }
}

/// The kubelet tells the process of a pod with a deletion timestamp to terminate, and its object is removed once it has ended.
fn end_pod(world: &Arc<World>, pod: &Value) {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let soon = world.between(5, 300);
    world.after(soon, move |world| {
        let address = address_of(&uid);
        if !world.is_cut(address) {
            shards::terminate(world, address);
            return await_end(world, uid, world.now() + GRACE_PERIOD);
        }
        if let Some(process) = lock(&world.processes).get_mut(&address) {
            process.forsaken = true;
        }
        remove_pod(world, uid);
    });
}

/// Waits for the end of a pod's process, and kills it at `until`.
fn await_end(world: &Arc<World>, uid: String, until: Duration) {
    let address = address_of(&uid);
    let alive = lock(&world.processes).get(&address).is_some_and(|process| process.exited.is_none());
    if alive && world.now() < until {
        return world.after(Duration::from_millis(250), move |world| await_end(world, uid, until));
    }
    shards::kill(world, address, 137);
    remove_pod(world, uid);
}

fn remove_pod(world: &Arc<World>, uid: String) {
    let gone = world.between(300, 1_500);
    world.after(gone, move |world| {
        lock(&world.cluster).remove_pod(&uid);
        sync_jobs(world);
    });
}

/// The kubelet reports that the container of a pod has ended.
pub fn end_container(world: &Arc<World>, uid: &str, code: i32) {
    if lock(&world.cluster).end_container(uid, code) {
        let soon = world.between(5, 400);
        world.after(soon, sync_jobs);
    }
}

/// The Job controller reconciles its Jobs.
fn sync_jobs(world: &Arc<World>) {
    let jobs = lock(&world.cluster).list(Kind::Jobs);
    for job in &jobs {
        sync_job(world, job);
    }
}

fn sync_job(world: &Arc<World>, job: &Value) {
    let completions = u32::try_from(job["spec"]["completions"].as_u64().unwrap_or(0)).unwrap_or(0);
    let mut over = 0;
    for index in 0..completions {
        let retried = |code: Option<i64>| {
            world.check(code != Some(ABANDONED.into()), || {
                format!("shard {index} gave up a started trial, and is replaced")
            });
        };
        let state = lock(&world.cluster).sync_index(job, index, retried);
        match state {
            Index::Over => over += 1,
            Index::Active => {}
            Index::Vacant => {
                let (job, wait) = (job.clone(), world.between(10, 3_000));
                world.after(wait, move |world| create_pod(world, &job, index));
            }
        }
    }
    if completions > 0 && over == completions {
        lock(&world.cluster).finish_job(job, completions);
    }
}

fn create_pod(world: &Arc<World>, job: &Value, index: u32) {
    let created = lock(&world.cluster).create_pod(job, index, world.now().as_secs());
    let Some(uid) = created else { return };
    let wait = if world.chance(0.05) { world.between(5_000, 20_000) } else { world.between(50, 2_000) };
    world.after(wait, move |world| run_pod(world, &uid, index));
}

/// The kubelet starts the process of a pod.
fn run_pod(world: &Arc<World>, uid: &str, index: u32) {
    let started = lock(&world.cluster).run_pod(uid);
    if let Some(run) = started {
        shards::begin(world, address_of(uid), index, uid, &run);
    }
}

//! Operators: the real reconciler and conducting tasks, on caches with delays.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::ready;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::controller::{Config, ReconcileRequest, applier};
use kube::runtime::reflector::{ObjectRef, store};
use kube::runtime::watcher::Event;
use redisbench_benchmark::conductor::WallClock;
use redisbench_operator::build::{Drivers, Run};
use redisbench_operator::controller::{Context, Guarded, Settings, pod_store, reconcile, retry};
use redisbench_operator::environment::{Compute, Environment};
use redisbench_operator::tasks::TaskRegistry;
use redisbench_operator::telemetry::chain;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::api_server::client;
use crate::calls::SimulatedCalls;
use crate::clock::time_of_day;
use crate::cluster::{Change, Kind};
use crate::scenario::{NAME, NAMESPACE};
use crate::world::{Freezer, World, lock};

/// The processes that lead, or believe that they do. The newest is last.
#[derive(Default)]
pub struct Operators {
    alive: Mutex<Vec<Operator>>,
    begun: AtomicU64,
}

struct Operator {
    name: String,
    freezer: Arc<Freezer>,
    registry: TaskRegistry,
    tasks: Vec<AbortHandle>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.registry.stop_all();
    }
}

impl Operators {
    /// Starts another leading operator.
    pub fn begin(&self, world: &Arc<World>) {
        let number = self.begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let operator = Operator::begin(world, format!("operator-{number}"));
        lock(&self.alive).push(operator);
    }

    /// Kills the newest. False if there is none.
    pub fn kill_leader(&self, world: &World) {
        if let Some(operator) = lock(&self.alive).pop() {
            world.tell(format_args!("{} is killed", operator.name));
        }
    }

    /// Freezes the newest, and returns its name.
    pub fn freeze_leader(&self, world: &World) -> Option<String> {
        let alive = lock(&self.alive);
        let leader = alive.last()?;
        world.tell(format_args!("{} is frozen", leader.name));
        leader.freezer.freeze();
        Some(leader.name.clone())
    }

    pub fn thaw(&self, world: &World, name: &str) {
        if let Some(operator) = lock(&self.alive).iter().find(|operator| operator.name == name) {
            world.tell(format_args!("{name} continues"));
            operator.freezer.thaw();
        }
    }

    /// Ends the operator `name`, if it is still alive. `how` is for the trace.
    pub fn end(&self, world: &World, name: &str, how: &str) {
        let mut alive = lock(&self.alive);
        if let Some(at) = alive.iter().position(|operator| operator.name == name) {
            world.tell(format_args!("{name} {how}"));
            alive.remove(at);
        }
    }

    /// Makes sure that exactly one operator leads.
    pub fn settle(&self, world: &Arc<World>) {
        let mut alive = lock(&self.alive);
        while alive.len() > 1 {
            let ended = alive.remove(0);
            world.tell(format_args!("{} ends", ended.name));
        }
        if let Some(leader) = alive.first() {
            leader.freezer.thaw();
        }
        let none = alive.is_empty();
        drop(alive);
        if none {
            self.begin(world);
        }
    }
}

impl Operator {
    fn begin(world: &Arc<World>, name: String) -> Self {
        world.tell(format_args!("{name} starts"));
        let freezer = Arc::new(Freezer::default());
        let registry = {
            let (world, operator) = (world.clone(), name.clone());
            let (freezer, hosting) = (freezer.clone(), freezer.clone());
            let calls = move |run: &Run| SimulatedCalls {
                world: world.clone(),
                operator: operator.clone(),
                freezer: freezer.clone(),
                run: run.id.clone(),
                released: AtomicU64::new(0),
            };
            TaskRegistry::simulated(move |run| Arc::new(calls(run)), move |task| hosting.host(task))
        };
        // The wall clocks of machines differ by a second or so.
        let ahead = Duration::from_millis(world.number() % 2_000);
        let (clock, rng) = (world.clone(), world.clone());
        let environment = Environment {
            wall_clock: WallClock::new(move || time_of_day(clock.now()) + ahead),
            chance: Arc::new(move || rng.number()),
            compute: Compute::Here,
        };
        let (jobs, mut job_writer) = store::<Job>();
        let (pods, mut pod_writer) = pod_store::store();
        let (benchmarks, mut benchmark_writer) = store::<Guarded>();
        let (wake, woken) = mpsc::channel(1024);
        let settings = Settings {
            image: "loadgen".into(),
            clients_image: "clients".into(),
            pull_policy: "Never".into(),
            drivers: Drivers::default(),
            master_key: Arc::new([7; 32]),
        };
        let client = client(world, name.clone());
        let context = Context::simulated(client, settings, environment, registry.clone(), (jobs, pods), wake.clone());
        let queue = futures::stream::unfold(woken, async |mut woken| Some((woken.recv().await?, woken)))
            .map(|object| Ok::<_, std::convert::Infallible>(ReconcileRequest::from(object)));
        let control = applier(
            |object, context| reconcile(object, context).boxed(),
            retry,
            context.into(),
            benchmarks,
            Box::pin(queue),
            Config::default().concurrency(16),
        );
        let (told, teller) = (world.clone(), name.clone());
        let control = control.for_each(move |result| {
            if let Err(error) = result {
                told.tell(format_args!("{teller}: {}", chain(&error)));
            }
            ready(())
        });
        let cache_benchmarks = move |event: &Event<Guarded>| benchmark_writer.apply_watcher_event(event);
        let cache_jobs = move |event: &Event<Job>| job_writer.apply_watcher_event(event);
        let cache_pods = move |event: &Event<Pod>| pod_writer.apply_watcher_event(event);
        let tasks = vec![
            tokio::spawn(freezer.host(control)).abort_handle(),
            inform(world, &freezer, Kind::Benchmarks, cache_benchmarks, &wake, Some(registry.clone())),
            inform(world, &freezer, Kind::Jobs, cache_jobs, &wake, None),
            inform(world, &freezer, Kind::Pods, cache_pods, &wake, None),
        ];
        Self { name, freezer, registry, tasks }
    }
}

/// Updates one cache with delays, and wakes the reconciler. After a broken watch or a frozen process it starts again from a list.
fn inform<K>(
    world: &Arc<World>,
    freezer: &Arc<Freezer>,
    kind: Kind,
    mut cache: impl FnMut(&Event<K>) + Send + 'static,
    wake: &mpsc::Sender<ObjectRef<Guarded>>,
    registry: Option<TaskRegistry>,
) -> AbortHandle
where
    K: DeserializeOwned + Send + 'static,
{
    let (world, wake, own) = (world.clone(), wake.clone(), freezer.clone());
    let keep = async move {
        loop {
            while !world.broken_for().is_zero() {
                sleep(world.broken_for()).await;
            }
            wait_for_watch(&world).await;
            let watch = (lock(&world.weather).breaks, own.thaws());
            let (there, mut changes) = lock(&world.cluster).watch(kind);
            if let Some(registry) = &registry {
                forget_absent(registry, &there);
            }
            cache(&Event::Init);
            for object in there.iter().filter_map(read::<K>) {
                cache(&Event::InitApply(object));
            }
            cache(&Event::InitDone);
            loop {
                let _ = wake.try_send(ObjectRef::new(NAME).within(NAMESPACE));
                let Some(change) = changes.recv().await else { return };
                wait_for_watch(&world).await;
                if watch != (lock(&world.weather).breaks, own.thaws()) {
                    break;
                }
                match change {
                    Change::Applied(object) => {
                        if let Some(object) = read(&object) {
                            cache(&Event::Apply(object));
                        }
                    }
                    Change::Deleted(object) => {
                        if let (Some(registry), Some(uid)) = (&registry, object["metadata"]["uid"].as_str()) {
                            registry.forget(uid);
                        }
                        if let Some(object) = read(&object) {
                            cache(&Event::Delete(object));
                        }
                    }
                }
            }
        }
    };
    tokio::spawn(freezer.host(keep)).abort_handle()
}

/// A broken watch may have missed deletions.
fn forget_absent(registry: &TaskRegistry, there: &[Value]) {
    for uid in registry.of_namespace(None) {
        if !there.iter().any(|object| object["metadata"]["uid"] == uid.as_str()) {
            registry.forget(&uid);
        }
    }
}

fn read<K: DeserializeOwned>(object: &Value) -> Option<K> {
    K::deserialize(object).ok()
}

/// Waits for the delay of a watch, and longer while the API server is unavailable.
async fn wait_for_watch(world: &World) {
    let lag = if world.chance(0.1) { world.scenario.api.lag } else { 10 };
    sleep(world.between(0, lag)).await;
    while lock(&world.weather).api_away {
        sleep(Duration::from_millis(250)).await;
    }
}

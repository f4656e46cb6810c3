//! The context of every reconciliation: settings, clients, caches and tasks.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use kube::Client;
use kube::core::DeserializeGuard;
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector::{ObjectRef, Store};
use redisbench_benchmark::api::RedisBenchmark;
use tokio::sync::mpsc;

use super::cache::Cache;
use super::observe::Reads;
use super::pod_store::PodStore;
use crate::build::Drivers;
use crate::environment::Environment;
use crate::metrics::OperatorMetrics;
use crate::tasks::TaskRegistry;

/// A benchmark, or the reason why it could not be parsed.
pub type Guarded = DeserializeGuard<RedisBenchmark>;

/// Settings that do not change while the operator runs.
#[derive(Clone)]
pub struct Settings {
    pub image: String,
    /// For benchmarks with client libraries.
    pub clients_image: String,
    pub pull_policy: String,
    pub drivers: Drivers,
    /// The key from which the credentials of all runs are derived.
    pub master_key: Arc<[u8; 32]>,
}

#[derive(Clone)]
pub struct Shared {
    pub client: Client,
    pub settings: Settings,
    /// Shared by all, so that equal events are aggregated into one with a count.
    pub recorder: Recorder,
    pub metrics: OperatorMetrics,
    pub tasks: TaskRegistry,
    pub(super) cache: Arc<Cache>,
    pub(super) environment: Environment,
}

impl Shared {
    pub fn new(
        client: Client,
        settings: Settings,
        recorder: Recorder,
        metrics: OperatorMetrics,
        tasks: TaskRegistry,
    ) -> Self {
        let environment = Environment { compute: tasks.compute(), ..Environment::default() };
        let cache = Arc::default();
        Self { client, settings, recorder, metrics, tasks, cache, environment }
    }

    /// The UIDs of benchmarks in `namespace`, or in all namespaces, that have a conducting task or an entry in the cache.
    pub(super) fn remembered(&self, namespace: Option<&str>) -> HashSet<String> {
        self.tasks.of_namespace(namespace).into_iter().chain(self.cache.of_namespace(namespace)).collect()
    }

    /// Stops the load of a deleted benchmark, and drops its state.
    pub(super) fn forget(&self, uid: &str) {
        self.tasks.forget(uid);
        self.cache.forget(uid);
    }
}

/// The context of reconciling in one scope: a namespace, or all of them.
pub struct Context {
    pub(super) shared: Shared,
    pub(super) reads: Reads,
    pub(super) wake: mpsc::Sender<ObjectRef<Guarded>>,
}

impl Context {
    /// For a simulation, which fills the caches and calls `reconcile` itself. Its metrics are not served.
    pub fn simulated(
        client: Client,
        settings: Settings,
        environment: Environment,
        tasks: TaskRegistry,
        (jobs, pods): (Store<Job>, PodStore),
        wake: mpsc::Sender<ObjectRef<Guarded>>,
    ) -> Self {
        let reporter = Reporter { controller: "redisbench-operator".into(), instance: Some("simulated".into()) };
        let recorder = Recorder::new(client.clone(), reporter);
        let shared = Shared::new(client.clone(), settings, recorder, OperatorMetrics::default(), tasks);
        Self { shared: Shared { environment, ..shared }, reads: Reads { client, jobs, pods }, wake }
    }
}

//! The triggers of reconcile: watches of benchmarks, Jobs and pods, and the conducting tasks.

use std::collections::HashSet;
use std::future::ready;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt as _, Stream, StreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::controller::{Config, Error, ReconcileRequest, applier, trigger_self, trigger_with};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::context::{Context, Guarded, Shared};
use super::observe::{Reads, strip};
use super::pod_store::{self, PodWriter};
use super::status::strip_finished;
use super::step::{reconcile, retry};
use super::throttle::throttled;
use crate::build::{BENCHMARK_LABEL, RUN_LABEL};

/// Concurrent reconciliations, of different benchmarks.
const CONCURRENCY: u16 = 16;
/// Capacity of the queue of wakes. Each is a benchmark's name, and one for a benchmark that is already scheduled costs nothing.
const WAKES: usize = 1024;
/// Pods' events reconcile a benchmark at most once per this interval. A reconciliation looks at all pods of a run, and each of 2,000 pods
/// has several events while it starts.
const POD_INTERVAL: Duration = Duration::from_millis(200);
/// Benchmarks per page of a list. A whole page is in memory, as text and as objects with statuses of up to 320 KiB, before it is stripped
/// for the cache. Pods and Jobs are small and keep the default of 500.
const PAGE: u32 = 50;

/// A watched scope: one namespace, or all of them.
pub struct Scope {
    namespace: Option<String>,
    store: Store<Guarded>,
    writer: Writer<Guarded>,
}

impl Scope {
    /// Does not watch yet.
    pub fn new(namespace: Option<String>) -> Self {
        let (store, writer) = store();
        Self { namespace, store, writer }
    }

    /// The benchmarks in it, once it is watched.
    pub fn store(&self) -> Store<Guarded> {
        self.store.clone()
    }

    fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        }
    }

    /// Counts events and failures of its watch of `resource`.
    fn counted(&self, shared: &Shared, resource: &'static str) -> impl Fn(bool) + Send + use<> {
        let (metrics, namespace) = (shared.metrics.clone(), self.namespace.clone());
        move |succeeded| metrics.watched(resource, namespace.as_deref(), succeeded)
    }

    pub async fn run(self, shared: Shared) {
        let client = shared.client.clone();
        let (jobs, mut job_writer) = store::<Job>();
        let (pods, pod_writer) = pod_store::store();
        let (wake, woken) = mpsc::channel(WAKES);
        let queue = futures::stream::select_all([
            related::<Job>(
                self.api(&client),
                move |event| job_writer.apply_watcher_event(event),
                without_managers,
                self.counted(&shared, "jobs"),
            )
            .boxed(),
            of_pods(self.api(&client), pod_writer, self.counted(&shared, "pods")),
            futures::stream::unfold(woken, async |mut woken| Some((Ok(woken.recv().await?), woken)))
                .map(|item: Result<ObjectRef<Guarded>, watcher::Error>| item.map(ReconcileRequest::from))
                .boxed(),
        ]);
        let store = self.store.clone();
        let forget = Forget { namespace: self.namespace.clone(), store: store.clone(), shared: shared.clone() };
        let count = self.counted(&shared, "redisbenchmarks");
        let benchmarks = benchmarks(self.api(&client), self.writer).inspect(move |event| {
            count(event.is_ok());
            forget.look(event);
        });
        let queue = futures::stream::select(trigger_self(benchmarks.touched_objects(), ()), queue);
        let metrics = shared.metrics.clone();
        let queue = queue.inspect(move |request| {
            if let Ok(request) = request {
                metrics.queued(request.obj_ref.namespace.as_deref(), &request.obj_ref.name);
            }
        });
        let metrics = shared.metrics.clone();
        let context = Context { reads: Reads { client, jobs, pods }, shared, wake };
        applier(
            |object, context| {
                // In a task of its own: a long step or a panic of one benchmark affects neither the others nor the Lease.
                let task = AbortOnDropHandle::new(tokio::spawn(reconcile(object, context)));
                async { task.await.unwrap_or_else(|error| Err(error.into())) }.boxed()
            },
            retry,
            context.into(),
            store,
            queue,
            Config::default().concurrency(CONCURRENCY),
        )
        .for_each(|result| {
            match result {
                Ok(_) | Err(Error::ReconcilerFailed(..)) => {}
                // Woken for a deleted benchmark.
                Err(Error::ObjectNotFound(object)) => metrics.dequeued(object.namespace.as_deref(), &object.name),
                Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "a watch failed"),
            }
            ready(())
        })
        .await;
    }
}

/// Watches benchmarks, and caches them.
fn benchmarks(
    api: Api<Guarded>,
    writer: Writer<Guarded>,
) -> impl Stream<Item = Result<Event<Guarded>, watcher::Error>> + Send {
    let config = watcher::Config::default().page_size(PAGE);
    watcher(api, config).default_backoff().modify(strip_benchmark).reflect(writer)
}

/// Removes what no reader of the cache uses.
fn strip_benchmark(object: &mut Guarded) {
    object.meta_mut().managed_fields = None;
    if let Ok(benchmark) = &mut object.0
        && let Some(status) = benchmark.status.as_mut().filter(|status| status.phase.is_terminal())
    {
        strip_finished(status);
    }
}

/// Like [`related`], for pods, and throttled.
fn of_pods(
    api: Api<Pod>,
    mut writer: PodWriter,
    count: impl Fn(bool) + Send + 'static,
) -> BoxStream<'static, Result<ReconcileRequest<Guarded>, watcher::Error>> {
    let cache = move |event: &Event<Pod>| writer.apply_watcher_event(event);
    throttled(related(api, cache, strip, count).boxed(), POD_INTERVAL).boxed()
}

fn without_managers(job: &mut Job) {
    job.metadata.managed_fields = None;
}

/// Watches children of benchmarks, gives `cache` what `reduce` leaves of them, and triggers reconciliations of their benchmarks.
fn related<K>(
    api: Api<K>,
    mut cache: impl FnMut(&Event<K>) + Send,
    reduce: impl FnMut(&mut K) + Send,
    count: impl Fn(bool) + Send,
) -> impl Stream<Item = Result<ReconcileRequest<Guarded>, watcher::Error>> + Send
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let stream = watcher(api, watcher::Config::default().labels(RUN_LABEL))
        .default_backoff()
        .modify(reduce)
        .inspect(move |event| {
            count(event.is_ok());
            if let Ok(event) = event {
                cache(event);
            }
        })
        .touched_objects();
    trigger_with(stream, |object: K| {
        let name = object.labels().get(BENCHMARK_LABEL).cloned();
        Some(ObjectRef::<Guarded>::new(&name?).within(&object.namespace()?))
    })
}

/// Drops the state of deleted benchmarks. Their conducting tasks stop the load first; the shards end when their pods are deleted with the
/// benchmark.
struct Forget {
    namespace: Option<String>,
    store: Store<Guarded>,
    shared: Shared,
}

impl Forget {
    fn look(&self, event: &Result<Event<Guarded>, watcher::Error>) {
        match event {
            Ok(Event::Delete(object)) => {
                if let Some(uid) = &object.meta().uid {
                    self.shared.forget(uid);
                }
            }
            // An interrupted watch may have missed deletions.
            Ok(Event::InitDone) => {
                let present: HashSet<String> = self.store.state().iter().filter_map(|object| object.uid()).collect();
                for uid in self.shared.remembered(self.namespace.as_deref()) {
                    if !present.contains(&uid) {
                        self.shared.forget(&uid);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::{Arc, Mutex};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::build::Run;
    use crate::environment::Compute;
    use crate::testing::{FakeServer, benchmark, pod, run, status};

    /// A client of a server that has `items`, which never change.
    fn listing(items: &[Value]) -> Client {
        let list = json!({"metadata": {"resourceVersion": "1"}, "items": items}).to_string();
        let service = tower::service_fn(move |request: Request<Body>| {
            let list = list.clone();
            async move {
                if request.uri().query().is_some_and(|query| query.contains("watch=")) {
                    std::future::pending::<()>().await;
                }
                Ok::<_, std::io::Error>(Response::new(Body::from(list.into_bytes())))
            }
        });
        Client::new(service, "default")
    }

    /// The pod `name` of the first shard of benchmark `cart`, with a spec.
    fn shard(name: &str) -> Value {
        let mut shard = pod(0, name, &json!({"phase": "Pending"}));
        shard["metadata"]["labels"][BENCHMARK_LABEL] = "cart".into();
        shard["spec"]["containers"] = json!([{"name": "loadgen", "image": "loadgen:1"}]);
        shard
    }

    #[tokio::test(start_paused = true)]
    async fn pods_are_cached_stripped_and_their_events_are_throttled() {
        let (pods, writer) = pod_store::store();
        let mut requests = of_pods(Api::all(listing(&["a", "b", "c"].map(shard))), writer, |_| ());
        let (began, mut served) = (Instant::now(), Vec::new());
        while let Ok(Some(request)) = timeout(10 * POD_INTERVAL, requests.next()).await {
            assert_eq!(request.unwrap().obj_ref, ObjectRef::new("cart").within("perf"));
            served.push(began.elapsed() >= POD_INTERVAL);
        }
        assert_eq!(served, [false, true]);
        let cached = pods.of_run(&run());
        assert_eq!(cached.len(), 3);
        for pod in cached {
            assert_eq!(pod.labels()[RUN_LABEL], run().id);
            assert_eq!(pod.spec.as_ref().unwrap().containers, []);
        }
    }

    #[tokio::test]
    async fn finished_benchmarks_are_cached_stripped() {
        let object = |name: &str, phase: &str| {
            let managers = json!([{"manager": "kubectl"}]);
            let mut object = benchmark(json!({"metadata": {"name": name, "uid": name, "managedFields": managers}}));
            object.status = Some(status(json!({"phase": phase, "topology": {"primaries": 1, "replicas": 0}})));
            serde_json::to_value(object).unwrap()
        };
        let (cached, writer) = store::<Guarded>();
        let client = listing(&[object("a", "Running"), object("b", "Succeeded")]);
        let mut events = pin!(benchmarks(Api::all(client), writer));
        while !matches!(events.next().await.unwrap().unwrap(), Event::InitDone) {}
        let of = |object: &Guarded| {
            let known = object.0.as_ref().unwrap();
            assert_eq!(known.metadata.managed_fields, None);
            (known.name_any(), known.status.as_ref().unwrap().topology.is_some())
        };
        let mut all: Vec<_> = cached.state().iter().map(|object| of(object)).collect();
        all.sort();
        assert_eq!(all, [("a".to_owned(), true), ("b".to_owned(), false)]);
    }

    #[tokio::test]
    async fn benchmarks_are_listed_in_small_pages() {
        // The server has a second page.
        let queries = Arc::new(Mutex::new(Vec::new()));
        let asked = queries.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let mut metadata = json!({"resourceVersion": "1"});
            if !query.contains("continue=") {
                metadata["continue"] = "more".into();
            }
            asked.lock().unwrap().push(query);
            let list = json!({"metadata": metadata, "items": []}).to_string();
            async move { Ok::<_, std::io::Error>(Response::new(Body::from(list.into_bytes()))) }
        });
        let mut events = pin!(benchmarks(Api::all(Client::new(service, "default")), store().1));
        while !matches!(events.next().await.unwrap().unwrap(), Event::InitDone) {}
        let queries = queries.lock().unwrap();
        assert_eq!(queries.len(), 2, "{queries:?}");
        assert!(queries.iter().all(|query| query.split('&').any(|part| part == "limit=50")), "{queries:?}");
    }

    #[tokio::test]
    async fn what_vanishes_while_a_watch_is_broken_is_forgotten() {
        let shared = Shared::of_test(FakeServer::default().client());
        let there = benchmark(json!({}));
        for (namespace, uid) in [("perf", "u-1"), ("perf", "gone"), ("other", "not-watched-here")] {
            let run = Run { namespace: namespace.into(), benchmark: "cart".into(), uid: uid.into(), id: "r".into() };
            shared
                .cache
                .plan(&run, &there.spec, &shared.settings.drivers, &Compute::Here, &shared.tasks)
                .await
                .unwrap();
        }
        let (store, mut writer) = store();
        let forget = Forget { namespace: Some("perf".into()), store, shared: shared.clone() };
        let there: Guarded = serde_json::from_value(serde_json::to_value(there).unwrap()).unwrap();
        let mut hear = |event| {
            writer.apply_watcher_event(&event);
            forget.look(&Ok(event));
        };
        hear(Event::Init);
        hear(Event::InitApply(there));
        hear(Event::InitDone);
        let mut remembered: Vec<_> = shared.remembered(None).into_iter().collect();
        remembered.sort();
        assert_eq!(remembered, ["not-watched-here", "u-1"]);
    }
}

//! Whole reconciliations against an in-memory API server.

mod aggregate;
mod calls;
mod faults;
mod hostile;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::controller::Action as Requeue;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, store};
use kube::runtime::watcher::Event;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::VerdictValue;
use redisbench_benchmark::report::Finished;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::apply::ApplyError;
use super::cache::Cache;
use super::observe::Reads;
use super::pod_store::{self, PodWriter};
use super::status::strip_finished;
use super::{Context, Guarded, ReconcileError, Shared, reconcile, retry};
use crate::environment::Compute;
use crate::tasks::{ConductTask, TaskRegistry};
use crate::testing::{CART, FakeServer, benchmark, finished, job, pod, run, status};

mod outages;
mod search;

struct World {
    server: FakeServer,
    context: Arc<Context>,
    jobs: Writer<Job>,
    pods: PodWriter,
    woken: mpsc::Receiver<ObjectRef<Guarded>>,
}

impl World {
    fn new() -> Self {
        Self::of(TaskRegistry::default())
    }

    /// A world whose conducting tasks are those of `tasks`.
    fn of(tasks: TaskRegistry) -> Self {
        let server = FakeServer::default();
        let client = server.client();
        let (job_store, mut jobs) = store();
        let (cached_pods, mut pods) = pod_store::store();
        jobs.apply_watcher_event(&Event::InitDone);
        pods.apply_watcher_event(&Event::InitDone);
        let (wake, woken) = mpsc::channel(8);
        let shared = Shared { tasks, ..Shared::of_test(client.clone()) };
        let context = Context { reads: Reads { client, jobs: job_store, pods: cached_pods }, shared, wake };
        Self { server, context: Arc::new(context), jobs, pods, woken }
    }

    /// Stores the benchmark on the server.
    fn put(&self, mut benchmark: RedisBenchmark, status: Option<Value>) {
        benchmark.status = status.map(crate::testing::status);
        self.server.put(CART, benchmark);
    }

    /// The object on the server, as the watch would deliver it.
    fn object(&self) -> Arc<Guarded> {
        Arc::new(serde_json::from_value(self.server.get(CART).unwrap()).unwrap())
    }

    async fn reconcile(&self) -> Result<Requeue, ReconcileError> {
        reconcile(self.object(), self.context.clone()).await
    }

    fn retry(&self, error: &ReconcileError) -> Requeue {
        retry(self.object(), error, self.context.clone())
    }

    fn status(&self) -> Value {
        self.server.get(CART).unwrap()["status"].clone()
    }

    fn conduct(&self) -> Option<Arc<ConductTask>> {
        self.context.shared.tasks.get("u-1")
    }

    /// All writes except events.
    fn writes(&self) -> Vec<String> {
        self.server.take_writes().into_iter().filter(|call| !call.contains("/events")).collect()
    }

    fn condition(&self, kind: &str) -> Value {
        let conditions = self.status()["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
    }
}

const JOB: &str = "/apis/batch/v1/namespaces/perf/jobs";
const SECRET: &str = "/api/v1/namespaces/perf/secrets";
const BUDGET: &str = "/apis/policy/v1/namespaces/perf/poddisruptionbudgets";

fn patch_status() -> String {
    format!("PATCH {CART}/status")
}

#[tokio::test]
async fn a_new_benchmark_gets_its_run_then_its_children() {
    let world = World::new();
    world.put(benchmark(json!({})), None);
    world.reconcile().await.unwrap();
    assert_eq!(
        world.writes(),
        [patch_status(), format!("POST {SECRET}"), format!("POST {BUDGET}"), format!("POST {JOB}")]
    );
    let status = world.status();
    assert_eq!(status["phase"], "Preparing");
    let run = status["runId"].as_str().unwrap();
    let name = format!("cart-{}", &run[run.len() - 8..]);
    assert!(world.server.get(&format!("{JOB}/{name}")).is_some());
    assert!(world.server.get(&format!("{SECRET}/{name}")).is_some());
    assert!(world.conduct().is_some());
}

#[tokio::test]
async fn reconciliations_and_trials_share_the_permits_of_merges() {
    let shared = Shared::of_test(FakeServer::default().client());
    let (Compute::OnAnotherThread(of_reconciling), Compute::OnAnotherThread(of_trials)) =
        (shared.environment.compute, shared.tasks.compute())
    else {
        panic!("computing on this thread");
    };
    assert!(Arc::ptr_eq(&of_reconciling, &of_trials));
}

#[tokio::test]
async fn a_finished_benchmark_is_not_written_to() {
    let world = World::new();
    for phase in ["Succeeded", "Failed", "Aborted"] {
        world.put(
            benchmark(json!({})),
            Some(json!({"phase": phase, "conditions": [{
                "type": "Finished", "status": "True", "reason": phase, "message": "m", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]})),
        );
        assert_eq!(world.reconcile().await.unwrap(), Requeue::await_change());
        assert_eq!(world.server.take_writes(), Vec::<String>::new(), "{phase}");
    }
}

#[tokio::test]
async fn a_finished_benchmark_needs_no_plan() {
    let world = World::new();
    world.put(benchmark(json!({})), None);
    world.reconcile().await.unwrap();
    assert!(world.context.shared.cache.has_plan("u-1"));
    world.put(benchmark(json!({})), Some(json!({"phase": "Aborted"})));
    // The first reconciliation stops the task.
    for _ in 0..2 {
        world.reconcile().await.unwrap();
    }
    assert!(!world.context.shared.cache.has_plan("u-1"));
}

#[tokio::test]
async fn a_suspended_benchmark_keeps_no_plan() {
    let world = World::new();
    let suspended = || benchmark(json!({"spec": {"suspend": true}}));
    world.put(suspended(), None);
    world.reconcile().await.unwrap();
    assert_eq!(
        (world.status()["phase"].as_str(), world.condition("Accepted")["status"].as_str()),
        (Some("Suspended"), Some("True"))
    );
    assert!(!world.context.shared.cache.has_plan("u-1"));
    // Also during a run: first its task is stopped.
    world.put(benchmark(json!({})), None);
    for _ in 0..2 {
        world.reconcile().await.unwrap();
    }
    assert!(world.context.shared.cache.has_plan("u-1"));
    let state = world.status();
    world.put(suspended(), Some(state));
    for _ in 0..2 {
        world.reconcile().await.unwrap();
        assert_eq!(world.status()["phase"], "Suspended");
        assert!(!world.context.shared.cache.has_plan("u-1"));
    }
    let state = world.status();
    world.put(benchmark(json!({})), Some(state));
    world.reconcile().await.unwrap();
    assert_eq!(world.status()["phase"], "Preparing");
    assert!(world.conduct().is_some());
}

#[tokio::test]
async fn benchmarks_whose_plans_exceed_the_budget_run_one_after_the_other() {
    const BASKET: &str = "/apis/redisbench.dev/v1alpha1/namespaces/perf/redisbenchmarks/basket";
    let mut world = World::new();
    Arc::get_mut(&mut world.context).unwrap().shared.cache = Arc::new(Cache::within(1));
    world.put(benchmark(json!({})), None);
    world.server.put(BASKET, benchmark(json!({"metadata": {"name": "basket", "uid": "u-2"}})));
    let shared = &world.context.shared;
    let reconciled = async |path: &str| {
        let object = serde_json::from_value(world.server.get(path).unwrap()).unwrap();
        let again = reconcile(Arc::new(object), world.context.clone()).await.unwrap();
        let status = world.server.get(path).unwrap()["status"].clone();
        (status["phase"].as_str().unwrap_or_default().to_owned(), status, again)
    };
    for conducted in [false, true, true] {
        assert_eq!(reconciled(CART).await.0, "Preparing");
        assert!(shared.tasks.get("u-1").is_some());
        // Kept from the first reconciliation in which it is conducted.
        assert_eq!(shared.cache.has_plan("u-1"), conducted);
    }
    let (phase, waiting, _) = reconciled(BASKET).await;
    assert_eq!(phase, "Pending");
    assert!(waiting["conditions"].to_string().contains("WaitingForMemory"), "{waiting}");
    // Looked at again, and not compiled again.
    let (_, still, again) = reconciled(BASKET).await;
    assert_eq!((still, shared.cache.has_plan("u-2")), (waiting, false));
    assert_ne!(again, Requeue::await_change());
    shared.forget("u-1");
    assert_eq!(reconciled(BASKET).await.0, "Preparing");
    assert!(shared.tasks.get("u-2").is_some());
}

#[tokio::test]
async fn what_is_not_cached_of_a_finished_status_stays_on_the_server() {
    let world = World::new();
    let state = json!({
        "phase": "Succeeded",
        "conditions": [{
            "type": "Finished", "status": "True", "reason": "Succeeded", "message": "m", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "topology": {"primaries": 1, "replicas": 0},
        "artifacts": [{"name": "result.json", "configMap": "cart-result-0"}],
        "verdict": {
            "value": "Valid", "limitedBy": "Rate",
            "reasons": [{"reason": "Misses", "severity": "Valid", "message": "m"}]},
    });
    world.put(benchmark(json!({"metadata": {"generation": 2}})), Some(state));
    let mut expected = world.status();
    expected["observedGeneration"] = json!(2);
    let mut cached = Arc::unwrap_or_clone(world.object());
    strip_finished(cached.0.as_mut().unwrap().status.as_mut().unwrap());
    reconcile(Arc::new(cached), world.context.clone()).await.unwrap();
    assert_eq!(world.status(), expected);
}

#[tokio::test]
async fn an_idle_benchmark_is_written_to_once() {
    for change in [json!({"spec": {"suspend": true}}), json!({"spec": {"load": {"requests": 5}}})] {
        let world = World::new();
        world.put(benchmark(change), None);
        world.reconcile().await.unwrap();
        assert_eq!(world.writes(), [patch_status()]);
        for _ in 0..3 {
            world.reconcile().await.unwrap();
        }
        assert_eq!(world.server.take_writes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_invalid_spec_is_refused_in_one_step_with_a_message() {
    let world = World::new();
    world.put(benchmark(json!({"spec": {"load": {"connections": 1}}})), None);
    world.reconcile().await.unwrap();
    let accepted = world.condition("Accepted");
    assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("False"), &json!("InvalidSpec")));
    assert!(accepted["message"].as_str().unwrap().contains("spec.load.connections"), "{accepted}");
    assert_eq!(world.status()["phase"], "Pending");
}

#[tokio::test]
async fn a_driver_that_the_chart_lacks_is_refused_with_those_that_it_has() {
    let world = World::new();
    let clients = json!([{"name": "a", "type": "Driver", "driver": "jedis"}]);
    world.put(benchmark(json!({"spec": {"load": {"clients": clients}}})), None);
    world.reconcile().await.unwrap();
    let accepted = world.condition("Accepted");
    assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("False"), &json!("InvalidSpec")));
    let expected = "spec.load.clients[0].driver: jedis: is unknown; the drivers are go: name one of these, or add its image to \
                    drivers in the operator's chart";
    assert!(accepted["message"].as_str().unwrap().contains(expected), "{accepted}");
}

#[tokio::test]
async fn a_benchmark_waits_for_the_one_that_it_is_compared_with() {
    const BEFORE: &str = "/apis/redisbench.dev/v1alpha1/namespaces/perf/redisbenchmarks/before";
    let world = World::new();
    let repeats = json!({"count": 5, "interval": "0s"});
    world.put(benchmark(json!({"spec": {"repeats": repeats, "comparison": {"benchmark": "before"}}})), None);
    let accepted = || world.condition("Accepted")["message"].as_str().unwrap_or_default().to_owned();
    assert_ne!(world.reconcile().await.unwrap(), Requeue::await_change());
    assert!(accepted().contains("spec.comparison.benchmark: before: does not exist in this"), "{}", accepted());
    // Not compiled again as long as it waits.
    let (waiting, shared) = (world.status(), &world.context.shared);
    assert_ne!(world.reconcile().await.unwrap(), Requeue::await_change());
    assert_eq!((world.status(), shared.cache.has_plan("u-1")), (waiting, false));
    let mut before = benchmark(json!({"metadata": {"name": "before", "uid": "other"}, "spec": {"repeats": repeats}}));
    let requests = json!({"scheduled": 10, "succeeded": 10, "errors": 0, "unsent": 0});
    let line =
        |index| json!({"index": index, "repeat": index, "state": "Completed", "attempt": 1, "requests": requests});
    let lines: Vec<_> = (0..5).map(line).collect();
    before.status = Some(status(json!({"phase": "Succeeded", "trials": lines})));
    world.server.put(BEFORE, before);
    world.reconcile().await.unwrap();
    assert_eq!(world.condition("Accepted")["status"], "True");
    assert_eq!(world.status()["phase"], "Preparing");
}

#[tokio::test]
async fn an_object_of_another_shape_is_refused_and_written_to_once() {
    let world = World::new();
    let mut object = serde_json::to_value(benchmark(json!({}))).unwrap();
    object["spec"]["load"] = json!("fast");
    world.server.put(CART, object);
    world.reconcile().await.unwrap();
    assert_eq!(world.condition("Accepted")["status"], "False");
    assert_eq!(world.writes(), [patch_status()]);
    world.reconcile().await.unwrap();
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn what_another_version_wrote_of_an_unreadable_object_is_kept() {
    let world = World::new();
    for phase in ["Running", "Rehearsing"] {
        let mut object = serde_json::to_value(benchmark(json!({}))).unwrap();
        object["spec"]["load"] = json!("fast");
        object["status"] = json!({"phase": phase, "runId": "r1", "conductorEpoch": 3, "rehearsals": 2});
        world.server.put(CART, object);
        world.reconcile().await.unwrap();
        assert_eq!(world.condition("Accepted")["status"], "False");
        let status = world.status();
        assert_eq!(
            [&status["phase"], &status["runId"], &status["conductorEpoch"], &status["rehearsals"]],
            [&json!(phase), &json!("r1"), &json!(3), &json!(2)]
        );
        world.server.take_writes();
        world.reconcile().await.unwrap();
        assert_eq!(world.writes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_decision_on_stale_facts_changes_nothing() {
    let world = World::new();
    world.put(benchmark(json!({})), None);
    let stale = world.object();
    world.put(benchmark(json!({"spec": {"suspend": true}})), None);
    let error = reconcile(stale, world.context.clone()).await.unwrap_err();
    assert_eq!(error.class().as_str(), "conflict");
    assert!(world.status().is_null());
    assert_eq!(world.server.paths(), [CART]);
    assert!(world.conduct().is_none());
}

#[tokio::test]
async fn a_foreign_job_of_our_name_is_never_touched() {
    let world = World::new();
    let path = format!("{JOB}/cart-89abcdef");
    world.put(benchmark(json!({})), Some(json!({})));
    world.server.put(&path, json!({"metadata": {"name": "cart-89abcdef", "namespace": "perf", "uid": "foreign"}}));
    let before = world.server.get(&path);
    let error = world.reconcile().await.unwrap_err();
    assert_eq!(error.class().as_str(), "name_taken");
    assert_eq!(world.server.get(&path), before);
    // The next reconciliation reports it.
    world.retry(&error);
    let _ = world.reconcile().await;
    let stalled = world.condition("Stalled");
    assert_eq!((&stalled["status"], &stalled["reason"]), (&json!("True"), &json!("NameTaken")));
    // One event, regardless of the number of retries.
    world.reconcile().await.unwrap_err();
    assert_eq!(world.server.events().iter().filter(|event| *event == "NameTaken").count(), 1);
}

#[tokio::test]
async fn a_benchmark_that_fails_before_it_is_planned_is_remembered_in_its_namespace() {
    for error in [ReconcileError::Timeout, ApplyError::Superseded { name: "cart".into() }.into()] {
        let world = World::new();
        world.put(benchmark(json!({})), None);
        world.retry(&error);
        let shared = &world.context.shared;
        assert_eq!(shared.remembered(Some("perf")), HashSet::from(["u-1".to_owned()]), "{error}");
        assert_eq!(shared.remembered(Some("other")), HashSet::new(), "{error}");
    }
}

#[tokio::test]
async fn children_of_a_finished_run_are_deleted_once() {
    let mut world = World::new();
    world.jobs.apply_watcher_event(&Event::Apply(serde_json::from_value(job()).unwrap()));
    for phase in ["Succeeded", "Failed", "Aborted"] {
        world.server.put(&format!("{JOB}/cart-89abcdef"), job());
        world.put(benchmark(json!({})), Some(json!({"phase": phase})));
        world.reconcile().await.unwrap();
        assert_eq!(world.writes(), [SECRET, BUDGET, JOB].map(|kind| format!("DELETE {kind}/cart-89abcdef")));
    }
    world.jobs.apply_watcher_event(&Event::Delete(serde_json::from_value(job()).unwrap()));
    world.reconcile().await.unwrap();
    assert_eq!(world.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_deleted_benchmark_is_conducted_no_more() {
    let world = World::new();
    world.put(benchmark(json!({})), None);
    world.reconcile().await.unwrap();
    let mut object = world.server.get(CART).unwrap();
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.server.put(CART, object);
    world.server.take_writes();
    world.reconcile().await.unwrap();
    assert!(world.conduct().is_none());
    assert_eq!(world.server.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn pods_that_did_not_stop_are_deleted_at_the_end() {
    const PODS: &str = "/api/v1/namespaces/perf/pods";
    let mut world = World::new();
    world.jobs.apply_watcher_event(&Event::Apply(serde_json::from_value(job()).unwrap()));
    for name in ["a", "b", "c"] {
        let pod = pod(0, name, &json!({"phase": "Running"}));
        world.server.put(&format!("{PODS}/{name}"), &pod);
        world.pods.apply_watcher_event(&Event::Apply(serde_json::from_value(pod).unwrap()));
    }
    let trial = json!({"index": 0, "of": 1, "attempt": 1, "startAt": "2026-01-01T01:00:00.123456Z"});
    world.put(benchmark(json!({})), Some(json!({"phase": "Collecting", "trial": trial})));
    let unacknowledged = ["uid-a", "uid-c", "uid-gone"].map(str::to_owned).to_vec();
    let finished = Finished { unacknowledged, ..finished(0, 1, VerdictValue::Valid) };
    world.context.shared.tasks.put_ended(run(), 1, finished);
    world.reconcile().await.unwrap();
    assert_eq!(world.status()["phase"], "Succeeded");
    let left: Vec<_> = world.server.paths().into_iter().filter(|path| path.starts_with(PODS)).collect();
    assert_eq!(left, [format!("{PODS}/b")]);
}

#[tokio::test]
async fn a_secret_whose_job_was_never_made_goes_with_the_run() {
    let world = World::new();
    let finished = json!([{
        "type": "Finished", "status": "True", "reason": "Failed", "message": "m", "observedGeneration": 1,
        "lastTransitionTime": jiff::Timestamp::now().to_string()}]);
    world.put(benchmark(json!({})), Some(json!({"phase": "Failed", "conditions": finished})));
    world.server.put(&format!("{SECRET}/cart-89abcdef"), json!({"metadata": {"name": "cart-89abcdef"}}));
    world.reconcile().await.unwrap();
    assert_eq!(world.server.paths(), [CART]);
    world.server.take_writes();
    world.reconcile().await.unwrap();
    assert_eq!(world.server.take_writes(), Vec::<String>::new());
}

//! A small in-memory API server for tests: objects by path, resourceVersions with conflicts, merge patches, and a record of every call.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::runtime::events::{Recorder, Reporter};
use redisbench_benchmark::api::status::{LimitedBy, ShardCounts, TrialResult, Verdict, VerdictValue};
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkStatus};
use redisbench_benchmark::measurement::Ending;
use redisbench_benchmark::report::{self, Finished, Measurement};
use redisbench_testkit::api_server::{Permitted, Reply, failure, merge, permit};
use serde_json::{Value, json};

use crate::build::{Drivers, RUN_LABEL, Run};
use crate::client::FIELD_MANAGER;
use crate::controller::{Settings, Shared};
use crate::metrics::OperatorMetrics;
use crate::tasks::TaskRegistry;

/// A handle on the server. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct FakeServer(Arc<Mutex<ServerState>>);

#[derive(Default)]
struct ServerState {
    objects: BTreeMap<String, Value>,
    version: u64,
    calls: Vec<(Method, String)>,
    trouble: Option<Trouble>,
    faults: Vec<(Fault, u32)>,
}

/// A fault that the server injects into matching calls.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) method: &'static str,
    /// Matches a part of the path.
    pub(crate) path: &'static str,
    pub(crate) body: fn(&Value) -> bool,
    pub(crate) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum How {
    /// Refuses with this status and message, without effect on the objects.
    Refusal(u16, &'static str),
    /// Refuses because the namespace is being deleted.
    NamespaceGoing,
    /// Never replies, and does not execute the call.
    Silence,
    /// Never replies, but executes the call.
    LostAnswer,
}

/// A failure of all calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Hangs,
    Unreachable,
    /// Replies 500.
    Fails,
    /// Replies 429 with a retry after one second.
    Throttles,
    /// Replies 409 to every change of an existing object.
    Conflicts,
}

impl Trouble {
    pub(crate) const ALL: [Self; 5] = [Self::Hangs, Self::Unreachable, Self::Fails, Self::Throttles, Self::Conflicts];
}

impl FakeServer {
    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        Client::new(service, "default")
    }

    /// Stores an object at `path`, as another client would.
    pub(crate) fn put(&self, path: &str, object: impl serde::Serialize) {
        let mut contents = self.0.lock().unwrap();
        contents.store(path, serde_json::to_value(object).unwrap());
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.0.lock().unwrap().objects.get(path).cloned()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.0.lock().unwrap().objects.keys().cloned().collect()
    }

    /// Removes the object at `path`, as another client would.
    pub(crate) fn remove(&self, path: &str) {
        self.0.lock().unwrap().objects.remove(path);
    }

    /// Returns the writing calls, oldest first, and clears the record of calls.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        let calls = std::mem::take(&mut self.0.lock().unwrap().calls);
        calls.into_iter().filter(|(method, _)| method != Method::GET).map(|(m, path)| format!("{m} {path}")).collect()
    }

    /// The number of reads of the object at `path` in the record of calls.
    pub(crate) fn reads(&self, path: &str) -> usize {
        let contents = self.0.lock().unwrap();
        contents.calls.iter().filter(|(method, called)| *method == Method::GET && called == path).count()
    }

    /// Makes every call fail in this way, or none.
    pub(crate) fn set_trouble(&self, trouble: Option<Trouble>) {
        self.0.lock().unwrap().trouble = trouble;
    }

    /// Applies `fault` to the next `times` matching calls.
    pub(crate) fn fail(&self, fault: Fault, times: u32) {
        self.0.lock().unwrap().faults.push((fault, times));
    }

    pub(crate) fn mend(&self) {
        self.0.lock().unwrap().faults.clear();
    }

    /// The reasons of all events, repeated as often as each was published.
    pub(crate) fn events(&self) -> Vec<String> {
        let contents = self.0.lock().unwrap();
        let events = contents.objects.iter().filter(|(path, _)| path.contains("/events/"));
        let reasons = events.flat_map(|(_, event)| {
            let times = event["series"]["count"].as_u64().unwrap_or(1);
            (0..times).map(|_| event["reason"].as_str().unwrap_or_default().to_owned())
        });
        reasons.collect()
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, io::Error> {
        let trouble = self.0.lock().unwrap().trouble;
        match trouble {
            Some(Trouble::Hangs) => std::future::pending().await,
            Some(Trouble::Unreachable) => return Err(io::ErrorKind::ConnectionRefused.into()),
            _ => {}
        }
        let (parts, body) = request.into_parts();
        let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap_or(Value::Null);
        // kube publishes events itself, without a field manager; the API server then uses our User-Agent.
        let anonymous = matches!(parts.method.as_str(), "POST" | "PUT" | "PATCH")
            && !parts.uri.path().contains("/events")
            && !parts.uri.query().unwrap_or_default().contains(&format!("fieldManager={FIELD_MANAGER}"));
        if anonymous {
            return Ok(response(failure(400, "the request has no fieldManager")));
        }
        let how = self.0.lock().unwrap().fault(&parts.method, parts.uri.path(), &body);
        Ok(response(match how {
            Some(How::Silence) => std::future::pending().await,
            Some(How::LostAnswer) => {
                self.0.lock().unwrap().serve(&parts.method, parts.uri.path(), body);
                std::future::pending().await
            }
            Some(How::Refusal(code, message)) => failure(code, message),
            Some(How::NamespaceGoing) => {
                let (code, mut body) = failure(403, "Forbidden");
                body["details"] = json!({"causes": [{"reason": "NamespaceTerminating"}]});
                (code, body)
            }
            None => self.0.lock().unwrap().serve(&parts.method, parts.uri.path(), body),
        }))
    }
}

fn response((status, answer): Reply) -> Response<Body> {
    let answer = Body::from(serde_json::to_vec(&answer).unwrap());
    Response::builder().status(status).header("Retry-After", "1").body(answer).unwrap()
}

impl ServerState {
    /// Returns the fault for this call, if any, and records the call even if it is refused.
    fn fault(&mut self, method: &Method, path: &str, body: &Value) -> Option<How> {
        let concerned = |(fault, times): &&mut (Fault, u32)| {
            *times > 0 && fault.method == method.as_str() && path.contains(fault.path) && (fault.body)(body)
        };
        let (fault, times) = self.faults.iter_mut().find(concerned)?;
        *times -= 1;
        let how = fault.how;
        if how != How::LostAnswer {
            self.calls.push((method.clone(), path.to_owned()));
        }
        Some(how)
    }

    fn serve(&mut self, method: &Method, path: &str, body: Value) -> Reply {
        self.calls.push((method.clone(), path.to_owned()));
        match self.trouble {
            Some(Trouble::Fails) => return failure(500, "Broken"),
            Some(Trouble::Throttles) => return failure(429, "TooManyRequests"),
            Some(Trouble::Conflicts) if matches!(method.as_str(), "PUT" | "PATCH") => {
                return failure(409, "Conflict");
            }
            _ => {}
        }
        match permit(method.as_str(), path, body, |path| self.objects.get(path)) {
            Err(refusal) => refusal,
            Ok(Permitted::Read(object)) => (200, object),
            Ok(Permitted::Create(path, object)) => (201, self.store(&path, object)),
            Ok(Permitted::Update(path, object)) => (200, self.store(&path, object)),
            Ok(Permitted::Delete(path, object)) => {
                self.objects.remove(&path);
                (200, object)
            }
        }
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }
}

impl Shared {
    /// A fresh state for tests, with the client of a [`FakeServer`].
    pub(crate) fn of_test(client: Client) -> Self {
        let reporter = Reporter { controller: "test".into(), instance: Some("a".into()) };
        Self::new(
            client.clone(),
            Settings {
                image: "loadgen:1".into(),
                clients_image: "clients:1".into(),
                pull_policy: "Never".into(),
                drivers: Drivers { images: [("go".to_owned(), "drivers/go:1".to_owned())].into(), resources: None },
                master_key: Arc::new([1; 32]),
            },
            Recorder::new(client, reporter),
            OperatorMetrics::default(),
            TaskRegistry::default(),
        )
    }
}

pub(crate) const CART: &str = "/apis/redisbench.dev/v1alpha1/namespaces/perf/redisbenchmarks/cart";

/// A valid benchmark `cart` with two shards and a password, modified by a merge patch.
pub(crate) fn benchmark(change: Value) -> RedisBenchmark {
    let mut object = json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "cart", "namespace": "perf", "uid": "u-1", "generation": 1, "resourceVersion": "1"},
        "spec": {
            "targets": [{
                "name": "redis",
                "type": "Standalone",
                "endpoints": ["redis:6379"],
                "auth": {"secretRef": {"name": "redis-auth", "usernameKey": "user", "passwordKey": "secret"}},
            }],
            "workload": {"operations": [{"name": "get", "weight": 1, "command": "GET __key__"}]},
            "load": {
                "type": "OpenLoop",
                "openLoop": {"rate": 1000},
                "connections": 4,
                "duration": "10s",
                "warmup": "1s",
            },
            "shards": {"count": 2},
        },
    });
    merge(&mut object, change);
    serde_json::from_value(object).unwrap()
}

pub(crate) fn run() -> Run {
    Run { namespace: "perf".into(), benchmark: "cart".into(), uid: "u-1".into(), id: "0123456789abcdef".into() }
}

pub(crate) fn job() -> Value {
    let owner =
        json!({"apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark", "name": "cart", "uid": "u-1"});
    json!({"metadata": {"name": "cart-89abcdef", "namespace": "perf", "uid": "j", "ownerReferences": [owner]}})
}

/// The pod `name` of shard `index` of `job`.
pub(crate) fn pod(index: u32, name: &str, status: &Value) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "perf", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"batch.kubernetes.io/job-completion-index": index.to_string(), RUN_LABEL: run().id},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "cart", "uid": "j", "controller": true}],
        },
        "spec": {"nodeName": "n1", "containers": []},
        "status": status,
    })
}

/// The status of a pod's container in this state.
pub(crate) fn container(name: &str, state: &Value) -> Value {
    json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

pub(crate) fn verdict(value: VerdictValue) -> Verdict {
    Verdict { value, reasons: Vec::new(), limited_by: LimitedBy::Unknown, component: None }
}

/// The status of `benchmark`'s run `0123456789abcdef`, modified by a merge patch.
pub(crate) fn status(change: Value) -> RedisBenchmarkStatus {
    let mut status =
        json!({"phase": "Preparing", "runId": "0123456789abcdef", "conductorEpoch": 1, "observedGeneration": 1});
    merge(&mut status, change);
    serde_json::from_value(status).unwrap()
}

/// Trial `index` of `of` of benchmark `cart`, completed and measured by two shards, with its full result in one piece.
pub(crate) fn finished(index: u32, of: u32, value: VerdictValue) -> Finished {
    let trial = report::trial(index, of, 1, Some(1_767_229_200_000_000_000));
    let measurement = Measurement::new(trial.clone(), TrialResult::default(), verdict(value));
    Finished {
        trial: Some(trial),
        measurement: Some(Measurement { benchmark: "cart".into(), ..measurement }),
        shards: ShardCounts { desired: 2, finished: 2, ..ShardCounts::default() },
        pieces: vec![(if of > 1 { format!("trial-{index}.result.json") } else { "result.json".into() }, "{}".into())],
        ..Finished::unmeasured(of, 2, Ending::Completed)
    }
}

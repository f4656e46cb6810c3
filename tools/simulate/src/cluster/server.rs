//! The API server.

use std::sync::Arc;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use redisbench_testkit::api_server::{Permitted, Reply, failure, merge, permit};
use redisbench_testkit::status::{list, number};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tower::BoxError;

use super::{BENCHMARK, Cluster, Kind, is_terminal};
use crate::clock::timestamp;
use crate::ground_truth::GroundTruth;
use crate::scenario::NAMESPACE;
use crate::world::{World, lock};

impl World {
    /// A client of the API server, over the network.
    pub fn client(self: &Arc<Self>, operator: String) -> Client {
        let world = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (world, operator) = (world.clone(), operator.clone());
            async move { world.request(&operator, request).await }
        });
        Client::new(service, "default")
    }

    /// Applies the benchmark, as the user does.
    pub fn apply_benchmark(&self) {
        let mut cluster = lock(&self.cluster);
        if !cluster.objects.contains_key(BENCHMARK) {
            cluster.create(BENCHMARK, self.scenario.benchmark(), self.now().as_secs());
        }
    }

    async fn request(self: &Arc<Self>, operator: &str, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let (answer, answered) = oneshot::channel();
        let (there, back) = (self.latency(), self.latency());
        let answer_lost = self.chance(self.scenario.api.answer_lost);
        let (world, operator) = (self.clone(), operator.to_owned());
        tokio::spawn(async move {
            sleep(there).await;
            if lock(&world.weather).api_away {
                return;
            }
            let answered = world.serve(&operator, &parts.method, parts.uri.path(), body);
            sleep(back).await;
            if !answer_lost && !lock(&world.weather).api_away {
                let _ = answer.send(answered);
            }
        });
        // A broken connection is reported after a while; some callers time out before.
        let Ok(Ok((status, answer))) = timeout(std::time::Duration::from_secs(20), answered).await else {
            let silence = self.between(0, 4_000);
            sleep(silence).await;
            return Err("connection reset".into());
        };
        Ok(Response::builder().status(status).body(Body::from(serde_json::to_vec(&answer)?))?)
    }

    fn serve(self: &Arc<Self>, operator: &str, method: &Method, path: &str, body: Value) -> Reply {
        let event = path.contains("/events");
        let writes = *method != Method::GET && !event;
        if writes && self.chance(self.scenario.api.conflicts) {
            lock(&self.cluster).touch();
        }
        if self.chance(self.scenario.api.failing) {
            let (code, reason) = if self.chance(0.5) { (500, "InternalError") } else { (429, "TooManyRequests") };
            return failure(code, reason);
        }
        let before = lock(&self.cluster).objects.get(path.trim_end_matches("/status")).cloned();
        let now = self.now().as_secs();
        let (status, answer) = lock(&self.cluster).serve(method, path, body, now);
        let mut ground_truth = lock(&self.ground_truth);
        if *method != Method::GET {
            let said = if status < 300 { String::new() } else { format!(", {}", answer["reason"]) };
            if !event {
                self.tell(format_args!("{operator}: {method} {path} {status}{said}"));
            }
            if status < 300 {
                ground_truth.writes += 1;
            }
        }
        if writes && status < 300 {
            let foreign = before.as_ref().is_some_and(|object| object["metadata"]["ownerReferences"].is_null());
            self.check(!foreign || path.starts_with(BENCHMARK), || {
                format!("{operator} calls {method} {path}, which it does not own")
            });
            self.judge_write(&mut ground_truth, operator, method, path, before.as_ref(), &answer);
            drop(ground_truth);
            self.react(method, path, before);
        }
        (status, answer)
    }

    fn judge_write(
        &self,
        ground_truth: &mut GroundTruth,
        operator: &str,
        method: &Method,
        path: &str,
        before: Option<&Value>,
        after: &Value,
    ) {
        let Some(before) = before.filter(|_| *method == Method::PATCH) else { return };
        if path.contains("/configmaps/") {
            let over = lock(&self.cluster).status().is_some_and(is_terminal);
            self.check(!over, || format!("{operator} overwrites {path} of a finished run"));
        }
        self.check(differ(before, after), || format!("{operator} wrote {path} without a change"));
        if !path.ends_with("/status") {
            return;
        }
        let (old, new) = (&before["status"], &after["status"]);
        self.tell(format_args!(
            "{operator}: status {} epoch {} trial {} shards {}",
            new["phase"], new["conductorEpoch"], new["trial"], new["shards"]
        ));
        self.check(!is_terminal(old) || old["phase"] == new["phase"], || {
            format!("the phase leaves {} for {}", old["phase"], new["phase"])
        });
        self.check(old["runId"].is_null() || old["runId"] == new["runId"], || "the runId changes".to_owned());
        let Some(run) = new["runId"].as_str() else { return };
        let truth = ground_truth.run(run);
        let epoch = number(&new["conductorEpoch"]);
        self.check(epoch >= truth.epoch, || format!("the epoch goes back from {} to {epoch}", truth.epoch));
        truth.epoch = epoch.max(truth.epoch);
        let taken = |condition: &Value| condition["reason"] == "NameTaken" && condition["status"] == "True";
        let stalled = |status: &Value| list(&status["conditions"]).iter().any(taken);
        if stalled(new) && !stalled(old) {
            ground_truth.count("- a name was taken");
        }
        let run = ground_truth.run(run);
        let trial = &new["trial"];
        let index = number(&trial["index"]);
        run.epochs.insert(index, epoch);
        if let (Some(attempt), Some(start)) = (trial["attempt"].as_u64(), trial["startAt"].as_str()) {
            let of = (index, attempt);
            let last = run.recorded.keys().last().copied().unwrap_or_default();
            self.check(of >= last, || format!("the attempt goes back from {last:?} to {of:?}"));
            let known = run.recorded.entry(of).or_insert_with(|| start.to_owned());
            self.check(known == start, || format!("attempt {of:?} starts at {start}, but was to start at {known}"));
        }
        let (before, after) = (list(&old["trials"]), list(&new["trials"]));
        self.check(after.starts_with(before), || format!("lines of finished trials change: {before:?} {after:?}"));
        run.over = after.last().and_then(|line| line["index"].as_u64()).max(run.over);
    }
}

/// A name that a result needs.
const SQUAT: &str = "/api/v1/namespaces/perf/configmaps/cart-result-0";

impl Cluster {
    /// An artifact in the ConfigMap of this name, if it is there in one piece.
    pub fn artifact(&self, name: &str, key: &str) -> Option<Value> {
        let map = self.objects.get(&format!("/api/v1/namespaces/perf/configmaps/cart-result-{name}"))?;
        serde_json::from_str(map["data"][key].as_str()?).ok()
    }

    /// Changes an annotation of the benchmark, as another client may.
    pub fn touch(&mut self) {
        if let Some(mut object) = self.objects.get(BENCHMARK).cloned() {
            object["metadata"]["annotations"]["touched"] = json!(self.version.to_string());
            self.store(BENCHMARK, object);
        }
    }

    /// Changes the spec, as the user may.
    pub fn edit(&mut self, change: Value) {
        if let Some(mut object) = self.objects.get(BENCHMARK).cloned() {
            merge(&mut object["spec"], change);
            object["metadata"]["generation"] = json!(number(&object["metadata"]["generation"]) + 1);
            self.store(BENCHMARK, object);
        }
    }

    /// Takes the name of a result's first piece, if it is free.
    pub fn squat(&mut self) -> bool {
        let free = !self.objects.contains_key(SQUAT);
        if free {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cart-result-0", "namespace": NAMESPACE},
                "data": {"mine": "yes"},
            });
            self.create(SQUAT, object, 0);
        }
        free
    }

    /// Frees that name.
    pub fn leave(&mut self) {
        self.remove(SQUAT);
    }

    fn serve(&mut self, method: &Method, path: &str, body: Value, now: u64) -> Reply {
        if path.contains("/events") {
            return if *method == Method::GET {
                (200, json!({"kind": "EventList", "apiVersion": "events.k8s.io/v1", "metadata": {}, "items": []}))
            } else {
                (201, body)
            };
        }
        match permit(method.as_str(), path, body, |path| self.objects.get(path)) {
            Err(refusal) => refusal,
            Ok(Permitted::Read(object)) => (200, object),
            Ok(Permitted::Create(path, object)) => {
                let unread = ["/secrets/", "/poddisruptionbudgets/"].iter().any(|kind| path.contains(kind));
                if unread && self.status().is_some_and(is_terminal) {
                    self.late.insert(path.clone());
                }
                (201, self.create(&path, object, now))
            }
            Ok(Permitted::Update(path, object)) => (200, self.store(&path, object)),
            // Its kubelet ends it first.
            Ok(Permitted::Delete(path, mut object)) if Kind::of(&path) == Some(Kind::Pods) => {
                object["metadata"]["deletionTimestamp"] = json!(timestamp(now));
                (200, self.store(&path, object))
            }
            Ok(Permitted::Delete(path, object)) => {
                self.remove(&path);
                (200, object)
            }
        }
    }
}

/// Returns whether two states of an object differ in more than their version.
fn differ(before: &Value, after: &Value) -> bool {
    let mut before = before.clone();
    before["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"].clone();
    before != *after
}

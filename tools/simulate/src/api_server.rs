//! The API server, over the network.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use redisbench_testkit::api_server::{Reply, failure};
use redisbench_testkit::status::{list, number};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tower::BoxError;

use crate::cluster::{BENCHMARK, is_terminal};
use crate::controllers::react;
use crate::ground_truth::GroundTruth;
use crate::world::{World, lock};

/// A client of the API server, over the network.
pub fn client(world: &Arc<World>, operator: String) -> Client {
    let world = world.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (world, operator) = (world.clone(), operator.clone());
        async move { send(&world, &operator, request).await }
    });
    Client::new(service, "default")
}

/// Applies the benchmark, as the user does.
pub fn apply_benchmark(world: &World) {
    lock(&world.cluster).apply(world.scenario.benchmark(), world.now().as_secs());
}

async fn send(world: &Arc<World>, operator: &str, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (answer, answered) = oneshot::channel();
    let (there, back) = (world.latency(), world.latency());
    let answer_lost = world.chance(world.scenario.api.answer_lost);
    let (server, operator) = (world.clone(), operator.to_owned());
    tokio::spawn(async move {
        sleep(there).await;
        if lock(&server.weather).api_away {
            return;
        }
        let answered = serve(&server, &operator, &parts.method, parts.uri.path(), body);
        sleep(back).await;
        if !answer_lost && !lock(&server.weather).api_away {
            let _ = answer.send(answered);
        }
    });
    // A broken connection is reported after a while; some callers time out before.
    let Ok(Ok((status, answer))) = timeout(Duration::from_secs(20), answered).await else {
        let silence = world.between(0, 4_000);
        sleep(silence).await;
        return Err("connection reset".into());
    };
    Ok(Response::builder().status(status).body(Body::from(serde_json::to_vec(&answer)?))?)
}

fn serve(world: &Arc<World>, operator: &str, method: &Method, path: &str, body: Value) -> Reply {
    let event = path.contains("/events");
    let writes = *method != Method::GET && !event;
    if writes && world.chance(world.scenario.api.conflicts) {
        lock(&world.cluster).touch();
    }
    if world.chance(world.scenario.api.failing) {
        let (code, reason) = if world.chance(0.5) { (500, "InternalError") } else { (429, "TooManyRequests") };
        return failure(code, reason);
    }
    let before = lock(&world.cluster).get(path.trim_end_matches("/status")).cloned();
    let now = world.now().as_secs();
    let (status, answer) = lock(&world.cluster).serve(method, path, body, now);
    let mut ground_truth = lock(&world.ground_truth);
    if *method != Method::GET {
        let said = if status < 300 { String::new() } else { format!(", {}", answer["reason"]) };
        if !event {
            world.tell(format_args!("{operator}: {method} {path} {status}{said}"));
        }
        if status < 300 {
            ground_truth.writes += 1;
        }
    }
    if writes && status < 300 {
        let foreign = before.as_ref().is_some_and(|object| object["metadata"]["ownerReferences"].is_null());
        world.check(!foreign || path.starts_with(BENCHMARK), || {
            format!("{operator} calls {method} {path}, which it does not own")
        });
        judge_write(world, &mut ground_truth, operator, method, path, before.as_ref(), &answer);
        drop(ground_truth);
        react(world, method, path, before);
    }
    (status, answer)
}

/// Judges a served write of an operator.
fn judge_write(
    world: &World,
    ground_truth: &mut GroundTruth,
    operator: &str,
    method: &Method,
    path: &str,
    before: Option<&Value>,
    after: &Value,
) {
    let Some(before) = before.filter(|_| *method == Method::PATCH) else { return };
    if path.contains("/configmaps/") {
        let over = lock(&world.cluster).status().is_some_and(is_terminal);
        world.check(!over, || format!("{operator} overwrites {path} of a finished run"));
    }
    world.check(differ(before, after), || format!("{operator} wrote {path} without a change"));
    if !path.ends_with("/status") {
        return;
    }
    let (old, new) = (&before["status"], &after["status"]);
    world.tell(format_args!(
        "{operator}: status {} epoch {} trial {} shards {}",
        new["phase"], new["conductorEpoch"], new["trial"], new["shards"]
    ));
    world.check(!is_terminal(old) || old["phase"] == new["phase"], || {
        format!("the phase leaves {} for {}", old["phase"], new["phase"])
    });
    world.check(old["runId"].is_null() || old["runId"] == new["runId"], || "the runId changes".to_owned());
    let Some(run) = new["runId"].as_str() else { return };
    let truth = ground_truth.run(run);
    let epoch = number(&new["conductorEpoch"]);
    world.check(epoch >= truth.epoch, || format!("the epoch goes back from {} to {epoch}", truth.epoch));
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
        world.check(of >= last, || format!("the attempt goes back from {last:?} to {of:?}"));
        let known = run.recorded.entry(of).or_insert_with(|| start.to_owned());
        world.check(known == start, || format!("attempt {of:?} starts at {start}, but was to start at {known}"));
    }
    let (before, after) = (list(&old["trials"]), list(&new["trials"]));
    world.check(after.starts_with(before), || format!("lines of finished trials change: {before:?} {after:?}"));
    run.over = after.last().and_then(|line| line["index"].as_u64()).max(run.over);
}

/// Returns whether two states of an object differ in more than their version.
fn differ(before: &Value, after: &Value) -> bool {
    let mut before = before.clone();
    before["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"].clone();
    before != *after
}

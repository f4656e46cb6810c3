//! Traces of single requests, received by a collector.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Tracing, TrialPlan};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::client::{Shard, eventually};
use crate::load::assert_balanced;
use crate::plans::{plan, steady};

type Received = Arc<Mutex<Vec<Value>>>;

/// Starts a collector. Returns its URL and the spans that it receives.
async fn collector() -> (String, Received) {
    async fn take(State(received): State<Received>, Json(document): Json<Value>) -> Json<Value> {
        let spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        received.lock().unwrap().extend(spans);
        Json(serde_json::json!({}))
    }
    let received = Received::default();
    let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&received));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

fn traced(plan: TrialPlan, endpoint: String, one_in: u64) -> TrialPlan {
    TrialPlan { tracing: Some(Tracing { endpoint, one_in }), ..plan }
}

fn time(span: &Value, field: &str) -> u64 {
    span[field].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_measured_request_can_be_traced() {
    let redis = RedisServer::start(&[]);
    let (url, received) = collector().await;
    let shard = Shard::start(None).await;
    let snapshot = shard.run_plan(&traced(steady(plan(&redis.endpoint()), 500, 1), url, 1)).await;
    assert_balanced(&snapshot);
    let roots = eventually("all requests arrive at the collector", async || {
        let spans = received.lock().unwrap();
        let roots: Vec<Value> = spans.iter().filter(|span| span["parentSpanId"].is_null()).cloned().collect();
        (roots.len() as u64 >= snapshot.total.succeeded).then_some(roots)
    })
    .await;
    assert_eq!(roots.len() as u64, snapshot.total.succeeded);
    let ids: HashSet<&str> = roots.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), roots.len(), "each request is a trace of its own");
    let names: HashSet<&str> = roots.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, HashSet::from(["read", "write"]));
    // The spans hold the time stamps that the histogram counted.
    let lengths = roots.iter().map(|span| time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano"));
    let longest = snapshot.latency.response.decode(Kind::Request).unwrap().max();
    let (slowest, within) = (lengths.max().unwrap(), longest / 100);
    assert!(slowest.abs_diff(longest) <= within.max(1), "{slowest} ns, in the histogram {longest}");
    let spans = received.lock().unwrap();
    for child in spans.iter().filter(|span| !span["parentSpanId"].is_null()) {
        assert!(time(child, "startTimeUnixNano") <= time(child, "endTimeUnixNano"), "{child}");
    }
}

#[tokio::test]
async fn a_collector_that_is_gone_costs_no_request() {
    let redis = RedisServer::start(&[]);
    let mut shard = Shard::start(None).await;
    // Nothing listens on port 1.
    let snapshot = shard.run_plan(&traced(plan(&redis.endpoint()), "http://127.0.0.1:1".into(), 10)).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    shard.ends_with(0).await;
}

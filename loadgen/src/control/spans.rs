//! Sends traced requests to an OpenTelemetry collector, by OTLP over HTTP in JSON
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use redisbench_wire::plan::ShardPlan;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{info, warn};

use super::failure::describe;
use crate::engine::monotonic_nanoseconds;
use crate::record::{Span, Traced};

/// Batches that wait for the collector. Beyond it, traced requests are dropped and counted.
const QUEUE: usize = 64;

/// Batches in one call.
const AT_ONCE: usize = 32;

/// Timeout for one call of the collector.
const PATIENCE: Duration = Duration::from_secs(2);

/// The pause before a batch is sent for the second and last time.
const PAUSE: Duration = Duration::from_millis(200);

/// Timeout for what is queued when a trial ends, because its shards wait for it.
const FAREWELL: Duration = Duration::from_secs(3);

/// OTLP's kinds of span and status.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const ERROR: u8 = 2;

/// The queue of traced requests of one attempt. Its task ends soon after it is dropped.
#[derive(Debug)]
pub(super) struct Exporter {
    queue: mpsc::Sender<Traced>,
    /// Traced requests that did not reach the collector.
    lost: Arc<AtomicU64>,
}

impl Exporter {
    /// An exporter and its task, if the plan asks for tracing.
    pub(super) fn begin(plan: &ShardPlan, attempt: u32) -> Option<(Self, impl Future<Output = ()> + use<>)> {
        let url = format!("{}/v1/traces", plan.tracing.as_ref()?.endpoint.trim_end_matches('/'));
        let (queue, batches) = mpsc::channel(QUEUE);
        let lost = Arc::default();
        let task = send_all(url, TraceSource::new(plan, attempt), batches, Arc::clone(&lost));
        Some((Self { queue, lost }, task))
    }

    /// Queues traced requests, or drops and counts them if the collector is too slow.
    pub(super) fn send(&self, traced: Traced) {
        if let Err(error) = self.queue.try_send(traced) {
            let traced = error.into_inner();
            self.lost.fetch_add(traced.lost + traced.spans.len() as u64, Relaxed);
        }
    }
}

/// Why a batch did not reach the collector.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("failed to form a request")]
    Form(#[from] hyper::http::Error),
    #[error("failed to reach the collector")]
    Reach(#[from] hyper_util::client::legacy::Error),
    #[error("timed out")]
    TimedOut,
    #[error("the collector replied {0}")]
    Refused(StatusCode),
}

impl SendError {
    /// Returns whether the same batch may succeed later. OTLP lists the status codes.
    fn is_passing(&self) -> bool {
        match self {
            Self::Form(_) => false,
            Self::Reach(_) | Self::TimedOut => true,
            Self::Refused(status) => matches!(status.as_u16(), 429 | 502..=504),
        }
    }
}

/// Sends all batches. Logs the first failure, and at the end how many traced requests were lost.
async fn send_all(url: String, source: TraceSource, mut batches: mpsc::Receiver<Traced>, lost: Arc<AtomicU64>) {
    let http: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let (mut sent, mut has_failed, mut farewell) = (0_u64, false, None);
    let mut all = Vec::with_capacity(AT_ONCE);
    // One call for all that waits: workers send a batch per tick, however few requests are in it.
    while batches.recv_many(&mut all, AT_ONCE).await > 0 {
        if batches.is_closed() {
            farewell.get_or_insert_with(|| Instant::now() + FAREWELL);
        }
        let count = all.iter().map(|traced| traced.spans.len() as u64).sum::<u64>();
        let document = source.document(&all, unix_offset());
        let sending = send(&http, &url, &document);
        let done = match farewell {
            Some(end) => timeout_at(end, sending).await.unwrap_or(Err(SendError::TimedOut)),
            None => sending.await,
        };
        lost.fetch_add(all.drain(..).map(|traced| traced.lost).sum(), Relaxed);
        match done {
            Ok(()) => sent += count,
            Err(error) => {
                lost.fetch_add(count, Relaxed);
                if !std::mem::replace(&mut has_failed, true) {
                    warn!(error = describe(&error), url, "failed to send traced requests");
                }
            }
        }
    }
    info!(sent, lost = lost.load(Relaxed), url, "the export of traced requests has ended");
}

/// Sends a batch, and again where that may help.
async fn send(http: &Client<HttpConnector, Full<Bytes>>, url: &str, document: &Value) -> Result<(), SendError> {
    let body = Bytes::from(document.to_string());
    match post(http, url, body.clone()).await {
        Err(error) if error.is_passing() => {
            sleep(scattered(PAUSE)).await;
            post(http, url, body).await
        }
        done => done,
    }
}

/// Half to one and a half of a pause. Shards share a collector and must not return together.
fn scattered(pause: Duration) -> Duration {
    let part = u16::try_from(monotonic_nanoseconds() % 1024).map_or(0.5, |part| f64::from(part) / 1024.0);
    pause.mul_f64(0.5 + part)
}

async fn post(http: &Client<HttpConnector, Full<Bytes>>, url: &str, body: Bytes) -> Result<(), SendError> {
    let request = Request::post(url).header(header::CONTENT_TYPE, "application/json").body(Full::new(body))?;
    let reply = timeout(PATIENCE, http.request(request)).await.map_err(|_| SendError::TimedOut)??;
    if reply.status().is_success() { Ok(()) } else { Err(SendError::Refused(reply.status())) }
}

/// The time of day minus the monotonic clock, in nanoseconds.
fn unix_offset() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).saturating_sub(monotonic_nanoseconds())
}

/// Attributes common to all spans of an attempt.
#[derive(Debug)]
struct TraceSource {
    run: String,
    trial: u32,
    shard: u32,
    /// Names of the operations.
    operations: Vec<String>,
    /// The first half of trace IDs. The second half is the request's number, which no two shards share.
    first_half: u64,
}

impl TraceSource {
    fn new(plan: &ShardPlan, attempt: u32) -> Self {
        let mut hasher = DefaultHasher::new();
        (&plan.run, plan.trial, attempt).hash(&mut hasher);
        Self {
            run: plan.run.to_string(),
            trial: plan.trial,
            shard: plan.shard,
            operations: plan.workload.operations.iter().map(|operation| operation.name.clone()).collect(),
            first_half: hasher.finish(),
        }
    }

    /// An `ExportTraceServiceRequest`. `offset` turns instants of the monotonic clock into times of day.
    fn document(&self, all: &[Traced], offset: u64) -> Value {
        let spans_of = |traced: &Traced| -> Vec<Value> {
            traced.spans.iter().flat_map(|span| self.spans(span, &traced.nodes, offset)).collect()
        };
        let spans: Vec<Value> = all.iter().flat_map(spans_of).collect();
        json!({"resourceSpans": [{
            "resource": {"attributes": [
                text("service.name", "redisbench"),
                text("service.instance.id", &format!("{}/{}", self.run, self.shard)),
                number("redisbench.trial", self.trial.into()),
            ]},
            "scopeSpans": [{
                "scope": {"name": "redisbench", "version": env!("CARGO_PKG_VERSION")},
                "spans": spans,
            }],
        }]})
    }

    /// The span of a request from its due time to its outcome; within it, one until it was sent and one until the reply.
    fn spans(&self, span: &Span, nodes: &[String], offset: u64) -> Vec<Value> {
        let id = |part: u64| format!("{:016x}", span.k.wrapping_mul(4).wrapping_add(part));
        let trace = format!("{:016x}{:016x}", self.first_half, span.k);
        let name = self.operations.get(usize::from(span.operation)).map_or("request", String::as_str);
        let mut attributes = vec![text("db.system.name", "redis"), number("redisbench.request", span.k)];
        if let Some(label) = span.node.and_then(|node| nodes.get(node as usize)) {
            attributes.push(text("server.address", label));
        }
        if span.redirects > 0 {
            attributes.push(number("redisbench.redirects", span.redirects.into()));
        }
        let mut root = json!({
            "traceId": trace,
            "spanId": id(1),
            "name": name,
            "kind": CLIENT,
            "startTimeUnixNano": time(span.due, offset),
            "endTimeUnixNano": time(span.ended, offset),
        });
        if let Some(kind) = &span.error {
            attributes.push(text("error.type", kind));
            root["status"] = json!({"code": ERROR, "message": kind});
        }
        root["attributes"] = Value::Array(attributes);
        let child = |part: u64, name: &str, from: u64, to: u64| {
            json!({
                "traceId": trace,
                "spanId": id(part),
                "parentSpanId": id(1),
                "name": name,
                "kind": INTERNAL,
                "startTimeUnixNano": time(from, offset),
                "endTimeUnixNano": time(to, offset),
            })
        };
        let mut all = vec![root];
        if let Some(sent) = span.sent {
            all.extend((sent > span.due).then(|| child(2, "waiting to be sent", span.due, sent)));
            all.push(child(3, "waiting for the reply", sent, span.ended));
        }
        all
    }
}

/// OTLP's JSON writes 64-bit numbers as strings.
fn time(instant: u64, offset: u64) -> String {
    instant.saturating_add(offset).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::{Tracing, TrialPlan};

    use super::*;

    fn source() -> TraceSource {
        TraceSource::new(&TrialPlan::basic("redis:6379").of_shard(0), 1)
    }

    #[test]
    fn a_request_is_a_span_with_its_parts() {
        let span = Span {
            k: 5,
            operation: 0,
            node: Some(0),
            due: 1_000,
            sent: Some(1_500),
            ended: 4_000,
            redirects: 1,
            error: None,
        };
        let traced = Traced { spans: vec![span], lost: 0, nodes: vec!["10.0.0.1:6379".into()] };
        let document = source().document(&[traced], 1_000_000);
        let spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        let ids: Vec<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
        assert_eq!(ids, ["0000000000000015", "0000000000000016", "0000000000000017"]);
        assert!(spans.iter().all(|span| span["traceId"].as_str().unwrap().ends_with("0000000000000005")));
        assert!(spans[1..].iter().all(|span| span["parentSpanId"] == "0000000000000015"));
        let times = |span: &Value| [span["startTimeUnixNano"].clone(), span["endTimeUnixNano"].clone()];
        let expected = [["1001000", "1004000"], ["1001000", "1001500"], ["1001500", "1004000"]];
        assert_eq!(spans.iter().map(times).collect::<Vec<_>>(), expected);
        assert_eq!(spans[0]["name"], "get");
        assert_eq!(spans[0]["attributes"][2], text("server.address", "10.0.0.1:6379"));
        assert_eq!(spans[0]["attributes"][3], number("redisbench.redirects", 1));
    }

    #[test]
    fn an_error_is_the_spans_status() {
        let error = Some("Timeout".to_owned());
        let span = Span { k: 0, operation: 9, node: None, due: 7, sent: None, ended: 9, redirects: 0, error };
        let spans = source().spans(&span, &[], 0);
        assert_eq!(spans.len(), 1, "it is not known when it was sent");
        assert_eq!((&spans[0]["status"]["code"], &spans[0]["name"]), (&json!(2), &json!("request")));
        assert_eq!(spans[0]["attributes"][2], text("error.type", "Timeout"));
    }

    #[test]
    fn attempts_trials_and_runs_have_traces_of_their_own() {
        let plan = Arc::new(TrialPlan::basic("redis:6379"));
        let of = |run: &str, trial, attempt| TraceSource::new(&plan.part(&run.into(), trial, 0), attempt).first_half;
        let all = [of("a", 0, 1), of("a", 0, 2), of("a", 1, 1), of("b", 0, 1)];
        assert!((1..all.len()).all(|next| !all[..next].contains(&all[next])), "{all:?}");
        assert_eq!(of("a", 0, 1), of("a", 0, 1));
    }

    #[test]
    fn only_a_plan_with_tracing_has_an_exporter() {
        assert!(Exporter::begin(&TrialPlan::basic("redis:6379").of_shard(0), 1).is_none());
        let tracing = Some(Tracing { endpoint: "http://collector:4318/".into(), one_in: 1 });
        let plan = TrialPlan { tracing, ..TrialPlan::basic("redis:6379") };
        assert!(Exporter::begin(&plan.of_shard(0), 1).is_some());
    }
}

//! [`ShardCalls`] over HTTPS: one kept connection per shard. Every answer is bounded in time and size, and checked to come from the right
//! process.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{AbortThen, Answer, Detail, Refusal, WIRE_VERSION, limits, path};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Call, CallCounts, CallError, Endpoint, Reader, Reply, ResultMemory, ShardCalls, Unreachable};
use crate::credential::{CredentialError, RunCredential};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimeouts {
    /// For the TCP connection.
    pub dial: Duration,
    /// For everything: dial, TLS handshake, request and the whole answer.
    pub call: Duration,
    /// Like `call`, for starting and stopping a load, which is repeated for some seconds: a lost packet must not take all of them.
    pub repeated: Duration,
    /// Like `call`, for a full snapshot, which may be long. Also the longest wait for memory to read it.
    pub full_snapshot: Duration,
}

impl Default for CallTimeouts {
    /// 3 s, 8 s, 1 s and 30 s.
    fn default() -> Self {
        let [dial, call, repeated, full_snapshot] = [3, 8, 1, 30].map(Duration::from_secs);
        Self { dial, call, repeated, full_snapshot }
    }
}

/// The lifetime of an idle connection. Longer than the minute between two calls to shards without work, which would otherwise be dialled
/// anew each time; shorter than the 75 s after which a shard closes it.
const IDLE: Duration = Duration::from_secs(70);
/// Size of a connection's read buffer, which holds the head of an answer, or a whole answer except a snapshot. By default it grows with the
/// final snapshot and stays that large, on thousands of connections.
const READ_BUFFER_BYTES: usize = 8 << 10;
/// Assumed length of the first final snapshot of a run.
const FIRST_SNAPSHOT_BYTES: usize = 128 << 10;
/// Bytes in memory for each byte of a snapshot: as received, joined, parsed, and decoded while it is checked.
const BYTES_PER_BYTE: usize = 4;

#[derive(Debug)]
pub struct ShardClient {
    run: String,
    authorization: HeaderValue,
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeouts: CallTimeouts,
    counts: Arc<CallCounts>,
    memory: Reader,
    /// Bytes that the longest full snapshot so far was given. Shards of a run measure the same, so theirs are of similar lengths.
    longest: AtomicUsize,
}

impl ShardClient {
    /// Creates a client for the shards of `run` that hold `credential`.
    ///
    /// # Errors
    /// If the TLS settings are refused, which has not been seen.
    pub fn new(run: &str, credential: &RunCredential, timeouts: CallTimeouts) -> Result<Self, CredentialError> {
        let mut dialler = HttpConnector::new();
        dialler.enforce_http(false);
        dialler.set_nodelay(true);
        dialler.set_connect_timeout(Some(timeouts.dial));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(credential.client_config()?)
            .https_only()
            .enable_http1()
            .wrap_connector(dialler);
        // A shard gets one call at a time, so one kept connection is enough.
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(1)
            .http1_read_buf_exact_size(READ_BUFFER_BYTES)
            .build(connector);
        // The token is base64url, which is valid in every header.
        let mut authorization =
            HeaderValue::try_from(credential.token().header()).unwrap_or_else(|_| unreachable!("base64url"));
        authorization.set_sensitive(true);
        Ok(Self {
            run: run.to_owned(),
            authorization,
            http,
            timeouts,
            counts: Arc::default(),
            memory: Reader::of(Arc::default()),
            longest: AtomicUsize::new(FIRST_SNAPSHOT_BYTES),
        })
    }

    /// Counts its calls in `counts`.
    #[must_use]
    pub fn counted(self, counts: Arc<CallCounts>) -> Self {
        Self { counts, ..self }
    }

    /// Reads final snapshots into `memory`.
    #[must_use]
    pub fn within(self, memory: Arc<ResultMemory>) -> Self {
        Self { memory: Reader::of(memory), ..self }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        path: &str,
        trial: Option<u32>,
        bounds: CallBounds,
    ) -> Result<T, CallError> {
        self.send(shard, Method::GET, path, Bytes::new(), trial, bounds).await
    }

    /// Bounds of all calls except snapshots.
    fn short(&self) -> CallBounds {
        CallBounds { time: self.timeouts.call, bytes: limits::SHORT_ANSWER_BYTES }
    }

    async fn put<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        path: &str,
        request: &(impl Serialize + Sync),
        trial: Option<u32>,
    ) -> Result<T, CallError> {
        self.put_within(shard, path, request, trial, self.short()).await
    }

    async fn put_within<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        path: &str,
        request: &(impl Serialize + Sync),
        trial: Option<u32>,
        bounds: CallBounds,
    ) -> Result<T, CallError> {
        let body = serde_json::to_vec(request).map_err(|error| Unreachable::Malformed(error.to_string()))?;
        self.send(shard, Method::PUT, path, body.into(), trial, bounds).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        method: Method,
        path: &str,
        body: Bytes,
        trial: Option<u32>,
        bounds: CallBounds,
    ) -> Result<T, CallError> {
        let exchange = async {
            let response = self.request(shard, method, &path::of_trial(path, trial), body).await?;
            self.receive(shard, response, trial, bounds.bytes).await
        };
        timeout(bounds.time, exchange).await.map_err(|_| Unreachable::TimedOut(bounds.time))?
    }

    /// Sends a request. The body of the response is not read.
    async fn request(
        &self,
        shard: &Endpoint,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, CallError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", shard.address))
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| Unreachable::Connection(error.to_string()))?;
        Ok(self.http.request(request).await.map_err(|error| connection_error(&error, shard.address))?)
    }

    /// Reads a response of at most `most` bytes.
    async fn receive<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        response: Response<Incoming>,
        trial: Option<u32>,
        most: usize,
    ) -> Result<T, CallError> {
        let status = response.status();
        let most = if status.is_success() { most } else { limits::SHORT_ANSWER_BYTES };
        let body = response.into_body();
        // Refuses an announced length above the limit without reading the body.
        if body.size_hint().lower() > most as u64 {
            return Err(too_long(most).into());
        }
        let body = Limited::new(body, most).collect().await.map_err(|error| body_error(error.as_ref(), most))?;
        self.read(shard, status, &body.to_bytes(), trial)
    }

    /// Reads a full snapshot, once there is memory for it. It is reserved before the call, so that no shard waits in the middle of its
    /// answer, and a call that holds memory does not wait for more. If the announced length is longer than expected, the call is repeated.
    async fn full_snapshot(&self, shard: &Endpoint, trial: u32, from: u32) -> Result<Box<Snapshot>, CallError> {
        let (limit, most) = (self.timeouts.full_snapshot, limits::ANSWER_BYTES);
        let path = path::snapshot(trial, Detail::Full, from);
        let give_up = Instant::now() + limit;
        loop {
            let expected = self.longest.load(Ordering::Relaxed);
            let wanted = expected.saturating_mul(BYTES_PER_BYTE);
            let Ok(_memory) = timeout_at(give_up, self.memory.read(wanted)).await else {
                return Err(Unreachable::NoMemory(limit).into());
            };
            let exchange = async {
                let response = self.request(shard, Method::GET, &path, Bytes::new()).await?;
                let announced = announced(&response, most);
                if announced > expected && wanted < self.memory.most() {
                    // The next answer may be a little longer.
                    self.longest.fetch_max(announced + announced / 8, Ordering::Relaxed);
                    return Ok(None);
                }
                self.receive(shard, response, Some(trial), most).await.map(Some)
            };
            if let Some(snapshot) = timeout(limit, exchange).await.map_err(|_| Unreachable::TimedOut(limit))?? {
                return Ok(snapshot);
            }
        }
    }

    /// Parses an answer and checks its sender before the body is used.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        status: StatusCode,
        body: &[u8],
        trial: Option<u32>,
    ) -> Result<T, CallError> {
        if status.is_success() {
            let answer: Answer<T> = parse(status, body)?;
            Ok(self.check(answer, shard, trial)?)
        } else {
            let answer: Answer<Refusal> = parse(status, body)?;
            // An unauthorized caller learns nothing from a shard, not even its identity, so there is nothing to check.
            if status == StatusCode::UNAUTHORIZED {
                return Err(CallError::Refused(answer.body));
            }
            Err(CallError::Refused(self.check(answer, shard, trial)?))
        }
    }

    fn check<T>(&self, answer: Answer<T>, shard: &Endpoint, trial: Option<u32>) -> Result<T, Unreachable> {
        let foreign = |what: &str, got: &str, wanted: &str| {
            Err(Unreachable::Foreign(format!("{what} is {}, not {wanted}", limits::message(got))))
        };
        // No older version exists yet whose shards could still be running.
        if answer.wire != WIRE_VERSION {
            return foreign("wire version", &answer.wire.to_string(), &WIRE_VERSION.to_string());
        }
        if answer.run != self.run {
            return foreign("run", &answer.run, &self.run);
        }
        if answer.incarnation != shard.incarnation {
            return foreign("incarnation", &answer.incarnation, &shard.incarnation);
        }
        // A shard may refuse before it has parsed which trial is meant.
        match (answer.trial, trial) {
            (Some(got), Some(wanted)) if got != wanted => foreign("trial", &got.to_string(), &wanted.to_string()),
            _ => Ok(answer.body),
        }
    }
}

/// Limits of time and memory for one call.
#[derive(Clone, Copy, Debug)]
struct CallBounds {
    time: Duration,
    bytes: usize,
}

/// Bytes of a snapshot that will be read: `most` if its length is not announced, 0 if it will be refused.
fn announced(response: &Response<Incoming>, most: usize) -> usize {
    let announced =
        response.body().size_hint().exact().map_or(most, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if response.status().is_success() && announced <= most { announced } else { 0 }
}

fn parse<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, Unreachable> {
    // The error quotes the input that it could not parse, at any length.
    serde_json::from_slice(body)
        .map_err(|error| Unreachable::Malformed(limits::message(&format!("status {}: {error}", status.as_u16()))))
}

fn connection_error(error: &(dyn Error + 'static), address: SocketAddr) -> Unreachable {
    let mut innermost = error;
    let mut timed_out = false;
    loop {
        timed_out |= innermost.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::TimedOut);
        match innermost.source() {
            Some(source) => innermost = source,
            None => break,
        }
    }
    if timed_out {
        Unreachable::DialTimedOut(address)
    } else {
        Unreachable::Connection(limits::message(&format!("connection to {address}: {innermost}")))
    }
}

fn too_long(most: usize) -> Unreachable {
    Unreachable::Malformed(format!("larger than {most} bytes"))
}

fn body_error(error: &(dyn Error + Send + Sync + 'static), most: usize) -> Unreachable {
    if error.is::<LengthLimitError>() {
        too_long(most)
    } else {
        Unreachable::Connection(limits::message(&error.to_string()))
    }
}

impl ShardCalls for ShardClient {
    async fn call(&self, shard: &Endpoint, call: &Call) -> Result<Reply, CallError> {
        let result = match call {
            Call::Clock => self.get(shard, path::CLOCK, None, self.short()).await.map(Reply::Clock),
            Call::State => self.get(shard, path::STATE, None, self.short()).await.map(Reply::State),
            Call::Plan(trial, request) => self.put(shard, path::TRIAL, request, Some(*trial)).await.map(Reply::State),
            Call::Start(trial, request) => {
                let bounds = CallBounds { time: self.timeouts.repeated, ..self.short() };
                self.put_within(shard, path::START, request, Some(*trial), bounds).await.map(Reply::Start)
            }
            Call::Measure(trial, request) => {
                self.put(shard, path::MEASURE, request, Some(*trial)).await.map(Reply::State)
            }
            Call::Snapshot(trial, Detail::Live, from) => {
                let bounds = CallBounds { time: self.timeouts.call, bytes: limits::LIVE_ANSWER_BYTES };
                let path = path::snapshot(*trial, Detail::Live, *from);
                self.get(shard, &path, Some(*trial), bounds).await.map(Reply::Snapshot)
            }
            Call::Snapshot(trial, Detail::Full, from) => {
                self.full_snapshot(shard, *trial, *from).await.map(Reply::Snapshot)
            }
            Call::Abort(trial, request) => {
                let time = match request.then {
                    AbortThen::Stop => self.timeouts.repeated,
                    AbortThen::Rearm => self.timeouts.call,
                };
                let bounds = CallBounds { time, ..self.short() };
                self.put_within(shard, path::ABORT, request, Some(*trial), bounds).await.map(Reply::State)
            }
            Call::Probe(trial, request) => self.put(shard, path::PROBE, request, Some(*trial)).await.map(Reply::Probe),
            Call::Cleanup(request) => self.put(shard, path::CLEANUP, request, None).await.map(Reply::Cleanup),
            Call::Drain(request) => self.put(shard, path::DRAIN, request, None).await.map(Reply::State),
            Call::Release(request) => self.put(shard, path::RELEASE, request, None).await.map(Reply::State),
        };
        self.counts.count(call, &result);
        result
    }
}

//! [`ShardCalls`] over HTTPS: one kept connection per shard. Every answer is bounded in time and size, and checked to come from the right
//! process.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Body as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use redisbench_wire::{Answer, Detail, Refusal, WIRE_VERSION, limits, path};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Call, CallCounts, CallError, Endpoint, Reply, ShardCalls, Unreachable};
use crate::credential::{CredentialError, RunCredential};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimeouts {
    /// For the TCP connection.
    pub dial: Duration,
    /// For everything: dial, TLS handshake, request and the whole answer.
    pub call: Duration,
    /// Like `call`, for a full snapshot, which may be long.
    pub full_snapshot: Duration,
}

impl Default for CallTimeouts {
    /// 3 s, 8 s and 30 s.
    fn default() -> Self {
        Self { dial: Duration::from_secs(3), call: Duration::from_secs(8), full_snapshot: Duration::from_secs(30) }
    }
}

#[derive(Debug)]
pub struct ShardClient {
    run: String,
    authorization: HeaderValue,
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeouts: CallTimeouts,
    counts: Arc<CallCounts>,
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
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_max_idle_per_host(1)
            .build(connector);
        // The token is base64url, which is valid in every header.
        let mut authorization =
            HeaderValue::try_from(credential.token().header()).unwrap_or_else(|_| unreachable!("base64url"));
        authorization.set_sensitive(true);
        Ok(Self { run: run.to_owned(), authorization, http, timeouts, counts: Arc::default() })
    }

    /// Counts its calls in `counts`.
    #[must_use]
    pub fn counted(self, counts: Arc<CallCounts>) -> Self {
        Self { counts, ..self }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        path: &str,
        trial: Option<u32>,
        bounds: Bounds,
    ) -> Result<T, CallError> {
        self.send(shard, Method::GET, path, Bytes::new(), trial, bounds).await
    }

    /// Bounds of all calls except snapshots.
    fn short(&self) -> Bounds {
        Bounds { time: self.timeouts.call, bytes: limits::SHORT_ANSWER_BYTES }
    }

    async fn put<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        path: &str,
        request: &(impl Serialize + Sync),
        trial: Option<u32>,
    ) -> Result<T, CallError> {
        let body = serde_json::to_vec(request).map_err(|error| Unreachable::Malformed(error.to_string()))?;
        self.send(shard, Method::PUT, path, body.into(), trial, self.short()).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        shard: &Endpoint,
        method: Method,
        path: &str,
        body: Bytes,
        trial: Option<u32>,
        bounds: Bounds,
    ) -> Result<T, CallError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", shard.address))
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| Unreachable::Connection(error.to_string()))?;
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| connection_error(&error, shard.address))?;
            let status = response.status();
            let most = if status.is_success() { bounds.bytes } else { limits::SHORT_ANSWER_BYTES };
            let body = response.into_body();
            // Refuses an announced length above the limit without reading the body.
            if body.size_hint().lower() > most as u64 {
                return Err(too_long(most).into());
            }
            let body = Limited::new(body, most).collect().await.map_err(|error| body_error(error.as_ref(), most))?;
            self.read(shard, status, &body.to_bytes(), trial)
        };
        tokio::time::timeout(bounds.time, exchange).await.map_err(|_| Unreachable::TimedOut(bounds.time))?
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
struct Bounds {
    time: Duration,
    bytes: usize,
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
            Call::Plan(trial, request) => {
                self.put(shard, &path::trial(*trial), request, Some(*trial)).await.map(Reply::State)
            }
            Call::Start(trial, request) => {
                self.put(shard, &path::start(*trial), request, Some(*trial)).await.map(Reply::Start)
            }
            Call::Measure(trial, request) => {
                self.put(shard, &path::measure(*trial), request, Some(*trial)).await.map(Reply::State)
            }
            Call::Snapshot(trial, detail, from) => {
                let bounds = match detail {
                    Detail::Live => Bounds { time: self.timeouts.call, bytes: limits::LIVE_ANSWER_BYTES },
                    Detail::Full => Bounds { time: self.timeouts.full_snapshot, bytes: limits::ANSWER_BYTES },
                };
                let path = path::snapshot(*trial, *detail, *from);
                self.get(shard, &path, Some(*trial), bounds).await.map(Reply::Snapshot)
            }
            Call::Abort(trial, request) => {
                self.put(shard, &path::abort(*trial), request, Some(*trial)).await.map(Reply::State)
            }
            Call::Probe(trial, request) => {
                self.put(shard, &path::probe(*trial), request, Some(*trial)).await.map(Reply::Probe)
            }
            Call::Cleanup(request) => self.put(shard, path::CLEANUP, request, None).await.map(Reply::Cleanup),
            Call::Drain(request) => self.put(shard, path::DRAIN, request, None).await.map(Reply::State),
            Call::Release(request) => self.put(shard, path::RELEASE, request, None).await.map(Reply::State),
        };
        self.counts.count(call, &result);
        result
    }
}

//! The HTTPS API: authorization, limits on bodies, and the form of answers. The loop in [`super::shard`] decides the content.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, put};
use http_body_util::BodyExt;
use redisbench_wire::{Answer, ClockReading, Detail, EpochRequest, Refusal, RefusalCode, RunToken, limits, path};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::identity::Identity;
use super::shard::{ReplySender, ShardAnswer, ShardCall, Sources};
use super::trial::refusal;
use crate::sys::monotonic_nanoseconds;

/// Timeout from the last header to the last byte of a body.
const BODY: Duration = Duration::from_secs(10);
/// Timeout for the shard to answer and its driver to encode a snapshot of all operations and nodes.
const ANSWER: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Api {
    pub identity: Identity,
    /// The credential that a caller must present.
    pub token: RunToken,
    /// The queue of the shard's loop.
    pub calls: mpsc::Sender<ShardCall>,
}

type Shared = State<Arc<Api>>;

/// The routes of `protocol`'s calls, behind the credential.
pub fn router(api: Api) -> Router {
    let api = Arc::new(api);
    let refuse_unknown =
        |State(api): Shared| async move { api.refused(None, &refusal(RefusalCode::Unknown, "no such call")) };
    Router::new()
        .route(path::CLOCK, get(clock))
        .route(path::STATE, get(state))
        .route(path::TRIAL, put_trial(ShardCall::Plan))
        .route(path::START, put_trial(ShardCall::Start))
        .route(path::MEASURE, put_trial(ShardCall::Measure))
        .route(path::PROBE, put_trial(ShardCall::Probe))
        .route(path::ABORT, put_trial(ShardCall::Abort))
        .route(path::SNAPSHOT, get(snapshot))
        .route(path::CLEANUP, put_epoch(ShardCall::Cleanup))
        .route(path::DRAIN, put_epoch(ShardCall::Drain))
        .route(path::RELEASE, put_epoch(ShardCall::Release))
        .fallback(refuse_unknown)
        .method_not_allowed_fallback(refuse_unknown)
        .layer(middleware::from_fn_with_state(api.clone(), authorize))
        .with_state(api)
}

/// Runs before everything else. A request without the credential gets no information, not even the run's name, and is disconnected.
async fn authorize(State(api): Shared, request: Request, next: Next) -> Response {
    let authorized = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|header| header.to_str().ok())
        .is_some_and(|header| api.token.matches(header));
    if authorized {
        return next.run(request).await;
    }
    let body = refusal(RefusalCode::Unauthorized, "the run's credential is required");
    let mut response = json(StatusCode::UNAUTHORIZED, &Answer::new("", "", None, body));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Answered here, not by the loop: time in a queue would add to the uncertainty of the start instant.
async fn clock(State(api): Shared) -> Response {
    api.answer(None, &ClockReading { monotonic_nanoseconds: monotonic_nanoseconds() })
}

async fn state(State(api): Shared) -> Response {
    api.call(ShardCall::State).await
}

/// A `PUT` of a trial, which is passed to the loop as `call`.
fn put_trial<B, T>(call: fn(u32, B, ReplySender<T>) -> ShardCall) -> MethodRouter<Arc<Api>>
where
    B: DeserializeOwned + Send + 'static,
    T: Serialize + Send + 'static,
{
    put(move |State(api): Shared, Path(trial): Path<String>, request: Request| async move {
        let trial = match trial_number(&trial) {
            Ok(trial) => trial,
            Err(refused) => return api.refused(None, &refused),
        };
        match body::<B>(request).await {
            Ok(body) => api.call(|reply| call(trial, body, reply)).await,
            Err(refused) => api.refused(Some(trial), &refused),
        }
    })
}

/// A `PUT` of the whole shard.
fn put_epoch<T: Serialize + Send + 'static>(
    call: fn(EpochRequest, ReplySender<T>) -> ShardCall,
) -> MethodRouter<Arc<Api>> {
    put(move |State(api): Shared, request: Request| async move {
        match body::<EpochRequest>(request).await {
            Ok(body) => api.call(|reply| call(body, reply)).await,
            Err(refused) => api.refused(None, &refused),
        }
    })
}

#[derive(serde::Deserialize)]
struct SnapshotQuery {
    detail: Detail,
    /// The first second to return.
    #[serde(default)]
    from: u32,
}

async fn snapshot(
    State(api): Shared,
    Path(trial): Path<String>,
    query: Result<Query<SnapshotQuery>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let (trial, SnapshotQuery { detail, from }) = match (trial_number(&trial), query) {
        (Ok(trial), Ok(Query(query))) => (trial, query),
        (Err(refused), _) => return api.refused(None, &refused),
        (_, Err(_)) => {
            return api
                .refused(None, &refusal(RefusalCode::Malformed, "detail must be live or full, and from a second"));
        }
    };
    let sources = match api.ask(|reply| ShardCall::Snapshot(trial, detail, reply)).await {
        Ok(ShardAnswer { body, .. }) => body,
        Err((trial, refused)) => return api.refused(trial, &refused),
    };
    let Sources { driver, servers, load_was_last, terminated } = sources;
    // The conductor asks shard 0 for the full snapshot after all load has ended, so the servers' counters are now final.
    if let (Some(servers), Detail::Full, true) = (&servers, detail, load_was_last) {
        // On a timeout the report on the servers is less complete.
        let _ = timeout(ANSWER / 2, servers.look()).await;
    }
    match timeout(ANSWER / 2, driver.snapshot_since(detail, from)).await {
        Ok(Ok(mut snapshot)) => {
            snapshot.servers = servers.map(|servers| servers.report(detail));
            // Read after the counters: whoever sees that the load was stopped sees why.
            snapshot.terminated = terminated.is_cancelled();
            api.answer(Some(trial), &snapshot)
        }
        Ok(Err(error)) => {
            let message = format!("failed to take a snapshot: {error}");
            api.refused(Some(trial), &refusal(RefusalCode::Unavailable, message))
        }
        Err(_) => api.refused(Some(trial), &refusal(RefusalCode::Unavailable, "the snapshot took too long")),
    }
}

impl Api {
    async fn call<T: Serialize>(&self, call: impl FnOnce(ReplySender<T>) -> ShardCall) -> Response {
        match self.ask(call).await {
            Ok(ShardAnswer { trial, body }) => self.answer(trial, &body),
            Err((trial, refused)) => self.refused(trial, &refused),
        }
    }

    async fn ask<T>(
        &self,
        call: impl FnOnce(ReplySender<T>) -> ShardCall,
    ) -> Result<ShardAnswer<T>, (Option<u32>, Refusal)> {
        let (reply, answer) = oneshot::channel();
        let unavailable = |message: &str| (None, refusal(RefusalCode::Unavailable, message));
        self.calls.try_send(call(reply)).map_err(|_| unavailable("too many pending calls, or the shard is exiting"))?;
        match timeout(ANSWER, answer).await {
            Ok(Ok(ShardAnswer { trial, body })) => match body {
                Ok(body) => Ok(ShardAnswer { trial, body }),
                Err(refused) => Err((trial, refused)),
            },
            Ok(Err(_)) => Err(unavailable("the shard is exiting")),
            Err(_) => Err(unavailable("the shard did not reply in time")),
        }
    }

    fn answer<T: Serialize>(&self, trial: Option<u32>, body: &T) -> Response {
        json(StatusCode::OK, &Answer::new(&self.identity.run, &self.identity.incarnation, trial, body))
    }

    fn refused(&self, trial: Option<u32>, refused: &Refusal) -> Response {
        let status = StatusCode::from_u16(refused.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, &Answer::new(&self.identity.run, &self.identity.incarnation, trial, refused))
    }
}

fn trial_number(text: &str) -> Result<u32, Refusal> {
    text.parse().map_err(|_| refusal(RefusalCode::Unknown, "the trial must be a number"))
}

async fn body<T: DeserializeOwned>(request: Request) -> Result<T, Refusal> {
    let too_large = || refusal(RefusalCode::TooLarge, format!("the body exceeds {} bytes", limits::REQUEST_BYTES));
    let bytes = match timeout(BODY, read_bounded(request.into_body())).await {
        Ok(Ok(Some(bytes))) => bytes,
        Ok(Ok(None)) => return Err(too_large()),
        Ok(Err(_)) => return Err(refusal(RefusalCode::Malformed, "the body is incomplete")),
        Err(_) => return Err(refusal(RefusalCode::Malformed, "timed out reading the body")),
    };
    // The message names the field. Plans hold no credential, so it can be returned.
    serde_json::from_slice(&bytes)
        .map_err(|error| refusal(RefusalCode::Malformed, limits::message(&format!("the body is invalid: {error}"))))
}

/// Returns the whole body, or `None` if it is too large. Reads and drops up to 4 times the limit, because a caller that is still writing
/// when the connection closes never sees the answer.
async fn read_bounded(mut body: Body) -> Result<Option<Vec<u8>>, axum::Error> {
    let mut kept = Vec::new();
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        read += data.len();
        if read <= limits::REQUEST_BYTES {
            kept.extend_from_slice(&data);
        } else if read > 4 * limits::REQUEST_BYTES {
            break;
        }
    }
    Ok((read <= limits::REQUEST_BYTES).then_some(kept))
}

fn json<T: Serialize>(status: StatusCode, body: &Answer<T>) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => (status, [(CONTENT_TYPE, "application/json")], Body::from(bytes)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

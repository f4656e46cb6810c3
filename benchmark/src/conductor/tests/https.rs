//! Tests the client against a real HTTPS server on the loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use redisbench_wire::{
    AbortRequest, AbortThen, Answer, ClockReading, Detail, Refusal, RefusalCode, StartRequest, WIRE_VERSION, limits,
    path,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::conductor::client::{CallTimeouts, ShardClient};
use crate::conductor::{
    Call, CallCounts, CallError, Endpoint, Reader, Reply, ResultMemory, ShardCalls as _, Unreachable,
};
use crate::credential::RunCredential;

pub const RUN: &str = "run";
/// The reply of [`clock`].
pub const CLOCK: Reply = Reply::Clock(ClockReading { monotonic_nanoseconds: 42 });

pub fn credential(run: &str) -> RunCredential {
    RunCredential::derive(&[3; 32], run).unwrap()
}

/// A server that ends with the test.
pub struct Server {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

fn acceptor(credential: &RunCredential) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(credential.certificate_pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(credential.private_key_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn with_certificate_of(credential: &RunCredential, router: Router) -> Self {
        let acceptor = acceptor(credential);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    // A client that rejects the certificate closes the connection.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = TowerToHyperService::new(router);
                    let _ =
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, task }
    }

    async fn new(router: Router) -> Self {
        Self::with_certificate_of(&credential(RUN), router).await
    }

    /// Passes every connection after its TLS handshake to `answer`, which need not speak HTTP.
    pub async fn raw<F>(answer: impl Fn(TlsStream<TcpStream>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let acceptor = acceptor(&credential(RUN));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                tokio::spawn(answer(stream));
            }
        });
        Self { address, task }
    }

    pub fn endpoint(&self) -> Endpoint {
        Endpoint { shard: 0, incarnation: "pod".into(), address: self.address, host: String::new() }
    }
}

pub fn client() -> ShardClient {
    let timeouts = CallTimeouts { call: Duration::from_secs(60), ..CallTimeouts::default() };
    ShardClient::new(RUN, &credential(RUN), timeouts).unwrap()
}

/// A shard's clock that answers as `run` and `incarnation` to callers with the right token.
pub fn clock(run: &'static str, incarnation: &'static str) -> Router {
    let token = credential(RUN).token();
    let handler = async move |headers: HeaderMap| {
        if !headers.get("authorization").is_some_and(|header| token.matches(header.to_str().unwrap())) {
            return StatusCode::IM_A_TEAPOT.into_response();
        }
        let body = ClockReading { monotonic_nanoseconds: 42 };
        axum::Json(Answer::new(run, incarnation, None, body)).into_response()
    };
    Router::new().route(path::CLOCK, get(handler))
}

pub fn unreachable(error: CallError) -> Unreachable {
    match error {
        CallError::Unreachable(how) => how,
        CallError::Refused(refusal) => panic!("refused: {refusal}"),
    }
}

#[tokio::test]
async fn the_pinned_certificate_and_the_token_work() {
    let server = Server::new(clock(RUN, "pod")).await;
    let client = client();
    for _ in 0..3 {
        assert_eq!(client.call(&server.endpoint(), &Call::Clock).await, Ok(CLOCK));
    }
}

#[tokio::test]
async fn another_runs_certificate_is_refused() {
    let server = Server::with_certificate_of(&credential("another"), clock(RUN, "pod")).await;
    let how = unreachable(client().call(&server.endpoint(), &Call::Clock).await.unwrap_err());
    assert!(matches!(&how, Unreachable::Connection(why) if why.contains("certificate")), "{how:?}");
}

#[tokio::test]
async fn another_incarnation_or_run_is_no_data() {
    for (run, incarnation) in [(RUN, "pod-again"), ("another", "pod")] {
        let server = Server::new(clock(run, incarnation)).await;
        let how = unreachable(client().call(&server.endpoint(), &Call::Clock).await.unwrap_err());
        assert!(matches!(how, Unreachable::Foreign(_)), "{how:?}");
    }
}

#[tokio::test]
async fn another_wire_version_is_no_data() {
    let answer = async || {
        let body = ClockReading { monotonic_nanoseconds: 42 };
        axum::Json(Answer { wire: WIRE_VERSION + 1, ..Answer::new(RUN, "pod", None, body) })
    };
    let server = Server::new(Router::new().route(path::CLOCK, get(answer))).await;
    let how = unreachable(client().call(&server.endpoint(), &Call::Clock).await.unwrap_err());
    assert!(matches!(&how, Unreachable::Foreign(what) if what.contains("wire version")), "{how:?}");
}

#[tokio::test]
async fn a_snapshot_of_another_trial_is_no_data() {
    let answer = async || axum::Json(Answer::new(RUN, "pod", Some(1), super::snapshot(0, 1, 1)));
    let server = Server::new(Router::new().route(path::SNAPSHOT, get(answer))).await;
    let client = client();
    assert!(client.call(&server.endpoint(), &Call::Snapshot(1, Detail::Live, 0)).await.is_ok());
    let how = unreachable(client.call(&server.endpoint(), &Call::Snapshot(0, Detail::Live, 0)).await.unwrap_err());
    assert!(matches!(&how, Unreachable::Foreign(what) if what.contains("trial")), "{how:?}");
}

/// A shard whose full snapshot takes this many bytes, and the number of calls for it.
async fn with_snapshot_of(bytes: usize) -> (Server, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let answer = async move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let mut body = serde_json::to_string(&Answer::new(RUN, "pod", Some(0), super::snapshot(0, 1, 1))).unwrap();
        body.extend(std::iter::repeat_n(' ', bytes.saturating_sub(body.len())));
        body
    };
    (Server::new(Router::new().route(path::SNAPSHOT, get(answer))).await, calls)
}

#[tokio::test]
async fn a_snapshot_longer_than_its_memory_is_read_once_there_is_more() {
    let memory = Arc::new(ResultMemory::new(32 << 20, 0, 0));
    let client = client().within(memory.clone());
    let full = Call::Snapshot(0, Detail::Full, 0);
    for (bytes, calls) in [(100 << 10, 1), (1 << 20, 2), (1 << 20, 1), (1 << 10, 1), (10 << 20, 2), (20 << 20, 1)] {
        let (server, counted) = with_snapshot_of(bytes).await;
        client.call(&server.endpoint(), &full).await.unwrap();
        assert_eq!(counted.load(Ordering::Relaxed), calls, "{bytes}");
        assert_eq!(memory.used(), [0, 0]);
    }
}

#[tokio::test]
async fn a_live_snapshot_says_nothing_about_full_ones() {
    let memory = Arc::new(ResultMemory::new(32 << 20, 0, 0));
    let client = client().within(memory.clone());
    let (server, calls) = with_snapshot_of(1 << 20).await;
    client.call(&server.endpoint(), &Call::Snapshot(0, Detail::Live, 0)).await.unwrap();
    client.call(&server.endpoint(), &Call::Snapshot(0, Detail::Full, 0)).await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_wait_for_memory_ends_and_is_named() {
    let memory = Arc::new(ResultMemory::new(2 << 20, 0, 0));
    let others = [(); 2].map(|()| Reader::of(memory.clone()));
    let _all = [others[0].read(1 << 20).await, others[1].read(1 << 20).await];
    let timeouts = CallTimeouts { full_snapshot: Duration::from_millis(200), ..CallTimeouts::default() };
    let client = ShardClient::new(RUN, &credential(RUN), timeouts).unwrap().within(memory);
    let (server, calls) = with_snapshot_of(0).await;
    let how = unreachable(client.call(&server.endpoint(), &Call::Snapshot(0, Detail::Full, 0)).await.unwrap_err());
    assert_eq!(how, Unreachable::NoMemory(timeouts.full_snapshot));
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused() {
    let body = async || vec![b' '; limits::ANSWER_BYTES + 1];
    let server = Server::new(Router::new().route(path::CLOCK, get(body))).await;
    let how = unreachable(client().call(&server.endpoint(), &Call::Clock).await.unwrap_err());
    assert!(matches!(&how, Unreachable::Malformed(what) if what.contains("larger than")), "{how:?}");
}

#[tokio::test]
async fn refusals_are_read_whoever_is_refused() {
    let cases = [
        (RefusalCode::WrongPhase, RUN, "pod"),
        // An unauthorized caller gets no identity.
        (RefusalCode::Unauthorized, "", ""),
    ];
    for (code, run, incarnation) in cases {
        let answer = async move || {
            let refusal = Refusal { code, message: "no".into() };
            let status = StatusCode::from_u16(code.status()).unwrap();
            (status, axum::Json(Answer::new(run, incarnation, None, refusal)))
        };
        let server = Server::new(Router::new().route(path::STATE, get(answer))).await;
        assert_eq!(client().call(&server.endpoint(), &Call::State).await.unwrap_err().refusal(), Some(code));
    }
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let endpoint = Endpoint { shard: 0, incarnation: "pod".into(), address, host: String::new() };
    let counts = Arc::new(CallCounts::default());
    let client = client().counted(counts.clone());
    let how = unreachable(client.call(&endpoint, &Call::Clock).await.unwrap_err());
    assert!(matches!(how, Unreachable::Connection(_)), "{how:?}");
    for detail in [Detail::Live, Detail::Full] {
        client.call(&endpoint, &Call::Snapshot(7, detail, 3)).await.unwrap_err();
    }
    assert_eq!(counts.all(), [(("clock", "connection"), 1), (("snapshot", "connection"), 2)]);
}

#[tokio::test]
async fn a_dial_into_the_void_is_told_apart() {
    let listener = TcpSocket::new_v4().unwrap();
    listener.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let listener = listener.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Nothing accepts: once the queue is full, the kernel drops connection attempts, like a NetworkPolicy.
    let mut queued = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        queued.push(stream.unwrap());
    }
    let timeouts = CallTimeouts { dial: Duration::from_millis(200), ..CallTimeouts::default() };
    let client = ShardClient::new(RUN, &credential(RUN), timeouts).unwrap();
    let endpoint = Endpoint { shard: 0, incarnation: "pod".into(), address, host: String::new() };
    assert_eq!(
        unreachable(client.call(&endpoint, &Call::Clock).await.unwrap_err()),
        Unreachable::DialTimedOut(address)
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let never = std::future::pending::<()>;
    let routes = [path::CLOCK, path::START, path::ABORT].into_iter();
    let server = Server::new(routes.fold(Router::new(), |router, path| router.route(path, any(never)))).await;
    let [call, repeated] = [300, 200].map(Duration::from_millis);
    let client =
        ShardClient::new(RUN, &credential(RUN), CallTimeouts { call, repeated, ..CallTimeouts::default() }).unwrap();
    let start = StartRequest { epoch: 1, attempt: 1, start_nanoseconds: 1 };
    let stop = AbortRequest { epoch: 1, attempt: None, then: AbortThen::Stop };
    // What is repeated until a deadline must not wait for all of it.
    for (call, within) in [(Call::Clock, call), (Call::Start(0, start), repeated), (Call::Abort(0, stop), repeated)] {
        let how = unreachable(client.call(&server.endpoint(), &call).await.unwrap_err());
        assert_eq!(how, Unreachable::TimedOut(within), "{call:?}");
    }
}

#[test]
fn debug_shows_no_token() {
    let shown = format!("{:?}", client());
    assert!(!shown.contains(credential(RUN).token_text()), "{shown}");
}

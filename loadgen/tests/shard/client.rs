//! A shard's process and a small conductor's client for it.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use redisbench_wire::plan::TrialPlan;
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{
    AbortRequest, AbortThen, AcceptedStart, AfterRequest, Answer, CleanupState, ClockReading, Detail, EpochRequest,
    PlanRequest, ProbeState, Refusal, RefusalCode, ShardPhase, ShardState, StartRequest, path,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

pub const RUN: &str = "01j8run";
pub const INCARNATION: &str = "pod-uid";
const TOKEN: &str = "a-token-of-the-run";
const PATIENCE: Duration = Duration::from_secs(60);

/// A running shard with its own run.
pub struct Shard {
    child: Child,
    directory: TempDir,
    pub address: String,
    tls: Arc<ClientConfig>,
    /// The token that this client presents.
    pub token: String,
    /// The trial in the calls.
    pub trial: u32,
}

/// The answer to a call.
pub type Called<T> = Result<Answer<T>, (StatusCode, Answer<Refusal>)>;

impl Shard {
    /// Starts shard 0 with the target's user and password in its directory, if any.
    pub async fn start(credentials: Option<(&str, &str)>) -> Self {
        Self::start_with(credentials, &[]).await
    }

    /// Like `start`, with more files in its directory.
    pub async fn start_with(credentials: Option<(&str, &str)>, files: &[(&str, &str)]) -> Self {
        Self::start_by(credentials, files, |directory| command(directory, "127.0.0.1:0")).await
    }

    /// Like `start_with`, with another command.
    pub async fn start_by(
        credentials: Option<(&str, &str)>,
        files: &[(&str, &str)],
        command: impl FnOnce(&Path) -> Command,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pair = rcgen::generate_simple_self_signed(["shard".to_owned()]).unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("identity/token", &format!("{TOKEN}\n"));
        write("identity/tls.crt", &pair.cert.pem());
        write("identity/tls.key", &pair.signing_key.serialize_pem());
        if let Some((username, password)) = credentials {
            write("targets/0/username", username);
            write("targets/0/password", password);
        }
        for (name, text) in files {
            write(name, text);
        }
        let mut roots = RootCertStore::empty();
        roots.add(pair.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let tls = Arc::new(tls.with_root_certificates(roots).with_no_client_auth());
        let child = command(directory.path()).spawn().unwrap();
        let port_file = directory.path().join("port");
        let address = eventually("the shard listens", async || std::fs::read_to_string(&port_file).ok()).await;
        Self { child, directory, address: address.trim().to_owned(), tls, token: TOKEN.to_owned(), trial: 0 }
    }

    /// Starts shard 0 with `plan`, and waits until it is armed.
    pub async fn armed(plan: &TrialPlan) -> Self {
        let shard = Self::start(None).await;
        shard.prepared(plan).await;
        shard
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Its stderr so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    pub fn terminate(&self) {
        let status = std::process::Command::new("kill").arg(self.pid().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end and returns the exit code.
    pub async fn exit_code(&mut self) -> Option<i32> {
        timeout(PATIENCE, self.child.wait()).await.expect("the shard did not end").unwrap().code()
    }

    /// Sends a request on a new connection. Returns status, headers as text, and body.
    pub async fn request(&self, method: Method, path: &str, body: Bytes) -> (StatusCode, String, Bytes) {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        let name = ServerName::try_from("shard").unwrap();
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "shard");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let answer = async {
            let response = sender.send_request(request.body(Full::new(body)).unwrap()).await.unwrap();
            let (parts, body) = response.into_parts();
            (parts.status, format!("{:?}", parts.headers), body.collect().await.unwrap().to_bytes())
        };
        let answer = timeout(PATIENCE, answer).await.expect("no answer");
        connection.abort();
        answer
    }

    async fn call<T: DeserializeOwned>(&self, method: Method, path: &str, body: &impl Serialize) -> Called<T> {
        let path = path::of_trial(path, Some(self.trial));
        let (status, _, bytes) = self.request(method, &path, serde_json::to_vec(body).unwrap().into()).await;
        if status == StatusCode::OK {
            return Ok(serde_json::from_slice(&bytes).unwrap());
        }
        let refused: Answer<Refusal> = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(refused.body.code.status(), status.as_u16());
        Err((status, refused))
    }

    pub async fn clock(&self) -> u64 {
        let answer: Answer<ClockReading> = self.call(Method::GET, path::CLOCK, &Value::Null).await.unwrap();
        answer.body.monotonic_nanoseconds
    }

    pub async fn state(&self) -> Answer<ShardState> {
        self.call(Method::GET, path::STATE, &Value::Null).await.unwrap()
    }

    pub async fn plan(&self, epoch: u64, plan: &TrialPlan) -> Called<ShardState> {
        let request = PlanRequest { epoch, hash: plan.hash(RUN, self.trial), plan: plan.clone().into() };
        self.call(Method::PUT, path::TRIAL, &request).await
    }

    pub async fn start_at(&self, epoch: u64, attempt: u32, start_nanoseconds: u64) -> Called<AcceptedStart> {
        let request = StartRequest { epoch, attempt, start_nanoseconds };
        self.call(Method::PUT, path::START, &request).await
    }

    pub async fn snapshot(&self, detail: Detail) -> Called<Snapshot> {
        let called: Called<Snapshot> =
            self.call(Method::GET, &path::snapshot(self.trial, detail, 0), &Value::Null).await;
        // The conductor's check must accept every snapshot.
        if let Ok(answer) = &called {
            assert_eq!(answer.body.check(), Ok(()));
        }
        called
    }

    pub async fn probe(&self, attempt: u32, after_nanoseconds: u64) -> Called<ProbeState> {
        let request = AfterRequest { epoch: 1, attempt, after_nanoseconds };
        self.call(Method::PUT, path::PROBE, &request).await
    }

    pub async fn abort(&self, then: AbortThen) -> Called<ShardState> {
        let request = AbortRequest { epoch: 1, attempt: None, then };
        self.call(Method::PUT, path::ABORT, &request).await
    }

    pub async fn cleanup(&self, epoch: u64) -> Called<CleanupState> {
        self.call(Method::PUT, path::CLEANUP, &EpochRequest { epoch }).await
    }

    /// Polls until the cleanup has finished.
    pub async fn cleaned_up(&self) -> u64 {
        eventually("the keys are deleted", async || {
            let state = self.cleanup(1).await.unwrap().body;
            assert_eq!(state.failure, None);
            state.done.then_some(state.removed_keys)
        })
        .await
    }

    pub async fn drain(&self, epoch: u64) -> Called<ShardState> {
        self.call(Method::PUT, path::DRAIN, &EpochRequest { epoch }).await
    }

    pub async fn release(&self) -> Called<ShardState> {
        self.call(Method::PUT, path::RELEASE, &EpochRequest { epoch: 1 }).await
    }

    /// Releases the shard, which must exit with `code`.
    pub async fn ends_with(&mut self, code: i32) {
        self.release().await.unwrap();
        assert_eq!(self.exit_code().await, Some(code), "{}", self.log());
    }

    /// Waits for a phase. Panics on an unexpected failure.
    pub async fn phase(&self, wanted: ShardPhase) -> ShardState {
        eventually(&format!("the shard is {wanted:?}"), async || {
            let state = self.state().await.body;
            assert!(state.phase != ShardPhase::Failed || wanted == ShardPhase::Failed, "{state:?}\n{}", self.log());
            (state.phase == wanted).then_some(state)
        })
        .await
    }

    /// Sends a plan, and waits until the shard is armed.
    pub async fn prepared(&self, plan: &TrialPlan) {
        self.plan(1, plan).await.unwrap();
        self.phase(ShardPhase::Armed).await;
    }

    /// Waits until the load has ended, and returns the full snapshot.
    pub async fn finished(&self) -> Snapshot {
        self.phase(ShardPhase::Finished).await;
        self.snapshot(Detail::Full).await.unwrap().body
    }

    /// Orders a start in 100 ms. Retries, because on a busy machine the instant may have passed when the shard receives it.
    pub async fn begin(&self, attempt: u32) {
        loop {
            let begin = self.clock().await + 100_000_000;
            match self.start_at(1, attempt, begin).await {
                Ok(accepted) => {
                    return assert_eq!(accepted.body, AcceptedStart { attempt, start_nanoseconds: begin });
                }
                Err((_, refused)) => assert_eq!(refused.body.code, RefusalCode::InstantPassed, "{refused:?}"),
            }
        }
    }

    /// Sends a plan, and runs its first attempt.
    pub async fn run_plan(&self, plan: &TrialPlan) -> Snapshot {
        self.plan(1, plan).await.unwrap();
        self.run(1).await
    }

    /// Runs an attempt from Armed to the full snapshot.
    pub async fn run(&self, attempt: u32) -> Snapshot {
        self.phase(ShardPhase::Armed).await;
        self.begin(attempt).await;
        self.finished().await
    }
}

/// The command of a shard with its files in `directory`.
pub fn command(directory: &Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redisbench-loadgen"));
    command
        .args(["shard", "--run", RUN, "--index", "0", "--incarnation", INCARNATION, "--host", "node-7"])
        .args(["--listen", listen, "--workers", "2", "--log-format", "json"])
        .arg("--identity")
        .arg(directory.join("identity"))
        .arg("--targets")
        .arg(directory.join("targets"))
        .arg("--data")
        .arg(directory.join("data"))
        .arg("--port-file")
        .arg(directory.join("port"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(directory.join("log")).unwrap())
        .kill_on_drop(true);
    command
}

/// Polls until `look` returns a value.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await; // between two looks: a shard tells only when asked
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("waited too long until {what}"))
}

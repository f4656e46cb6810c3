//! Types that the cold side passes to the engine and receives from it.

use std::fmt;
use std::io;
use std::sync::Arc;

use redisbench_wire::plan::ShardPlan;
use rustls::pki_types::ServerName;

use crate::cluster::Topology;
use crate::record::Traced;

/// Everything that the engine needs before it starts its threads.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub plan: ShardPlan,
    /// The maximum number of worker threads, at least 1; see [`crate::engine::available_workers`]. Fewer are started if there are fewer
    /// connections.
    pub workers: usize,
    /// The servers, as discovered.
    pub topology: Arc<Topology>,
    /// Per operation, whether a replica may serve it. Missing entries are `false`.
    pub reads: Vec<bool>,
    pub access: Access,
    /// True if the servers may evict keys. A missing key is then no evidence of a lost write.
    pub may_evict: bool,
    /// This machine's name, reported in snapshots.
    pub host: String,
}

impl EngineConfig {
    /// For servers that anyone may use.
    pub fn new(plan: impl Into<ShardPlan>, workers: usize, topology: Topology) -> Self {
        let (plan, topology) = (plan.into(), Arc::new(topology));
        let (reads, access, host) = (Vec::new(), Access::default(), String::new());
        Self { plan, workers, topology, reads, access, may_evict: false, host }
    }
}

/// TLS to the target.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Trusted certificates and the client's own.
    pub config: Arc<rustls::ClientConfig>,
    /// The name that a server's certificate must have, also sent as SNI. `None`: the host that each server is reached by.
    pub server_name: Option<ServerName<'static>>,
    /// The same settings for client libraries that build their own.
    pub parts: Arc<TlsParts>,
}

/// TLS settings as client libraries take them. Debug output shows no certificate and no key.
#[derive(Default)]
pub struct TlsParts {
    /// PEM of the trusted CAs, if not those of the system.
    pub authorities: Option<Vec<u8>>,
    /// PEM of the client's certificate and of its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// True if every certificate is accepted.
    pub trusts_anyone: bool,
}

impl fmt::Debug for TlsParts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsParts").field("trusts_anyone", &self.trusts_anyone).finish_non_exhaustive()
    }
}

impl Tls {
    /// The name that the certificate of the server at `endpoint` (`host:port`) must have.
    ///
    /// # Errors
    /// Fails if the host is not a valid certificate name.
    pub fn name_of(&self, endpoint: &str) -> io::Result<ServerName<'static>> {
        if let Some(name) = &self.server_name {
            return Ok(name.clone());
        }
        let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        // A fully qualified name ends with a dot, which certificates leave out.
        let host = host.strip_suffix('.').unwrap_or(host);
        ServerName::try_from(host.to_owned()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("TLS: {host:?} is not a valid name of a certificate"))
        })
    }
}

/// The commands that every connection sends before its first request (AUTH, SELECT and the like), already encoded. Debug output shows
/// none of the bytes, because they may contain a password.
#[derive(Clone, Default)]
pub struct Handshake {
    pub bytes: Arc<[u8]>,
    /// The number of replies that they get.
    pub replies: u32,
}

impl Handshake {
    /// `bytes` are the encoded commands, `replies` their number.
    pub fn new(bytes: impl Into<Arc<[u8]>>, replies: u32) -> Self {
        Self { bytes: bytes.into(), replies }
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Handshake").field("replies", &self.replies).finish_non_exhaustive()
    }
}

/// The user and password of the target, for those who cannot send a [`Handshake`]. Debug output shows no password.
#[derive(Clone)]
pub struct Login {
    pub username: Option<String>,
    pub password: Vec<u8>,
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Login").field("username", &self.username).finish_non_exhaustive()
    }
}

/// Credentials and TLS settings of new connections, from the current Secrets.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The first commands of every connection.
    pub handshake: Handshake,
    /// Credentials of every connection.
    pub login: Option<Login>,
    /// TLS settings, if the servers use TLS.
    pub tls: Option<Tls>,
}

/// Reports to the cold side. The channel is bounded: progress is dropped when it is full, everything else is offered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// The number of ready connections changed. With `ready == wanted` the engine may preload or start.
    Connected { ready: u32, wanted: u32 },
    /// A connection could not be made. It is retried for every reason.
    ConnectFailed {
        reason: ConnectFailure,
        /// The server and the cause.
        message: String,
    },
    /// A ready connection broke. It is made again.
    ConnectionLost {
        /// The server and the cause.
        message: String,
    },
    /// Commands of the preload that succeeded so far.
    PreloadProgress {
        /// Total of all workers.
        commands: u64,
    },
    Preloaded {
        /// Keys written or found.
        keys: u64,
    },
    PreloadFailed {
        /// The first error, with its server.
        message: String,
    },
    /// A server replied MOVED: the topology should be discovered again and passed to [`crate::engine::Engine::update_topology`]. Sent
    /// once until that happens.
    TopologyStale,
    /// Slots get no replies while a load runs: the topology should be discovered again at once. Repeated until they do.
    Unanswered,
    /// Requests that were traced.
    Traced(Traced),
    /// Every request of the attempt has its outcome, or the attempt was aborted.
    Finished { attempt: u32, aborted: bool },
    /// A worker cannot continue: the kernel refused something it needs.
    WorkerFailed { message: String },
}

/// Why a connection could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Nothing listens there.
    Refused,
    /// No connection within the connect timeout.
    TimedOut,
    /// The connection broke before it was ready, or another system error occurred.
    Broken,
    /// The server is not trusted, does not trust us, or does not speak TLS.
    NotSecure,
    /// The server answered the handshake with an error.
    HandshakeRefused,
    /// This process lacks file descriptors or memory.
    Resources,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The plan cannot be run by this engine.
    #[error("{0}")]
    BadPlan(String),
    /// The kernel refused epoll, an eventfd or a thread.
    #[error("failed to start a worker")]
    Start(#[source] io::Error),
    /// A worker's mailbox is full or its thread has ended.
    #[error("failed to reach a worker")]
    Unreachable,
    /// A histogram could not be encoded.
    #[error("failed to encode a snapshot")]
    Encode(#[source] redisbench_wire::histogram::HistogramError),
}

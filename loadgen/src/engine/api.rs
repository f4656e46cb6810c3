//! What the cold side says to the engine and hears from it.

use std::fmt;
use std::io;
use std::sync::Arc;

use redisbench_wire::plan::ShardPlan;
use rustls::pki_types::ServerName;

use crate::cluster::Topology;

/// Everything that the engine needs to know before it starts its threads.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// What to do.
    pub plan: Arc<ShardPlan>,
    /// The most worker threads, at least 1; see [`crate::engine::available_workers`]. Fewer are started if there are
    /// too few connections to go round.
    pub workers: usize,
    /// The servers, as discovered.
    pub topology: Arc<Topology>,
    /// Of each operation, whether a replica may answer it; none may where there is no entry.
    pub reads: Vec<bool>,
    /// The first commands of every connection.
    pub handshake: Handshake,
    /// How to speak TLS, if the servers do.
    pub tls: Option<Tls>,
    /// Whether the servers may remove keys of their own accord: a key that is missing then says nothing.
    pub may_evict: bool,
    /// This machine's name, reported in snapshots.
    pub host: String,
}

/// TLS to the target.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Whom to trust, and who to be.
    pub config: Arc<rustls::ClientConfig>,
    /// Whom a server's certificate must name; also said to it. None: the host that each is reached by.
    pub server_name: Option<ServerName<'static>>,
}

impl Tls {
    /// Whom the certificate of the server at `endpoint`, which is `host:port`, must name.
    ///
    /// # Errors
    /// When the host is no name that a certificate can have.
    pub fn name_of(&self, endpoint: &str) -> io::Result<ServerName<'static>> {
        if let Some(name) = &self.server_name {
            return Ok(name.clone());
        }
        let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        // A name that is not to be searched for ends with a dot, which certificates leave out.
        let host = host.strip_suffix('.').unwrap_or(host);
        ServerName::try_from(host.to_owned()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("TLS: {host:?} is no name that a certificate can have"))
        })
    }
}

/// What every connection says before its first request: AUTH, SELECT and the like, already encoded. Debug output shows
/// no byte of it, because it may hold a password.
#[derive(Clone, Default)]
pub struct Handshake {
    pub(super) bytes: Arc<[u8]>,
    pub(super) replies: u32,
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

/// How new connections are let in, as the Secrets have it at present.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The first commands of every connection.
    pub handshake: Handshake,
    /// How to speak TLS, if the servers do.
    pub tls: Option<Tls>,
}

/// What happened, for the cold side. The channel is bounded: progress is left out when it is full, everything else is
/// offered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// The number of ready connections changed. With `ready == wanted` the engine may preload or start.
    Connected {
        /// Connections that are ready.
        ready: u32,
        /// Connections wanted.
        wanted: u32,
    },
    /// A connection could not be made. It is tried again, whatever the reason.
    ConnectFailed {
        /// The class.
        reason: ConnectFailure,
        /// Which server and why.
        message: String,
    },
    /// A ready connection broke. It is made again.
    ConnectionLost {
        /// Which server and why.
        message: String,
    },
    /// Keys that the preload wrote or found so far.
    PreloadProgress {
        /// Of all workers.
        keys: u64,
    },
    /// The preload is complete.
    Preloaded {
        /// Keys written or found.
        keys: u64,
    },
    /// The preload ended with an error.
    PreloadFailed {
        /// The first error, with the server that gave it.
        message: String,
    },
    /// A server answered with MOVED: the topology should be discovered again and handed to
    /// [`crate::engine::Engine::update_topology`]. Sent once until that happens.
    TopologyStale,
    /// Slots get no answers while a load runs: the topology should be discovered again at once. Sent again and again until
    /// they do.
    Unanswered,
    /// Every request of the attempt has its outcome, or the attempt was aborted.
    Finished {
        /// Which attempt.
        attempt: u32,
        /// Whether it was aborted.
        aborted: bool,
    },
    /// A worker cannot go on: the kernel refused something it needs.
    WorkerFailed {
        /// What failed.
        message: String,
    },
}

/// Why a connection could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Nobody listens there.
    Refused,
    /// No answer within the connect timeout.
    TimedOut,
    /// The connection broke before it was ready, or another system error.
    Broken,
    /// The server is not trusted, does not trust us, or does not speak TLS.
    NotSecure,
    /// The server answered the handshake with an error.
    HandshakeRefused,
    /// This process lacks file descriptors or memory.
    Resources,
}

/// Why the engine could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The plan cannot be run by this engine.
    #[error("{0}")]
    BadPlan(String),
    /// The kernel refused epoll, an eventfd or a thread.
    #[error("failed to start a worker")]
    Start(#[source] io::Error),
    /// A worker's mailbox is full or its thread is gone.
    #[error("failed to reach a worker")]
    Unreachable,
    /// A histogram could not be encoded.
    #[error("failed to encode a snapshot")]
    Encode(#[source] redisbench_wire::histogram::HistogramError),
}

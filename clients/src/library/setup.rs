//! Settings with which a library connects.

use std::sync::Arc;
use std::time::Duration;

use redisbench_loadgen::cluster::NodeAddress;
use redisbench_loadgen::engine::{Access, EngineConfig, Handshake, Login, Tls};
use redisbench_wire::plan::{Client, Library, Operation, Part, Protocol, ReadFrom, Target};

use crate::drivers::Socket;

/// Settings with which a library connects.
#[derive(Clone, Debug)]
pub struct Setup {
    pub client: Client,
    /// The library and its version.
    pub version: String,
    /// Only of a driver.
    pub driver: Option<Arc<Socket>>,
    /// The most calls in progress, at most those of a driver.
    pub callers: u16,
    pub target: Target,
    /// Host and port of each server: all of a cluster, otherwise the only one.
    pub servers: Vec<(String, u16)>,
    pub login: Option<Login>,
    pub tls: Option<Tls>,
    pub handshake: Handshake,
    pub connect_timeout: Duration,
    pub response_timeout: Duration,
    /// The command of each operation.
    pub commands: Vec<Named>,
}

impl Setup {
    /// Of the client that `config` names, with this many callers.
    pub fn new(config: &EngineConfig, client: Client, callers: u32, driver: Option<Arc<Socket>>) -> Self {
        let timeouts = config.plan.timeouts;
        let tls = config.access.tls.clone();
        let servers = config.topology.nodes.iter().map(|node| reached(node, tls.is_some())).collect();
        Self {
            version: version(&client.library),
            client,
            driver,
            callers: u16::try_from(callers).unwrap_or(u16::MAX),
            target: config.plan.target.clone(),
            servers,
            login: config.access.login.clone(),
            tls,
            handshake: config.access.handshake.clone(),
            connect_timeout: Duration::from_nanos(timeouts.connect_nanoseconds),
            response_timeout: Duration::from_nanos(timeouts.request_nanoseconds),
            commands: commands(config),
        }
    }

    /// Replaces what connections made from now on log in with.
    pub fn log_in_with(&mut self, access: &Access) {
        (self.login, self.handshake) = (access.login.clone(), access.handshake.clone());
        self.tls.clone_from(&access.tls);
    }

    pub fn is_resp3(&self) -> bool {
        self.target.protocol == Protocol::Resp3
    }

    /// The password as text, as libraries take it.
    pub fn password(&self) -> Result<Option<String>, String> {
        let Some(login) = &self.login else { return Ok(None) };
        let text = String::from_utf8(login.password.clone());
        text.map(Some).map_err(|_| "the password is not UTF-8, which client libraries require".to_owned())
    }

    pub fn username(&self) -> Option<&str> {
        self.login.as_ref()?.username.as_deref()
    }
}

/// A library and its version, which a driver replaces by its own.
fn version(library: &Library) -> String {
    match library {
        Library::RedisRs(_) => concat!("redis-rs ", env!("REDIS_VERSION")).to_owned(),
        Library::Fred => concat!("fred ", env!("FRED_VERSION")).to_owned(),
        Library::SmartBatching { .. } => concat!("redisbench ", env!("CARGO_PKG_VERSION")).to_owned(),
        Library::Driver { name } => format!("driver {name}"),
        Library::Engine | Library::Null => "none".to_owned(),
    }
}

/// Host and port of a server: with TLS by name, because a certificate names its host.
fn reached(node: &NodeAddress, by_name: bool) -> (String, u16) {
    let named = node.label.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match named.filter(|_| by_name) {
        Some((host, port)) => (host.trim_matches(['[', ']']).to_owned(), port),
        None => (node.address.ip().to_string(), node.address.port()),
    }
}

/// A command's name and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The operation's own name.
    pub operation: String,
    pub name: String,
    /// Index of the first key among the arguments behind the name.
    pub key: Option<usize>,
    /// True if it is sent to replicas.
    pub replicas: bool,
}

fn commands(config: &EngineConfig) -> Vec<Named> {
    let from_replicas = config.plan.target.read_from != ReadFrom::Primary;
    let operations = config.plan.workload.operations.iter().enumerate();
    let reads = |index: usize| config.reads.get(index).copied().unwrap_or_default();
    operations.map(|(index, operation)| Named::of(operation, from_replicas && reads(index))).collect()
}

impl Named {
    fn of(operation: &Operation, replicas: bool) -> Self {
        let name = match operation.arguments.first().map(Vec::as_slice) {
            Some([Part::Literal(name)]) => name.clone(),
            _ => String::new(),
        };
        let key = operation.arguments.iter().skip(1).position(|parts| parts.contains(&Part::Key));
        Self { operation: operation.name.clone(), name, key, replicas }
    }
}

//! The client libraries: each opens connections, and sends commands for callers.

mod fred;
mod redis_rs;
mod smart_batching;
mod turns;

use std::time::Duration;

use redisbench_loadgen::cluster::NodeAddress;
use redisbench_loadgen::engine::{Access, EngineConfig, Handshake, Login, Tls};
use redisbench_wire::plan::{Client, Library, Operation, Part, Protocol, Target};

use crate::command::Command;

/// What a library needs to connect.
#[derive(Clone, Debug)]
pub struct Setup {
    pub client: Client,
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
    /// Of the client that `config` names.
    pub fn new(config: &EngineConfig, client: Client) -> Self {
        let timeouts = config.plan.timeouts;
        let tls = config.access.tls.clone();
        let servers = config.topology.nodes.iter().map(|node| reached(node, tls.is_some())).collect();
        Self {
            client,
            target: config.plan.target.clone(),
            servers,
            login: config.access.login.clone(),
            tls,
            handshake: config.access.handshake.clone(),
            connect_timeout: Duration::from_nanos(timeouts.connect_nanoseconds),
            response_timeout: Duration::from_nanos(timeouts.request_nanoseconds),
            commands: config.plan.workload.operations.iter().map(Named::of).collect(),
        }
    }

    /// Replaces what connections made from now on log in with.
    pub fn log_in_with(&mut self, access: &Access) {
        (self.login, self.handshake) = (access.login.clone(), access.handshake.clone());
        self.tls.clone_from(&access.tls);
    }

    /// The library and its version.
    pub fn version(&self) -> &'static str {
        match self.client.library {
            Library::RedisRs(_) => concat!("redis-rs ", env!("REDIS_VERSION")),
            Library::Fred => concat!("fred ", env!("FRED_VERSION")),
            Library::SmartBatching { .. } => concat!("redisbench ", env!("CARGO_PKG_VERSION")),
            Library::Engine | Library::Null => "none",
        }
    }

    fn is_resp3(&self) -> bool {
        self.target.protocol == Protocol::Resp3
    }

    /// The password as text, as libraries take it.
    fn password(&self) -> Result<Option<String>, String> {
        let Some(login) = &self.login else { return Ok(None) };
        let text = String::from_utf8(login.password.clone());
        text.map(Some).map_err(|_| "the password is not UTF-8, which client libraries require".to_owned())
    }

    fn username(&self) -> Option<&str> {
        self.login.as_ref()?.username.as_deref()
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
    pub name: String,
    /// Index of the first key among the arguments behind the name.
    pub key: Option<usize>,
}

impl Named {
    fn of(operation: &Operation) -> Self {
        let name = match operation.arguments.first().map(Vec::as_slice) {
            Some([Part::Literal(name)]) => name.clone(),
            _ => String::new(),
        };
        let key = operation.arguments.iter().skip(1).position(|parts| parts.contains(&Part::Key));
        Self { name, key }
    }
}

/// A reply without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether it is null or an empty collection.
    pub nil: bool,
    /// Its length as the server sent it. Of replies that a library has already decoded, exact for null, integers, strings and arrays.
    pub bytes: usize,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// `Timeout`, `ConnectionReset`, or the first word of the server's error.
    pub kind: String,
    pub message: String,
    /// Whether the server replied with it.
    pub answered: bool,
    /// Whether the library may have sent the request.
    pub sent: bool,
}

impl CallError {
    fn timeout(message: impl Into<String>) -> Self {
        Self { kind: "Timeout".into(), message: message.into(), answered: false, sent: true }
    }

    fn connection(message: impl Into<String>) -> Self {
        Self { kind: "ConnectionReset".into(), message: message.into(), answered: false, sent: true }
    }

    /// The same for a request that got no connection.
    fn unsent(self) -> Self {
        Self { sent: false, ..self }
    }

    /// The length of the server's reply; 0 if it did not reply.
    pub fn bytes(&self) -> usize {
        if self.answered { self.message.len() + 3 } else { 0 }
    }

    /// An error reply of the server, whose first word is its kind.
    fn reply(text: &str) -> Self {
        let word = text.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("ERR");
        Self { kind: word.chars().take(32).collect(), message: text.to_owned(), answered: true, sent: true }
    }
}

/// Open connections of one library.
#[derive(Debug)]
pub enum Connections {
    RedisRs(redis_rs::Connections),
    Fred(fred::Connections),
    SmartBatching(smart_batching::Connections),
    Null,
}

impl Connections {
    /// Opens `count` connections. Their tasks run on the current runtime.
    ///
    /// # Errors
    /// Fails with a message for people if the library cannot connect.
    pub async fn open(setup: &Setup, count: usize) -> Result<Self, String> {
        Ok(match setup.client.library {
            Library::RedisRs(kind) => Self::RedisRs(redis_rs::Connections::open(setup, kind, count).await?),
            Library::Fred => Self::Fred(fred::Connections::open(setup, count).await?),
            Library::SmartBatching { queue, batch_bytes } => {
                let batch = (queue as usize, batch_bytes as usize);
                Self::SmartBatching(smart_batching::Connections::open(setup, batch, count).await?)
            }
            // The driver of a client never gets the engine.
            Library::Engine | Library::Null => Self::Null,
        })
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// Fails as the library does.
    pub async fn call(&self, command: &Command) -> Result<Reply, CallError> {
        match self {
            Self::RedisRs(connections) => connections.call(command).await,
            Self::Fred(connections) => connections.call(command).await,
            Self::SmartBatching(connections) => connections.call(command).await,
            // All callers of a thread take part, as they do while they wait for a server.
            Self::Null => {
                tokio::task::yield_now().await;
                Ok(Reply { nil: false, bytes: 0 })
            }
        }
    }

    /// Closes the connections, at the latest when the last call has ended.
    pub async fn close(&self) {
        // The others close theirs when they are dropped.
        if let Self::Fred(connections) = self {
            connections.close().await;
        }
    }
}

/// The bytes of a bulk string of `length` bytes: `$<length>`, the string, and two line ends.
fn bulk(length: usize) -> usize {
    1 + digits(length) + 2 + length + 2
}

/// The bytes of a null: `_` in RESP3, and in RESP2 a string without length.
fn null(resp3: bool) -> usize {
    if resp3 { 3 } else { 5 }
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_bulk_string_is_the_servers() {
        for text in ["", "a", "123456789", "1234567890"] {
            assert_eq!(bulk(text.len()), format!("${}\r\n{text}\r\n", text.len()).len());
        }
    }

    #[test]
    fn an_error_replys_first_word_is_its_kind() {
        let error = CallError::reply("WRONGTYPE Operation against a key");
        assert_eq!((error.kind.as_str(), error.answered), ("WRONGTYPE", true));
        assert_eq!(CallError::reply("").kind, "ERR");
    }
}

//! fred. All of its clients pipeline.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fred::bytes::Bytes;
use fred::bytes_utils::Str;
use fred::clients::Pool as Clients;
use fred::error::{Error, ErrorKind};
use fred::interfaces::ClientLike as _;
use fred::types::config::{
    ClusterDiscoveryPolicy, Config, HostMapping, ReconnectPolicy, ReplicaConfig, Server, ServerConfig, TlsConfig,
    TlsConnector, TlsHostMapping,
};
use fred::types::{Builder, ClusterHash, CustomCommand, RespVersion, Value};
use redisbench_wire::plan::{Pool, ReadFrom, Topology};
use rustls::ClientConfig;
use tokio::time::timeout;

use super::encoded::{bulk, digits, null};
use super::outcome::{CallError, Reply};
use super::setup::{Named, Setup};
use super::turns::Turns;
use crate::command::Command;

#[derive(Debug)]
pub struct Connections {
    clients: Clients,
    turns: Turns<fred::clients::Client>,
    patience: Duration,
    resp3: bool,
    /// The command of each operation, and whether it is sent to replicas.
    commands: Vec<(CustomCommand, bool)>,
}

impl Connections {
    pub async fn open(setup: &Setup, count: usize) -> Result<Self, String> {
        let told = |error: Error| format!("fred: {error}");
        let name = setup.tls.as_ref().and_then(|tls| tls.server_name.as_ref()).map(|name| name.to_str().into_owned());
        let server = |(host, port): &(String, u16)| Server::new_with_tls(host.clone(), *port, name.clone());
        let servers: Vec<Server> = setup.servers.iter().map(server).collect();
        let server = match (setup.target.topology, servers.first().cloned()) {
            (_, None) => return Err("fred: the target has no server".into()),
            (Topology::Cluster, _) => {
                ServerConfig::Clustered { hosts: servers, policy: ClusterDiscoveryPolicy::default() }
            }
            (_, Some(server)) => ServerConfig::Centralized { server },
        };
        let database =
            u8::try_from(setup.target.database).map_err(|_| "fred: databases beyond 255 are unknown to it")?;
        let config = Config {
            server,
            username: setup.username().map(ToOwned::to_owned),
            password: setup.password()?,
            version: if setup.is_resp3() { RespVersion::RESP3 } else { RespVersion::RESP2 },
            database: (database > 0).then_some(database),
            tls: setup.tls.as_ref().map(|tls| TlsConfig {
                connector: TlsConnector::from(ClientConfig::clone(&tls.config)),
                hostnames: name.map_or(TlsHostMapping::None, |name| TlsHostMapping::Custom(Arc::new(SameName(name)))),
            }),
            ..Config::default()
        };
        // With Primary, too: fred asks a single server for its replicas in any case, with ROLE, which its user may have no right to.
        let fall_back = setup.target.read_from != ReadFrom::Replica;
        let mut builder = Builder::from_config(config);
        builder
            .with_performance_config(|performance| performance.default_command_timeout = setup.response_timeout)
            .with_connection_config(|connection| {
                connection.connection_timeout = setup.connect_timeout;
                connection.internal_command_timeout = setup.connect_timeout;
                connection.max_command_attempts = setup.client.retries.saturating_add(1);
                connection.replica = ReplicaConfig {
                    primary_fallback: fall_back,
                    ignore_reconnection_errors: fall_back,
                    ..ReplicaConfig::default()
                };
            })
            .set_policy(ReconnectPolicy::new_constant(0, 100));
        let pool = builder.build_pool(count).map_err(told)?;
        pool.init().await.map_err(told)?;
        let clients = pool.clients().to_vec();
        let turns =
            if setup.client.pool == Pool::Exclusive { Turns::exclusive(clients) } else { Turns::shared(clients) };
        let command = |named: &Named| {
            let slot = named.key.map_or(ClusterHash::Random, ClusterHash::Offset);
            (CustomCommand::new(Str::from(named.name.clone()), slot, false), named.replicas)
        };
        let commands = setup.commands.iter().map(command).collect();
        Ok(Self { clients: pool, turns, patience: setup.response_timeout, resp3: setup.is_resp3(), commands })
    }

    pub async fn call(&self, command: &Command) -> Result<Reply, CallError> {
        let none = || CallError::connection("no connection");
        let (called, from_replicas) = self.commands.get(command.operation()).cloned().ok_or_else(none)?;
        let arguments: Vec<Value> =
            command.arguments().skip(1).map(|argument| Value::Bytes(Bytes::copy_from_slice(argument))).collect();
        let mut turn = self.turns.take(self.patience).await?;
        let client = turn.connection()?;
        let value: Result<Value, Error> = if from_replicas {
            client.replicas().custom(called, arguments).await
        } else {
            client.custom(called, arguments).await
        };
        value
            .map(|value| Reply { nil: is_nil(&value), bytes: length(&value, self.resp3) })
            .map_err(|error| failed(&error))
    }

    /// Without it, fred would keep its connections as long as its tasks run.
    pub async fn close(&self) {
        // A server that does not answer QUIT in time is left to fred.
        let _ = timeout(self.patience, self.clients.quit()).await;
    }
}

/// The name that the certificates of all nodes of a cluster have.
#[derive(Debug)]
struct SameName(String);

impl HostMapping for SameName {
    fn map(&self, _: &IpAddr, _: &str) -> Option<String> {
        Some(self.0.clone())
    }
}

fn failed(error: &Error) -> CallError {
    let text = error.details();
    match error.kind() {
        ErrorKind::Timeout => CallError::timeout(text),
        ErrorKind::IO | ErrorKind::Canceled | ErrorKind::Backpressure | ErrorKind::Routing => {
            CallError::connection(text)
        }
        _ => CallError::reply(text),
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        _ => false,
    }
}

/// The length of a reply as the protocol encodes it.
fn length(value: &Value, resp3: bool) -> usize {
    let all = |values: &[Value]| values.iter().map(|value| length(value, resp3)).sum::<usize>();
    match value {
        Value::Null => null(resp3),
        Value::Boolean(_) => 4,
        Value::Integer(number) => number.to_string().len() + 3,
        // fred does not tell a status from a string; `OK` is nearly always one.
        Value::String(text) if &**text == "OK" => 5,
        Value::String(text) => bulk(text.len()),
        Value::Bytes(bytes) => bulk(bytes.len()),
        Value::Array(values) => digits(values.len()) + 3 + all(values),
        _ => 0,
    }
}

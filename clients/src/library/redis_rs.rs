//! redis-rs, alone and behind the pools that people put before it.

use std::time::Duration;

use bb8::ManageConnection;
use redis::aio::{ConnectionLike as _, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_read_routing::RandomReplicaStrategy;
use redis::{
    AsyncConnectionConfig, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    ProtocolVersion, RedisError, RedisResult, TlsCertificates, TlsMode, Value,
};
use redisbench_loadgen::engine::TlsParts;
use redisbench_wire::plan::{Pool, ReadFrom, RedisRsConnection};

use super::encoded::{bulk, digits, null};
use super::outcome::{CallError, Reply};
use super::setup::Setup;
use super::turns::Turns;
use crate::command::Command;

/// Connections, by who gives them to callers.
#[derive(Debug)]
pub enum Source {
    Turns(Turns<Connection>),
    Bb8(bb8::Pool<Manager>),
    Deadpool(deadpool_redis::Pool),
}

#[derive(Debug)]
pub struct Connections {
    source: Source,
    patience: Duration,
    resp3: bool,
}

/// A connection of any kind.
#[derive(Clone)]
pub enum Connection {
    Multiplexed(MultiplexedConnection),
    Manager(ConnectionManager),
    Cluster(ClusterConnection),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Connection")
    }
}

impl Connection {
    async fn request(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Multiplexed(connection) => connection.req_packed_command(command).await,
            Self::Manager(connection) => connection.req_packed_command(command).await,
            Self::Cluster(connection) => connection.req_packed_command(command).await,
        }
    }
}

/// Makes connections for bb8.
#[derive(Debug)]
pub struct Manager {
    client: redis::Client,
    config: AsyncConnectionConfig,
}

/// A connection of bb8's. It is checked by its own errors instead of a PING before each call, which would be measured too.
#[derive(Debug)]
pub struct Pooled {
    connection: MultiplexedConnection,
    is_broken: bool,
}

impl ManageConnection for Manager {
    type Connection = Pooled;
    type Error = RedisError;

    async fn connect(&self) -> Result<Pooled, RedisError> {
        let connection = self.client.get_multiplexed_async_connection_with_config(&self.config).await?;
        Ok(Pooled { connection, is_broken: false })
    }

    async fn is_valid(&self, pooled: &mut Pooled) -> Result<(), RedisError> {
        redis::cmd("PING").query_async(&mut pooled.connection).await
    }

    fn has_broken(&self, pooled: &mut Pooled) -> bool {
        pooled.is_broken
    }
}

#[allow(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn told(error: RedisError) -> String {
    format!("redis-rs: {error}")
}

/// The connection information of one server.
fn info(setup: &Setup, (host, port): &(String, u16)) -> Result<ConnectionInfo, String> {
    let protocol = if setup.is_resp3() { ProtocolVersion::RESP3 } else { ProtocolVersion::RESP2 };
    let (host, port) = (host.clone(), *port);
    let address = match &setup.tls {
        None => ConnectionAddr::Tcp(host, port),
        // Its parameters are filled in below.
        Some(tls) => ConnectionAddr::TcpTls { host, port, insecure: tls.parts.trusts_anyone, tls_params: None },
    };
    let info = address.into_connection_info().map_err(told)?;
    let mut redis = info.redis_settings().clone().set_protocol(protocol).set_db(setup.target.database.into());
    if let Some(username) = setup.username() {
        redis = redis.set_username(username);
    }
    if let Some(password) = setup.password()? {
        redis = redis.set_password(password);
    }
    let info = info.set_redis_settings(redis);
    let Some(tls) = &setup.tls else { return Ok(info) };
    let client = redis::Client::build_with_tls(info, certificates(&tls.parts)).map_err(told)?;
    Ok(client.get_connection_info().clone())
}

fn certificates(parts: &TlsParts) -> TlsCertificates {
    let identity = parts.identity.clone();
    TlsCertificates {
        client_tls: identity.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key }),
        root_cert: parts.authorities.clone(),
    }
}

impl Connections {
    pub async fn open(setup: &Setup, kind: RedisRsConnection, count: usize) -> Result<Self, String> {
        let source = Source::open(setup, kind, count).await?;
        Ok(Self { source, patience: setup.response_timeout, resp3: setup.is_resp3() })
    }

    pub async fn call(&self, command: &Command) -> Result<Reply, CallError> {
        let mut cmd = Cmd::with_capacity(8, command.bytes().len());
        for argument in command.arguments() {
            cmd.arg(argument);
        }
        let value = match &self.source {
            Source::Turns(turns) => {
                let mut turn = turns.take(self.patience).await?;
                turn.connection()?.request(&cmd).await
            }
            Source::Bb8(pool) => {
                let mut pooled = pool.get().await.map_err(|error| match error {
                    bb8::RunError::TimedOut => CallError::timeout("bb8: no connection was free in time").unsent(),
                    bb8::RunError::User(error) => failed(&error).unsent(),
                })?;
                let value = pooled.connection.req_packed_command(&cmd).await;
                pooled.is_broken = value.as_ref().is_err_and(RedisError::is_unrecoverable_error);
                value
            }
            Source::Deadpool(pool) => {
                let mut connection = pool.get().await.map_err(|error| match error {
                    deadpool_redis::PoolError::Backend(error) => failed(&error).unsent(),
                    deadpool_redis::PoolError::Timeout(_) => {
                        CallError::timeout("deadpool: no connection was free in time").unsent()
                    }
                    other => CallError::connection(format!("deadpool: {other}")).unsent(),
                })?;
                connection.req_packed_command(&cmd).await
            }
        };
        match value.and_then(Value::extract_error) {
            Ok(value) => Ok(Reply { nil: is_nil(&value), bytes: length(&value, self.resp3) }),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl Source {
    async fn open(setup: &Setup, kind: RedisRsConnection, count: usize) -> Result<Self, String> {
        let infos: Vec<ConnectionInfo> =
            setup.servers.iter().map(|server| info(setup, server)).collect::<Result<_, _>>()?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(setup.connect_timeout))
            .set_response_timeout(Some(setup.response_timeout));
        let first = infos.first().cloned().ok_or("redis-rs: the target has no server")?;
        match setup.client.pool {
            Pool::Bb8 => {
                let manager = Manager { client: redis::Client::open(first).map_err(told)?, config };
                let size = u32::try_from(count).unwrap_or(u32::MAX);
                let pool = bb8::Pool::builder()
                    .max_size(size)
                    .min_idle(size)
                    // A PING for each call would be measured too.
                    .test_on_check_out(false)
                    .connection_timeout(setup.response_timeout)
                    .build(manager);
                Ok(Self::Bb8(pool.await.map_err(told)?))
            }
            Pool::Deadpool => {
                let manager = deadpool_redis::Manager::new_with_config(first, config).map_err(told)?;
                let pool = deadpool_redis::Pool::builder(manager)
                    .max_size(count)
                    .wait_timeout(Some(setup.response_timeout))
                    .create_timeout(Some(setup.connect_timeout))
                    .recycle_timeout(Some(setup.response_timeout))
                    .runtime(deadpool_redis::Runtime::Tokio1)
                    .build()
                    .map_err(|error| format!("deadpool: {error}"))?;
                // It opens connections only when they are asked for.
                let mut held = Vec::with_capacity(count);
                for _ in 0..count {
                    held.push(pool.get().await.map_err(|error| format!("deadpool: {error}"))?);
                }
                drop(held);
                Ok(Self::Deadpool(pool))
            }
            Pool::Shared | Pool::Exclusive => {
                let mut all = Vec::with_capacity(count);
                for _ in 0..count {
                    all.push(Self::one(setup, kind, &infos, &first, &config).await?);
                }
                let shared = setup.client.pool == Pool::Shared;
                Ok(Self::Turns(if shared { Turns::shared(all) } else { Turns::exclusive(all) }))
            }
        }
    }

    async fn one(
        setup: &Setup,
        kind: RedisRsConnection,
        infos: &[ConnectionInfo],
        first: &ConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> Result<Connection, String> {
        let client = || redis::Client::open(first.clone()).map_err(told);
        match kind {
            RedisRsConnection::Multiplexed => {
                let made = client()?.get_multiplexed_async_connection_with_config(config).await;
                made.map(Connection::Multiplexed).map_err(told)
            }
            RedisRsConnection::ConnectionManager => {
                let config = ConnectionManagerConfig::new()
                    // These would be attempts to connect, which calls wait for.
                    .set_number_of_retries(0)
                    .set_connection_timeout(Some(setup.connect_timeout))
                    .set_response_timeout(Some(setup.response_timeout));
                let made = client()?.get_connection_manager_with_config(config).await;
                made.map(Connection::Manager).map_err(told)
            }
            RedisRsConnection::Cluster => {
                let protocol = if setup.is_resp3() { ProtocolVersion::RESP3 } else { ProtocolVersion::RESP2 };
                let mut builder = ClusterClientBuilder::new(infos.to_vec())
                    .retries(setup.client.retries)
                    .connection_timeout(setup.connect_timeout)
                    .response_timeout(setup.response_timeout)
                    .use_protocol(protocol);
                if setup.target.read_from != ReadFrom::Primary {
                    builder = builder.read_routing_strategy(RandomReplicaStrategy);
                }
                if let Some(username) = setup.username() {
                    builder = builder.username(username);
                }
                if let Some(password) = setup.password()? {
                    builder = builder.password(password);
                }
                if let Some(tls) = &setup.tls {
                    let mode = if tls.parts.trusts_anyone { TlsMode::Insecure } else { TlsMode::Secure };
                    builder = builder.tls(mode).certs(certificates(&tls.parts));
                }
                let made = builder.build().map_err(told)?.get_async_connection().await;
                made.map(Connection::Cluster).map_err(told)
            }
        }
    }
}

fn failed(error: &RedisError) -> CallError {
    let text = error.to_string();
    if error.is_timeout() {
        CallError::timeout(text)
    } else if let Some(code) = error.code() {
        CallError::reply(&format!("{code} {}", error.detail().unwrap_or_default()))
    } else {
        CallError::connection(text)
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Array(all) | Value::Set(all) => all.is_empty(),
        Value::Map(all) => all.is_empty(),
        _ => false,
    }
}

/// The length of a reply as the protocol encodes it.
fn length(value: &Value, resp3: bool) -> usize {
    let of = |value: &Value| length(value, resp3);
    match value {
        Value::Nil => null(resp3),
        Value::Okay => 5,
        Value::Boolean(_) => 4,
        Value::Int(number) => number.to_string().len() + 3,
        Value::BulkString(bytes) => bulk(bytes.len()),
        Value::SimpleString(text) => text.len() + 3,
        Value::Array(all) | Value::Set(all) => digits(all.len()) + 3 + all.iter().map(of).sum::<usize>(),
        Value::Map(all) => digits(all.len()) + 3 + all.iter().map(|(key, value)| of(key) + of(value)).sum::<usize>(),
        _ => 0,
    }
}

//! A connection for single commands, with a timeout on every wait.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, ProtocolVersion, RedisConnectionInfo, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::tls::Security;
use super::trouble::Trouble;
use crate::cluster::UNIX;
use crate::resp::without_arguments;

/// Timeout of one answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A connection that has sent nothing yet, not even AUTH, so that the caller sees the server's reply to it.
pub struct Client {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    /// Connects to `endpoint` at its `address` within `limit`. A TLS handshake may take as long again.
    pub async fn connect(
        endpoint: &str,
        address: SocketAddr,
        security: Option<&Security>,
        limit: Duration,
    ) -> Result<Self, Trouble> {
        let silent = |error: &io::Error| Trouble::Silent(name(error));
        if let Some(path) = endpoint.strip_prefix(UNIX) {
            return Self::speak(UnixStream::connect(path).await.map_err(|error| silent(&error))?).await;
        }
        let stream = match timeout(limit, TcpStream::connect(address)).await {
            Ok(stream) => stream.map_err(|error| silent(&error))?,
            Err(_) => {
                return Err(Trouble::Silent(format!(
                    "no reply within {} ms (blocked by a NetworkPolicy or firewall?)",
                    limit.as_millis()
                )));
            }
        };
        stream.set_nodelay(true).map_err(|error| silent(&error))?;
        match security {
            None => Self::speak(stream).await,
            Some(security) => Self::speak(security.connect(stream, endpoint, limit).await?).await,
        }
    }

    async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, Trouble> {
        let info = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER));
        let connected = timeout(ANSWER, MultiplexedConnection::new_with_config(&info, stream, config)).await;
        match connected {
            Ok(Ok((connection, driver))) => Ok(Self { connection, driver: tokio::spawn(driver) }),
            Ok(Err(error)) => Err(trouble(&error)),
            Err(_) => Err(Trouble::Silent("no reply".to_owned())),
        }
    }

    /// Closes the connection, and returns when it is closed.
    pub async fn close(mut self) {
        self.driver.abort();
        // The task ends by the abort.
        let _ = (&mut self.driver).await;
    }

    /// Sends a command and awaits the answer.
    pub async fn ask(&mut self, command: &Cmd) -> Result<Value, Trouble> {
        self.connection
            .send_packed_command(command)
            .await
            .and_then(Value::extract_error)
            .map_err(|error| trouble(&error))
    }

    /// Sends all commands at once and awaits the answers.
    pub async fn ask_all(&mut self, commands: &Pipeline) -> Result<Vec<Value>, Trouble> {
        let answers = self.connection.send_packed_commands(commands, 0, commands.len()).await;
        let answers = answers.map_err(|error| trouble(&error))?;
        answers.into_iter().map(|answer| answer.extract_error().map_err(|error| trouble(&error))).collect()
    }

    /// Like `ask_all`, with `None` for each command that the server refused.
    pub async fn ask_each(&mut self, commands: &Pipeline) -> Result<Vec<Option<Value>>, Trouble> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.connection.send_packed_commands(commands, 0, commands.len()).await;
        let answers = answers.map_err(|error| trouble(&error))?;
        Ok(answers.into_iter().map(|answer| answer.extract_error().ok()).collect())
    }
}

fn trouble(error: &RedisError) -> Trouble {
    match error.code() {
        Some(code) => {
            let text = format!("{code} {}", error.detail().unwrap_or_default());
            Trouble::Refused(without_arguments(&text).trim_end().to_owned())
        }
        None if error.is_timeout() => Trouble::Silent(format!("connected, but no reply within {ANSWER:?}")),
        None if error.is_connection_dropped() => {
            Trouble::Foreign("the connection was closed (is it a Redis port without TLS?)".to_owned())
        }
        None if error.kind() == ErrorKind::Parse => {
            Trouble::Foreign("its reply is not in the Redis protocol (is it a Redis port without TLS?)".to_owned())
        }
        None => Trouble::Silent(error.to_string()),
    }
}

/// The text of a reply that is a string.
pub fn text(value: &Value) -> Option<&str> {
    match value {
        Value::SimpleString(text) => Some(text),
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The error without its OS error number.
pub fn name(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

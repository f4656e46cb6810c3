//! One throwaway server or sentinel.

use std::path::Path;
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo, RedisError};

use super::configuration::{Place, Role, configuration};
use super::error::ThrowawayError;
use super::limits::PATIENCE;
use super::wanted::Wanted;
use crate::child::{Child, describe};
use crate::files::write_private;

const PROGRAM: &str = "redis-server";
const SENTINEL_FILE: &str = "sentinel.conf";
/// The polling interval.
const LOOK: Duration = Duration::from_millis(20);
/// Timeout of a reply. Servers on loopback reply at once.
const ANSWER: Duration = Duration::from_secs(5);
/// Timeout for stopping. There is nothing to save.
const STOP: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Node {
    process: Child,
    place: Place,
    /// True if clients use TLS.
    secured: bool,
    /// Always plain text, even if clients use TLS.
    connection: ConnectionInfo,
}

impl Node {
    /// Starts a server and waits until it replies.
    ///
    /// # Errors
    /// If it cannot be started, exits, or does not reply in time.
    pub async fn start(place: Place, role: Role, wanted: &Wanted<'_>) -> Result<Self, ThrowawayError> {
        let text = configuration(&place, role, wanted)?;
        let (secured, credentials) = match role {
            Role::Server { .. } => (wanted.tls.is_some(), wanted.credentials),
            Role::Sentinel { .. } => (wanted.sentinel_tls.is_some(), wanted.sentinel_credentials),
        };
        let process = match role {
            Role::Server { .. } => Child::start(Path::new(PROGRAM), &["-".to_owned()], text.as_bytes()).await,
            Role::Sentinel { .. } => {
                let folder = place.directory.join(place.ports[0].to_string());
                write_private(&folder, &[(SENTINEL_FILE, &text)]).map_err(ThrowawayError::Directory)?;
                let file = folder.join(SENTINEL_FILE).to_string_lossy().into_owned();
                Child::start(Path::new(PROGRAM), &[file, "--sentinel".to_owned()], b"").await
            }
        };
        let process = process.map_err(ThrowawayError::Start)?;
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(credentials) = credentials {
            settings = settings.set_password(&credentials.password);
            if let Some(username) = &credentials.username {
                settings = settings.set_username(username);
            }
        }
        let address = ConnectionAddr::Tcp("127.0.0.1".to_owned(), place.ports[0]);
        let connection = address
            .into_connection_info()
            .map_err(|source| ThrowawayError::Command {
                command: "PING",
                address: format!("127.0.0.1:{}", place.ports[0]),
                source,
            })?
            .set_redis_settings(settings);
        let mut node = Self { process, place, secured, connection };
        node.wait_until_serving().await?;
        Ok(node)
    }

    /// `host:port` for clients.
    pub fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.serving_port())
    }

    pub fn serving_port(&self) -> u16 {
        self.place.ports[if self.secured { 2 } else { 0 }]
    }

    pub fn bus_port(&self) -> u16 {
        self.place.ports[1]
    }

    /// Runs `command` (words separated by spaces) with `arguments`, and returns the reply as text.
    pub async fn query(&self, command: &'static str, arguments: &[&str]) -> Result<String, ThrowawayError> {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        ask(self.connection.clone(), command, arguments).await?.map_err(|source| ThrowawayError::Command {
            command,
            address: self.endpoint(),
            source,
        })
    }

    /// Repeats `command` until `met` returns true for the reply.
    pub async fn wait_for(
        &self,
        condition: &'static str,
        command: &'static str,
        met: impl Fn(&str) -> bool,
    ) -> Result<(), ThrowawayError> {
        self.wait_until(tokio::time::Instant::now() + PATIENCE, condition, command, met).await
    }

    /// Like [`Self::wait_for`], until `deadline`.
    pub async fn wait_until(
        &self,
        deadline: tokio::time::Instant,
        condition: &'static str,
        command: &'static str,
        met: impl Fn(&str) -> bool,
    ) -> Result<(), ThrowawayError> {
        loop {
            let last = self.query(command, &[]).await?;
            if met(&last) {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(ThrowawayError::Patience { condition, last });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    pub async fn stop(&mut self) {
        self.process.stop(STOP).await;
    }

    async fn wait_until_serving(&mut self) -> Result<(), ThrowawayError> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.ended().map_err(ThrowawayError::Start)? {
                let output = self.process.last_words().await;
                return Err(ThrowawayError::Ended { status: describe(status), output });
            }
            let Err(error) = ask(self.connection.clone(), "PING", Vec::new()).await? else { return Ok(()) };
            if tokio::time::Instant::now() >= deadline {
                return Err(ThrowawayError::Patience { condition: "redis-server replies", last: error.to_string() });
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// A reply as text: of an array, with all its strings in quotes.
fn text(reply: redis::Value) -> String {
    let written = format!("{reply:?}");
    redis::from_redis_value(reply).unwrap_or(written)
}

async fn ask(
    connection: ConnectionInfo,
    command: &'static str,
    arguments: Vec<String>,
) -> Result<Result<String, RedisError>, ThrowawayError> {
    let speak = move || {
        let mut connection = redis::Client::open(connection)?.get_connection_with_timeout(ANSWER)?;
        connection.set_read_timeout(Some(ANSWER))?;
        connection.set_write_timeout(Some(ANSWER))?;
        let mut words = command.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        command.arg(words.collect::<Vec<_>>()).arg(arguments).query(&mut connection).map(text)
    };
    tokio::task::spawn_blocking(speak).await.map_err(ThrowawayError::Task)
}

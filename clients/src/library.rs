//! The client libraries: each opens connections, and sends commands for callers.

mod encoded;
mod fred;
mod outcome;
mod redis_rs;
mod setup;
mod smart_batching;
mod turns;

use redisbench_wire::plan::Library;

use crate::command::Command;
use outcome::Reply;

pub use outcome::CallError;
pub use setup::Setup;

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

//! The client libraries: each opens connections, and sends commands for callers.

mod driver;
mod encoded;
mod fred;
mod outcome;
mod redis_rs;
mod setup;
mod smart_batching;
mod turns;

use std::io;

use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_wire::plan::Library;

use crate::command::Command;
use crate::session::Fault;
use outcome::Reply;

pub use outcome::{CallError, Finished};
pub use setup::Setup;

/// Open connections of one library.
#[derive(Debug)]
pub enum Connections {
    RedisRs(redis_rs::Connections),
    Fred(fred::Connections),
    SmartBatching(smart_batching::Connections),
    Driver(driver::Connections),
    Null,
}

impl Connections {
    /// Opens `count` connections. Their tasks run on the current runtime.
    ///
    /// # Errors
    /// Fails if the library cannot connect.
    pub async fn open(setup: &Setup, count: usize) -> Result<Self, Fault> {
        Ok(match setup.client.library {
            Library::RedisRs(kind) => Self::RedisRs(redis_rs::Connections::open(setup, kind, count).await?),
            Library::Driver { .. } => Self::Driver(driver::Connections::open(setup, count).await?),
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
    /// Fails if the library can make no further call.
    pub async fn call(&self, command: &Command) -> io::Result<Finished> {
        let called = monotonic_nanoseconds();
        let reply = match self {
            // With times of its own.
            Self::Driver(connections) => return connections.call(command).await.map_err(io::Error::other),
            Self::RedisRs(connections) => connections.call(command).await,
            Self::Fred(connections) => connections.call(command).await,
            Self::SmartBatching(connections) => connections.call(command).await,
            // All callers of a thread take part, as they do while they wait for a server.
            Self::Null => {
                tokio::task::yield_now().await;
                Ok(Reply { nil: false, bytes: 0 })
            }
        };
        Ok(Finished { called, completed: monotonic_nanoseconds(), reply })
    }

    /// The library's name and version, and its process, if that is not this one. The process is `None` if this one cannot see it.
    pub fn elsewhere(&self) -> Option<(&str, Option<u32>)> {
        match self {
            Self::Driver(connections) => Some((&connections.library, connections.process)),
            _ => None,
        }
    }

    /// Closes the connections, at the latest when the last call has ended.
    pub async fn close(&self) {
        match self {
            Self::Fred(connections) => connections.close().await,
            Self::Driver(connections) => connections.close().await,
            // These close theirs when they are dropped.
            Self::RedisRs(_) | Self::SmartBatching(_) | Self::Null => {}
        }
    }
}

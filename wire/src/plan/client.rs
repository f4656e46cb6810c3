//! The client library that sends a trial's requests.

use serde::{Deserialize, Serialize};

/// A client under test. It has the plan's connections and at most `concurrency` calls in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// The name in the benchmark's spec.
    pub name: String,
    /// The library.
    pub library: Library,
    /// The connections that callers use.
    pub pool: Pool,
    /// Threads of each shard, at least 1.
    pub threads: u32,
    /// The sharing of work among these threads.
    pub runtime: Runtime,
    /// Maximum retries of a failed request by the library, if it can retry: redis-rs in a cluster, fred, and drivers.
    pub retries: u32,
}

/// A client library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Library {
    /// The load generator's own engine.
    Engine,
    /// redis-rs, by one kind of its connections.
    RedisRs(RedisRsConnection),
    /// fred.
    Fred,
    /// One queue and one writer for each connection, which sends all that waits at once.
    #[serde(rename_all = "camelCase")]
    SmartBatching {
        /// The most requests that wait for the writer.
        queue: u32,
        /// A batch with this many bytes takes no further request.
        batch_bytes: u32,
    },
    /// Answers at once without a server: what the callers themselves cost.
    Null,
    /// One in a program of its own, which speaks the contract of docs/drivers.md.
    Driver {
        /// The name of the program.
        name: String,
    },
}

/// The kind of a redis-rs connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RedisRsConnection {
    /// `MultiplexedConnection`, which stays broken.
    Multiplexed,
    /// `ConnectionManager`, which connects again.
    ConnectionManager,
    /// `ClusterConnection`.
    Cluster,
}

/// The connections that callers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pool {
    /// In turn; several calls may use one at a time.
    Shared,
    /// In turn; a connection has one call at a time.
    Exclusive,
    /// From bb8, for one call.
    Bb8,
    /// From deadpool, for one call.
    Deadpool,
}

/// The sharing of a client's work among threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Runtime {
    /// Each thread has a runtime, connections and callers of its own.
    #[default]
    CurrentThread,
    /// All threads take tasks of one runtime.
    MultiThread,
}

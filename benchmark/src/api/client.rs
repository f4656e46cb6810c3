//! `spec.load.clients`: client libraries under test. The doc comments are the text of `kubectl explain`.

use redisbench_wire::plan::{RedisRsConnection, Runtime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::default_one;
use super::patterns::NAME_PATTERN;

/// The client that sends the requests. All send the same requests at the same due times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientSpec {
    /// Name in results.
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: String,
    /// `Engine` is the load generator's own. `RedisRs` and `Fred` are Rust libraries. `SmartBatching` is one queue and one writer for each
    /// connection, which sends all that waits at once. `Null` answers at once without a server: what callers themselves cost. `Driver`
    /// is a library in a program of its own.
    #[serde(rename = "type")]
    pub kind: ClientType,
    /// Settings for type `RedisRs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_rs: Option<RedisRsSpec>,
    /// Settings for type `SmartBatching`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smart_batching: Option<SmartBatchingSpec>,
    /// Name of the program for type `Driver`: one of `drivers` in the operator's chart, or of `--driver` on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub driver: Option<String>,
    /// The connections that callers use. There are `load.connections` x `load.pipeline` callers, or `closedLoop.concurrency`. Not for types
    /// `Engine` and `Null`.
    #[serde(default)]
    pub pool: ClientPoolSpec,
    /// Threads of each shard. Not for types `Engine`, which uses all processors that its connections can keep busy, and `Driver`.
    #[serde(default)]
    pub runtime: RuntimeSpec,
    /// Maximum retries of a failed request by the library, 0 to 100. Default 0. Only for types `RedisRs` with `Cluster`, `Fred` and
    /// `Driver`.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub retries: u32,
}

/// Type of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClientType {
    /// The load generator's own.
    Engine,
    /// redis-rs.
    RedisRs,
    /// fred.
    Fred,
    /// One queue and one writer for each connection.
    SmartBatching,
    /// Answers at once.
    Null,
    /// A program of its own.
    Driver,
}

/// Settings of redis-rs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisRsSpec {
    /// `Multiplexed` stays broken once it breaks, `ConnectionManager` connects again, `Cluster` is for clusters. Default `Cluster` for a
    /// Cluster, otherwise `Multiplexed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<RedisRsConnection>,
}

/// Settings of smart batching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SmartBatchingSpec {
    /// Maximum requests that wait for the writer of a connection, 1 to 1000000. Default 4096.
    #[serde(default = "default_queue")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queue: u32,
    /// A batch with this many bytes takes no further request, 1 to 16777216. Default 65536.
    #[serde(default = "default_batch")]
    #[schemars(range(min = 1, max = 16_777_216))]
    pub batch_bytes: u32,
}

impl Default for SmartBatchingSpec {
    fn default() -> Self {
        Self { queue: default_queue(), batch_bytes: default_batch() }
    }
}

fn default_queue() -> u32 {
    4096
}

fn default_batch() -> u32 {
    1 << 16
}

/// Pool of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientPoolSpec {
    /// `RoundRobin` gives each call the next connection. `Bb8` and `Deadpool` are pools of redis-rs connections, and lend a connection to
    /// one call at a time. Default `RoundRobin`.
    #[serde(default, rename = "type")]
    pub kind: PoolType,
    /// Connections of the whole benchmark, split like `load.connections`, 1 to 100000. Default `load.connections`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub size: Option<u32>,
    /// `Shared`: several calls may use a connection at a time. `Exclusive`: one at a time, others wait. Only for `RoundRobin`; the other
    /// types are always exclusive. Default `Shared`.
    #[serde(default)]
    pub sharing: Sharing,
}

/// Type of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PoolType {
    /// In turn.
    #[default]
    RoundRobin,
    /// bb8.
    Bb8,
    /// deadpool.
    Deadpool,
}

/// The number of calls that use a connection at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Sharing {
    /// Several calls at a time.
    #[default]
    Shared,
    /// One call at a time.
    Exclusive,
}

/// Threads of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeSpec {
    /// `CurrentThread` gives each thread a runtime, connections and callers of its own. `MultiThread` has one runtime for all threads.
    /// Default `CurrentThread`.
    #[serde(default)]
    pub flavour: Runtime,
    /// Threads of each shard, 1 to 256; at most one for each of its connections and callers. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 256))]
    pub threads: u32,
}

impl Default for RuntimeSpec {
    fn default() -> Self {
        Self { flavour: Runtime::default(), threads: default_one() }
    }
}

//! What the target's servers said of themselves while a trial ran: shard 0 asks each of them for INFO.

use serde::{Deserialize, Serialize};

use crate::{bounded, limits};

/// What all servers said that the load touches. Only in snapshots of shard 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerStats {
    /// Each server; in a live snapshot the busiest of them, without samples and commands.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::NODES}>")]
    pub nodes: Vec<ServerNode>,
    /// Commands of the mix that cannot be compared, because the load generator sends them for its own purposes too, or
    /// because they are scripts or wait on the server.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::OPERATIONS}>")]
    pub not_compared: Vec<String>,
}

/// What one server said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerNode {
    /// The node's id in a cluster, else its address.
    #[serde(deserialize_with = "bounded::name")]
    pub id: String,
    /// `host:port`.
    #[serde(deserialize_with = "bounded::name")]
    pub address: String,
    /// Why there is nothing, or less than there could be.
    #[serde(deserialize_with = "bounded::optional_message")]
    pub note: Option<String>,
    /// The last answer before the start.
    pub before: Option<ServerSample>,
    /// The last answer after the load.
    pub after: Option<ServerSample>,
    /// Processor time over the measured window.
    pub cpu: Option<ServerCpu>,
    /// The most that it received, by its own word, in bytes per second.
    pub busiest_received_bytes_per_second: u64,
    /// The most that it sent, by its own word, in bytes per second.
    pub busiest_sent_bytes_per_second: u64,
    /// The most connections that it had.
    pub most_clients: u64,
    /// It said at least once during the load that it was reading its keys from a disk or a primary.
    pub was_loading: bool,
    /// How often it forked in the measured window: to save, to rewrite its append-only file, or for a replica.
    pub forks: u64,
    /// For how long the longest of these forks stopped it, by its own word, of those that an answer told of.
    pub longest_fork_microseconds: u64,
    /// An answer of the measured window said that a child of it was writing.
    pub had_child: bool,
    /// What it executed from the first to the last answer; none where that cannot be told, of which `note` says why.
    pub commands: Option<ServerCommands>,
}

/// One answer to INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSample {
    /// The shard's monotonic clock when it came.
    pub taken_nanoseconds: u64,
    /// Keys of all databases (DBSIZE).
    pub keys: u64,
    /// `used_memory`.
    pub used_memory_bytes: u64,
    /// `connected_clients`.
    pub connected_clients: u64,
    /// `evicted_keys`.
    pub evicted_keys: u64,
    /// `expired_keys`.
    pub expired_keys: u64,
    /// `keyspace_hits`.
    pub keyspace_hits: u64,
    /// `keyspace_misses`.
    pub keyspace_misses: u64,
    /// `loading` or `async_loading`.
    pub loading: bool,
    /// `io_threads_active`, where it says.
    pub io_threads_active: Option<bool>,
}

/// Processor time of a server over the measured window, by its own word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerCpu {
    /// Of the main thread; else of the whole process, where the server does not tell them apart.
    pub main_thread: bool,
    /// Over the wall time between the first and the last answer, in hundredths of a per cent.
    pub mean_basis_points: u32,
    /// The same between the two answers in a row where it was highest.
    pub max_basis_points: u32,
    /// The wall time between the first and the last answer.
    pub nanoseconds: u64,
    /// The share of that time that its event loop did not sleep, in hundredths of a per cent: what it waited for a disk or a
    /// processor is in it. None: it does not say, as servers before 7.2.
    pub event_loop_basis_points: Option<u32>,
}

/// What a server executed, by the difference of two answers to `INFO commandstats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerCommands {
    /// Calls of the commands of the mix.
    pub calls: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Commands of the mix that it refused before executing them, as with MOVED; not among the calls. None: it does not
    /// count them.
    pub rejected: Option<u64>,
    /// Calls of commands that are neither of the mix nor housekeeping: this benchmark has sent none.
    pub foreign: u64,
    /// Time that it took to execute all commands, by its own word: also what it slept in them.
    pub microseconds: u64,
}

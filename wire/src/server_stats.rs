//! INFO of the target's servers during a trial, polled by shard 0.

use serde::{Deserialize, Serialize};

use crate::{bounded, limits};

/// INFO of all servers under load. Only in snapshots of shard 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerStats {
    /// One entry per server. A live snapshot has only the busiest, without samples and commands.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::NODES}>")]
    pub nodes: Vec<ServerNode>,
    /// Commands of the mix that cannot be compared: the load generator also sends them for its own purposes, or they are scripts or block
    /// on the server.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::OPERATIONS}>")]
    pub not_compared: Vec<String>,
}

/// Statistics of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerNode {
    /// The node's id in a cluster, otherwise its address.
    #[serde(deserialize_with = "bounded::name")]
    pub id: String,
    /// `host:port`.
    #[serde(deserialize_with = "bounded::name")]
    pub address: String,
    /// Product and version, such as `Valkey 9.1.2`. None if it was never reported.
    #[serde(deserialize_with = "bounded::optional_name", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why statistics are missing or incomplete.
    #[serde(deserialize_with = "bounded::optional_message")]
    pub note: Option<String>,
    /// The last answer before the start.
    pub before: Option<ServerSample>,
    /// The last answer after the load.
    pub after: Option<ServerSample>,
    /// CPU time over the measured window.
    pub cpu: Option<ServerCpu>,
    /// The highest receive rate that it reported, in bytes per second.
    pub busiest_received_bytes_per_second: u64,
    /// The highest send rate that it reported, in bytes per second.
    pub busiest_sent_bytes_per_second: u64,
    /// The highest number of connected clients.
    pub most_clients: u64,
    /// True if it reported at least once during the load that it was loading keys from disk or from a primary.
    pub was_loading: bool,
    /// Forks in the measured window: to save, to rewrite the append-only file, or for a replica.
    pub forks: u64,
    /// The longest pause of these forks that the server reported, in microseconds.
    pub longest_fork_microseconds: u64,
    /// True if an answer in the measured window reported a running child process that writes.
    pub had_child: bool,
    /// Commands executed between the first and the last answer. None if unknown; `note` gives the reason.
    pub commands: Option<ServerCommands>,
}

/// One answer to INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSample {
    /// The shard's monotonic clock when the answer arrived.
    pub taken_nanoseconds: u64,
    /// Keys in all databases (DBSIZE).
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
    /// CPU time of the whole process so far, without its children: `used_cpu_user` and `used_cpu_sys`. None if the server does not report
    /// it, like the next two.
    pub cpu_nanoseconds: Option<u64>,
    /// `total_commands_processed`.
    pub commands: Option<u64>,
    /// `total_reads_processed`: how often it read from a connection.
    pub reads: Option<u64>,
    /// `loading` or `async_loading`.
    pub loading: bool,
    /// `io_threads_active`, if the server reports it.
    pub io_threads_active: Option<bool>,
}

/// CPU time of a server over the measured window, as reported by the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerCpu {
    /// True if the times are of the main thread, false if of the whole process because the server does not separate them.
    pub main_thread: bool,
    /// CPU time over the wall time between the first and the last answer, in hundredths of a per cent.
    pub mean_basis_points: u32,
    /// The highest such share between two consecutive answers.
    pub max_basis_points: u32,
    /// The wall time between the first and the last answer.
    pub nanoseconds: u64,
    /// Of that time, between two consecutive answers with a share of at least [`Self::FULL_BASIS_POINTS`]. 0 from older shards.
    pub full_nanoseconds: u64,
    /// The share of that time in which its event loop did not sleep, in hundredths of a per cent. Includes waits for disk and CPU. None for
    /// servers before 7.2, which do not report it.
    pub event_loop_basis_points: Option<u32>,
}

impl ServerCpu {
    /// The share from which on a server is full: it could do at most 5 % more. Redis sleeps when idle, so running time is work.
    pub const FULL_BASIS_POINTS: u32 = 9_500;
}

/// Commands that a server executed: the difference of two answers to `INFO commandstats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerCommands {
    /// Calls of the mix's commands.
    pub calls: u64,
    /// Failed calls among these.
    pub failed: u64,
    /// Commands of the mix that it rejected before executing them, for example with MOVED. Not included in `calls`. None if the server does
    /// not count them.
    pub rejected: Option<u64>,
    /// Calls of commands that this benchmark did not send: neither of the mix nor housekeeping.
    pub foreign: u64,
    /// Execution time of all commands as reported by the server, including time asleep in them.
    pub microseconds: u64,
}

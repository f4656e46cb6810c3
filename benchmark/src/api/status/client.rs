//! `status.result.clients`: what a client costs. The doc comments are the text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cost of a client, from the start to the last reply, warm-up included. Processor time is that of whole shards: library and callers,
/// whose own part a client of type `Null` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientResult {
    /// Name in `load.clients`.
    #[schemars(length(max = 32))]
    pub name: String,
    /// Library and version.
    #[schemars(length(max = 64))]
    pub version: String,
    /// Connections of all shards. In a Cluster, each connection of a library is one to every node.
    pub connections: u32,
    /// Maximum calls in progress of all shards.
    pub callers: u32,
    /// Processor time per request: user and system.
    pub cpu_per_request_nanoseconds: u64,
    /// Its part in the shards' own code.
    pub user_per_request_nanoseconds: u64,
    /// Its part in the kernel.
    pub system_per_request_nanoseconds: u64,
    /// Context switches per 1000 requests, voluntary and involuntary.
    pub context_switches_per_thousand_requests: u64,
    /// Processor time of the servers' whole processes per request, from INFO before and after the load. It includes their other work. Not
    /// set for type `Null`, with `serverStats: false`, or if a server does not report it, restarted, or was not present for the whole load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_per_request_nanoseconds: Option<u64>,
    /// Mean batch that arrived: commands per 1000 reads of the servers from their connections. 1000 if each command came alone, less if it
    /// took several reads. Not set in the same cases, or before Redis 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands_per_thousand_reads: Option<u64>,
    /// Largest resident memory of a shard, in bytes.
    pub peak_bytes: u64,
}

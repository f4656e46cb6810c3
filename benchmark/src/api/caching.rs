//! `spec.workload.caching`: client-side caches that the servers keep up to date. The doc comments are the text of `kubectl explain`.

use redisbench_wire::plan::{CacheScope, CachingMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;

/// Client-side caching: `CLIENT TRACKING` on every connection, and caches that the servers' invalidation messages keep up to date. Cached
/// are the replies to commands that read a single key, such as `GET __key__` and `HGET __key__ field`. A read whose key is cached is not
/// sent: it is a hit in `status.result.cache`, and counts for no latency and no throughput, but for `load.requests` and the rate. Requires
/// `protocol: RESP3` of every target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CachingSpec {
    /// Keys that the servers track. `Default`: every key that a connection has read. `OptIn`: the same by `CLIENT CACHING YES` before each
    /// read that may be cached, an additional command. `Broadcast`: all keys that begin with one of `prefixes`, read or not, without memory
    /// for them on the server.
    #[serde(rename = "type")]
    pub kind: CachingMode,
    /// Sharing of caches. `Connection`: each connection has one, like a pool of clients. `Shard`: all connections of a shard share one, as
    /// those of one process do; the shard then has one worker. Default `Connection`.
    #[serde(default)]
    pub scope: CacheScope,
    /// Maximum entries of a cache, 1 to 100000000; a full cache drops an entry that was not used for long. All caches of a shard together
    /// may have 16777216, which take 1 GiB of its memory; a cache needs no more entries than there are keys. Default 100000.
    #[serde(default = "default_entries")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub entries: u32,
    /// Age at which an entry is dropped even without an invalidation, 1ms to 24h. A long one shows invalidations alone. Default 60s.
    #[serde(default = "default_ttl")]
    pub ttl: GoDuration,
    /// Prefixes of the keys to track, up to 16, none of which begins with another. Only for type `Broadcast`. Not set by default: all keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "set"))]
    pub prefixes: Vec<String>,
    /// Keeps servers from reporting a connection's own writes to it (`NOLOOP`). The connection then drops its entry when its write is
    /// acknowledged. Default true.
    #[serde(default = "default_no_loop")]
    pub no_loop: bool,
}

fn default_entries() -> u32 {
    100_000
}

fn default_ttl() -> GoDuration {
    GoDuration::new("60s")
}

fn default_no_loop() -> bool {
    true
}

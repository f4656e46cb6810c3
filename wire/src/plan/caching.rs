//! Client-side caches that the servers keep up to date.

use serde::{Deserialize, Serialize};

/// Client-side caches that the servers keep up to date: `CLIENT TRACKING` on every connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Caching {
    /// Which keys the servers track.
    pub mode: CachingMode,
    /// Which requests share a cache.
    pub scope: CacheScope,
    /// The most entries of a cache, at least 1.
    pub entries: u32,
    /// The age at which an entry is dropped.
    pub ttl_nanoseconds: u64,
    /// The prefixes of tracked keys, with [`CachingMode::Broadcast`]. Empty tracks all keys.
    pub prefixes: Vec<String>,
    /// True if the servers do not report a connection's own writes to it.
    pub no_loop: bool,
    /// The operations whose replies are cached, by their indices: reads of one key without other variable parts.
    pub operations: Vec<u32>,
    /// The operations that may change their first key, by their indices.
    pub writes: Vec<u32>,
}

impl Caching {
    /// Memory for an entry, and for the free room that its table needs.
    pub const BYTES_PER_ENTRY: u64 = 64;

    /// The most memory for the caches of a shard.
    pub const BYTES_PER_SHARD: u64 = 1 << 30;

    /// The command that switches tracking on for a connection.
    pub fn command(&self) -> Vec<&str> {
        let mut words = vec!["CLIENT", "TRACKING", "ON"];
        match self.mode {
            CachingMode::Default => {}
            CachingMode::OptIn => words.push("OPTIN"),
            CachingMode::Broadcast => words.push("BCAST"),
        }
        words.extend(self.prefixes.iter().flat_map(|prefix| ["PREFIX", prefix]));
        if self.no_loop {
            words.push("NOLOOP");
        }
        words
    }

    /// The most entries of the caches of a shard with `connections`, for `keys` keys. No cache has more entries than there are keys for
    /// each operation.
    pub fn entries_in_all(&self, connections: u64, keys: u64) -> u64 {
        let each = keys.saturating_mul(self.operations.len() as u64).min(self.entries.into());
        match self.scope {
            CacheScope::Connection => each.saturating_mul(connections),
            CacheScope::Shard => each,
        }
    }
}

/// Which keys the servers track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CachingMode {
    /// Every key that a connection has read.
    #[default]
    Default,
    /// Keys of the reads that `CLIENT CACHING YES` precedes.
    OptIn,
    /// All keys with a prefix, whether a connection has read them or not.
    Broadcast,
}

/// Which requests share a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CacheScope {
    /// Those of one connection.
    #[default]
    Connection,
    /// Those of one shard, which then has one worker.
    Shard,
}

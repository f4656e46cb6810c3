//! Counts of client-side caches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::latencies::Latencies;
use crate::api::fields::is_zero;

/// Counts of client-side caches while measuring. Hits are not requests: no other number includes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheResult {
    /// Reads that a cache answered.
    pub hits: u64,
    /// Reads that were sent, because no cache had their key.
    pub misses: u64,
    /// Hits in hundredths of a percent of hits and misses.
    pub hit_basis_points: u32,
    /// Hits per second, over the measured time.
    pub hits_per_second: u64,
    /// Keys in the servers' invalidation messages.
    pub invalidations: u64,
    /// Invalidations per second, over the measured time.
    pub invalidations_per_second: u64,
    /// Invalidated entries that no read had used: caching them was in vain.
    pub invalidated_unused: u64,
    /// Invalidations of keys that the cache did not hold.
    pub not_cached: u64,
    /// Times that a cache with entries was emptied: its connection was lost or closed, slots moved, or the server reported FLUSHALL.
    pub flushes: u64,
    /// Entries dropped because the cache was full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evicted: u64,
    /// Entries dropped because they were older than `ttl`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expired: u64,
    /// `CLIENT CACHING YES` commands. Only for type `OptIn`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub caching_calls: u64,
    /// Commands that caching saved the servers: hits less `cachingCalls`. Invalidations are not subtracted, and may cost more than that.
    pub requests_saved: i64,
    /// Hits on a value older than a write that the same shard had already acknowledged. Only with `verify.mode` `Values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_hits: Option<u64>,
    /// From sending a write until another connection of the same worker received the message that invalidates its entry.
    pub invalidation_time: Latencies,
}

/// Counts of client-side caches in a trial, to compare trials. Caching pays while hits exceed invalidations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialCache {
    /// Reads that a cache answered.
    pub hits: u64,
    /// Reads that were sent, because no cache had their key.
    pub misses: u64,
    /// Hits in hundredths of a percent of hits and misses.
    pub hit_basis_points: u32,
    /// Keys in the servers' invalidation messages.
    pub invalidations: u64,
}

impl From<&CacheResult> for TrialCache {
    fn from(all: &CacheResult) -> Self {
        let CacheResult { hits, misses, hit_basis_points, invalidations, .. } = *all;
        Self { hits, misses, hit_basis_points, invalidations }
    }
}

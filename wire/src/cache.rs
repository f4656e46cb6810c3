//! Counts of client-side caches.

use serde::{Deserialize, Serialize};

use crate::histogram::EncodedHistogram;

/// Counts of a shard's client-side caches while measuring. Hits are not requests, and no other count includes them. `H` is the form of
/// the histogram.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cache<H = EncodedHistogram> {
    /// The counts.
    #[serde(flatten)]
    pub counts: CacheCounts,
    /// From sending a write until another connection of the same worker received the push that invalidated its entry.
    pub invalidation: H,
}

/// The counts of client-side caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CacheCounts {
    /// Reads that were answered by a cache.
    pub hits: u64,
    /// Reads that were sent because no cache had their key.
    pub misses: u64,
    /// Keys in the servers' invalidation messages.
    pub invalidations: u64,
    /// Invalidated entries that no read had used.
    pub invalidated_unused: u64,
    /// Invalidations of keys that the cache did not hold.
    pub not_cached: u64,
    /// Times that a cache with entries was emptied: a lost or closed connection, moved slots, or FLUSHALL.
    pub flushes: u64,
    /// Entries dropped to make room.
    pub evicted: u64,
    /// Entries dropped because of their age.
    pub expired: u64,
    /// `CLIENT CACHING YES` commands that were answered.
    pub caching_calls: u64,
    /// Hits on a value older than a write acknowledged earlier on this shard. 0 unless values are verified.
    pub stale_hits: u64,
}

impl CacheCounts {
    fn each(&mut self) -> [&mut u64; 10] {
        [
            &mut self.hits,
            &mut self.misses,
            &mut self.invalidations,
            &mut self.invalidated_unused,
            &mut self.not_cached,
            &mut self.flushes,
            &mut self.evicted,
            &mut self.expired,
            &mut self.caching_calls,
            &mut self.stale_hits,
        ]
    }

    /// All counts.
    pub fn all(mut self) -> [u64; 10] {
        self.each().map(|count| *count)
    }

    /// Adds other counts. They saturate, because they are untrusted.
    pub fn add(&mut self, other: &Self) {
        for (sum, part) in self.each().into_iter().zip(other.all()) {
            *sum = sum.saturating_add(part);
        }
    }
}

//! Counts of client-side caches.

use redisbench_wire::histogram::{EncodedHistogram, HistogramError};
use redisbench_wire::snapshot::{Cache, CacheCounts};

use super::counts::RequestCounts;

/// Counts of a worker's client-side caches.
#[derive(Clone, Debug)]
pub struct CacheRecord {
    pub counts: CacheCounts,
    invalidation: RequestCounts,
}

impl Default for CacheRecord {
    fn default() -> Self {
        Self { counts: CacheCounts::default(), invalidation: RequestCounts::new() }
    }
}

impl CacheRecord {
    /// Records how long an invalidation took.
    pub fn invalidated(&mut self, nanoseconds: u64) {
        self.invalidation.record(nanoseconds, 1);
    }

    /// The longest invalidation.
    #[cfg(test)]
    pub fn slowest(&self) -> Option<u64> {
        let all = self.invalidation.histogram();
        (!all.is_empty()).then(|| all.max())
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.invalidation.add(&other.invalidation);
    }

    pub(super) fn encode(&self) -> Result<Cache, HistogramError> {
        let invalidation = EncodedHistogram::encode(&self.invalidation.histogram())?;
        Ok(Cache { counts: self.counts, invalidation })
    }
}

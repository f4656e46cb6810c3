//! The rate of snapshots that all conductors of a process share, so that many benchmarks at once do not add up to more calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::intervals::{draining_interval, snapshot_interval};
pub use crate::api::settling::SNAPSHOTS_PER_SECOND;

/// Number of shards that are polled for snapshots, over all conductors that share it.
#[derive(Debug)]
pub struct PolledShards {
    shards: AtomicUsize,
    per_second: u32,
}

impl PolledShards {
    /// None yet. `per_second` of them are asked in a second: at least [`SNAPSHOTS_PER_SECOND`], which specs are checked with.
    pub fn new(per_second: u32) -> Self {
        Self { shards: AtomicUsize::new(0), per_second }
    }
}

impl Default for PolledShards {
    fn default() -> Self {
        Self::new(SNAPSHOTS_PER_SECOND)
    }
}

/// The shards of one conductor. They count until this is dropped.
#[derive(Debug)]
pub struct Share {
    all: Arc<PolledShards>,
    own: usize,
}

impl Share {
    pub fn of(all: Arc<PolledShards>, own: usize) -> Self {
        all.shards.fetch_add(own, Ordering::Relaxed);
        Self { all, own }
    }

    /// Interval of snapshots of each shard.
    pub fn interval(&self) -> Duration {
        snapshot_interval(self.own, self.all.shards.load(Ordering::Relaxed), self.all.per_second)
    }

    /// Interval of polling each shard that has not finished after the end of the load.
    pub fn draining_interval(&self) -> Duration {
        draining_interval(self.own, self.all.shards.load(Ordering::Relaxed), self.all.per_second)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.shards.fetch_sub(self.own, Ordering::Relaxed);
    }
}

//! The rate of snapshots that all conductors of a process share, so that many benchmarks at once do not add up to more calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::intervals::{draining_interval, snapshot_interval};

/// Number of shards that are polled for snapshots, over all conductors that share it.
#[derive(Debug, Default)]
pub struct PolledShards(AtomicUsize);

/// The shards of one conductor. They count until this is dropped.
#[derive(Debug)]
pub struct Share {
    all: Arc<PolledShards>,
    own: usize,
}

impl Share {
    pub fn of(all: Arc<PolledShards>, own: usize) -> Self {
        all.0.fetch_add(own, Ordering::Relaxed);
        Self { all, own }
    }

    /// Interval of snapshots of each shard.
    pub fn interval(&self) -> Duration {
        snapshot_interval(self.own, self.all.0.load(Ordering::Relaxed))
    }

    /// Interval of polling each shard that has not finished after the end of the load.
    pub fn draining_interval(&self) -> Duration {
        draining_interval(self.own, self.all.0.load(Ordering::Relaxed))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.own, Ordering::Relaxed);
    }
}

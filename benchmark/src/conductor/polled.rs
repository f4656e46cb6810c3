//! The rate of snapshots that all conductors of a process share, so that many benchmarks at once do not add up to more calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::intervals::{draining_interval, snapshot_interval};
pub use crate::api::settling::SNAPSHOTS_PER_SECOND;

/// Numbers of shards that are polled, over all conductors that share them.
#[derive(Debug)]
pub struct PolledShards {
    /// Those that are polled for snapshots.
    measuring: AtomicUsize,
    /// Those that are polled for their states. They do not make snapshots rarer.
    preparing: AtomicUsize,
    per_second: u32,
}

impl PolledShards {
    /// None yet. `per_second` of them are asked in a second: at least [`SNAPSHOTS_PER_SECOND`], which specs are checked with.
    pub fn new(per_second: u32) -> Self {
        Self { measuring: AtomicUsize::new(0), preparing: AtomicUsize::new(0), per_second }
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
    prepares: bool,
}

impl Share {
    /// Shards that are polled for snapshots.
    pub fn of(all: Arc<PolledShards>, own: usize) -> Self {
        Self::new(all, own, false)
    }

    /// Shards that are polled for their states.
    pub fn preparing(all: Arc<PolledShards>, own: usize) -> Self {
        Self::new(all, own, true)
    }

    fn new(all: Arc<PolledShards>, own: usize, prepares: bool) -> Self {
        let share = Self { all, own, prepares };
        share.number().fetch_add(own, Ordering::Relaxed);
        share
    }

    fn number(&self) -> &AtomicUsize {
        if self.prepares { &self.all.preparing } else { &self.all.measuring }
    }

    /// Interval of polling each shard. One that prepares may need a shorter or longer one.
    pub fn interval(&self) -> Duration {
        snapshot_interval(self.own, self.number().load(Ordering::Relaxed), self.all.per_second)
    }

    /// Interval of polling each shard that has not finished after the end of the load.
    pub fn draining_interval(&self) -> Duration {
        draining_interval(self.own, self.number().load(Ordering::Relaxed), self.all.per_second)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.number().fetch_sub(self.own, Ordering::Relaxed);
    }
}

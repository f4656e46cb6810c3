//! Random pauses, because all shards of a benchmark act at once.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// A random time below `most`. The hasher's random keys are good enough here.
pub(super) fn jitter(most: Duration) -> Duration {
    most.mul_f64((RandomState::new().hash_one(0) % 1024) as f64 / 1024.0)
}

/// The shortest interval at which each of `shards` may ask the target something, so that all together ask at most 1,000 times per second.
pub(super) fn share(shards: u32) -> Duration {
    Duration::from_millis(1) * shards
}

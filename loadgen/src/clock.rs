//! Timers on the shard's monotonic clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::sys::monotonic_nanoseconds;

/// The runtime's time at which the monotonic clock reads `nanoseconds`. Both are the same kernel clock, so they do not drift apart.
pub fn timer_at(nanoseconds: u64) -> Instant {
    Instant::now() + Duration::from_nanos(nanoseconds.saturating_sub(monotonic_nanoseconds()))
}

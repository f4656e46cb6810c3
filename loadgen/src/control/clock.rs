//! Timers on the shard's monotonic clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::monotonic_nanoseconds;

/// When the monotonic clock will read `nanoseconds`, as the runtime's timers take it. The two clocks are the same one
/// of the kernel, so this stays true for as long as the wait is.
pub fn timer_at(nanoseconds: u64) -> Instant {
    Instant::now() + Duration::from_nanos(nanoseconds.saturating_sub(monotonic_nanoseconds()))
}

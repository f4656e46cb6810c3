//! Virtual time as a time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of day at the beginning of every simulation, in seconds since the Unix epoch: 2026-01-01.
const BEGINNING: u64 = 1_767_225_600;

/// The time of day at this time since the beginning.
pub fn time_of_day(now: Duration) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(BEGINNING) + now
}

/// Seconds since the beginning as an API timestamp. A simulation takes less than a day.
pub fn timestamp(now: u64) -> String {
    debug_assert_eq!(BEGINNING % 86_400, 0, "the beginning is midnight");
    format!("2026-01-01T{:02}:{:02}:{:02}Z", now / 3600 % 24, now / 60 % 60, now % 60)
}

//! The figures of the barrier. Pure.

use std::time::Duration;

/// All shards must have acknowledged the start this long before it.
pub const ACKNOWLEDGE_BEFORE: Duration = Duration::from_millis(500);

/// Missed starts after which the run fails.
pub const MISSED_STARTS: u32 = 3;

/// New attempts that lost shards may cost.
pub const RESTARTS: u32 = 2;

/// How far ahead the start instant is named: long enough that every shard hears of it and acknowledges.
pub fn lead(worst_round_trip: Duration, shards: usize) -> Duration {
    Duration::from_secs(2).max(worst_round_trip * 4).max(per_shard(shards))
}

/// How often each shard is asked for a snapshot, the calls being spread over this time.
pub fn snapshot_interval(shards: usize) -> Duration {
    Duration::from_secs(1).max(per_shard(shards))
}

/// How often shards are asked while they prepare, and once the trial's end has passed.
pub fn polling_interval(shards: usize) -> Duration {
    Duration::from_millis(200).max(per_shard(shards))
}

fn per_shard(shards: usize) -> Duration {
    Duration::from_millis(10) * u32::try_from(shards).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_follows_the_slowest_of_its_three_reasons() {
        let [millis, secs] = [Duration::from_millis, Duration::from_secs];
        assert_eq!(lead(millis(1), 4), secs(2));
        assert_eq!(lead(millis(700), 4), millis(2800));
        assert_eq!(lead(millis(1), 2000), secs(20));
    }

    #[test]
    fn snapshots_keep_to_a_hundred_shards_a_second() {
        assert_eq!(snapshot_interval(3), Duration::from_secs(1));
        assert_eq!(snapshot_interval(2000), Duration::from_secs(20));
    }
}

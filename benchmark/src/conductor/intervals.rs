//! Constants, intervals and lengths. Pure.

use std::time::Duration;

use redisbench_wire::plan::TrialPlan;

/// All shards must have acknowledged the start this long before it.
pub const ACKNOWLEDGE_BEFORE: Duration = Duration::from_millis(500);

/// The run fails after this many missed starts.
pub const MISSED_STARTS: u32 = 3;

/// New attempts allowed because of lost shards.
pub const RESTARTS: u32 = 2;

/// Time between ordering the start and the start instant: enough for every shard to receive and acknowledge it.
pub fn lead(worst_round_trip: Duration, shards: usize) -> Duration {
    Duration::from_secs(2).max(worst_round_trip * 4).max(per_shard(shards))
}

/// Interval of snapshots of each shard. The calls are spread over it.
pub fn snapshot_interval(shards: usize) -> Duration {
    Duration::from_secs(1).max(per_shard(shards))
}

/// Interval of polling shards while they prepare, and after the trial's end.
pub fn polling_interval(shards: usize) -> Duration {
    Duration::from_millis(200).max(per_shard(shards))
}

/// Time from the start until every request of `plan` has its outcome.
pub fn planned_length(plan: &TrialPlan) -> Duration {
    Duration::from_nanos(plan.warmup_nanoseconds)
        + Duration::from_nanos(plan.bound.longest_nanoseconds())
        + Duration::from_nanos(plan.timeouts.request_nanoseconds)
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

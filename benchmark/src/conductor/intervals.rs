//! Constants, intervals and lengths. Pure.

use std::time::Duration;

use redisbench_wire::plan::TrialPlan;

use crate::api::settling::{self, SHORTEST_LEAD, shared_interval};

/// All shards must have acknowledged the start this long before it.
pub const ACKNOWLEDGE_BEFORE: Duration = Duration::from_millis(500);

/// The run fails after this many missed starts.
pub const MISSED_STARTS: u32 = 3;

/// New attempts allowed because of lost shards.
pub const RESTARTS: u32 = 2;

/// Time for the last requests of a load to finish, before the first shard is asked for its result.
pub const DRAIN: Duration = Duration::from_millis(100);

/// Interval of polling shard 0 after the end of the load.
pub const POLL_FIRST_AGAIN: Duration = Duration::from_millis(200);

/// Time between ordering an instant and that instant: enough for every shard to receive and acknowledge it, and at least `reach`.
pub fn lead(worst_round_trip: Duration, reach: Duration) -> Duration {
    SHORTEST_LEAD.max(worst_round_trip * 4).max(reach)
}

/// Interval of snapshots of each of a trial's `own` shards, while the process polls `all`, `per_second` of them in a second.
pub fn snapshot_interval(own: usize, all: usize, per_second: u32) -> Duration {
    settling::snapshot_interval(count(own), count(all), per_second)
}

/// Interval of polling each of `shards` that are not ready. It grows with the time that a shard has `waited`, because most are ready soon and
/// a long preload needs few calls. `shortest` follows from the calls that all trials share.
pub fn polling_interval(shards: usize, shortest: Duration, waited: Duration) -> Duration {
    let longest = longest_polling_interval(shards);
    (waited / 4).clamp(shortest.min(longest), longest)
}

/// Interval of polling shards that are not expected to change soon.
pub fn longest_polling_interval(shards: usize) -> Duration {
    Duration::from_millis(200).max(reach_all(shards))
}

/// Time between asking two shards for their results: enough to process one, but at most 3 s for all shards.
pub fn result_step(shards: usize) -> Duration {
    Duration::from_micros(1_500).min(Duration::from_secs(3) / count(shards).max(1))
}

/// Interval of polling a shard that still has requests in flight after the end of the load. At the rate of snapshots.
pub fn draining_interval(own: usize, all: usize, per_second: u32) -> Duration {
    shared_interval(count(own), count(all), per_second).clamp(Duration::from_millis(200), Duration::from_secs(20))
}

/// Time from the start until every request of `plan` has its outcome.
pub fn planned_length(plan: &TrialPlan) -> Duration {
    Duration::from_nanos(plan.warmup_nanoseconds)
        + Duration::from_nanos(plan.bound.longest_nanoseconds())
        + Duration::from_nanos(plan.timeouts.request_nanoseconds)
}

/// Time for one call to every shard, even on a busy machine.
pub fn reach_all(shards: usize) -> Duration {
    settling::reach_all(count(shards))
}

fn count(shards: usize) -> u32 {
    u32::try_from(shards).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_follows_the_slowest_of_its_three_reasons() {
        let [millis, secs] = [Duration::from_millis, Duration::from_secs];
        assert_eq!(lead(millis(1), millis(40)), secs(2));
        assert_eq!(lead(millis(700), millis(40)), millis(2800));
        assert_eq!(lead(millis(1), secs(20)), secs(20));
    }

    #[test]
    fn shards_are_asked_less_often_the_longer_they_prepare() {
        let after = |shards, seconds| {
            let shortest = snapshot_interval(shards, shards, 2_000);
            polling_interval(shards, shortest, Duration::from_secs(seconds)).as_millis()
        };
        assert_eq!([0, 2, 600].map(|seconds| after(16, seconds)), [200; 3]);
        assert_eq!([0, 2, 6, 600].map(|seconds| after(200, seconds)), [1_000, 1_000, 1_500, 2_000]);
        assert_eq!([0, 40, 600].map(|seconds| after(2_000, seconds)), [1_000, 10_000, 20_000]);
        assert_eq!([0, 600].map(|seconds| after(5_000, seconds)), [2_500, 50_000]);
    }

    #[test]
    fn snapshots_keep_to_their_rate() {
        let alone = [3, 2000, 5000, 100_000].map(|shards| snapshot_interval(shards, shards, 2_000));
        assert_eq!(alone, [1_000, 1_000, 2_500, 20_000].map(Duration::from_millis));
        let among_many = [40, 400, 2000].map(|own| snapshot_interval(own, 40_000, 2_000));
        assert_eq!(among_many, [1_000, 4_000, 20_000].map(Duration::from_millis));
        let faster = [3, 2000, 5000, 20_000].map(|shards| snapshot_interval(shards, shards, 5_000));
        assert_eq!(faster, [1_000, 1_000, 1_000, 4_000].map(Duration::from_millis));
    }

    #[test]
    fn results_are_asked_for_within_three_seconds() {
        let [micros, millis] = [Duration::from_micros, Duration::from_millis];
        assert_eq!([1, 2000, 5000].map(result_step), [micros(1_500), micros(1_500), micros(600)]);
        assert_eq!(
            [1, 1000, 5000].map(|shards| draining_interval(shards, shards, 2_000)),
            [millis(200), millis(500), millis(2500)]
        );
    }
}

//! The shortest warm-up that may end early, and the times that it consists of. The conductor, which orders that end, takes as long.

use std::time::Duration;

use super::duration::SECOND;

/// Default and minimum of the snapshots per second that one process requests, over all its trials.
pub const SNAPSHOTS_PER_SECOND: u32 = 2_000;

/// Whole seconds without drift after which the throughput has settled: one per part of the steadiness rule.
pub(crate) const SETTLED_SECONDS: u32 = 10;

/// The minimum time between ordering an instant and that instant.
pub(crate) const SHORTEST_LEAD: Duration = Duration::from_secs(2);

/// The shortest `load.warmup` with `WhenSettled`: a throughput that is steady from its first second on ends it early. Other benchmarks,
/// which may slow the snapshots of more than 100 shards, and a higher rate of snapshots are unknown here.
pub(crate) fn least_warmup(shards: u32) -> Duration {
    // The last of these seconds comes with each shard's next snapshot, and is judged once per interval.
    let detected = SETTLED_SECONDS * SECOND + 2 * snapshot_interval(shards, shards, SNAPSHOTS_PER_SECOND);
    // One second for replies, and one because measurements begin at whole seconds.
    let end = detected + reach_all(shards).max(SHORTEST_LEAD) + 2 * SECOND;
    Duration::from_secs(end.as_secs() + u64::from(end.subsec_nanos() > 0))
}

/// Interval of snapshots of each of a trial's `own` shards, while the process polls `all`, `per_second` of them in a second. The calls are
/// spread over it. A small trial does not wait for large ones. At most 20 s: a shard without a call for `safety.unattended`, at least a
/// minute, stops its load.
pub(crate) fn snapshot_interval(own: u32, all: u32, per_second: u32) -> Duration {
    shared_interval(own, all, per_second).clamp(SECOND, 20 * SECOND)
}

/// Interval of polling each of `own` shards at the rate of snapshots that `all` share.
pub(crate) fn shared_interval(own: u32, all: u32, per_second: u32) -> Duration {
    (all * SECOND / per_second.max(1)).min(reach_all(own))
}

/// Time for one call to every shard, even on a busy machine.
pub(crate) fn reach_all(shards: u32) -> Duration {
    shards * Duration::from_millis(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_warm_up_follows_from_the_number_of_shards() {
        let least = [1, 200, 201, 1_000, 2_000, 5_000].map(|shards| least_warmup(shards).as_secs());
        assert_eq!(least, [16, 16, 17, 24, 34, 67]);
    }
}

//! A plan for unit tests to start from.

use redisbench_wire::plan::{Limits, Preload, ShardPlan};

/// One second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// Shard 1 of 3 in trial 0 of run `run`: a closed loop of GET over four connections, with preload.
pub fn plan() -> ShardPlan {
    ShardPlan {
        shard: 1,
        shards: 3,
        preload: Preload::Always,
        connections: 4,
        limits: Limits {
            trial_nanoseconds: 60 * SECOND,
            armed_nanoseconds: 600 * SECOND,
            finished_nanoseconds: 500 * SECOND,
        },
        ..ShardPlan::basic("redis:6379")
    }
}

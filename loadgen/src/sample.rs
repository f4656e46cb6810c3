//! A plan for unit tests to start from.

use redisbench_wire::plan::{Limits, Preload, TrialPlan};

/// One second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// A closed loop of GET over four connections of each of three shards, with preload.
pub fn plan() -> TrialPlan {
    TrialPlan {
        shards: 3,
        preload: Preload::Always,
        connections: 12,
        limits: Limits {
            trial_nanoseconds: 60 * SECOND,
            armed_nanoseconds: 600 * SECOND,
            finished_nanoseconds: 500 * SECOND,
            unattended_nanoseconds: 0,
        },
        ..TrialPlan::basic("redis:6379")
    }
}

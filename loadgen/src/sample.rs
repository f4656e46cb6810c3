//! A plan for unit tests to start from.

use redisbench_wire::plan::{Limits, Preload, Recorded, Trace, TrialPlan};

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

/// A plan that replays a GET of each of these keys at its time in microseconds.
pub fn replay(keys: &[(u64, String)], repeats: bool) -> TrialPlan {
    let line = |(time, key): &(u64, String)| {
        format!("{}.{:06} [0 127.0.0.1:60866] \"get\" \"{key}\"\n", time / 1_000_000, time % 1_000_000)
    };
    let text: String = keys.iter().map(line).collect();
    let mut plan = plan();
    plan.trace = Some(Trace { repeats, recorded: None });
    plan.replay(Recorded::of_monitor(text.as_bytes(), u64::MAX).unwrap());
    plan
}

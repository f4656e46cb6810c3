//! Compiles a spec into trials, and each trial into one plan per shard. Pure functions of the spec and the run's identity; every split is
//! exact.

mod preset;
mod search;
mod sweep;
mod trials;

use std::time::Duration;

use redisbench_wire::plan::{Bound, Limits, Load, ShardPlan, Verify};

use crate::api::{self, Validated};

pub use search::{GoodStep, SearchTrial, Standing, Why, standing};
pub use trials::{Kind, Plan, Trial, compile};

/// Added to the longest time that a trial can take by its own timeouts.
const TRIAL_GRACE: Duration = Duration::from_secs(60);
/// A shard that stays armed this long has been forgotten.
const ARMED_LIMIT: Duration = Duration::from_secs(600);
/// A shard that has finished and gets no call for this long has been forgotten. The spec's collect timeout applies if it is longer.
const FINISHED_LIMIT: Duration = Duration::from_secs(600);

/// Plans of the shards of run `run` in its only trial, in index order.
pub fn plans(spec: &Validated, run: &str) -> Vec<ShardPlan> {
    plans_of(spec, run, 0)
}

fn plans_of(spec: &Validated, run: &str, trial: u32) -> Vec<ShardPlan> {
    (0..spec.shards.count).map(|shard| shard_plan(spec, run, trial, shard)).collect()
}

fn shard_plan(spec: &Validated, run: &str, trial: u32, shard: u32) -> ShardPlan {
    let shards = spec.shards.count;
    ShardPlan {
        run: run.to_owned(),
        trial,
        shard,
        shards,
        target: spec.target.clone(),
        workload: spec.workload.clone(),
        preload: spec.preload.clone(),
        verify: spec.verify,
        load: spec.load.clone(),
        connections: part_u32(spec.connections, shard, shards),
        connect_rate: spec.connect_rate,
        preload_pace: spec.preload_pace,
        pipeline: spec.pipeline,
        pipeline_mode: spec.pipeline_mode,
        concurrency: spec.concurrency.map(|callers| part_u32(callers, shard, shards)),
        warmup_nanoseconds: nanoseconds(spec.warmup),
        settle: spec.settle,
        bound: bound(spec, shard),
        timeouts: spec.timeouts,
        breakdown: spec.breakdown,
        node_seconds: api::watches_nodes(&spec.thresholds),
        measurement: spec.measurement,
        limits: limits(spec),
    }
}

fn bound(spec: &Validated, shard: u32) -> Bound {
    match spec.bound {
        api::Bound::Duration(length) => Bound::Duration { nanoseconds: nanoseconds(length) },
        api::Bound::Requests { count, at_most } => {
            let shards = u64::from(spec.shards.count);
            // The first request goes to the shard whose turn it is after the warm-up, which need not be shard 0.
            let place = (u64::from(shard) + shards - warmup_requests(spec) % shards) % shards;
            Bound::Requests { count: part(count, place, shards), max_nanoseconds: nanoseconds(at_most) }
        }
    }
}

/// Requests of an open loop that are due in the warm-up. In a closed loop the number is unknown, and each worker numbers its own.
fn warmup_requests(spec: &Validated) -> u64 {
    let Load::OpenLoop { rate_per_second, .. } = spec.load else { return 0 };
    let requests = (spec.warmup.as_nanos() * u128::from(rate_per_second)).div_ceil(1_000_000_000);
    u64::try_from(requests).unwrap_or(u64::MAX)
}

fn limits(spec: &Validated) -> Limits {
    let unsent = match spec.load {
        Load::OpenLoop { unsent_after_nanoseconds, .. } => Duration::from_nanos(unsent_after_nanoseconds),
        Load::ClosedLoop => Duration::ZERO,
    };
    let request = Duration::from_nanos(spec.timeouts.request_nanoseconds);
    let last_read = last_read(spec.workload.followed(spec.verify).is_some());
    Limits {
        trial_nanoseconds: nanoseconds(spec.warmup + spec.bound.longest() + unsent + request + last_read + TRIAL_GRACE),
        // The first armed shard waits for the last one, for up to the prepare timeout.
        armed_nanoseconds: nanoseconds(ARMED_LIMIT.max(spec.shards.prepare_timeout)),
        finished_nanoseconds: nanoseconds(FINISHED_LIMIT.max(spec.shards.collect_timeout)),
    }
}

/// How long written keys may be read back after the load.
pub(crate) fn last_read(followed: bool) -> Duration {
    if followed { Duration::from_nanos(Verify::LAST_READ_NANOSECONDS) } else { Duration::ZERO }
}

/// Part `index` of `parts` of `whole`: they differ by one at most, and sum to the whole.
fn part(whole: u64, index: u64, parts: u64) -> u64 {
    whole / parts + u64::from(index < whole % parts)
}

fn part_u32(whole: u32, index: u32, parts: u32) -> u32 {
    whole / parts + u32::from(index < whole % parts)
}

/// Saturation cannot occur: the durations of a checked spec are far below 64 bits.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    use crate::sample::spec;

    #[test]
    fn limits_leave_room_for_everything_that_is_planned() {
        let spec = spec(2, &json!({"type": "OpenLoop", "openLoop": {"rate": 9}, "duration": "10s", "warmup": "3s"}));
        let limits = plans(&spec, "run")[0].limits;
        // Warm-up, measurement, unsent after, request timeout, grace.
        assert_eq!(limits.trial_nanoseconds, (3 + 10 + 10 + 1 + 60) * 1_000_000_000);
        assert_eq!(limits.armed_nanoseconds, 600_000_000_000);
        assert_eq!(limits.finished_nanoseconds, 600_000_000_000);
    }

    #[test]
    fn shards_hold_their_results_for_as_long_as_they_may_be_collected() {
        let mut spec = spec(2, &json!({"type": "ClosedLoop", "connections": 2, "duration": "10s"}));
        spec.shards.collect_timeout = Duration::from_secs(3600);
        assert_eq!(plans(&spec, "run")[0].limits.finished_nanoseconds, 3_600_000_000_000);
    }

    proptest! {
        #[test]
        fn shards_take_the_requests_that_follow_the_warmup(
            shards in 1_u32..20,
            rate in 1_u64..5000,
            warmup in 0_u64..3000,
            more in 0_u64..100,
        ) {
            let requests = u64::from(shards) + more;
            let load = json!({"type": "OpenLoop", "openLoop": {"rate": rate}, "connections": shards, "requests": requests,
                "warmup": format!("{warmup}ms")});
            let first = (warmup * rate).div_ceil(1000);
            for plan in plans(&spec(shards, &load), "run") {
                let own = (first..first + requests).filter(|k| k % u64::from(shards) == u64::from(plan.shard)).count();
                prop_assert_eq!(plan.bound, Bound::Requests { count: own as u64, max_nanoseconds: match plan.bound {
                    Bound::Requests { max_nanoseconds, .. } => max_nanoseconds,
                    Bound::Duration { .. } => 0,
                } });
            }
        }

        #[test]
        fn parts_are_those_of_every_nth_request(count in 0_u64..5_000, parts in 1_u64..200) {
            for index in 0..parts {
                let own = (0..count).filter(|k| k % parts == index).count() as u64;
                prop_assert_eq!(part(count, index, parts), own);
            }
        }

        #[test]
        fn parts_are_even_and_sum_to_the_whole(whole in 0_u64..1 << 40, parts in 1_u64..2000) {
            let all: Vec<u64> = (0..parts).map(|index| part(whole, index, parts)).collect();
            prop_assert_eq!(all.iter().sum::<u64>(), whole);
            let (low, high) = (all.iter().min().unwrap(), all.iter().max().unwrap());
            prop_assert!(high - low <= 1);
        }

        #[test]
        fn no_shard_is_without_a_connection_or_a_request(
            shards in 1_u32..100,
            more_connections in 0_u32..1000,
            more_requests in 0_u64..1000,
        ) {
            let (connections, requests) = (shards + more_connections, u64::from(shards) + more_requests);
            let load = json!({"type": "ClosedLoop", "connections": connections, "requests": requests});
            let plans = plans(&spec(shards, &load), "run");
            prop_assert_eq!(plans.iter().map(|plan| plan.connections).sum::<u32>(), connections);
            let quota = |plan: &ShardPlan| match plan.bound {
                Bound::Requests { count, .. } => count,
                Bound::Duration { .. } => 0,
            };
            prop_assert_eq!(plans.iter().map(quota).sum::<u64>(), requests);
            prop_assert!(plans.iter().all(|plan| plan.connections > 0 && quota(plan) > 0));
            prop_assert!((0..).zip(&plans).all(|(index, plan)| plan.shard == index && plan.shards == shards));
        }
    }
}

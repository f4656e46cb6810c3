//! From a checked spec to one plan per shard. A pure function of the spec and the run's identity; every split is exact.

use std::time::Duration;

use redisbench_wire::plan::{Bound, Limits, Load, ShardPlan};

use crate::api::{self, Validated};

/// The only trial of a run, so far.
pub const TRIAL: u32 = 0;
/// Beyond the longest that a trial can take by its own timeouts.
const TRIAL_GRACE: Duration = Duration::from_secs(60);
/// A shard that is armed for so long has been forgotten.
const ARMED_LIMIT: Duration = Duration::from_secs(600);
/// A shard that is finished for so long without a call has been forgotten.
const FINISHED_LIMIT: Duration = Duration::from_secs(600);

/// The plans of the shards of run `run`, in the order of their indices.
pub fn plans(spec: &Validated, run: &str) -> Vec<ShardPlan> {
    let shards = spec.shards.count;
    (0..shards)
        .map(|shard| ShardPlan {
            run: run.to_owned(),
            trial: TRIAL,
            shard,
            shards,
            target: spec.target.clone(),
            workload: spec.workload.clone(),
            preload: spec.preload,
            load: spec.load,
            connections: part_u32(spec.connections, shard, shards),
            pipeline: spec.pipeline,
            warmup_nanoseconds: nanoseconds(spec.warmup),
            bound: bound(spec.bound, shard, shards),
            timeouts: spec.timeouts,
            breakdown: spec.breakdown,
            limits: limits(spec),
        })
        .collect()
}

fn bound(bound: api::Bound, shard: u32, shards: u32) -> Bound {
    match bound {
        api::Bound::Duration(length) => Bound::Duration { nanoseconds: nanoseconds(length) },
        api::Bound::Requests { count, at_most } => {
            Bound::Requests { count: part(count, shard.into(), shards.into()), max_nanoseconds: nanoseconds(at_most) }
        }
    }
}

fn limits(spec: &Validated) -> Limits {
    let unsent = match spec.load {
        Load::OpenLoop { unsent_after_nanoseconds, .. } => Duration::from_nanos(unsent_after_nanoseconds),
        Load::ClosedLoop => Duration::ZERO,
    };
    let request = Duration::from_nanos(spec.timeouts.request_nanoseconds);
    Limits {
        trial_nanoseconds: nanoseconds(spec.warmup + spec.bound.longest() + unsent + request + TRIAL_GRACE),
        armed_nanoseconds: nanoseconds(ARMED_LIMIT),
        finished_nanoseconds: nanoseconds(FINISHED_LIMIT),
    }
}

/// Part `index` of `parts` of `whole`: they differ by one at most, and sum to the whole.
fn part(whole: u64, index: u64, parts: u64) -> u64 {
    whole / parts + u64::from(index < whole % parts)
}

fn part_u32(whole: u32, index: u32, parts: u32) -> u32 {
    whole / parts + u32::from(index < whole % parts)
}

/// Durations of a checked spec are far below what 64 bits hold.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_even_and_sum_to_the_whole(whole in 0_u64..1 << 40, parts in 1_u64..2000) {
            let all: Vec<u64> = (0..parts).map(|index| part(whole, index, parts)).collect();
            prop_assert_eq!(all.iter().sum::<u64>(), whole);
            let (low, high) = (all.iter().min().unwrap(), all.iter().max().unwrap());
            prop_assert!(high - low <= 1);
        }
    }
}

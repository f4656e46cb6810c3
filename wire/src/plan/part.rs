//! The part of each shard in a trial. Every split is exact.

use std::ops::Deref;
use std::sync::Arc;

use super::{Bound, Load, TrialPlan};

/// The part of one shard in a trial, made by [`TrialPlan::part`]. Its own numbers hide those of the whole benchmark; all others are the
/// trial's.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardPlan {
    /// The run's identity.
    pub run: Arc<str>,
    /// The trial, from 0.
    pub trial: u32,
    /// This shard's index, from 0.
    pub shard: u32,
    /// Connections of this shard.
    pub connections: u32,
    /// Callers of this shard, if they are limited.
    pub concurrency: Option<u32>,
    /// The end of the measurement, with this shard's number of requests.
    pub bound: Bound,
    whole: Arc<TrialPlan>,
}

impl Deref for ShardPlan {
    type Target = TrialPlan;

    fn deref(&self) -> &TrialPlan {
        &self.whole
    }
}

impl TrialPlan {
    /// The part of shard `shard` in trial `trial` of run `run`.
    pub fn part(self: &Arc<Self>, run: &Arc<str>, trial: u32, shard: u32) -> ShardPlan {
        ShardPlan {
            run: Arc::clone(run),
            trial,
            shard,
            connections: part_u32(self.connections, shard, self.shards),
            concurrency: self.concurrency.map(|callers| part_u32(callers, shard, self.shards)),
            bound: self.bound_of(shard),
            whole: Arc::clone(self),
        }
    }

    /// The end of the measurement on shard `shard`.
    pub fn bound_of(&self, shard: u32) -> Bound {
        match self.bound {
            duration @ Bound::Duration { .. } => duration,
            Bound::Requests { count, max_nanoseconds } => {
                let shards = u64::from(self.shards.max(1));
                // The first request goes to the shard whose turn it is after the warm-up, which need not be shard 0.
                let place = (u64::from(shard) + shards - self.warmup_requests() % shards) % shards;
                Bound::Requests { count: part(count, place, shards), max_nanoseconds }
            }
        }
    }

    /// Requests of an open loop that are due in the warm-up. In a closed loop the number is unknown, and each worker numbers its own.
    pub fn warmup_requests(&self) -> u64 {
        let Load::OpenLoop { rate_per_second, .. } = self.load else { return 0 };
        let requests = (u128::from(self.warmup_nanoseconds) * u128::from(rate_per_second)).div_ceil(1_000_000_000);
        u64::try_from(requests).unwrap_or(u64::MAX)
    }
}

impl ShardPlan {
    /// The connections of the shards before this one.
    pub fn connections_before(&self) -> u64 {
        (0..self.shard).map(|shard| u64::from(part_u32(self.whole.connections, shard, self.whole.shards))).sum()
    }

    /// The same shard's part of a changed plan.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut TrialPlan)) -> Self {
        let mut whole = TrialPlan::clone(self);
        change(&mut whole);
        Arc::new(whole).part(&self.run, self.trial, self.shard)
    }
}

/// Part `index` of `parts` of `whole`: they differ by one at most, and sum to the whole. No parts count as one.
fn part(whole: u64, index: u64, parts: u64) -> u64 {
    let parts = parts.max(1);
    whole / parts + u64::from(index < whole % parts)
}

fn part_u32(whole: u32, index: u32, parts: u32) -> u32 {
    let parts = parts.max(1);
    whole / parts + u32::from(index < whole % parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Arrival;

    const MILLISECOND: u64 = 1_000_000;

    /// The parts of all shards.
    fn parts(plan: TrialPlan) -> Vec<ShardPlan> {
        let plan = Arc::new(plan);
        (0..plan.shards).map(|shard| plan.part(&"run".into(), 0, shard)).collect()
    }

    fn quota(plan: &ShardPlan) -> u64 {
        if let Bound::Requests { count, .. } = plan.bound { count } else { 0 }
    }

    #[test]
    fn a_plan_without_shards_has_parts() {
        let bound = Bound::Requests { count: 7, max_nanoseconds: 1 };
        let part = TrialPlan { shards: 0, bound, ..TrialPlan::basic("redis:6379") }.of_shard(3);
        assert_eq!((part.connections, part.bound), (1, bound));
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
            let load = Load::OpenLoop {
                rate_per_second: rate,
                stages: Vec::new(),
                arrival: Arrival::Constant,
                pacing_grid_nanoseconds: 0,
                unsent_after_nanoseconds: 1,
            };
            let plan = TrialPlan {
                shards,
                load,
                warmup_nanoseconds: warmup * MILLISECOND,
                bound: Bound::Requests { count: requests, max_nanoseconds: 1 },
                ..TrialPlan::basic("redis:6379")
            };
            let first = (warmup * rate).div_ceil(1000);
            for part in parts(plan) {
                let own = (first..first + requests).filter(|k| k % u64::from(shards) == u64::from(part.shard)).count();
                prop_assert_eq!(part.bound, Bound::Requests { count: own as u64, max_nanoseconds: 1 });
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
        fn no_shard_is_without_a_connection_a_caller_or_a_request(
            shards in 1_u32..100,
            more_connections in 0_u32..1000,
            more_requests in 0_u64..1000,
        ) {
            let (connections, requests) = (shards + more_connections, u64::from(shards) + more_requests);
            let parts = parts(TrialPlan {
                shards,
                connections,
                concurrency: Some(connections),
                bound: Bound::Requests { count: requests, max_nanoseconds: 1 },
                ..TrialPlan::basic("redis:6379")
            });
            prop_assert_eq!(parts.iter().map(|part| part.connections).sum::<u32>(), connections);
            let mut before = 0;
            for part in &parts {
                prop_assert_eq!(part.connections_before(), before);
                before += u64::from(part.connections);
            }
            prop_assert_eq!(parts.iter().filter_map(|part| part.concurrency).sum::<u32>(), connections);
            prop_assert_eq!(parts.iter().map(quota).sum::<u64>(), requests);
            prop_assert!(parts.iter().all(|part| part.connections > 0 && part.concurrency > Some(0) && quota(part) > 0));
            prop_assert!((0..).zip(&parts).all(|(index, part)| part.shard == index && part.shards == shards));
        }
    }
}

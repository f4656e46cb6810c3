//! The source of a load's requests.

use redisbench_wire::plan::{Arrival, Load, ShardPlan};

use crate::schedule::{Replay, Schedule, Seat};
use crate::workload::{Workload, begin_apart, part_of};

#[derive(Debug)]
pub(super) enum Source {
    /// Endless: a request whenever there is room.
    Closed {
        k: u64,
        /// Distance to the request after it.
        step: u64,
    },
    /// Endless, with the next request of each connection. Connections to another server of the target continue those of the former.
    PerConnection(Vec<u64>),
    /// Up to an end.
    Walk(Walk),
    /// The commands of a recording.
    Replay(Replay),
    /// Requests have due times.
    Open(Schedule),
}

impl Source {
    /// The requests of a trial's worker, beginning at `start`.
    pub(super) fn of_trial(plan: &ShardPlan, workload: &Workload, seat: Seat, start: u64) -> Self {
        let Some(trace) = &plan.trace else {
            return Schedule::of(plan, seat, start).map_or_else(|| closed(plan, seat), Self::Open);
        };
        let lanes = workload.lanes();
        let own = (0..).zip(lanes).filter(|(_, lane)| seat.has(**lane)).map(|(number, _)| number).collect();
        let replay = Replay::new(own, lanes.len() as u64, trace.repeats);
        Schedule::of_replay(plan, &replay, seat, start).map_or(Self::Replay(replay), Self::Open)
    }

    /// Returns whether all requests were drawn.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Closed { .. } | Self::PerConnection(_) => false,
            Self::Walk(walk) => walk.k >= walk.end && walk.redo.is_empty(),
            Self::Replay(replay) => replay.is_over(),
            Self::Open(schedule) => schedule.is_over(),
        }
    }

    /// The next request, if requests have no due times.
    #[inline]
    pub(super) fn draw(&mut self) -> Option<u64> {
        match self {
            Self::Closed { k, step } => {
                let drawn = *k;
                *k += *step;
                Some(drawn)
            }
            Self::Walk(walk) => walk.draw(),
            Self::Replay(replay) => {
                let drawn = replay.peek()?;
                replay.advance();
                Some(drawn)
            }
            Self::Open(_) | Self::PerConnection(_) => None,
        }
    }
}

/// Every `step`th request from `k` on.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub k: u64,
    pub step: u64,
    /// Exclusive.
    pub end: u64,
    /// Keys whose write got no reply: the preload writes them again.
    pub redo: Vec<u64>,
    /// The number of further commands that a preload may draw at its rate; `None` without a rate.
    pub allowance: Option<Allowance>,
}

impl Walk {
    /// Skips to a request that is the shard's own.
    pub(super) fn skip(&mut self, is_own: impl Fn(u64) -> bool) {
        while self.k < self.end && !is_own(self.k) {
            self.k += self.step;
        }
    }

    fn draw(&mut self) -> Option<u64> {
        if self.allowance.is_some_and(|allowance| allowance.left == 0) {
            return None;
        }
        let drawn = match self.redo.pop() {
            Some(again) => again,
            None if self.k >= self.end => return None,
            None => {
                self.k += self.step;
                self.k - self.step
            }
        };
        if let Some(allowance) = &mut self.allowance {
            allowance.take();
        }
        Some(drawn)
    }
}

/// A worker's share of a preload's rate. Missed sends are made up for, because the rate applies to the preload as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Per second, of all workers of all shards.
    rate: u64,
    /// The number of workers of all shards.
    seats: u64,
    since: u64,
    drawn: u64,
    left: u64,
}

impl Allowance {
    pub(super) fn of(rate: u64, seats: u64, since: u64) -> Self {
        Self { rate, seats, since, drawn: 0, left: 0 }
    }

    /// Adds what has accrued by `now`. Returns whether commands may be drawn.
    pub(super) fn come(&mut self, now: u64) -> bool {
        let time = u128::from(now.saturating_sub(self.since));
        let come = time * u128::from(self.rate) / (SECOND * u128::from(self.seats));
        self.left = u64::try_from(come).unwrap_or(u64::MAX).saturating_sub(self.drawn);
        self.left > 0
    }

    fn take(&mut self) {
        self.drawn += 1;
        self.left -= 1;
    }

    /// The time at which the next command accrues if none is left, rounded up to whole milliseconds.
    pub(super) fn next(&self) -> u64 {
        if self.left > 0 {
            return u64::MAX;
        }
        let time = (u128::from(self.drawn) + 1) * SECOND * u128::from(self.seats) / u128::from(self.rate.max(1));
        let next = self.since.saturating_add(u64::try_from(time).unwrap_or(u64::MAX).saturating_add(1));
        next.next_multiple_of(1_000_000)
    }
}

const SECOND: u128 = 1_000_000_000;

/// The request numbers of a closed loop's worker. With a mix in turns each worker walks the whole sequence, because a step could leave
/// out some operations. It starts at the beginning of a period, far from the other workers.
fn closed(plan: &ShardPlan, seat: Seat) -> Source {
    let operations = &plan.workload.operations;
    let in_turns = plan.workload.options.in_turns && operations.len() > 1;
    let period = if in_turns { operations.iter().map(|operation| u64::from(operation.weight)).sum() } else { 1 };
    if plan.workload.is_per_connection() {
        let connections = part_of(plan.connections.into(), seat.worker.into(), seat.workers.into());
        let before = plan.connections_before();
        return Source::PerConnection(connections.map(|connection| begin_apart(before + connection, period)).collect());
    }
    if !in_turns {
        return Source::Closed { k: seat.first(), step: seat.step() };
    }
    Source::Closed { k: begin_apart(seat.first(), period), step: 1 }
}

/// The number of warm-up requests of the shard in an open loop with constant arrivals: the measured requests are numbered after them. A
/// closed loop and Poisson arrivals number each worker's requests separately, so it is 0.
pub(super) fn warmup_of_shard(plan: &ShardPlan, seat: Seat, start: u64) -> u64 {
    let Load::OpenLoop { arrival: Arrival::Constant, .. } = plan.load else { return 0 };
    let schedule = Schedule::of(plan, Seat { worker: 0, workers: 1, ..seat }, start);
    schedule.map_or(0, |schedule| schedule.due_before(start.saturating_add(plan.warmup_nanoseconds)))
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "few keys")]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use redisbench_wire::plan::{KeyPattern, Operation};

    use super::*;
    use crate::open_loop::open_loop;

    proptest! {
        /// Over all shards and workers, each connection has its own numbers, and together their first rounds take each key once.
        #[test]
        fn connections_divide_the_keys(
            shards in 1_u32..6, more in 0_u32..20, workers in 1_u32..5, keys in 0_u64..200, weights in prop::collection::vec(1_u32..4, 1..3),
        ) {
            let connections = shards + more;
            let mut plan = crate::sample::plan();
            (plan.shards, plan.connections, plan.load) = (shards, connections, Load::ClosedLoop);
            plan.workload_mut().keys.count = u64::from(connections) + keys;
            plan.workload_mut().keys.start = 0;
            plan.workload_mut().keys.pattern = KeyPattern::PerConnection { partitioned: true };
            let operation = |weight: &u32| Operation::of("get", *weight, "GET __key__");
            plan.workload_mut().operations = weights.iter().map(operation).collect();
            plan.workload_mut().options.in_turns = true;
            let workload = Workload::of_trial(&plan).unwrap();
            let mut taken = vec![Vec::new(); weights.len()];
            let mut connection = 0;
            for shard in 0..shards {
                let part = plan.clone().of_shard(shard);
                // An engine has no worker without a connection.
                let workers = workers.min(part.connections);
                for worker in 0..workers {
                    let source = closed(&part, Seat { shard, shards, worker, workers });
                    let Source::PerConnection(nexts) = source else { panic!("{source:?}") };
                    for next in nexts {
                        let own = part_of(plan.workload.keys.count, connection, connections.into());
                        connection += 1;
                        for (operation, taken) in (0..).zip(&mut taken) {
                            let draws = (next..).map(|k| workload.draw(k)).filter(|draw| draw.operation == operation);
                            let length = (own.end - own.start) as usize;
                            let walked: Vec<u64> = draws.take(length + 1).map(|draw| draw.key).collect();
                            prop_assert_eq!(walked[length], walked[0], "and again");
                            prop_assert_eq!(&walked[..length], own.clone().collect::<Vec<_>>());
                            taken.extend_from_slice(&walked[..length]);
                        }
                    }
                }
            }
            prop_assert_eq!(connection, u64::from(connections));
            for mut taken in taken {
                taken.sort_unstable();
                prop_assert_eq!(taken, (0..plan.workload.keys.count).collect::<Vec<_>>());
            }
        }
    }

    proptest! {
        /// Over all shards and workers a replay is the recording, and each key has one worker, which takes its commands in their order.
        #[test]
        fn shards_divide_a_recording(
            shards in 1_u32..6,
            workers in 1_u32..5,
            keys in prop::collection::vec(0_u64..30, 1..150),
            open in any::<bool>(),
            repeats in any::<bool>(),
        ) {
            let timed: Vec<_> = keys.iter().map(|key| (0, format!("key:{key}"))).collect();
            let mut plan = crate::sample::replay(&timed, repeats);
            (plan.shards, plan.load) = (shards, if open { open_loop(1_000) } else { Load::ClosedLoop });
            let workload = Workload::of_trial(&plan).unwrap();
            let length = keys.len() as u64;
            let end = if repeats { 3 * length } else { length };
            let (mut all, mut owners) = (Vec::new(), BTreeMap::new());
            for shard in 0..shards {
                let part = plan.clone().of_shard(shard);
                for worker in 0..workers {
                    let seat = Seat { shard, shards, worker, workers };
                    let mut source = Source::of_trial(&part, &workload, seat, 7);
                    let mut next = || match &mut source {
                        Source::Open(schedule) if schedule.is_over() => None,
                        Source::Open(schedule) => {
                            let slot = schedule.peek();
                            schedule.advance();
                            Some(slot.k)
                        }
                        other => other.draw(),
                    };
                    let own: Vec<u64> = std::iter::from_fn(&mut next).take_while(|k| *k < end).collect();
                    prop_assert!(own.is_sorted());
                    for k in &own {
                        let key = keys[(k % length) as usize];
                        prop_assert_eq!(*owners.entry(key).or_insert(seat.first()), seat.first());
                    }
                    prop_assert!(repeats || next().is_none());
                    all.extend(own);
                }
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..end).collect::<Vec<_>>());
        }
    }

    #[test]
    fn all_seats_together_keep_the_rate_of_a_preload() {
        const START: u64 = 77_000_000_000;
        let mut seats = [Allowance::of(1000, 3, START); 3];
        let mut drawn = 0;
        for millisecond in 0..=3000 {
            for seat in &mut seats {
                while seat.come(START + millisecond * 1_000_000) {
                    seat.take();
                    drawn += 1;
                }
                let wait = seat.next() - START;
                assert!(
                    wait > millisecond * 1_000_000 && wait <= (millisecond + 4) * 1_000_000,
                    "{millisecond} {wait}"
                );
            }
            assert!((drawn..drawn + 3).contains(&millisecond), "{millisecond}: {drawn}");
        }
    }
}

//! Which requests a worker takes, and when an open loop's are due. Exact: no rounding error adds up, however long the
//! run.
#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "2^64 ns are 584 years")]

const SECOND: u64 = 1_000_000_000;

/// One of N shards and one of its W workers: local request j belongs to worker `j mod W`, and is request
/// `k = j*N + i` of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// The shard, i.
    pub shard: u32,
    /// N.
    pub shards: u32,
    /// The worker, w.
    pub worker: u32,
    /// W.
    pub workers: u32,
}

impl Seat {
    /// This worker's first request.
    pub fn first(self) -> u64 {
        u64::from(self.worker) * u64::from(self.shards) + u64::from(self.shard)
    }

    /// From one of its requests to the next.
    pub fn step(self) -> u64 {
        u64::from(self.workers) * u64::from(self.shards)
    }

    /// How many of the shard's `count` local requests from `first` on are this worker's.
    pub fn share(self, first: u64, count: u64) -> u64 {
        let workers = u64::from(self.workers);
        // How far behind the first of them this worker's first one is.
        let place = (u64::from(self.worker) + workers - first % workers) % workers;
        count / workers + u64::from(place < count % workers)
    }
}

/// A constant rate: request k is due `k / rate` after the start, rounded down to a nanosecond and then up to the pacing
/// grid. Holds the position of one worker in it.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: u64,
    rate: u64,
    grid: u64,
    /// Where this worker's grid lies, so that workers do not fire together.
    grid_offset: u64,
    step: u64,
    /// The step in time, whole and remainder over `rate`.
    step_time: (u64, u64),
    k: u64,
    /// The present request's time after the start, whole and remainder over `rate`.
    time: (u64, u64),
}

/// One slot of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The request.
    pub k: u64,
    /// When it is due, on the clock of the start.
    pub due: u64,
}

impl Schedule {
    /// The schedule of `seat`, of a whole benchmark's `rate` per second, from `start` on.
    pub fn new(seat: Seat, rate: u64, grid: u64, start: u64) -> Self {
        let rate = rate.max(1);
        let place = u128::from(seat.shard) * u128::from(seat.workers) + u128::from(seat.worker);
        let grid_offset = (u128::from(grid) * place / u128::from(seat.step().max(1))) as u64;
        Self {
            start,
            rate,
            grid,
            grid_offset,
            step: seat.step(),
            step_time: divide(seat.step(), rate),
            k: seat.first(),
            time: divide(seat.first(), rate),
        }
    }

    /// The next slot.
    #[inline]
    pub fn peek(&self) -> Slot {
        Slot { k: self.k, due: self.start.saturating_add(self.on_grid(self.time.0)) }
    }

    /// Goes on to the slot after.
    #[inline]
    pub fn advance(&mut self) {
        self.k += self.step;
        self.time.0 += self.step_time.0;
        self.time.1 += self.step_time.1;
        if self.time.1 >= self.rate {
            self.time.1 -= self.rate;
            self.time.0 += 1;
        }
    }

    /// How many slots from the present one on are due before `end`.
    pub fn due_before(&self, end: u64) -> u64 {
        let Some(last) = end.checked_sub(self.start).and_then(|time| time.checked_sub(1)) else { return 0 };
        // The latest time that the grid does not round beyond `last`.
        let latest = match (self.grid, last.checked_sub(self.grid_offset)) {
            (0, _) => last,
            (_, None) => return 0,
            (grid, Some(over)) => self.grid_offset + over / grid * grid,
        };
        // k*SECOND/rate <= latest, rounded down, is k*SECOND < (latest + 1)*rate.
        let below = (u128::from(latest) + 1) * u128::from(self.rate);
        let first_beyond = below.div_ceil(u128::from(SECOND));
        first_beyond.saturating_sub(u128::from(self.k)).div_ceil(u128::from(self.step)) as u64
    }

    #[inline]
    fn on_grid(&self, time: u64) -> u64 {
        if self.grid == 0 {
            return time;
        }
        match time.checked_sub(self.grid_offset) {
            Some(over) => self.grid_offset + over.div_ceil(self.grid) * self.grid,
            None => self.grid_offset,
        }
    }
}

/// `k` seconds over `rate`: whole nanoseconds, and the remainder.
fn divide(k: u64, rate: u64) -> (u64, u64) {
    let time = u128::from(k) * u128::from(SECOND);
    ((time / u128::from(rate)) as u64, (time % u128::from(rate)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slots(mut schedule: Schedule, end: u64) -> Vec<Slot> {
        let mut slots = Vec::new();
        while schedule.peek().due < end {
            slots.push(schedule.peek());
            schedule.advance();
        }
        slots
    }

    #[test]
    fn a_million_seconds_later_it_is_still_exact() {
        let seat = Seat { shard: 0, shards: 1, worker: 0, workers: 1 };
        let mut schedule = Schedule::new(seat, 3, 0, 0);
        (0..3_000_000).for_each(|_| schedule.advance());
        assert_eq!(schedule.peek(), Slot { k: 3_000_000, due: 1_000_000 * SECOND });
    }

    proptest! {
        #[test]
        fn shares_are_of_consecutive_requests(first in 0u64..100, count in 0u64..300, workers in 1u32..9) {
            for worker in 0..workers {
                let seat = Seat { shard: 0, shards: 1, worker, workers };
                let own = (first..first + count).filter(|j| j % u64::from(workers) == u64::from(worker));
                prop_assert_eq!(seat.share(first, count), own.count() as u64);
            }
        }

        #[test]
        fn shards_and_workers_together_are_one(
            rate in 1u64..3_000_000, shards in 1u32..5, workers in 1u32..5, start in 0u64..1 << 50,
        ) {
            let end = start + SECOND * 300 / rate;
            let mut together: Vec<Slot> = (0..shards)
                .flat_map(|shard| (0..workers).map(move |worker| Seat { shard, shards, worker, workers }))
                .flat_map(|seat| slots(Schedule::new(seat, rate, 0, start), end))
                .collect();
            together.sort_by_key(|slot| slot.k);
            let alone = Schedule::new(Seat { shard: 0, shards: 1, worker: 0, workers: 1 }, rate, 0, start);
            prop_assert_eq!(together, slots(alone.clone(), end));
            prop_assert_eq!(alone.peek().due, start);
            for slot in slots(alone, end) {
                prop_assert_eq!(slot.due - start, (u128::from(slot.k) * u128::from(SECOND) / u128::from(rate)) as u64);
            }
        }

        #[test]
        fn counting_is_walking(
            rate in 1u64..3_000_000, grid in prop_oneof![Just(0u64), 1u64..2_000_000], shard in 0u32..3, worker in 0u32..3,
            slots_ahead in 0u64..100, skipped in 0usize..20, nudge in 0u64..1000,
        ) {
            let seat = Seat { shard, shards: 3, worker, workers: 3 };
            let mut schedule = Schedule::new(seat, rate, grid, 1000);
            (0..skipped).for_each(|_| schedule.advance());
            let end = 1000 + slots_ahead * SECOND / rate + nudge;
            prop_assert_eq!(schedule.due_before(end), slots(schedule.clone(), end).len() as u64);
        }

        #[test]
        fn the_grid_rounds_up_and_by_less_than_its_width(
            rate in 1u64..3_000_000, grid in 1u64..2_000_000, worker in 0u32..4, steps in 0usize..100,
        ) {
            let seat = Seat { shard: 1, shards: 2, worker, workers: 4 };
            let mut exact = Schedule::new(seat, rate, 0, 0);
            let mut paced = Schedule::new(seat, rate, grid, 0);
            for _ in 0..steps {
                exact.advance();
                paced.advance();
            }
            let late = paced.peek().due - exact.peek().due;
            prop_assert!(late < grid);
            prop_assert_eq!(paced.peek().due % grid, paced.grid_offset);
        }
    }
}

//! Arrivals from independent callers: each worker has a Poisson process with its share of the rate. Together they are a Poisson process
//! of the whole rate.

use std::cell::Cell;

use redisbench_wire::rate::CumulativeRate;

use super::exponential::exponential;
use super::seat::Seat;
use crate::workload::rng::{ARRIVALS, RandomStream};

/// A process of rate 1 whose point x is due at L^-1(x * N * W): its share of the benchmark's rate, including ramps. The gap before
/// request k is a function of the seed and k, and the sum of the gaps is an integer.
#[derive(Clone, Debug)]
pub(super) struct Poisson {
    rate: CumulativeRate,
    gaps: RandomStream,
    step: u64,
    present: Point,
    /// Counts of slots beyond the current one: the first point not yet passed, and the time up to which slots were passed. It avoids
    /// walking the whole backlog again for each snapshot. Two entries, because a snapshot asks for two times: now, and the end of the
    /// warm-up.
    ahead: Cell<[(Point, u64); 2]>,
    /// The number of slots that were walked to count a backlog.
    #[cfg(test)]
    walked: Cell<u64>,
}

/// A request's place in the process of rate 1.
#[derive(Clone, Copy, Debug)]
struct Point {
    k: u64,
    /// The sum of the gaps, in units of 2^-40.
    position: u128,
}

impl Poisson {
    pub(super) fn new(seat: Seat, rate: CumulativeRate, seed: u64) -> Self {
        let gaps = RandomStream::new(seed, ARRIVALS);
        let first = Point { k: seat.first(), position: exponential(gaps.at(seat.first())).into() };
        Self {
            rate,
            gaps,
            step: seat.step(),
            present: first,
            ahead: Cell::new([(first, 0); 2]),
            #[cfg(test)]
            walked: Cell::default(),
        }
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.present = self.after(self.present);
    }

    /// The due time of the current request, in nanoseconds after the start.
    #[inline]
    pub(super) fn time(&self) -> u64 {
        self.time_of(self.present)
    }

    /// The number of slots from the current one on that are due at or before `latest`.
    pub(super) fn slots_until(&self, latest: u64) -> u64 {
        let mut ahead = self.ahead.get();
        ahead.sort_unstable_by_key(|(point, _)| point.k);
        let known = ahead.iter().rposition(|(point, until)| point.k >= self.present.k && *until <= latest);
        let mut point = known.map_or(self.present, |known| ahead[known].0);
        while self.time_of(point) <= latest {
            point = self.after(point);
            #[cfg(test)]
            self.walked.update(|walked| walked + 1);
        }
        ahead[known.unwrap_or(0)] = (point, latest);
        self.ahead.set(ahead);
        (point.k - self.present.k) / self.step
    }

    #[inline]
    fn after(&self, point: Point) -> Point {
        let k = point.k + self.step;
        Point { k, position: point.position + u128::from(exponential(self.gaps.at(k))) }
    }

    #[inline]
    fn time_of(&self, point: Point) -> u64 {
        self.rate.inverse(point.position.saturating_mul(self.step.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_walked_once_by_both_who_ask_for_it() {
        const SECOND: u64 = 1_000_000_000;
        let seat = Seat { shard: 0, shards: 1, worker: 0, workers: 1 };
        let poisson = Poisson::new(seat, CumulativeRate::new(1_000, 0, &[]), 7);
        let warmup = poisson.slots_until(3 * SECOND);
        let mut all = warmup;
        for second in 4..9 {
            all = poisson.slots_until(second * SECOND);
            assert_eq!(poisson.slots_until(3 * SECOND), warmup);
            assert_eq!(
                poisson.walked.get(),
                all + warmup,
                "the warm-up's twice, every other once, until second {second}"
            );
        }
        let anew = Poisson::new(seat, CumulativeRate::new(1_000, 0, &[]), 7);
        assert_eq!((anew.slots_until(8 * SECOND), anew.slots_until(3 * SECOND)), (all, warmup));
    }
}

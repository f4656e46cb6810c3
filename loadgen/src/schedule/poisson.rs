//! Requests as independent callers make them: a Poisson process for each worker, of its part of the rate. All workers'
//! together are one of the whole rate.

use std::cell::Cell;

use redisbench_wire::rate::CumulativeRate;

use super::Seat;
use super::exponential::exponential;
use crate::workload::rng::{ARRIVALS, Stream};

/// A process of rate 1 whose point x comes at L^-1(x * N * W): its share of the benchmark's rate, ramps and all. The
/// gap before request k is a function of the seed and k, and their sum is kept in whole numbers.
#[derive(Clone, Debug)]
pub(super) struct Poisson {
    rate: CumulativeRate,
    gaps: Stream,
    step: u64,
    present: Point,
    /// As far as slots were counted ahead of the present one, so that a backlog is walked through once, not with every
    /// snapshot: the first point that was not passed, and the time until which they were.
    ahead: Cell<(Point, u64)>,
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
        let gaps = Stream::new(seed, ARRIVALS);
        let first = Point { k: seat.first(), position: exponential(gaps.at(seat.first())).into() };
        Self { rate, gaps, step: seat.step(), present: first, ahead: Cell::new((first, 0)) }
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.present = self.after(self.present);
    }

    /// When the present request is due after the start.
    #[inline]
    pub(super) fn time(&self) -> u64 {
        self.time_of(self.present)
    }

    /// How many slots from the present one on are due at `latest` or before.
    pub(super) fn slots_until(&self, latest: u64) -> u64 {
        let (mut point, until) = self.ahead.get();
        if point.k < self.present.k || latest < until {
            point = self.present;
        }
        while self.time_of(point) <= latest {
            point = self.after(point);
        }
        self.ahead.set((point, latest));
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

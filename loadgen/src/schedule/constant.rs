//! A constant rate, without a division per request.

use super::seat::Seat;

const SECOND: u64 = 1_000_000_000;

/// Request k is due `k / rate` after the start, rounded down to a nanosecond.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    rate: u64,
    /// Nanoseconds between consecutive requests of the worker, and the remainder over `rate`.
    step: (u64, u64),
    /// Nanoseconds from the start to the current request, and the remainder over `rate`.
    time: (u64, u64),
}

impl Constant {
    pub(super) fn new(seat: Seat, rate: u64) -> Self {
        Self { rate, step: divide(seat.step(), rate), time: divide(seat.first(), rate) }
    }

    #[inline]
    pub(super) fn time(&self) -> u64 {
        self.time.0
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.time.0 += self.step.0;
        self.time.1 += self.step.1;
        if self.time.1 >= self.rate {
            self.time.1 -= self.rate;
            self.time.0 += 1;
        }
    }

    /// The number of requests of the benchmark that are due at or before `latest`.
    pub(super) fn count_until(&self, latest: u64) -> u64 {
        // k*SECOND/rate <= latest, rounded down, is k*SECOND < (latest + 1)*rate.
        let below = (u128::from(latest) + 1) * u128::from(self.rate);
        below.div_ceil(u128::from(SECOND)) as u64
    }
}

/// `k` seconds over `rate`: whole nanoseconds, and the remainder.
fn divide(k: u64, rate: u64) -> (u64, u64) {
    let time = u128::from(k) * u128::from(SECOND);
    ((time / u128::from(rate)) as u64, (time % u128::from(rate)) as u64)
}

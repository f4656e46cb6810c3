//! Zipf's distribution: the probability of the key of rank r, from 1, is proportional to r^-exponent.
//!
//! By rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
//! ACM Transactions on Modeling and Computer Simulation 6 (1996), 169-184. It needs no table of the keys and no sum over them, supports
//! every exponent, and accepts most numbers at the first try. The functions of `libm` use only operations that every processor rounds alike.

use super::unit::{TRIES, unit};
use crate::workload::rng::RandomStream;

#[derive(Clone, Debug)]
pub(super) struct Zipf {
    count: f64,
    exponent: f64,
    /// The bounds of the integral's value that numbers are drawn between.
    from: f64,
    to: f64,
    /// Numbers at most this far below a rank are always accepted.
    near: f64,
}

impl Zipf {
    pub(super) fn new(count: u64, exponent: f64) -> Self {
        let mut zipf = Self { count: count as f64, exponent, from: 0.0, to: 0.0, near: 0.0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(zipf.count + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    pub(super) fn draw(&self, own: RandomStream) -> u64 {
        for number in 0..TRIES {
            let drawn = self.to + unit(own.at(number)) * (self.from - self.to);
            let x = self.inverse(drawn);
            // Rounding may miss the range of ranks by one half.
            let rank = (x + 0.5).floor().clamp(1.0, self.count);
            if rank - x <= self.near || drawn >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
        0
    }

    /// x^-exponent.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// The integral of the density from 1 to x: (x^(1 - exponent) - 1)/(1 - exponent), and ln x for exponent 1.
    fn integral(&self, x: f64) -> f64 {
        let logarithm = libm::log(x);
        quotient(libm::expm1, (1.0 - self.exponent) * logarithm) * logarithm
    }

    /// The x at which the integral is `area`.
    fn inverse(&self, area: f64) -> f64 {
        // Rounding may lead below -1, where the inverse is undefined.
        let t = (area * (1.0 - self.exponent)).max(-1.0);
        if t <= -1.0 { f64::INFINITY } else { libm::exp(quotient(libm::log1p, t) * area) }
    }
}

/// `function(x) / x`, and its limit of 1 at 0.
fn quotient(function: fn(f64) -> f64, x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { function(x) / x }
}

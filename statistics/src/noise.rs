//! Noise for simulated trials: normal, and correlated from one trial to the next.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};

/// A first-order autoregressive process of normal numbers.
pub struct Noise {
    random: Xoshiro256PlusPlus,
    coefficient: f64,
    last: f64,
}

impl Noise {
    /// With a standard deviation of 1, and `coefficient` as correlation of neighbours.
    pub fn new(seed: u64, coefficient: f64) -> Self {
        let mut noise = Self { random: Xoshiro256PlusPlus::seed_from_u64(seed), coefficient, last: 0.0 };
        noise.last = noise.normal();
        noise
    }

    /// Independent of all previous numbers, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let (radius, angle): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Uniformly distributed from 0 to 1.
    pub fn even(&mut self) -> f64 {
        self.random.random()
    }

    /// The next number of the process.
    pub fn next(&mut self) -> f64 {
        let fresh = (1.0 - self.coefficient.powi(2)).sqrt();
        let now = self.last;
        self.last = self.coefficient * now + fresh * self.normal();
        now
    }
}

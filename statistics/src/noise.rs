//! Noise for simulated trials: normal, and alike from one trial to the next.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};

/// Normally distributed numbers of an autoregressive process of order 1.
pub struct Noise {
    random: Xoshiro256PlusPlus,
    coefficient: f64,
    last: f64,
}

impl Noise {
    /// Of standard deviation 1; neighbours correlate by `coefficient`.
    pub fn new(seed: u64, coefficient: f64) -> Self {
        let mut noise = Self { random: Xoshiro256PlusPlus::seed_from_u64(seed), coefficient, last: 0.0 };
        noise.last = noise.normal();
        noise
    }

    /// Independent of everything before, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let (radius, angle): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Evenly distributed from 0 to 1.
    pub fn even(&mut self) -> f64 {
        self.random.random()
    }

    /// The next of the process.
    pub fn next(&mut self) -> f64 {
        let fresh = (1.0 - self.coefficient.powi(2)).sqrt();
        let now = self.last;
        self.last = self.coefficient * now + fresh * self.normal();
        now
    }
}

//! A search in the simulated world, and the capacity of its target.

use std::ops::RangeInclusive;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

/// The limit of the median response time. Steps beyond the capacity exceed it.
const MOST_MILLISECONDS: u64 = 20;

/// The additional response time beyond the capacity, in nanoseconds.
pub const OVERLOAD: u64 = 50_000_000;

/// A search and the capacity of its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    min: u64,
    max: u64,
    tolerance_basis_points: u32,
    /// The highest rate that the target sustains, and its relative variation between trials.
    capacity: f64,
    noise: f64,
    seed: u64,
}

impl Search {
    pub fn draw(rng: &mut StdRng) -> Self {
        let min = 100 * rng.random_range(1..=3);
        let max = min * rng.random_range(1..=3);
        let capacity = rng.random_range(0.8 * min as f64..=1.2 * max as f64);
        let noise = [0.0, 0.02, 0.1][rng.random_range(0..3)];
        Self { min, max, tolerance_basis_points: 2_000, capacity, noise, seed: rng.random() }
    }

    pub fn spec(&self) -> Value {
        json!({
            "objective": {"quantile": "0.5", "max": format!("{MOST_MILLISECONDS}ms")},
            "rate": {"min": self.min, "max": self.max, "toleranceBasisPoints": self.tolerance_basis_points},
        })
    }

    /// Returns whether the target sustains `rate` in a trial.
    pub fn holds(&self, trial: u32, rate: u64) -> bool {
        let mut rng = StdRng::seed_from_u64(self.seed ^ u64::from(trial).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rate as f64 <= self.capacity * (1.0 + rng.random_range(-1.0..=1.0) * self.noise)
    }

    /// The rates between which the capacity varies.
    pub fn capacities(&self) -> RangeInclusive<f64> {
        self.capacity * (1.0 - self.noise)..=self.capacity * (1.0 + self.noise)
    }

    /// Returns whether `rate` is a capacity of the target, within the tolerance.
    pub fn is_near(&self, rate: u64) -> bool {
        let (rate, range) = (rate as f64, self.capacities());
        rate <= *range.end() && rate >= range.start() * (1.0 - f64::from(self.tolerance_basis_points) / 1e4)
    }
}

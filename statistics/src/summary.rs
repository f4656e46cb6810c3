//! One metric over repeats of the same trial.

use crate::student::{Confidence, critical};

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Such as throughput.
    HigherIsBetter,
    /// Such as latency.
    LowerIsBetter,
}

/// An interval that includes both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub lower: f64,
    pub upper: f64,
}

impl Interval {
    pub fn contains(&self, value: f64) -> bool {
        self.lower <= value && value <= self.upper
    }

    /// Returns whether all of it lies in `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        other.lower <= self.lower && self.upper <= other.upper
    }
}

/// The summary of a metric over repeats, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of repeats.
    pub count: usize,
    pub mean: f64,
    /// The middle value. For an even count, the mean of the two in the middle.
    pub median: f64,
    /// The sample standard deviation, with n - 1 in the denominator. None for fewer than 2 repeats, like the interval.
    pub standard_deviation: Option<f64>,
    /// The confidence interval of the mean by Student's t. Assumes independent repeats.
    pub interval: Option<Interval>,
    /// The index of the best repeat. Of equals, the first.
    pub best: usize,
    /// The index of the worst repeat. Of equals, the first.
    pub worst: usize,
}

/// Summarizes the values of one metric. None if there are none, or if one is not finite.
pub fn summarize(values: &[f64], direction: Direction, confidence: Confidence) -> Option<Summary> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let highest = extreme(values, |value, so_far| value > so_far);
    let lowest = extreme(values, |value, so_far| value < so_far);
    let (best, worst) = match direction {
        Direction::HigherIsBetter => (highest, lowest),
        Direction::LowerIsBetter => (lowest, highest),
    };
    let mean = mean(values);
    let spread = standard_deviation(values);
    let interval = spread.map(|deviation| {
        let count = values.len() as f64;
        let half = critical(count - 1.0, confidence) * deviation / count.sqrt();
        Interval { lower: mean - half, upper: mean + half }
    });
    Some(Summary {
        count: values.len(),
        mean,
        median: median(values),
        standard_deviation: spread,
        interval,
        best,
        worst,
    })
}

/// The arithmetic mean; 0 if empty.
pub fn mean(values: &[f64]) -> f64 {
    // Sums differences from one of the values, because a sum of large values loses digits.
    let Some(&origin) = values.first() else { return 0.0 };
    origin + values.iter().map(|value| value - origin).sum::<f64>() / values.len() as f64
}

/// The middle value; 0 if empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        None => 0.0,
        Some(upper) if sorted.len().is_multiple_of(2) => f64::midpoint(sorted[middle - 1], *upper),
        Some(value) => *value,
    }
}

/// The sample standard deviation, with n - 1 in the denominator. None for fewer than 2 values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The index of the first value that no other beats.
fn extreme(values: &[f64], beats: impl Fn(f64, f64) -> bool) -> usize {
    let mut found = 0;
    for (index, &value) in values.iter().enumerate() {
        if beats(value, values[found]) {
            found = index;
        }
    }
    found
}

#[cfg(test)]
pub(crate) mod tests;

//! Student's t distribution, and confidence levels.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

const WHOLE: u32 = 10_000;

/// The share of intervals of this kind that contain the true value: above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    pub const USUAL: Self = Self(0.95);

    /// From hundredths of a per cent, such as 9500. None if it is not between 0 and 10000, both excluded.
    pub fn of_basis_points(basis_points: u32) -> Option<Self> {
        (0 < basis_points && basis_points < WHOLE).then(|| Self(f64::from(basis_points) / f64::from(WHOLE)))
    }

    /// The share of cases in which such an interval may miss.
    pub fn error(self) -> f64 {
        1.0 - self.0
    }

    /// The share of cases in which such an interval holds.
    pub fn share(self) -> f64 {
        self.0
    }

    /// The confidence that each of `tests` intervals needs for all of them to hold together with this one (Bonferroni).
    #[must_use]
    pub fn shared_by(self, tests: usize) -> Self {
        Self(1.0 - self.error() / tests.max(1) as f64)
    }
}

/// The quantile `probability` of Student's t with `degrees` of freedom. Infinite without degrees of freedom, or for a probability outside
/// of 0 to 1, so that the interval excludes nothing.
pub fn quantile(degrees: f64, probability: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(student) if probability > 0.0 && probability < 1.0 => student.inverse_cdf(probability),
        _ => f64::INFINITY,
    }
}

/// The half-width of an interval of this confidence, in standard errors.
pub fn critical(degrees: f64, confidence: Confidence) -> f64 {
    quantile(degrees, 1.0 - confidence.error() / 2.0)
}

/// The probability of a t at least as far from 0 by chance. 1 if it is undefined.
pub fn two_sided(degrees: f64, t: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(_) if t.is_infinite() => 0.0,
        Ok(student) if !t.is_nan() => (2.0 * student.sf(t.abs())).min(1.0),
        _ => 1.0,
    }
}

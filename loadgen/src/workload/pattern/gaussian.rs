//! The normal distribution, truncated at the first and the last key, as memtier draws it.

use super::unit::{TRIES, unit};
use crate::workload::rng::RandomStream;

#[derive(Clone, Debug)]
pub(super) struct Gaussian {
    count: f64,
    mean: f64,
    deviation: f64,
}

impl Gaussian {
    pub(super) fn new(count: u64, mean: u64, deviation: u64) -> Self {
        // Keys are integers and the distribution is continuous: key i covers i to i + 1.
        Self { count: count as f64, mean: mean as f64 + 0.5, deviation: deviation as f64 }
    }

    pub(super) fn draw(&self, own: RandomStream) -> u64 {
        let drawn = (0..TRIES).map(|number| self.mean + self.deviation * quantile(unit(own.at(number))));
        let inside = drawn.map(f64::floor).find(|key| *key >= 0.0 && *key < self.count);
        inside.unwrap_or(self.mean) as u64
    }
}

/// The quantile of the standard normal distribution, to 16 digits: M. J. Wichura, "Algorithm AS 241: the percentage points of the normal
/// distribution", Applied Statistics 37 (1988), 477-484.
fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE);
    }
    // The square root is one of the operations that every processor rounds alike.
    let r = (-libm::log(if q < 0.0 { p } else { 1.0 - p })).sqrt();
    let z = if r <= 5.0 { ratio(r - 1.6, &MIDDLE) } else { ratio(r - 5.0, &TAIL) };
    if q < 0.0 { -z } else { z }
}

/// A quotient of two polynomials. Each row holds the coefficients from the constant term up, the numerator first.
fn ratio(r: f64, constants: &[[f64; 8]; 2]) -> f64 {
    let [numerator, denominator] = constants.map(|row| row.into_iter().rev().fold(0.0, |sum, c| sum * r + c));
    numerator / denominator
}

#[allow(clippy::excessive_precision, clippy::unreadable_literal, reason = "as they were published")]
const CENTRE: [[f64; 8]; 2] = [
    [
        3.3871328727963666080e0,
        1.3314166789178437745e+2,
        1.9715909503065514427e+3,
        1.3731693765509461125e+4,
        4.5921953931549871457e+4,
        6.7265770927008700853e+4,
        3.3430575583588128105e+4,
        2.5090809287301226727e+3,
    ],
    [
        1.0,
        4.2313330701600911252e+1,
        6.8718700749205790830e+2,
        5.3941960214247511077e+3,
        2.1213794301586595867e+4,
        3.9307895800092710610e+4,
        2.8729085735721942674e+4,
        5.2264952788528545610e+3,
    ],
];

#[allow(clippy::excessive_precision, clippy::unreadable_literal, reason = "as they were published")]
const MIDDLE: [[f64; 8]; 2] = [
    [
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ],
    [
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ],
];

#[allow(clippy::excessive_precision, clippy::unreadable_literal, reason = "as they were published")]
const TAIL: [[f64; 8]; 2] = [
    [
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ],
    [
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // To twelve digits, from other implementations.
        let known = [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_082),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_814),
            (1e-9, -5.997_807_015_007_686),
            (1e-15, -7.941_345_326_170_997),
        ];
        for (p, expected) in known {
            assert!((quantile(p) - expected).abs() < 1e-12, "{p}: {}", quantile(p));
        }
    }
}

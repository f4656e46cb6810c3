//! Confidence intervals of a share: of how many independent cases something is true.

use statrs::distribution::{Beta, ContinuousCDF as _};

use crate::student::Confidence;
use crate::summary::Interval;

/// The exact interval of the true share, if something holds in `part` of `whole` cases (Clopper and Pearson 1934). It contains the true
/// share at least as often as `confidence` says, however small the counts.
pub fn exact(part: u64, whole: u64, confidence: Confidence) -> Interval {
    let tail = confidence.error() / 2.0;
    let (with, without) = (part.min(whole) as f64, whole.saturating_sub(part) as f64);
    // Undefined where no case, or every case, has it: the interval then reaches to that end.
    let quantile = |a: f64, b: f64, probability: f64| Beta::new(a, b).ok().map(|beta| beta.inverse_cdf(probability));
    Interval {
        lower: quantile(with, without + 1.0, tail).unwrap_or(0.0),
        upper: quantile(with + 1.0, without, 1.0 - tail).unwrap_or(1.0),
    }
}

/// The most of `whole` cases that do not contradict a true share of at most `share`. With one more, the whole interval lies above it.
pub fn most(whole: u64, share: f64, confidence: Confidence) -> u64 {
    (0..=whole).take_while(|&part| exact(part, whole, confidence).lower <= share).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the sums of binomial probabilities, in Python.
    const KNOWN: [(u64, u64, f64, f64); 6] = [
        (0, 10, 0.0, 0.308_497),
        (10, 10, 0.691_503, 1.0),
        (8, 10, 0.443_905, 0.974_789),
        (1, 3, 0.008_404, 0.905_701),
        (10, 200, 0.024_234, 0.090_028),
        (17, 200, 0.050_296, 0.132_605),
    ];

    #[test]
    fn intervals_are_those_of_binomial_sums() {
        for (part, whole, lower, upper) in KNOWN {
            let found = exact(part, whole, Confidence::USUAL);
            let off = (found.lower - lower).abs().max((found.upper - upper).abs());
            assert!(off < 2e-6, "{part} of {whole}: {found:?}");
        }
    }

    #[test]
    fn nothing_is_known_of_no_case() {
        assert_eq!(exact(0, 0, Confidence::USUAL), Interval { lower: 0.0, upper: 1.0 });
        assert_eq!(most(0, 0.05, Confidence::USUAL), 0);
    }

    #[test]
    fn one_more_than_the_most_contradicts_the_share() {
        assert_eq!(most(200, 0.05, Confidence::USUAL), 16);
        assert_eq!(most(4, 1.0, Confidence::USUAL), 4);
    }
}

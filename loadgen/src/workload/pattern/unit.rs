//! The random numbers that ranks are drawn by.

/// After this many rejected numbers, the most likely key is taken: at most once in 10^11 requests.
pub(super) const TRIES: u64 = 64;

/// 53 random bits as a number between 0 and 1, both exclusive.
pub(super) fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

//! Confidence intervals of quantiles: an interval between two values of the sample, by rank.
//!
//! The number of values up to the source's quantile q is binomial, with parameters n and q, for any distribution. So the source's quantile
//! lies between the values of ranks l and u with the probability that at least l and fewer than u values are up to it (Conover, Practical
//! Nonparametric Statistics, 3rd ed. 1999, section 3.2). Values are assumed to be independent.

/// The error probability of each end, so 5 % for both.
const TAIL: f64 = 0.025;
/// The standard normal distribution exceeds this with probability [`TAIL`].
const NORMAL: f64 = 1.959_963_984_540_054;
/// Up to this number of values expected beyond the quantile, on the nearer side, the distribution is summed exactly. Above it, the normal
/// approximation is off by less than one rank.
const SUMMED: f64 = 500.0;
const WHOLE: f64 = 1e6;

/// Ranks, from 1, of the two values between which the source's quantile lies with a confidence of at least 95 %. None if `count` is too
/// small. The quantile is in millionths.
pub fn interval(count: u64, millionths: u32) -> Option<(u64, u64)> {
    let share = f64::from(millionths) / WHOLE;
    let (nearer, is_upper) = if share > 0.5 { (1.0 - share, true) } else { (share, false) };
    if nearer <= 0.0 {
        return None;
    }
    let expected = count as f64 * nearer;
    let (few, many) = if expected <= SUMMED { summed(count, nearer)? } else { approximated(count, nearer) };
    // The probability that `few` or fewer lie beyond the quantile, and that more than `many` do, is at most `TAIL` each.
    let (low, high) = if is_upper {
        (count.checked_sub(many)?, count.checked_sub(few)?)
    } else {
        (few.checked_add(1)?, many.checked_add(1)?)
    };
    (1 <= low && high <= count).then_some((low, high))
}

/// The largest k with P(K <= k) <= tail, and the smallest with P(K > k) <= tail, for K binomial.
fn summed(count: u64, share: f64) -> Option<(u64, u64)> {
    // At most 500 are expected, for shares of at most a half: no less than e^-694.
    let mut probability = (count as f64 * (-share).ln_1p()).exp();
    let mut sum = 0.0;
    let mut few = None;
    for k in 0..count {
        sum += probability;
        if sum <= TAIL {
            few = Some(k);
        }
        if 1.0 - sum <= TAIL {
            return Some((few?, k));
        }
        probability *= (count - k) as f64 / (k + 1) as f64 * share / (1.0 - share);
    }
    None
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive: far more are expected than deviate"
)]
fn approximated(count: u64, share: f64) -> (u64, u64) {
    let expected = count as f64 * share;
    let away = NORMAL * (expected * (1.0 - share)).sqrt();
    // Continuity correction by a half. The upper tail is the longer one, so it is rounded outwards.
    ((expected - away - 0.5).floor() as u64, (expected + away).ceil() as u64)
}

#[cfg(test)]
mod tests;

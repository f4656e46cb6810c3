//! How far a quantile of a sample may be from that of the source: the interval between two values of the sample, by rank.
//!
//! The number of values up to the source's quantile q is binomial, of n and q, whatever the distribution is. So the source's
//! quantile lies between the values of ranks l and u with the probability that l values or more, and fewer than u, are up to it
//! (Conover, Practical Nonparametric Statistics, 3rd ed. 1999, section 3.2). Values are taken as independent of each other.

/// Each end errs with at most this probability, so both with 5 %.
const TAIL: f64 = 0.025;
/// The standard normal distribution exceeds this with probability [`TAIL`].
const NORMAL: f64 = 1.959_963_984_540_054;
/// Up to this many values expected beyond the quantile, on its nearer side, the distribution is summed up exactly. Above it the
/// normal approximation is off by less than a rank.
const SUMMED: f64 = 500.0;
const WHOLE: f64 = 1e6;

/// Ranks, from 1, of the two values between which the source's quantile lies with 95 % confidence or more. None if `count`
/// values are too few for that. The quantile is given in millionths.
pub fn interval(count: u64, millionths: u32) -> Option<(u64, u64)> {
    let share = f64::from(millionths) / WHOLE;
    let (nearer, is_upper) = if share > 0.5 { (1.0 - share, true) } else { (share, false) };
    if nearer <= 0.0 {
        return None;
    }
    let expected = count as f64 * nearer;
    let (few, many) = if expected <= SUMMED { summed(count, nearer)? } else { approximated(count, nearer) };
    // `few` or fewer, and more than `many`, lie beyond the quantile with a probability of at most `TAIL` each.
    let (low, high) = if is_upper {
        (count.checked_sub(many)?, count.checked_sub(few)?)
    } else {
        (few.checked_add(1)?, many.checked_add(1)?)
    };
    (1 <= low && high <= count).then_some((low, high))
}

/// The most k with P(K <= k) <= tail, and the least with P(K > k) <= tail, of K binomial.
fn summed(count: u64, share: f64) -> Option<(u64, u64)> {
    // At most 500 are expected, of shares up to a half: no less than e^-694.
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
    // A whole number reaches half way to the next one. The upper tail is the longer one, so it is rounded outwards.
    ((expected - away - 0.5).floor() as u64, (expected + away).ceil() as u64)
}

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;

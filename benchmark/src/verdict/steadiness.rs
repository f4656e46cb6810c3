//! Whether the throughput was the same from the beginning to the end. Pure arithmetic over the ten parts of the window.

use redisbench_wire::plan::{Arrival, Load};

use super::reason;
use super::thresholds::{DRIFT, PAUSE, PAUSE_RATE, TREND};
use crate::api::Validated;
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::merge::Merged;
use crate::people;

/// A rate that changes by the plan, or by chance, is none of the target's doing. A window that is too short says nothing.
pub(super) fn unsteady(spec: &Validated, merged: &Merged) -> Option<VerdictReason> {
    let closed = match &spec.load {
        Load::ClosedLoop => true,
        Load::OpenLoop { stages, arrival, .. } if stages.is_empty() && *arrival == Arrival::Constant => false,
        Load::OpenLoop { .. } => return None,
    };
    let parts = &merged.tenths;
    let message = drift(parts).or_else(|| if closed { pause(parts) } else { None })?;
    Some(reason(ReasonKind::Unsteady, VerdictValue::Degraded, &message))
}

/// The test of Mann and Kendall for a trend, and the line of Theil and Sen for its size.
fn drift(parts: &[u64]) -> Option<String> {
    let middle = median(parts.iter().map(|part| i128::from(*part)).collect())?;
    let pairs = || (0..parts.len()).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    let difference = |(earlier, later): (usize, usize)| i128::from(parts[later]) - i128::from(parts[earlier]);
    let trend: i128 = pairs().map(|pair| difference(pair).signum()).sum();
    if trend.abs() < i128::from(TREND) {
        return None;
    }
    // In thousandths per part, so that nothing is lost by rounding.
    let slopes = pairs().map(|(earlier, later)| difference((earlier, later)) * 1_000 / (later - earlier) as i128);
    let change = median(slopes.collect())? * (parts.len() as i128 - 1) / 1_000;
    if change.abs() * 100 <= middle * i128::from(DRIFT) {
        return None;
    }
    let (first, last) = (parts.first()?, parts.last()?);
    Some(format!(
        "the throughput went from {} in the first tenth of the measurement to {} in the last, and did not settle: a cache that \
         fills, a server that slows down; measure for longer, after a longer load.warmup",
        people::rate(*first),
        people::rate(*last)
    ))
}

fn pause(parts: &[u64]) -> Option<String> {
    let middle = u64::try_from(median(parts.iter().map(|part| i128::from(*part)).collect())?).ok()?;
    let (at, least) = parts.iter().enumerate().min_by_key(|(_, part)| **part)?;
    if middle < PAUSE_RATE || u128::from(*least) * 100 >= u128::from(middle) * u128::from(PAUSE) {
        return None;
    }
    Some(format!(
        "the throughput was {} in tenth {} of the measurement, where half of the tenths had {} or more: a closed loop makes \
         fewer requests while the target pauses, and its latencies do not show it",
        people::rate(*least),
        at + 1,
        people::rate(middle)
    ))
}

fn median(mut numbers: Vec<i128>) -> Option<i128> {
    numbers.sort_unstable();
    let (low, high) = (numbers.get(numbers.len().checked_sub(1)? / 2)?, numbers.get(numbers.len() / 2)?);
    Some((low + high) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_found_and_noise_is_not() {
        let rising: Vec<u64> = (0..10).map(|part| 1_000 + 30 * part).collect();
        assert!(drift(&rising).unwrap().contains("1.00k/s"), "{:?}", drift(&rising));
        // The same trend, and not worth a word.
        let slightly: Vec<u64> = (0..10).map(|part| 1_000 + 10 * part).collect();
        assert_eq!(drift(&slightly), None);
        let falling: Vec<u64> = rising.iter().rev().copied().collect();
        assert!(drift(&falling).is_some());
        assert_eq!(drift(&[1_000, 1_300, 900, 1_250, 1_100, 950, 1_280, 1_010, 1_190, 1_060]), None);
        assert_eq!(drift(&[]), None);
        assert_eq!(drift(&[0; 10]), None);
    }

    #[test]
    fn what_a_pause_would_hide_is_told() {
        let mut parts = [1_000; 10];
        parts[4] = 499;
        assert!(pause(&parts).unwrap().contains("tenth 5"));
        parts[4] = 501;
        assert_eq!(pause(&parts), None);
    }

    /// By chance a steady series has a trend of this strength in fewer than one of 200, whatever its noise.
    #[test]
    fn the_trend_of_noise_is_as_rare_as_the_table_says() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1_000 + (state >> 33) % 1_000
        };
        let found = (0..20_000).filter(|_| drift(&(0..10).map(|_| random()).collect::<Vec<_>>()).is_some()).count();
        assert!(found < 100, "{found} of 20000");
    }
}

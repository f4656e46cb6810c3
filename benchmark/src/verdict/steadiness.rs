//! Whether the throughput was the same from the beginning to the end. Pure arithmetic over the ten parts of the window.

use redisbench_statistics::steady;
use redisbench_wire::plan::{Arrival, Load};

use super::reason;
use super::thresholds::{PAUSE, PAUSE_RATE, STEADY};
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::api::{GoDuration, Validated};
use crate::merge::Merged;
use crate::people;

/// What was measured may not be what it would have come to: the longest warm-up was over before.
pub(super) fn not_settled(spec: &Validated, merged: &Merged) -> Option<VerdictReason> {
    if !spec.settle || u128::from(merged.topology.measured_from) < spec.warmup.as_nanos() {
        return None;
    }
    let message = format!(
        "the throughput had not settled when the longest warm-up of {} was over, and the measurement began all the same: \
         raise load.warmup",
        GoDuration::from(spec.warmup)
    );
    Some(reason(ReasonKind::Unsteady, VerdictValue::Degraded, &message))
}

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

fn drift(parts: &[u64]) -> Option<String> {
    let numbers: Vec<f64> = parts.iter().map(|part| *part as f64).collect();
    steady::drift(&numbers, &STEADY)?;
    let (first, last) = (parts.first()?, parts.last()?);
    Some(format!(
        "the throughput went from {} in the first tenth of the measurement to {} in the last, and did not settle: a cache that \
         fills, a server that slows down; measure for longer, after a longer load.warmup",
        people::rate(*first),
        people::rate(*last)
    ))
}

fn pause(parts: &[u64]) -> Option<String> {
    let mut sorted = parts.to_vec();
    sorted.sort_unstable();
    let middle = *sorted.get(parts.len() / 2)?;
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
}

//! Whether the throughput was the same from the beginning to the end. Pure arithmetic over the ten parts of the window.

use std::time::Duration;

use redisbench_statistics::steady;
use redisbench_wire::plan::{Arrival, Load};

use super::reason;
use super::thresholds::{PAUSE, PAUSE_RATE, STANDSTILL, STANDSTILL_LEAST, STANDSTILL_SHORTEST, STEADY};
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::api::{GoDuration, Validated};
use crate::conductor::Outcome;
use crate::merge::{Merged, completions};
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
pub(super) fn unsteady(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let closed = match &spec.load {
        Load::ClosedLoop => true,
        Load::OpenLoop { stages, arrival, .. } if stages.is_empty() && *arrival == Arrival::Constant => false,
        Load::OpenLoop { .. } => return None,
    };
    let parts = &merged.tenths;
    let paused = || {
        let (interval, points) = completions(outcome);
        standstill(interval, &points).or_else(|| pause(parts))
    };
    let message = drift(parts).or_else(|| if closed { paused() } else { None })?;
    Some(reason(ReasonKind::Unsteady, VerdictValue::Degraded, &message))
}

/// The longest time in which next to nothing was completed, from points of the window.
fn standstill(interval: Duration, points: &[u64]) -> Option<String> {
    let mut sorted = points.to_vec();
    sorted.sort_unstable();
    let middle = *sorted.get(points.len() / 2)?;
    if middle < STANDSTILL_LEAST {
        return None;
    }
    let (mut longest, mut at, mut length) = (0, 0, 0_u32);
    for (index, point) in (0_u32..).zip(points) {
        length = if u128::from(*point) * 100 < u128::from(middle) * u128::from(STANDSTILL) { length + 1 } else { 0 };
        if length > longest {
            (longest, at) = (length, index + 1 - length);
        }
    }
    let stood = interval * longest;
    if stood < STANDSTILL_SHORTEST {
        return None;
    }
    Some(format!(
        "next to nothing was answered for {}, {} after the measurement began: a closed loop sends nothing while the target \
         pauses, so few of its latencies show it; measure with an open loop (load.type), or find what stops the target",
        people::latency(nanoseconds(stood)),
        people::latency(nanoseconds(interval * at))
    ))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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

    #[test]
    fn a_closed_loop_that_stands_still_is_told_with_its_length() {
        let (tenth, mut points) = (Duration::from_millis(100), vec![3_800; 120]);
        assert_eq!(standstill(tenth, &points), None);
        points[40..42].fill(0);
        assert_eq!(standstill(tenth, &points), None, "200 ms");
        points[70..73].fill(379);
        let message = standstill(tenth, &points).unwrap();
        assert!(message.starts_with("next to nothing was answered for 300 ms, 7.00 s after"), "{message}");
        points[72] = 380;
        assert_eq!(standstill(tenth, &points), None, "a tenth is something");
        assert!(standstill(Duration::from_secs(1), &[900, 900, 900, 10, 900]).unwrap().contains("1.00 s"));
        // Too few in a point to say that there were none.
        assert_eq!(standstill(tenth, &[9, 9, 9, 0, 0, 0, 0, 9, 9, 9]), None);
        assert_eq!(standstill(tenth, &[]), None);
    }
}

use redisbench_wire::snapshot::Snapshot;

use super::*;
use crate::api::status::{LimitedBy, Verdict};
use crate::measurement::merge::merge;
use crate::sample::{outcome, snapshot, spec, verdict_on};

const MILLISECOND: u64 = 1_000_000;

/// Ten seconds at 1000 requests per second.
fn judged(arrival: &str, snapshot: Snapshot) -> Verdict {
    let open = serde_json::json!({"rate": 1000, "arrival": arrival});
    let spec = spec(1, &serde_json::json!({"type": "OpenLoop", "openLoop": open, "duration": "10s"}));
    verdict_on(&spec, &outcome(vec![snapshot]))
}

fn reasons(verdict: &Verdict) -> Vec<ReasonKind> {
    verdict.reasons.iter().map(|reason| reason.reason).collect()
}

/// All requests succeed, `completed` of them within the window, evenly.
fn behind(completed: u64, response: impl Fn(u64) -> u64) -> Snapshot {
    let mut snapshot = snapshot(0, &(1..=10_000).map(response).collect::<Vec<_>>());
    snapshot.series.completed = (0..100).map(|point| (point + 1) * completed / 100 - point * completed / 100).collect();
    snapshot
}

/// The target is 150 ms away, and there is no warm-up.
#[test]
fn the_first_round_trip_misses_no_rate() {
    let mut far = behind(10_000, |_| 150 * MILLISECOND);
    far.series.completed[..2].copy_from_slice(&[0, 50]);
    let verdict = judged("Constant", far.clone());
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Valid, LimitedBy::Rate), "{verdict:?}");
    // The same gap, with replies that take a millisecond.
    let mut near = behind(10_000, |_| MILLISECOND);
    near.series = far.series;
    assert_eq!(reasons(&judged("Constant", near)), [ReasonKind::RateMissed]);
}

/// The connections hold 1,000 requests at the end, which still succeed.
#[test]
fn a_queue_within_the_connections_meets_no_rate() {
    let verdict = judged("Constant", behind(9_000, |k| k * MILLISECOND / 9));
    assert_eq!((reasons(&verdict), verdict.limited_by), (vec![ReasonKind::RateMissed], LimitedBy::Unknown));
    let message = &verdict.reasons[0].message;
    assert!(message.contains("900/s of the 1.00k/s") && message.contains("grew by 100.0 requests"), "{message}");
}

#[test]
fn requests_that_fail_fast_meet_no_rate() {
    let mut failing = snapshot(0, &vec![MILLISECOND; 9_800]);
    failing.total.scheduled += 200;
    failing.total.errors += 200;
    assert_eq!(reasons(&judged("Constant", failing)), [ReasonKind::RateMissed, ReasonKind::Errors]);
}

/// Half a per cent too much: no request fails, and none is late by more than 50 ms.
#[test]
fn a_backlog_that_grows_is_told_though_the_rate_is_met() {
    let verdict = judged("Constant", behind(9_950, |k| MILLISECOND + k * MILLISECOND / 200));
    assert_eq!((reasons(&verdict), verdict.value), (vec![ReasonKind::Backlog], VerdictValue::Degraded));
    assert_eq!(verdict.limited_by, LimitedBy::Unknown, "more was asked for than was done");
    let message = &verdict.reasons[0].message;
    assert!(message.starts_with("the backlog grew by 5.0 requests per second, 0.50 % of the rate"), "{message}");
    // The same with a queue that does not fit into the connections.
    let mut waiting = behind(9_950, |k| MILLISECOND + k * MILLISECOND / 200);
    waiting.total.succeeded -= 40;
    (waiting.total.unsent, waiting.total.unsent_at_end) = (40, 40);
    assert_eq!(reasons(&judged("Constant", waiting)), [ReasonKind::Backlog, ReasonKind::Errors]);
    // Random arrivals may be that few.
    let random = judged("Poisson", behind(9_950, |k| MILLISECOND + k * MILLISECOND / 200));
    assert_eq!((reasons(&random), random.limited_by), (Vec::new(), LimitedBy::Rate));
}

/// A ramp that ends in eight seconds at a constant rate. The target completes half a per cent less.
#[test]
fn the_end_of_a_ramp_is_judged_for_itself() {
    let grows = |to: u64, missing: u64| {
        let stages = serde_json::json!([
            {"duration": "2s", "rate": {"from": 1000, "to": 2000}},
            {"duration": "8s", "rate": {"from": 2000, "to": to}},
        ]);
        let spec = spec(1, &serde_json::json!({"type": "OpenLoop", "stages": stages}));
        let mut snapshot = behind(10_000, |_| MILLISECOND);
        let at = |point: u64| if point < 20 { 100 + 5 * point } else { 200 - missing };
        snapshot.series.completed = (0..100).map(at).collect();
        let outcome = outcome(vec![snapshot]);
        let merged = merge(&spec.plan, &outcome).unwrap().unwrap();
        backlog_growth(&spec, &outcome, &merged).map(|growth| growth.per_second.round())
    };
    assert_eq!(grows(2_000, 0), None);
    assert_eq!(grows(2_000, 1), Some(10.0));
    assert_eq!(grows(2_010, 1), None, "a ramp to its end");
}

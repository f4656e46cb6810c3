use redisbench_wire::snapshot::{Snapshot, Tally};

use super::*;
use crate::api::status::{LimitedBy, Verdict};
use crate::measurement::merge::merge;
use crate::sample::{outcome, plan, snapshot, spec, verdict_on};

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

/// A recording of ten seconds has no target rate.
#[test]
fn a_replay_that_keeps_its_due_times_is_limited_by_its_pace() {
    let mut paced = spec(1, &serde_json::json!({"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "10s"}));
    plan(&mut paced).load =
        Load::Recorded { pace_millionths: 1_000_000, pacing_grid_nanoseconds: 0, unsent_after_nanoseconds: SECOND };
    let limited_by = |mut snapshot: Snapshot, late: u64| {
        snapshot.total.late = late;
        verdict_on(&paced, &outcome(vec![snapshot])).limited_by
    };
    let kept = || behind(10_000, |_| MILLISECOND);
    assert_eq!((limited_by(kept(), 100), limited_by(kept(), 101)), (LimitedBy::Rate, LimitedBy::Unknown));
    // All were sent at their due times, and 1,000 are in flight at the end.
    assert_eq!(limited_by(behind(9_000, |k| k * MILLISECOND / 9), 0), LimitedBy::Unknown);
    let mut failing = kept();
    failing.total.scheduled += 200;
    failing.total.errors += 200;
    assert_eq!(limited_by(failing, 0), LimitedBy::Unknown);
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
    assert_eq!(reasons(&judged("Constant", waiting.clone())), [ReasonKind::Backlog], "its queue counts once");
    // Two requests that waited for too long are no part of the queue at the end.
    waiting.total.succeeded -= 2;
    waiting.total.unsent += 2;
    let verdict = judged("Constant", waiting);
    assert_eq!(
        (reasons(&verdict), verdict.value),
        (vec![ReasonKind::Backlog, ReasonKind::Errors], VerdictValue::Degraded)
    );
    let message = &verdict.reasons[1].message;
    assert!(
        message.contains("42 (0.420 %) were not sent") && message.contains("40 were due when the load"),
        "{message}"
    );
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

/// A stage of `seconds` at twice the rate between two of ten seconds. In each tenth of a second the target completes `missing` requests
/// less than are due in it, and catches up in the last stage. `at_end` requests remain in the queue.
fn with_a_peak(seconds: u64, missing: u64, at_end: u64) -> Verdict {
    let stages = serde_json::json!([
        {"duration": "10s", "rate": {"from": 1000, "to": 1000}},
        {"name": "peak", "duration": format!("{seconds}s"), "rate": {"from": 2000, "to": 2000}},
        {"duration": "10s", "rate": {"from": 1000, "to": 1000}},
    ]);
    let spec = spec(1, &serde_json::json!({"type": "OpenLoop", "stages": stages}));
    let late = 10 * seconds * missing;
    let first = (0..100).map(|_| 100);
    let peak = (0..10 * seconds).map(|_| 200 - missing);
    let last = (0..100).map(|point: u64| 100 + late.saturating_sub(100 * point).min(100));
    let completed: Vec<u64> = first.chain(peak).chain(last).collect();
    let succeeded = usize::try_from(completed.iter().sum::<u64>() - at_end).unwrap();
    let mut snapshot = snapshot(0, &vec![MILLISECOND; succeeded]);
    snapshot.series.completed = completed;
    snapshot.total.add(&Tally { scheduled: at_end, unsent: at_end, unsent_at_end: at_end, ..Tally::default() });
    snapshot.window.measure_to_nanoseconds = snapshot.window.start_nanoseconds + (20 + seconds) * SECOND;
    snapshot.window.drained_nanoseconds = snapshot.window.measure_to_nanoseconds;
    snapshot.taken_nanoseconds = snapshot.window.drained_nanoseconds + SECOND;
    verdict_on(&spec, &outcome(vec![snapshot]))
}

#[test]
fn a_backlog_that_grows_in_a_stage_is_told_with_its_name() {
    let steady = with_a_peak(12, 0, 0);
    assert_eq!((reasons(&steady), steady.limited_by), (Vec::new(), LimitedBy::Rate), "{steady:?}");
    let verdict = with_a_peak(12, 2, 0);
    assert_eq!((reasons(&verdict), verdict.limited_by), (vec![ReasonKind::Backlog], LimitedBy::Unknown), "{verdict:?}");
    let message = &verdict.reasons[0].message;
    let begin = "the backlog grew by 20.0 requests per second, 1.00 % of the rate, throughout stage peak: it grows as long as the \
        stage lasts";
    assert!(message.starts_with(begin) && message.ends_with("lower the rate (load.stages)"), "{message}");
    assert_eq!(reasons(&with_a_peak(8, 2, 0)), [], "too short for a stage that is not the last");
    // Requests that the peak left in the queue were sent in the last stage, so these waited for something else.
    assert_eq!(reasons(&with_a_peak(12, 2, 10)), [ReasonKind::Backlog, ReasonKind::Errors]);
}

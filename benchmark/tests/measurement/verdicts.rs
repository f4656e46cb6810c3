use std::sync::Arc;
use std::time::Duration;

use redisbench_benchmark::api::status::{LimitedBy, ReasonKind, Verdict, VerdictValue};
use redisbench_benchmark::measurement::Outcome;
use redisbench_benchmark::measurement::merge::merge;
use redisbench_benchmark::verdict::verdict;
use redisbench_wire::plan::{Tls, TlsVersion, Trust};
use redisbench_wire::snapshot::ErrorTally;
use serde_json::{Value, json};

use super::shards::{Requests, SECOND, outcome, plan, snapshot, spec};

fn judged(load: &Value, outcome: &Outcome) -> Verdict {
    let spec = spec(load);
    let merged = merge(&plan(&spec), outcome).unwrap().unwrap();
    verdict(&spec, outcome, &merged)
}

/// Two shards of 5000 requests each: the 1000 per second that were asked for.
fn as_asked() -> Outcome {
    let requests = Requests { succeeded: vec![SECOND / 1000; 5000], ..Requests::default() };
    outcome([snapshot(0, &requests), snapshot(1, &requests)])
}

fn only(verdict: &Verdict) -> (ReasonKind, VerdictValue) {
    assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
    let reason = &verdict.reasons[0];
    assert_eq!(reason.severity, verdict.value);
    assert!(!reason.message.is_empty());
    (reason.reason, reason.severity)
}

#[test]
fn a_clean_run_is_valid_and_limited_by_its_rate() {
    let verdict = judged(&json!({}), &as_asked());
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Valid, LimitedBy::Rate));
    assert!(verdict.reasons.is_empty());
}

#[test]
fn a_certificate_that_nobody_verified_is_a_note() {
    let mut spec = spec(&json!({}));
    Arc::make_mut(&mut spec.plan).target.tls = Some(Tls {
        trust: Trust::Anyone,
        client_certificate: false,
        server_name: None,
        minimum_version: TlsVersion::Tls12,
    });
    let outcome = as_asked();
    let merged = merge(&plan(&spec), &outcome).unwrap().unwrap();
    let verdict = verdict(&spec, &outcome, &merged);
    assert_eq!(only(&verdict), (ReasonKind::NotVerified, VerdictValue::Valid));
    assert!(verdict.reasons[0].message.contains("insecureSkipVerify"), "{verdict:?}");
}

#[test]
fn a_closed_loop_does_not_say_what_limited_it() {
    let verdict = judged(&json!({"type": "ClosedLoop", "openLoop": null}), &as_asked());
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Valid, LimitedBy::Unknown));
}

#[test]
fn a_lost_shard_is_invalid_and_named() {
    let mut outcome = as_asked();
    outcome.shards[1].lost = Some("its pod was deleted".into());
    outcome.shards[1].partial = true;
    let verdict = judged(&json!({}), &outcome);
    assert_eq!(only(&verdict), (ReasonKind::ShardLost, VerdictValue::Invalid));
    let message = &verdict.reasons[0].message;
    assert!(message.contains("shard 1") && message.contains("its pod was deleted"), "{message}");
}

#[test]
fn shards_that_started_too_far_apart_are_told() {
    let mut outcome = as_asked();
    outcome.start_skew = Some(Duration::from_millis(20));
    assert_eq!(judged(&json!({}), &outcome).value, VerdictValue::Valid, "the bound itself is allowed");
    outcome.start_skew = Some(Duration::from_millis(21));
    assert_eq!(only(&judged(&json!({}), &outcome)).0, ReasonKind::StartSkew);
}

#[test]
fn clocks_that_are_not_known_well_enough_are_told() {
    let mut outcome = as_asked();
    outcome.clock_uncertainty = Some(Duration::from_micros(10_001));
    assert_eq!(only(&judged(&json!({}), &outcome)).0, ReasonKind::ClockUncertain);
}

#[test]
fn a_missed_rate_is_told() {
    let verdict = judged(&json!({"openLoop": {"rate": 1011}}), &as_asked());
    assert_eq!(only(&verdict), (ReasonKind::RateMissed, VerdictValue::Degraded));
    assert_eq!(verdict.limited_by, LimitedBy::Unknown);
    // A rate missed by one per cent counts as met, but the backlog that grows by as much is reported.
    let verdict = judged(&json!({"openLoop": {"rate": 1010}}), &as_asked());
    assert_eq!(only(&verdict), (ReasonKind::Backlog, VerdictValue::Degraded));
    assert_eq!(judged(&json!({"openLoop": {"rate": 1002}}), &as_asked()).value, VerdictValue::Valid);
}

#[test]
fn failures_are_told_with_the_most_frequent() {
    let requests = |unanswered| Requests { succeeded: vec![SECOND / 1000; 5000], unanswered, ..Requests::default() };
    let outcome = |unanswered| {
        let mut second = snapshot(1, &requests(unanswered));
        second.errors =
            vec![ErrorTally { kind: "Timeout".into(), count: unanswered, first_message: "no reply in 1 s".into() }];
        outcome([snapshot(0, &requests(0)), second])
    };
    let verdict = judged(&json!({}), &outcome(100));
    assert_eq!(only(&verdict).0, ReasonKind::Errors);
    assert!(verdict.reasons[0].message.contains("Timeout"), "{}", verdict.reasons[0].message);
    assert_eq!(judged(&json!({}), &outcome(3000)).value, VerdictValue::Invalid);
}

#[test]
fn latencies_beyond_the_histogram_are_told() {
    let mut outcome = as_asked();
    let snapshot = outcome.shards[0].snapshot.as_mut().unwrap();
    snapshot.total.overflow = 1;
    snapshot.total.overflow_max_nanoseconds = 700 * SECOND;
    snapshot.total.succeeded += 1;
    snapshot.total.scheduled += 1;
    assert_eq!(only(&judged(&json!({}), &outcome)).0, ReasonKind::Overflow);
}

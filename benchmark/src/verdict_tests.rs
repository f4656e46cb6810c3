use super::*;
use crate::api::status::LimitedBy;
use crate::merge::merge;
use crate::plan::plans;
use crate::sample::{lose, open_loop, outcome, snapshot, with_timeouts};

fn judged(outcome: &Outcome) -> Verdict {
    let spec = open_loop(u32::try_from(outcome.shards.len()).unwrap());
    let merged = merge(&plans(&spec, "run"), outcome).unwrap().unwrap();
    verdict(&spec, outcome, &merged)
}

fn kinds(verdict: &Verdict) -> Vec<(ReasonKind, VerdictValue)> {
    verdict.reasons.iter().map(|reason| (reason.reason, reason.severity)).collect()
}

#[test]
fn of_many_lost_shards_the_first_are_named() {
    let mut outcome = outcome((0..20).map(|shard| snapshot(shard, &[1000; 500])).collect());
    (1..20).for_each(|index| lose(&mut outcome, index));
    let message = judged(&outcome).reasons[0].message.clone();
    assert!(message.starts_with("19 of 20 shards are lost"), "{message}");
    assert!(message.contains("shard 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, ...;"), "{message}");
}

#[test]
fn a_rate_missed_by_far_is_still_a_measurement() {
    let missed = judged(&outcome(vec![snapshot(0, &[1000; 2_000])]));
    assert_eq!(kinds(&missed), [(ReasonKind::RateMissed, VerdictValue::Degraded)]);
}

#[test]
fn one_request_at_the_edge_of_a_slow_run_misses_nothing() {
    let spec =
        crate::sample::spec(1, &serde_json::json!({"type": "OpenLoop", "openLoop": {"rate": 5}, "duration": "10s"}));
    let judge = |count: usize| {
        let outcome = outcome(vec![snapshot(0, &vec![1000; count])]);
        let merged = merge(&plans(&spec, "run"), &outcome).unwrap().unwrap();
        verdict(&spec, &outcome, &merged).limited_by
    };
    assert_eq!(judge(50), LimitedBy::Rate);
    assert_eq!(judge(0), LimitedBy::Unknown);
}

#[test]
fn poisson_arrivals_may_miss_their_mean_by_chance() {
    let judge = |arrival: &str, count: usize| {
        let open = serde_json::json!({"rate": 100, "arrival": arrival});
        let load = serde_json::json!({"type": "OpenLoop", "openLoop": open, "duration": "10s"});
        let spec = crate::sample::spec(1, &load);
        let outcome = outcome(vec![snapshot(0, &vec![1000; count])]);
        let merged = merge(&plans(&spec, "run"), &outcome).unwrap().unwrap();
        verdict(&spec, &outcome, &merged).limited_by
    };
    // 1,000 are expected, and 5 standard deviations are 158.
    assert_eq!(judge("Poisson", 850), LimitedBy::Rate);
    assert_eq!(judge("Poisson", 830), LimitedBy::Unknown);
    assert_eq!(judge("Constant", 980), LimitedBy::Unknown);
}

#[test]
fn the_target_of_stages_is_their_mean() {
    let stages = serde_json::json!([
        {"duration": "4s", "rate": {"from": 100, "to": 2000}},
        {"duration": "6s", "rate": {"from": 2000, "to": 2000}},
    ]);
    let spec = crate::sample::spec(1, &serde_json::json!({"type": "OpenLoop", "stages": stages}));
    let judge = |count: usize| {
        let outcome = outcome(vec![snapshot(0, &vec![1000; count])]);
        let merged = merge(&plans(&spec, "run"), &outcome).unwrap().unwrap();
        assert_eq!(merged.pace.target, Some((1050 * 4 + 2000 * 6) / 10));
        verdict(&spec, &outcome, &merged)
    };
    assert_eq!(judge(16_200).limited_by, LimitedBy::Rate);
    let missed = judge(16_000);
    assert_eq!(kinds(&missed), [(ReasonKind::RateMissed, VerdictValue::Degraded)]);
    assert!(missed.reasons[0].message.contains("1.60k/s of the 1.62k/s"), "{}", missed.reasons[0].message);
}

#[test]
fn errors_make_a_result_doubtful_and_then_useless() {
    let with = |errors: u64| judged(&outcome(vec![with_timeouts(snapshot(0, &vec![1000; 100_000]), errors)]));
    assert_eq!(kinds(&with(10)), []);
    assert_eq!(kinds(&with(11)), [(ReasonKind::Errors, VerdictValue::Degraded)]);
    assert_eq!(kinds(&with(1_000)), [(ReasonKind::Errors, VerdictValue::Degraded)]);
    let useless = with(1_100);
    assert_eq!(kinds(&useless), [(ReasonKind::Errors, VerdictValue::Invalid)]);
    let message = &useless.reasons[0].message;
    assert!(message.contains("1,100") && message.contains("Timeout: no reply within 1s"), "{message}");
}

#[test]
fn slots_without_answers_are_told_and_spoil_a_closed_loop() {
    let judge = |load: serde_json::Value, milliseconds: u64| {
        let spec = crate::sample::spec(1, &load);
        let mut snapshot = snapshot(0, &vec![1000; 10_000]);
        let from = snapshot.window.start_nanoseconds + 2_000_000_000;
        snapshot.topology.outages.push(redisbench_wire::topology::Outage {
            slots: redisbench_wire::topology::SlotRange::ALL,
            reads: false,
            node: "a:1".into(),
            from_nanoseconds: from,
            until_nanoseconds: from + milliseconds * 1_000_000,
            lasting: false,
        });
        let outcome = outcome(vec![snapshot]);
        let merged = merge(&plans(&spec, "run"), &outcome).unwrap().unwrap();
        let verdict = verdict(&spec, &outcome, &merged);
        (kinds(&verdict), verdict.reasons[0].message.clone())
    };
    let open = serde_json::json!({"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "10s"});
    let closed = serde_json::json!({"type": "ClosedLoop", "duration": "10s"});
    assert_eq!(judge(open, 1_500).0, [(ReasonKind::Unavailable, VerdictValue::Degraded)]);
    assert_eq!(judge(closed.clone(), 50).0, [(ReasonKind::Unavailable, VerdictValue::Degraded)]);
    let (kinds, message) = judge(closed, 1_500);
    assert_eq!(kinds, [(ReasonKind::Unavailable, VerdictValue::Invalid)]);
    assert!(message.starts_with("the target got no answers for 1.50 s, from a:1: 15.00 % of the time"), "{message}");
}

#[test]
fn sentinels_whose_certificates_nobody_verifies_are_noted_too() {
    let mut spec = open_loop(1);
    let tls = redisbench_wire::plan::Tls {
        trust: Trust::Anyone,
        client_certificate: false,
        server_name: None,
        minimum_version: redisbench_wire::plan::TlsVersion::Tls12,
    };
    spec.target.sentinels =
        Some(redisbench_wire::plan::Sentinels { authenticate: false, transport: Transport::Tls(tls) });
    let note = not_verified(&spec).unwrap();
    assert!(note.message.contains("spec.targets[0].sentinel.transport.tls.insecureSkipVerify"), "{}", note.message);
}

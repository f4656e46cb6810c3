use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::{Cache, CacheCounts, Snapshot};
use redisbench_wire::topology::SlotRange;
use serde_json::json;

use super::*;
use crate::api::status::LimitedBy;
use crate::measurement::merge::merge;
use crate::sample::{self, lose, open_loop, outcome, plan, snapshot, verdict_on, with_timeouts};

fn judged(outcome: &Outcome) -> Verdict {
    verdict_on(&open_loop(u32::try_from(outcome.shards.len()).unwrap()), outcome)
}

/// Two shards of 5000 requests each: the 1000 per second that were asked for.
fn as_asked() -> Outcome {
    outcome(vec![snapshot(0, &[1_000_000; 5_000]), snapshot(1, &[1_000_000; 5_000])])
}

/// The only reason, whose severity is the verdict.
fn only(verdict: &Verdict) -> (ReasonKind, VerdictValue) {
    let [reason] = &verdict.reasons[..] else { panic!("{verdict:?}") };
    assert_eq!(reason.severity, verdict.value);
    assert!(!reason.message.is_empty());
    (reason.reason, reason.severity)
}

/// An outage of all slots, in milliseconds after the start of `snapshot`.
fn add_outage(snapshot: &mut Snapshot, from: u64, until: u64) {
    let start = snapshot.window.start_nanoseconds;
    snapshot.topology.outages.push(Outage {
        slots: SlotRange::ALL,
        reads: false,
        node: "a:1".into(),
        from_nanoseconds: start + from * 1_000_000,
        until_nanoseconds: start + until * 1_000_000,
        lasting: false,
    });
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
    let spec = sample::spec(1, &json!({"type": "OpenLoop", "openLoop": {"rate": 5}, "duration": "10s"}));
    let judge = |count: usize| verdict_on(&spec, &outcome(vec![snapshot(0, &vec![1000; count])])).limited_by;
    assert_eq!(judge(50), LimitedBy::Rate);
    assert_eq!(judge(0), LimitedBy::Unknown);
}

#[test]
fn a_measurement_without_requests_is_invalid_unless_caches_replied() {
    let closed = sample::spec(1, &json!({"type": "ClosedLoop", "duration": "10s"}));
    let open = sample::spec(1, &json!({"type": "OpenLoop", "openLoop": {"rate": 5}, "duration": "10s"}));
    for (spec, why) in [(&closed, "waits for earlier replies"), (&open, "none was due")] {
        let verdict = verdict_on(spec, &outcome(vec![snapshot(0, &[])]));
        assert_eq!(verdict.value, VerdictValue::Invalid);
        let reason = verdict.reasons.iter().find(|reason| reason.reason == ReasonKind::NothingMeasured).unwrap();
        assert!(reason.message.contains("in the measurement of 10.0 s") && reason.message.contains(why), "{reason:?}");
    }
    let mut cached = snapshot(0, &[]);
    let counts = CacheCounts { hits: 1, ..CacheCounts::default() };
    cached.cache = Some(Cache { counts, invalidation: sample::encoded(Kind::Request, &[]) });
    assert!(
        !kinds(&verdict_on(&closed, &outcome(vec![cached])))
            .contains(&(ReasonKind::NothingMeasured, VerdictValue::Invalid))
    );
}

#[test]
fn poisson_arrivals_may_miss_their_mean_by_chance() {
    let judge = |arrival: &str, count: usize| {
        let open = json!({"rate": 100, "arrival": arrival});
        let spec = sample::spec(1, &json!({"type": "OpenLoop", "openLoop": open, "duration": "10s"}));
        verdict_on(&spec, &outcome(vec![snapshot(0, &vec![1000; count])])).limited_by
    };
    // 1,000 are expected, and 5 standard deviations are 158.
    assert_eq!(judge("Poisson", 850), LimitedBy::Rate);
    assert_eq!(judge("Poisson", 830), LimitedBy::Unknown);
    assert_eq!(judge("Constant", 980), LimitedBy::Unknown);
}

#[test]
fn the_target_of_stages_is_their_mean() {
    let stages = json!([
        {"duration": "4s", "rate": {"from": 100, "to": 2000}},
        {"duration": "6s", "rate": {"from": 2000, "to": 2000}},
    ]);
    let spec = sample::spec(1, &json!({"type": "OpenLoop", "stages": stages}));
    let judge = |count: usize| {
        let mut snapshot = snapshot(0, &vec![1000; count]);
        // Completed as due: a ramp of 4 s, then 200 in each point.
        let due = |point: u64| if point < 40 { 10 * point + 19 * point * point / 8 } else { 200 * point - 3_800 };
        let done = |point: u64| due(point) * count as u64 / 16_200;
        snapshot.series.completed = (0..100).map(|point| done(point + 1) - done(point)).collect();
        let outcome = outcome(vec![snapshot]);
        assert_eq!(merge(&spec.plan, &outcome).unwrap().unwrap().throughput.target, Some((1050 * 4 + 2000 * 6) / 10));
        verdict_on(&spec, &outcome)
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
    // Failed requests also miss the rate.
    let both = [(ReasonKind::RateMissed, VerdictValue::Degraded), (ReasonKind::Errors, VerdictValue::Invalid)];
    assert_eq!(kinds(&useless), both);
    let message = &useless.reasons[1].message;
    assert!(message.contains("1,100") && message.contains("Timeout: no reply within 1s"), "{message}");
}

#[test]
fn slots_without_answers_are_told_and_spoil_a_closed_loop() {
    let judge = |spec: &Validated, milliseconds: u64| {
        let mut snapshot = snapshot(0, &vec![1000; 10_000]);
        add_outage(&mut snapshot, 2_000, 2_000 + milliseconds);
        let verdict = verdict_on(spec, &outcome(vec![snapshot]));
        (kinds(&verdict), verdict.reasons[0].message.clone())
    };
    let closed = sample::spec(1, &json!({"type": "ClosedLoop", "duration": "10s"}));
    assert_eq!(judge(&open_loop(1), 1_500).0, [(ReasonKind::Unavailable, VerdictValue::Degraded)]);
    assert_eq!(judge(&closed, 50).0, [(ReasonKind::Unavailable, VerdictValue::Degraded)]);
    let (kinds, message) = judge(&closed, 1_500);
    assert_eq!(kinds, [(ReasonKind::Unavailable, VerdictValue::Invalid)]);
    assert!(message.starts_with("no replies for 1.50 s from a:1: 15.00 % of the time"), "{message}");
}

/// The measurement begins after 3 s of warm-up, and is 7 s long.
fn after_a_warmup(mut snapshot: Snapshot) -> Snapshot {
    snapshot.window.measure_from_nanoseconds += 3_000_000_000;
    snapshot
}

#[test]
fn an_outage_counts_as_far_as_it_lies_in_the_measurement() {
    let judge = |from: u64, until: u64| {
        let mut snapshot = after_a_warmup(snapshot(0, &vec![1000; 10_000]));
        add_outage(&mut snapshot, from, until);
        judged(&outcome(vec![snapshot]))
    };
    assert_eq!(kinds(&judge(2_000, 2_040)), [], "all of it in the warm-up");
    assert_eq!(kinds(&judge(2_000, 3_009)), [], "but for less than an outage is");
    let cut = judge(2_500, 3_700);
    assert_eq!(kinds(&cut), [(ReasonKind::Unavailable, VerdictValue::Degraded)]);
    let message = &cut.reasons[0].message;
    assert!(message.starts_with("no replies for 700 ms from a:1: 10.00 % of the time"), "{message}");
    assert_eq!(kinds(&judge(10_000, 10_500)), [], "after the measurement");
}

#[test]
fn shards_that_started_apart_matter_as_long_as_the_warm_up_does_not_outlast_it() {
    let judge = |snapshot: Snapshot, milliseconds| {
        let outcome = Outcome { start_skew: Some(Duration::from_millis(milliseconds)), ..outcome(vec![snapshot]) };
        kinds(&judged(&outcome))
    };
    let skewed = [(ReasonKind::StartSkew, VerdictValue::Degraded)];
    assert_eq!(judge(snapshot(0, &vec![1000; 10_000]), 20), [], "the bound itself is allowed");
    assert_eq!(judge(snapshot(0, &vec![1000; 10_000]), 21), skewed);
    assert_eq!(judge(after_a_warmup(snapshot(0, &vec![1000; 10_000])), 25), []);
    assert_eq!(judge(after_a_warmup(snapshot(0, &vec![1000; 10_000])), 1_600), skewed);
}

#[test]
fn requests_that_were_not_sent_are_no_failures() {
    let mut snapshot = snapshot(0, &vec![1000; 10_000]);
    snapshot.total.add(&Tally {
        scheduled: 56,
        unsent: 56,
        unsent_at_end: 50,
        unsent_not_connected: 2,
        ..Tally::default()
    });
    let told = judged(&outcome(vec![snapshot]));
    assert_eq!(kinds(&told), [(ReasonKind::Errors, VerdictValue::Degraded)]);
    let message = &told.reasons[0].message;
    assert_eq!(
        message,
        "of 10,056 requests 56 (0.557 %) were not sent: 4 waited for room in a pipeline for longer than load.openLoop.unsentAfter, 2 \
         waited that long for a connection to their server, 50 were due when the load ended, and still waiting in the generator's queue \
         for a connection with room"
    );
}

#[test]
fn certificates_that_nobody_verifies_are_noted() {
    let tls = || redisbench_wire::plan::Tls {
        trust: Trust::Anyone,
        client_certificate: false,
        server_name: None,
        minimum_version: redisbench_wire::plan::TlsVersion::Tls12,
    };
    let mut servers = open_loop(2);
    plan(&mut servers).target.tls = Some(tls());
    let told = verdict_on(&servers, &as_asked());
    assert_eq!(only(&told), (ReasonKind::NotVerified, VerdictValue::Valid));
    assert!(told.reasons[0].message.contains("insecureSkipVerify"), "{told:?}");
    let mut sentinels = open_loop(2);
    plan(&mut sentinels).target.sentinels =
        Some(redisbench_wire::plan::Sentinels { authenticate: false, transport: Transport::Tls(tls()) });
    let note = not_verified(&sentinels).unwrap();
    assert!(note.message.contains("spec.targets[0].sentinel.transport.tls.insecureSkipVerify"), "{}", note.message);
}

#[test]
fn a_clean_run_is_valid_and_limited_by_its_rate() {
    let verdict = judged(&as_asked());
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Valid, LimitedBy::Rate));
    assert!(verdict.reasons.is_empty());
    let closed = sample::spec(2, &json!({"type": "ClosedLoop", "duration": "10s"}));
    let verdict = verdict_on(&closed, &as_asked());
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Valid, LimitedBy::Unknown), "no rate was asked for");
}

#[test]
fn a_lost_shard_is_invalid_and_named() {
    let mut outcome = as_asked();
    (outcome.shards[1].lost, outcome.shards[1].partial) = (Some("its pod was deleted".into()), true);
    let verdict = judged(&outcome);
    assert_eq!(only(&verdict), (ReasonKind::ShardLost, VerdictValue::Invalid));
    let message = &verdict.reasons[0].message;
    assert!(message.contains("shard 1") && message.contains("its pod was deleted"), "{message}");
}

#[test]
fn clocks_that_are_not_known_well_enough_are_told() {
    let outcome = Outcome { clock_uncertainty: Some(Duration::from_micros(10_001)), ..as_asked() };
    assert_eq!(only(&judged(&outcome)).0, ReasonKind::ClockUncertain);
}

#[test]
fn a_missed_rate_is_told() {
    let of = |rate: u64| {
        let load = json!({"type": "OpenLoop", "openLoop": {"rate": rate}, "duration": "10s"});
        verdict_on(&sample::spec(2, &load), &as_asked())
    };
    assert_eq!(only(&of(1011)), (ReasonKind::RateMissed, VerdictValue::Degraded));
    assert_eq!(of(1011).limited_by, LimitedBy::Unknown);
    // A rate missed by one per cent counts as met, but the backlog that grows by as much is reported.
    assert_eq!(only(&of(1010)), (ReasonKind::Backlog, VerdictValue::Degraded));
    assert_eq!(of(1002).value, VerdictValue::Valid);
}

#[test]
fn latencies_beyond_the_histogram_are_told() {
    let mut outcome = as_asked();
    let overflow_max_nanoseconds = 700 * sample::SECOND;
    let beyond = Tally { scheduled: 1, succeeded: 1, overflow: 1, overflow_max_nanoseconds, ..Tally::default() };
    outcome.shards[0].snapshot.as_mut().unwrap().total.add(&beyond);
    assert_eq!(only(&judged(&outcome)).0, ReasonKind::Overflow);
}

use redisbench_wire::timeline::{Buckets, Coarse, Outcomes, Span, SpanPart};
use serde_json::json;

use super::*;
use crate::sample::{self, snapshot};

const MICROSECOND: u64 = 1_000;

/// Two shards that measured for `measured` seconds after a warm-up of 1 s.
fn outcome(measured: u64) -> Outcome {
    let mut outcome = sample::outcome(vec![snapshot(0, &[1_450_000; 100]), snapshot(1, &[1_450_000; 100])]);
    for snapshot in outcome.shards.iter_mut().filter_map(|shard| shard.snapshot.as_mut()) {
        snapshot.window.measure_from_nanoseconds = snapshot.window.start_nanoseconds + SECOND;
        snapshot.window.measure_to_nanoseconds = snapshot.window.measure_from_nanoseconds + measured * SECOND;
        snapshot.taken_nanoseconds = snapshot.window.measure_to_nanoseconds + SECOND;
    }
    outcome
}

fn spec(stages: &serde_json::Value) -> Validated {
    sample::spec(2, &json!({"type": "OpenLoop", "warmup": "1s", "stages": stages}))
}

/// One shard's second: requests that took 0.1 ms per elapsed second, errors, and unsent requests.
fn second(second: u32, succeeded: u64, errors: u64, unsent: u64) -> Span {
    let mut response = Coarse::default();
    response.record((u64::from(second) + 1) * 100 * MICROSECOND, succeeded);
    let counts = Outcomes {
        scheduled: succeeded + errors + unsent,
        succeeded,
        errors,
        unanswered: errors,
        unsent,
        ..Outcomes::default()
    };
    let parts = vec![SpanPart {
        counts,
        response: response.buckets(),
        service: response.buckets(),
        error_replies: Buckets::default(),
    }];
    Span { second, seconds: 1, parts, ..Span::default() }
}

fn sum(results: &[StageResult]) -> (u64, u64, u64, u64) {
    results.iter().map(|stage| stage.requests).fold((0, 0, 0, 0), |sum, stage| {
        (sum.0 + stage.scheduled, sum.1 + stage.succeeded, sum.2 + stage.errors, sum.3 + stage.unsent)
    })
}

/// A ramp of two seconds, a second at its final rate, and two seconds at half of it.
#[test]
fn stages_of_all_shards_add_up_to_the_trial() {
    let spec = spec(&json!([
        {"name": "up", "duration": "2s", "rate": {"from": 200, "to": 400}},
        {"duration": "1s", "rate": {"from": 400, "to": 400}},
        {"name": "down", "duration": "2s", "rate": {"from": 200, "to": 200}},
    ]));
    let mut outcome = outcome(5);
    let one =
        [second(1, 125, 0, 0), second(2, 175, 0, 0), second(3, 195, 5, 0), second(4, 95, 0, 5), second(5, 100, 0, 0)];
    let other =
        [second(1, 124, 1, 0), second(2, 175, 0, 0), second(3, 200, 0, 0), second(4, 100, 0, 0), second(6, 96, 4, 0)];
    let all: Vec<Span> = one.into_iter().chain(other).collect();
    let mut total = Outcomes::default();
    for span in &all {
        total.add(&span.counts());
    }
    outcome.timeline = timeline::merge(all);
    let results = results(&spec, &outcome);
    assert_eq!(sum(&results), (total.finished(), total.succeeded, total.errors, total.unsent));
    let facts = |stage: &StageResult| {
        (stage.index, stage.name.clone(), stage.from_milliseconds, stage.to_milliseconds, stage.seconds)
    };
    let expected = [
        (0, Some("up".to_owned()), 1_000, 3_000, 2),
        (1, None, 3_000, 4_000, 1),
        (2, Some("down".to_owned()), 4_000, 6_000, 2),
    ];
    assert_eq!(results.iter().map(facts).collect::<Vec<_>>(), expected);
    let rates: Vec<_> = results
        .iter()
        .map(|stage| (stage.rate.from, stage.rate.to, stage.target_per_second, stage.achieved_per_second))
        .collect();
    // Requests that ended after the load count for the last stage's latency, not for its throughput.
    assert_eq!(rates, [(200, 400, 300, 300), (400, 400, 400, 395), (200, 200, 200, 148)]);
    let counts = results.iter().map(|stage| (stage.requests.succeeded, stage.requests.errors, stage.requests.unsent));
    assert_eq!(counts.collect::<Vec<_>>(), [(599, 1, 0), (395, 5, 0), (391, 4, 5)]);
    let up = &results[0].response_time;
    let (near, p50) = (300 * MICROSECOND, up.p50_nanoseconds.unwrap());
    assert!((near..=near * 33 / 32).contains(&p50), "{p50}");
    assert_eq!(up.p99_nanoseconds, None, "600 requests are too few");
    let p50 = &up.percentiles[0];
    let (low, high) = (p50.low_nanoseconds.unwrap(), p50.high_nanoseconds.unwrap());
    assert!(low <= 300 * MICROSECOND && 300 * MICROSECOND <= high, "{p50:?}");
    let down = &results[2].response_time;
    assert!(down.max_nanoseconds.unwrap() >= 700 * MICROSECOND, "{down:?}");
    assert_eq!(down.mean_nanoseconds, None, "some had no answer");
    assert!(results[2].service_time.is_some());
}

#[test]
fn a_second_with_a_border_is_of_no_stage() {
    let spec = spec(&json!([
        {"duration": "1500ms", "rate": {"from": 100, "to": 100}},
        {"duration": "700ms", "rate": {"from": 100, "to": 100}},
        {"duration": "1800ms", "rate": {"from": 100, "to": 100}},
    ]));
    let mut outcome = outcome(4);
    outcome.timeline = (1..6).map(|at| second(at, 100, 0, 0)).collect();
    let results = results(&spec, &outcome);
    let facts = |stage: &StageResult| (stage.index, stage.seconds, stage.requests.scheduled);
    // From 2.5 s to 3.2 s there is no whole second. The first stage has second 1, the last one second 4 and everything later.
    assert_eq!(results.iter().map(facts).collect::<Vec<_>>(), [(0, 1, 100), (2, 1, 200)]);
    // A minute that overlaps several stages counts for none.
    outcome.timeline = vec![Span { second: 0, seconds: 60, ..second(0, 500, 0, 0) }];
    assert_eq!(super::results(&spec, &outcome), []);
}

#[test]
fn a_load_that_ends_early_has_the_stages_that_it_came_to() {
    let spec = spec(&json!([
        {"duration": "2s", "rate": {"from": 100, "to": 100}},
        {"duration": "3s", "rate": {"from": 200, "to": 200}},
        {"duration": "3s", "rate": {"from": 300, "to": 300}},
    ]));
    let mut outcome = outcome(4);
    outcome.timeline = (1..6).map(|at| second(at, 100, 0, 0)).collect();
    let facts = |stage: &StageResult| (stage.index, stage.seconds, stage.requests.scheduled);
    assert_eq!(results(&spec, &outcome).iter().map(facts).collect::<Vec<_>>(), [(0, 2, 200), (1, 2, 300)]);
}

#[test]
fn one_rate_has_no_stages() {
    let mut outcome = outcome(5);
    outcome.timeline = vec![second(1, 100, 0, 0)];
    assert_eq!(results(&sample::open_loop(2), &outcome), []);
    let only = spec(&json!([{"duration": "5s", "rate": {"from": 100, "to": 200}}]));
    assert_eq!(results(&only, &outcome), []);
}

use redisbench_benchmark::api::status::Latencies;
use redisbench_benchmark::measurement::latencies;
use redisbench_benchmark::measurement::merge::merge;
use redisbench_benchmark::quantile::Quantile;
use serde_json::json;

use super::shards::{Requests, outcome, plan, snapshot, spec};

const MILLISECOND: u64 = 1_000_000;

fn of(requests: &Requests) -> (Latencies, Latencies) {
    let merged = merge(&plan(&spec(&json!({}))), &outcome([snapshot(0, requests)])).unwrap().unwrap();
    let asked = &Quantile::USUAL;
    (latencies::response_time(&merged.total, asked), latencies::response_time_of_succeeded(&merged.total, asked))
}

/// Percentiles with only a bound, and the bound.
fn beyond(latencies: &Latencies) -> Vec<(&str, u64)> {
    let beyond = latencies.percentiles.iter();
    beyond.filter_map(|one| Some((one.percentile.as_str(), one.more_than_nanoseconds?))).collect()
}

/// Within the histogram's three digits.
fn about(found: Option<u64>, expected: u64) -> bool {
    found.is_some_and(|found| found.abs_diff(expected) * 1000 <= expected)
}

#[test]
fn a_quantile_is_read_at_its_rank_over_all_scheduled() {
    // 1 ms to 10,000 ms, each once.
    let succeeded: Vec<u64> = (1..=10_000).map(|ms| ms * MILLISECOND).collect();
    let (all, _) = of(&Requests { succeeded, ..Requests::default() });
    assert!(about(all.p50_nanoseconds, 5_000 * MILLISECOND));
    assert!(about(all.p95_nanoseconds, 9_500 * MILLISECOND));
    assert!(about(all.p99_nanoseconds, 9_900 * MILLISECOND));
    assert!(about(all.p999_nanoseconds, 9_990 * MILLISECOND));
    // Needs ten times as many.
    assert_eq!(all.p9999_nanoseconds, None);
    assert_eq!(beyond(&all), []);
}

#[test]
fn requests_without_an_answer_count_as_longer_than_any() {
    // 985 answered in 1 to 985 ms; 10 without a reply and 5 never sent.
    let succeeded: Vec<u64> = (1..=985).map(|ms| ms * MILLISECOND).collect();
    let (all, of_succeeded) = of(&Requests { succeeded, unanswered: 10, unsent: 5, ..Requests::default() });
    assert!(about(all.p90_nanoseconds, 900 * MILLISECOND), "rank 900 of 1000: {all:?}");
    assert_eq!(all.p99_nanoseconds, None);
    let [(percentile, bound)] = beyond(&all)[..] else { panic!("{all:?}") };
    assert!(percentile == "99" && about(Some(bound), 985 * MILLISECOND), "more than {bound}");
    assert!(about(of_succeeded.p95_nanoseconds, 936 * MILLISECOND), "rank 936 of 985: {of_succeeded:?}");
    assert_eq!(beyond(&of_succeeded), []);
}

#[test]
fn a_share_of_exactly_one_minus_q_is_beyond() {
    let requests = |unanswered: u64| Requests {
        succeeded: vec![MILLISECOND; usize::try_from(1000 - unanswered).unwrap()],
        unanswered,
        ..Requests::default()
    };
    let (at_the_edge, _) = of(&requests(10));
    // f = 0.01 = 1 - q: rank 990 of 1000 is the last that was answered, yet what lies above it is unknown.
    assert_eq!(at_the_edge.p99_nanoseconds, None);
    let (above, _) = of(&requests(11));
    assert_eq!(above.p99_nanoseconds, None);
    let (below, _) = of(&requests(9));
    assert!(about(below.p99_nanoseconds, MILLISECOND));
}

#[test]
fn error_replies_have_a_latency_of_their_own() {
    let (all, of_succeeded) = of(&Requests {
        succeeded: vec![MILLISECOND; 500],
        answered_with_errors: vec![9 * MILLISECOND; 500],
        ..Requests::default()
    });
    assert!(about(all.p50_nanoseconds, MILLISECOND));
    assert!(about(all.p90_nanoseconds, 9 * MILLISECOND));
    assert!(about(of_succeeded.p90_nanoseconds, MILLISECOND));
}

#[test]
fn nothing_measured_has_no_quantiles() {
    let (all, _) = of(&Requests::default());
    assert_eq!(all, Latencies::default());
}

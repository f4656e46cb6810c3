use redisbench_benchmark::api::status::Latencies;
use redisbench_benchmark::merge::merge;
use redisbench_benchmark::stats;
use serde_json::json;

use super::shards::{Requests, outcome, plan, snapshot, spec};

const MILLISECOND: u64 = 1_000_000;

fn of(requests: &Requests) -> (Latencies, Latencies) {
    let merged = merge(&plan(&spec(&json!({}))), &outcome([snapshot(0, requests)])).unwrap().unwrap();
    (stats::response_time(&merged.total), stats::response_time_of_succeeded(&merged.total))
}

/// Within the histogram's three digits.
fn about(found: Option<u64>, expected: u64) -> bool {
    found.is_some_and(|found| found.abs_diff(expected) * 1000 <= expected)
}

#[test]
fn a_quantile_is_read_at_its_rank_over_all_scheduled() {
    // 1 ms to 1000 ms, each once.
    let succeeded: Vec<u64> = (1..=1000).map(|ms| ms * MILLISECOND).collect();
    let (all, _) = of(&Requests { succeeded, ..Requests::default() });
    assert!(about(all.p50_nanoseconds, 500 * MILLISECOND));
    assert!(about(all.p99_nanoseconds, 990 * MILLISECOND));
    assert!(about(all.p999_nanoseconds, 999 * MILLISECOND));
    assert!(about(all.p9999_nanoseconds, 1000 * MILLISECOND));
    assert!(all.beyond.is_empty());
}

#[test]
fn requests_without_an_answer_count_as_longer_than_any() {
    // 985 answered in 1 to 985 ms; 10 without a reply and 5 never sent.
    let succeeded: Vec<u64> = (1..=985).map(|ms| ms * MILLISECOND).collect();
    let (all, of_succeeded) = of(&Requests { succeeded, unanswered: 10, unsent: 5, ..Requests::default() });
    assert!(about(all.p90_nanoseconds, 900 * MILLISECOND), "rank 900 of 1000: {all:?}");
    assert_eq!(all.p99_nanoseconds, None);
    let beyond: Vec<&str> = all.beyond.iter().map(|beyond| beyond.quantile.as_str()).collect();
    assert_eq!(beyond, ["p99", "p999", "p9999"]);
    assert!(all.beyond.iter().all(|beyond| about(Some(beyond.more_than_nanoseconds), 985 * MILLISECOND)));
    assert!(about(of_succeeded.p99_nanoseconds, 976 * MILLISECOND), "rank 976 of 985: {of_succeeded:?}");
    assert!(of_succeeded.beyond.is_empty());
}

#[test]
fn a_share_of_exactly_one_minus_q_is_beyond() {
    let requests = |unanswered: u64| Requests {
        succeeded: vec![MILLISECOND; usize::try_from(100 - unanswered).unwrap()],
        unanswered,
        ..Requests::default()
    };
    let (at_the_edge, _) = of(&requests(1));
    // f = 0.01 = 1 - q: rank 99 of 100 is the last that was answered, yet what lies above it is unknown.
    assert_eq!(at_the_edge.p99_nanoseconds, None);
    let (above, _) = of(&requests(2));
    assert_eq!(above.p99_nanoseconds, None);
    let (none, _) = of(&requests(0));
    assert!(about(none.p99_nanoseconds, MILLISECOND));
}

#[test]
fn error_replies_have_a_latency_of_their_own() {
    let (all, of_succeeded) = of(&Requests {
        succeeded: vec![MILLISECOND; 50],
        answered_with_errors: vec![9 * MILLISECOND; 50],
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

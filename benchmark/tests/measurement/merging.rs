use proptest::prelude::*;
use redisbench_benchmark::measurement::latencies;
use redisbench_benchmark::measurement::merge::{Merged, merge};
use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::Series;
use serde_json::json;

use super::shards::{Requests, SECOND, outcome, plan, snapshot, spec};

fn merged(parts: &[Requests]) -> Merged {
    let snapshots = parts.iter().enumerate().map(|(shard, part)| snapshot(u32::try_from(shard).unwrap(), part));
    merge(&plan(&spec(&json!({}))), &outcome(snapshots)).unwrap().unwrap()
}

fn latencies() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..600 * SECOND, 0..100)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn merging_is_recording_in_one_place(parts in prop::collection::vec(latencies(), 1..5)) {
        let mut one = Kind::Request.empty();
        for value in parts.iter().flatten() {
            one.record(*value).unwrap();
        }
        let parts: Vec<Requests> =
            parts.into_iter().map(|succeeded| Requests { succeeded, ..Requests::default() }).collect();
        let merged = merged(&parts);
        for millionths in [100, 500_000, 900_000, 990_000, 999_000, 999_900, 1_000_000] {
            prop_assert_eq!(
                latencies::quantile(&merged.total.response, millionths),
                latencies::quantile(&one, millionths)
            );
        }
        prop_assert_eq!(&merged.total.response, &one);
        prop_assert_eq!(merged.total.response.len(), merged.total.tally.succeeded);
    }

    #[test]
    fn every_request_is_counted_once(
        parts in prop::collection::vec((latencies(), latencies(), 0..9_u64, 0..9_u64), 1..5)
    ) {
        let parts: Vec<Requests> = parts
            .into_iter()
            .map(|(succeeded, answered_with_errors, unanswered, unsent)| {
                Requests { succeeded, answered_with_errors, unanswered, unsent }
            })
            .collect();
        let tally = merged(&parts).total.tally;
        prop_assert!(tally.balances());
        prop_assert_eq!(tally.scheduled, parts.iter().map(|part| part.tally().scheduled).sum::<u64>());
    }
}

#[test]
fn throughput_is_that_of_the_common_window() {
    let requests = Requests { succeeded: vec![SECOND / 1000; 1000], ..Requests::default() };
    let first = snapshot(0, &requests);
    let mut second = snapshot(1, &requests);
    // Begins to measure 2 s later and ends 1 s earlier; completions outside the common window do not count.
    second.window.measure_from_nanoseconds += 2 * SECOND;
    second.window.measure_to_nanoseconds -= SECOND;
    let merged = merge(&plan(&spec(&json!({}))), &outcome([first, second])).unwrap().unwrap();
    assert_eq!(merged.pace.window_nanoseconds, 7 * SECOND);
    assert_eq!((merged.pace.mean, merged.pace.slowest, merged.pace.fastest), (200, 200, 200));
}

#[test]
fn points_of_different_lengths_are_added_by_time() {
    let requests = Requests { succeeded: vec![SECOND / 1000; 1000], ..Requests::default() };
    let fine = snapshot(0, &requests);
    let mut coarse = snapshot(1, &requests);
    // A reply after the tenth minute switched this shard to points of a second.
    coarse.series = Series { interval_nanoseconds: SECOND, completed: vec![100; 10] };
    let merged = merge(&plan(&spec(&json!({}))), &outcome([fine, coarse])).unwrap().unwrap();
    assert_eq!((merged.pace.mean, merged.pace.slowest, merged.pace.fastest), (200, 200, 200));
}

#[test]
fn a_number_of_requests_that_is_sent_at_once_is_counted_over_its_tail() {
    let mut only = snapshot(0, &Requests { succeeded: vec![SECOND / 100; 100], ..Requests::default() });
    // The last was sent after 50 us, and the last reply came after 10 ms.
    only.window.measure_to_nanoseconds = only.window.start_nanoseconds + 50_000;
    only.window.drained_nanoseconds = only.window.start_nanoseconds + SECOND / 100;
    only.series.completed = vec![100];
    let merged = merge(&plan(&spec(&json!({}))), &outcome([only])).unwrap().unwrap();
    assert_eq!(merged.pace.mean, 10_000);
}

#[test]
fn an_impossible_series_does_not_fill_the_memory() {
    let requests = Requests { succeeded: vec![SECOND / 1000; 1000], ..Requests::default() };
    let mut impossible = snapshot(0, &requests);
    impossible.series.interval_nanoseconds = 1;
    impossible.window.measure_to_nanoseconds = u64::MAX;
    impossible.taken_nanoseconds = u64::MAX;
    assert!(merge(&plan(&spec(&json!({}))), &outcome([impossible])).unwrap().is_some());
}

#[test]
fn the_slowest_and_the_fastest_second_are_found() {
    let requests = Requests { succeeded: vec![SECOND / 1000; 1000], ..Requests::default() };
    let mut only = snapshot(0, &requests);
    only.series.completed[30..40].fill(0);
    only.series.completed[50..60].fill(20);
    let merged = merge(&plan(&spec(&json!({}))), &outcome([only])).unwrap().unwrap();
    assert_eq!((merged.pace.mean, merged.pace.slowest, merged.pace.fastest), (100, 0, 200));
}

#[test]
fn what_a_lost_shard_would_have_sent_is_unknown() {
    let whole = Requests { succeeded: vec![SECOND / 1000; 5000], ..Requests::default() };
    let part = Requests { succeeded: vec![SECOND / 1000; 1200], ..Requests::default() };
    let mut outcome = outcome([snapshot(0, &whole), snapshot(1, &part)]);
    outcome.shards[1].lost = Some("its pod was deleted".into());
    outcome.shards[1].partial = true;
    let live = outcome.shards[1].snapshot.as_mut().unwrap();
    live.taken_nanoseconds = live.window.start_nanoseconds + 3 * SECOND;
    live.series = Series::default();
    let merged = merge(&plan(&spec(&json!({}))), &outcome).unwrap().unwrap();
    assert_eq!(merged.total.unknown, 3800);
    assert_eq!(merged.unknown, [0, 3800]);
    assert_eq!(merged.total.tally.scheduled, 6200);
    assert_eq!((merged.pace.window_nanoseconds, merged.pace.mean), (10 * SECOND, 500), "of the shard that is whole");
}

#[test]
fn a_histogram_of_other_bounds_is_refused() {
    let mut wrong = snapshot(0, &Requests::default());
    wrong.latency.response = redisbench_wire::histogram::EncodedHistogram::encode(&Kind::Node.empty()).unwrap();
    assert!(merge(&plan(&spec(&json!({}))), &outcome([wrong])).is_err());
}

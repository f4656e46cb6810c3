use std::collections::BTreeMap;

use proptest::prelude::*;
use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::Series;
use serde_json::json;

use super::*;
use crate::measurement::latencies;
use crate::sample::{encoded, histogram, lose, open_loop, outcome, snapshot, spec, with_timeouts};

fn merged(snapshots: Vec<Snapshot>) -> Merged {
    let spec = open_loop(u32::try_from(snapshots.len()).unwrap());
    merge(&spec.plan, &outcome(snapshots)).unwrap().unwrap()
}

#[test]
fn nothing_heard_is_nothing_merged() {
    let mut outcome = outcome(vec![snapshot(0, &[1])]);
    outcome.shards[0].snapshot = None;
    assert_eq!(merge(&open_loop(1).plan, &outcome).unwrap(), None);
}

#[test]
fn the_merge_of_one_is_that_one() {
    let values = [700, 800, 900_000];
    let merged = merged(vec![snapshot(0, &values)]);
    assert_eq!(merged.total.tally, snapshot(0, &values).total);
    assert_eq!(merged.total.response, histogram(Kind::Request, &values));
    assert_eq!(merged.operations[0].measured.response, merged.total.response);
    assert_eq!(merged.nodes[0].requests, 3);
    assert_eq!(merged.total.unknown, 0);
}

#[test]
fn points_that_are_only_half_in_the_window_are_left_out() {
    let mut odd = snapshot(0, &[1000; 1_000]);
    odd.window.measure_from_nanoseconds += SECOND / 20;
    odd.series.completed[0] = 999;
    odd.series.completed[50] = 110;
    let throughput = merged(vec![odd]).throughput;
    assert_eq!(throughput.window_nanoseconds, 10 * SECOND - SECOND / 20);
    // 98 points of 10 requests and one of 110 in 9.9 s.
    assert_eq!((throughput.mean, throughput.slowest, throughput.fastest), (110, 100, 200));
}

#[test]
fn the_unknown_rest_of_a_quota_is_exact() {
    let spec = spec(3, &json!({"type": "ClosedLoop", "requests": 100}));
    let mut outcome = outcome(vec![snapshot(0, &[1]), snapshot(1, &[1; 33]), snapshot(2, &[1; 33])]);
    lose(&mut outcome, 0);
    assert_eq!(merge(&spec.plan, &outcome).unwrap().unwrap().total.unknown, 33);
}

#[test]
fn sums_stop_at_the_largest_number() {
    let mut boundless = with_timeouts(snapshot(0, &[1; 1_000]), 1);
    boundless.errors[0].count = u64::MAX;
    boundless.operations[0].nil_replies = u64::MAX;
    (boundless.preloaded_keys, boundless.preload_commands) = (u64::MAX, u64::MAX);
    let node = &mut boundless.nodes[0];
    (node.requests, node.errors, node.redirects) = (u64::MAX, u64::MAX, u64::MAX);
    boundless.series.completed.fill(u64::MAX);
    boundless.total.succeeded = u64::MAX;
    let merged = merged(vec![boundless.clone(), boundless]);
    assert_eq!((merged.errors[0].count, merged.nodes[0].requests), (u64::MAX, u64::MAX));
    assert_eq!((merged.preloaded_keys, merged.operations[0].nil_replies), (u64::MAX, u64::MAX));
    assert_eq!(merged.throughput.fastest, u64::MAX);
}

#[test]
fn errors_of_a_kind_add_up_and_keep_the_first_message() {
    let merged = merged(vec![with_timeouts(snapshot(0, &[1]), 2), with_timeouts(snapshot(1, &[1]), 3)]);
    assert_eq!(merged.errors.len(), 1);
    assert_eq!((merged.errors[0].count, merged.errors[0].first_message.as_str()), (5, "no reply within 1s"));
    assert_eq!(merged.total.tally.unanswered, 5);
    assert!(merged.total.tally.balances());
}

/// A shard with a thousand requests of 1 ms.
fn thousand(shard: u32) -> Snapshot {
    snapshot(shard, &[SECOND / 1000; 1000])
}

/// The mean, slowest and fastest second of all shards.
fn throughput_of(snapshots: Vec<Snapshot>) -> (u64, u64, u64) {
    let throughput = merged(snapshots).throughput;
    (throughput.mean, throughput.slowest, throughput.fastest)
}

#[test]
fn throughput_is_that_of_the_common_window() {
    let (first, mut second) = (thousand(0), thousand(1));
    // Begins to measure 2 s later and ends 1 s earlier; completions outside the common window do not count.
    second.window.measure_from_nanoseconds += 2 * SECOND;
    second.window.measure_to_nanoseconds -= SECOND;
    assert_eq!(merged(vec![first.clone(), second.clone()]).throughput.window_nanoseconds, 7 * SECOND);
    assert_eq!(throughput_of(vec![first, second]), (200, 200, 200));
}

#[test]
fn points_of_different_lengths_are_added_by_time() {
    let (fine, mut coarse) = (thousand(0), thousand(1));
    // A reply after the tenth minute switched this shard to points of a second.
    coarse.series = Series { interval_nanoseconds: SECOND, completed: vec![100; 10] };
    assert_eq!(throughput_of(vec![fine, coarse]), (200, 200, 200));
}

#[test]
fn a_number_of_requests_that_is_sent_at_once_is_counted_over_its_tail() {
    let mut only = snapshot(0, &[SECOND / 100; 100]);
    // The last was sent after 50 us, and the last reply came after 10 ms.
    only.window.measure_to_nanoseconds = only.window.start_nanoseconds + 50_000;
    only.window.drained_nanoseconds = only.window.start_nanoseconds + SECOND / 100;
    only.series.completed = vec![100];
    assert_eq!(throughput_of(vec![only]).0, 10_000);
}

#[test]
fn an_impossible_series_does_not_fill_the_memory() {
    let mut impossible = thousand(0);
    impossible.series.interval_nanoseconds = 1;
    impossible.window.measure_to_nanoseconds = u64::MAX;
    impossible.taken_nanoseconds = u64::MAX;
    merged(vec![impossible]);
}

#[test]
fn the_slowest_and_the_fastest_second_are_found() {
    let mut only = thousand(0);
    only.series.completed[30..40].fill(0);
    only.series.completed[50..60].fill(20);
    assert_eq!(throughput_of(vec![only]), (100, 0, 200));
}

#[test]
fn what_a_lost_shard_would_have_sent_is_unknown() {
    let mut outcome = outcome(vec![snapshot(0, &[SECOND / 1000; 5000]), snapshot(1, &[SECOND / 1000; 1200])]);
    lose(&mut outcome, 1);
    let merged = merge(&open_loop(2).plan, &outcome).unwrap().unwrap();
    assert_eq!((merged.total.unknown, merged.unknown), (3800, vec![0, 3800]));
    assert_eq!(merged.total.tally.scheduled, 6200);
    assert_eq!(
        (merged.throughput.window_nanoseconds, merged.throughput.mean),
        (10 * SECOND, 500),
        "of the shard that is whole"
    );
}

#[test]
fn a_histogram_of_other_bounds_is_refused() {
    let mut wrong = snapshot(0, &[]);
    wrong.latency.response = encoded(Kind::Node, &[]);
    assert!(merge(&open_loop(1).plan, &outcome(vec![wrong])).is_err());
}

fn times() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..600 * SECOND, 0..100)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn merging_is_recording_in_one_place(parts in prop::collection::vec(times(), 1..5)) {
        let one = histogram(Kind::Request, &parts.concat());
        let merged = merged((0..).zip(&parts).map(|(shard, values)| snapshot(shard, values)).collect());
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
        parts in prop::collection::vec((times(), times(), 0..9_u64, 0..9_u64), 1..5)
    ) {
        let mut scheduled = 0;
        let shard = |(shard, (succeeded, answered, unanswered, unsent)): (u32, (Vec<u64>, Vec<u64>, u64, u64))| {
            let mut snapshot = snapshot(shard, &succeeded);
            let errors = answered.len() as u64 + unanswered;
            snapshot.total.add(&Tally { scheduled: errors + unsent, errors, unanswered, unsent, ..Tally::default() });
            snapshot.latency.error_replies = (!answered.is_empty()).then(|| encoded(Kind::Request, &answered));
            scheduled += succeeded.len() as u64 + errors + unsent;
            snapshot
        };
        let tally = merged((0..).zip(parts).map(shard).collect()).total.tally;
        prop_assert!(tally.balances());
        prop_assert_eq!(tally.scheduled, scheduled);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn nodes_and_operations_sum_to_the_total(
        values in prop::collection::vec(prop::collection::vec(1_u64..600_000_000_000, 0..100), 1..6),
    ) {
        let snapshots: Vec<Snapshot> = (0..).zip(&values).map(|(shard, values)| snapshot(shard, values)).collect();
        let merged = merged(snapshots);
        let all: Vec<u64> = values.concat();
        prop_assert_eq!(&merged.nodes[0].service, &histogram(Kind::Node, &all));
        prop_assert_eq!(merged.nodes.iter().map(|node| node.requests).sum::<u64>(), merged.total.tally.scheduled);
        let operations: u64 = merged.operations.iter().map(|part| part.measured.tally.scheduled).sum();
        prop_assert_eq!(operations, merged.total.tally.scheduled);
    }

    #[test]
    fn what_is_due_is_split_over_the_shards(rate in 1_u64..5_000, shards in 1_u32..20, until in 0_u64..3_000_000_000) {
        let plan = open_loop(shards).plan;
        let even = CumulativeRate::new(rate, 0, &[]);
        let counts: Vec<u64> = (0..shards).map(|shard| due_before(&plan, shard, &even, until)).collect();
        let mut expected = BTreeMap::new();
        for k in (0..).take_while(|k| u128::from(*k) * u128::from(SECOND) < u128::from(until) * u128::from(rate)) {
            *expected.entry(k % u64::from(shards)).or_insert(0) += 1_u64;
        }
        for (shard, count) in (0..).zip(counts) {
            prop_assert_eq!(count, expected.get(&shard).copied().unwrap_or(0));
        }
    }
}

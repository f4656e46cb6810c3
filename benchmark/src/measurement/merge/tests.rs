use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::sample::{histogram, lose, open_loop, outcome, snapshot, spec, with_timeouts};

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
    let pace = merged(vec![odd]).pace;
    assert_eq!(pace.window_nanoseconds, 10 * SECOND - SECOND / 20);
    // 98 points of 10 requests and one of 110 in 9.9 s.
    assert_eq!((pace.mean, pace.slowest, pace.fastest), (110, 100, 200));
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
    assert_eq!(merged.pace.fastest, u64::MAX);
}

#[test]
fn errors_of_a_kind_add_up_and_keep_the_first_message() {
    let merged = merged(vec![with_timeouts(snapshot(0, &[1]), 2), with_timeouts(snapshot(1, &[1]), 3)]);
    assert_eq!(merged.errors.len(), 1);
    assert_eq!((merged.errors[0].count, merged.errors[0].first_message.as_str()), (5, "no reply within 1s"));
    assert_eq!(merged.total.tally.unanswered, 5);
    assert!(merged.total.tally.balances());
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

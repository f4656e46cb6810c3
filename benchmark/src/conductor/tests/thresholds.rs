//! Tests of thresholds that stop the load.

use std::sync::Arc;
use std::time::Duration;

use super::super::polled::Share;
use super::super::{Ending, reason};
use super::{MEASURED, Rig, evicted, failure, succeeded};
use crate::api::{Limit, Scope, Threshold};
use crate::quantile::Quantile;

fn p99(milliseconds: u64) -> Threshold {
    let limit =
        Limit::ResponseTime { quantile: Quantile::parse("0.99").unwrap(), max: Duration::from_millis(milliseconds) };
    Threshold { name: "p99".into(), limit, scope: Scope::Total, window: None, abort_on_fail: true }
}

#[test]
fn a_threshold_stops_the_load_of_every_shard_and_what_was_measured_is_kept() {
    // Shard i answers in i + 1 ms: p99 over four shards is 4 ms.
    let mut rig = Rig::new(4);
    rig.config.thresholds = vec![p99(10), p99(3)];
    let outcome = rig.conduct();
    let failure = failure(&outcome);
    assert_eq!(failure.reason, reason::THRESHOLD_FAILED);
    assert!(failure.message.contains("threshold p99: p99 of response time is 4.0"), "{failure}");
    assert!((0..4).all(|shard| !rig.shards.has_load(shard)));
    // Each makes 1,000 a second, and the first second that all have completed breaks the threshold.
    assert!(succeeded(&outcome).iter().all(|count| (1..=3_500).contains(count)), "{:?}", succeeded(&outcome));
    assert_eq!(
        outcome.thresholds.iter().map(|one| one.standing.holds()).collect::<Vec<_>>(),
        [Some(true), Some(false)]
    );
}

#[test]
fn thresholds_that_hold_stop_nothing() {
    let mut rig = Rig::new(2);
    let windowed = Threshold { window: Some(Duration::from_secs(10)), ..p99(3) };
    rig.config.thresholds = vec![p99(3), windowed];
    let outcome = rig.complete(1);
    let windows: Vec<_> = outcome.thresholds.iter().map(|one| one.standing.windows).collect();
    assert_eq!(windows[0], 0);
    assert_eq!(windows[1], 51, "a window ends every second");
}

fn throughput(min_per_second: u64) -> Threshold {
    let limit = Limit::Throughput { min_per_second };
    Threshold { name: "throughput".into(), limit, scope: Scope::Total, window: None, abort_on_fail: true }
}

/// Shards are polled one after another, so at no moment have all been measured for the same time.
#[test]
fn a_throughput_that_is_kept_stops_nothing_however_many_shards_make_it() {
    for count in [1, 2, 7, 150] {
        let mut rig = Rig::new(count);
        rig.config.thresholds = vec![throughput(950 * u64::from(count))];
        assert_eq!(rig.conduct().ending, Ending::Completed, "{count} shards");
    }
}

#[test]
fn a_throughput_that_is_not_kept_stops_the_load_after_some_seconds() {
    let mut rig = Rig::new(2);
    rig.config.thresholds = vec![throughput(2_100)];
    let outcome = rig.conduct();
    assert!(failure(&outcome).message.contains("the throughput is 2.00k/s"), "{}", failure(&outcome));
    assert!(succeeded(&outcome).iter().all(|count| (5_000..9_000).contains(count)), "{:?}", succeeded(&outcome));
}

/// Beside 8,000 shards of other benchmarks, each of 400 is polled every 4 s.
#[test]
fn windows_are_as_long_as_asked_for_however_many_shards_there_are() {
    for (count, others) in [(1, 0), (150, 0), (400, 8_000)] {
        let mut rig = Rig::new(count);
        let _others = Share::of(Arc::clone(&rig.config.polled), others);
        let asked = Threshold { window: Some(Duration::from_secs(2)), ..throughput(1_000 * u64::from(count)) };
        let more = Limit::Throughput { min_per_second: 1_000 * u64::from(count) + 1 };
        rig.config.thresholds = vec![asked.clone(), Threshold { limit: more, abort_on_fail: false, ..asked }];
        let outcome = rig.complete(1);
        let windows = outcome.thresholds.iter().map(|one| (one.standing.windows, one.standing.failed_windows));
        // One window ends with each second of a minute but the first, and each holds exactly two seconds of all shards.
        assert_eq!(windows.collect::<Vec<_>>(), [(59, 0), (59, 59)], "{count} shards");
    }
}

/// Shards are polled one after another, so no two of their snapshots are of the same instant.
#[test]
fn windows_of_nodes_are_as_exact_as_those_of_all_requests() {
    for (count, others) in [(1, 0), (150, 0), (400, 8_000)] {
        let mut rig = Rig::new(count);
        let _others = Share::of(Arc::clone(&rig.config.polled), others);
        rig.plan().node_seconds = true;
        let window = Some(Duration::from_secs(2));
        let each = |min_per_second| Threshold {
            scope: Scope::EachNode,
            window,
            abort_on_fail: false,
            ..throughput(min_per_second)
        };
        rig.config.thresholds = vec![each(1_000 * u64::from(count)), each(1_000 * u64::from(count) + 1)];
        let outcome = rig.complete(1);
        let windows = outcome.thresholds.iter().map(|one| (one.standing.windows, one.standing.failed_windows));
        assert_eq!(windows.collect::<Vec<_>>(), [(59, 0), (59, 59)], "{count} shards");
        assert_eq!(outcome.thresholds[1].standing.worst.as_ref().unwrap().node.as_deref(), Some("redis:6379"));
        let live = rig.progress.live.clone().unwrap();
        let [node] = &live.nodes[..] else { panic!("{:?}", live.nodes) };
        assert_eq!((node.requests_per_second, node.p99_nanoseconds.is_some()), (1_000 * u64::from(count), true));
    }
}

#[test]
fn a_lost_shard_shows_in_the_throughput_of_the_others() {
    let mut rig = Rig::new(2);
    rig.config.thresholds = vec![Threshold { window: Some(Duration::from_secs(5)), ..throughput(1_500) }];
    rig.until_measuring();
    rig.pass(MEASURED / 4);
    rig.set_presence(1, evicted());
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, reason::THRESHOLD_FAILED);
    assert!(succeeded(&outcome)[0] < 30_000, "{:?}", succeeded(&outcome));
}

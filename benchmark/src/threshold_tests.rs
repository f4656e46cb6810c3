use proptest::prelude::*;
use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::{Snapshot, Stage, Tally};

use super::*;
use crate::merge::merge;
use crate::plan::plans;
use crate::sample::{self, SECOND, open_loop, outcome, with_timeouts};

const MILLISECOND: u64 = 1_000_000;

fn quantile(text: &str) -> Quantile {
    Quantile::parse(text).unwrap()
}

fn response(text: &str, max: Duration) -> Limit {
    Limit::ResponseTime { quantile: quantile(text), max }
}

fn of(limit: Limit) -> Threshold {
    Threshold { name: "it".into(), limit, scope: Scope::Total, window: None, abort_on_fail: false }
}

fn whole(snapshots: Vec<Snapshot>) -> Sight {
    let plans = plans(&open_loop(u32::try_from(snapshots.len()).unwrap()), "run");
    Sight::whole(&merge(&plans, &outcome(snapshots)).unwrap().unwrap())
}

fn judge(threshold: &Threshold, snapshots: Vec<Snapshot>) -> Standing {
    threshold.judge(&whole(snapshots)).unwrap()
}

#[test]
fn a_quantile_is_that_of_all_shards_together() {
    // 1 of 100 requests is slow, all of them on one shard: 2 % there, none on the other.
    let fast = [MILLISECOND; 1_000];
    let slow = [&[MILLISECOND; 980][..], &[50 * MILLISECOND; 20]].concat();
    let shards = || vec![sample::snapshot(0, &fast), sample::snapshot(1, &slow)];
    let at = |text: &str| judge(&of(response(text, Duration::from_millis(10))), shards()).holds();
    assert_eq!((at("0.99"), at("0.991"), at("1")), (Some(true), Some(false), Some(false)));
}

#[test]
fn the_bound_itself_is_allowed() {
    let one = || vec![sample::snapshot(0, &[MILLISECOND; 100])];
    // A histogram knows a value to a thousandth.
    let highest = Duration::from_nanos(Kind::Request.empty().highest_equivalent(MILLISECOND));
    assert_eq!(judge(&of(response("0.5", highest)), one()).holds(), Some(true));
    assert_eq!(judge(&of(response("0.5", highest / 2)), one()).holds(), Some(false));
    // 100 in 10 s.
    let throughput = |min_per_second| judge(&of(Limit::Throughput { min_per_second }), one()).holds();
    assert_eq!((throughput(10), throughput(11)), (Some(true), Some(false)));
    let errors = |max_basis_points| {
        let failing = with_timeouts(sample::snapshot(0, &[1; 99]), 1);
        judge(&of(Limit::ErrorRate { max_basis_points }), vec![failing]).holds()
    };
    assert_eq!((errors(100), errors(99)), (Some(true), Some(false)));
}

#[test]
fn requests_without_an_answer_are_longer_than_any_with_one() {
    let failing = with_timeouts(sample::snapshot(0, &[MILLISECOND; 980]), 20);
    let standing = judge(&of(response("0.99", Duration::from_secs(600))), vec![failing]);
    assert_eq!(standing.holds(), Some(false));
    assert!(matches!(standing.worst.unwrap().observed, Observed::Latency(Censored::MoreThan(_))));
}

/// One request decided it.
#[test]
fn a_quantile_of_too_few_requests_is_not_judged() {
    for limit in [
        response("0.9999", Duration::from_millis(5)),
        response("0.9999", Duration::from_micros(5)),
        Limit::ServiceTime { quantile: quantile("0.9999"), max: Duration::from_millis(5) },
    ] {
        let few = judge(&of(limit), vec![sample::snapshot(0, &[MILLISECOND; 180])]);
        assert_eq!(few.holds(), None, "{limit:?}");
        let said = of(limit).describe(&few);
        assert!(said.contains("could not be judged: fewer than the 100,000 requests that it takes"), "{said}");
    }
    assert_eq!(
        judge(&of(response("0.9", Duration::from_millis(5))), vec![sample::snapshot(0, &[MILLISECOND; 100])]).holds(),
        Some(true)
    );
}

#[test]
fn nothing_measured_is_nothing_judged() {
    let empty = || vec![sample::snapshot(0, &[])];
    assert_eq!(judge(&of(response("0.99", Duration::from_millis(1))), empty()).holds(), None);
    assert_eq!(judge(&of(Limit::ErrorRate { max_basis_points: 0 }), empty()).holds(), None);
    // That no request succeeded is known.
    assert_eq!(judge(&of(Limit::Throughput { min_per_second: 1 }), empty()).holds(), Some(false));
    let other = Threshold { scope: Scope::Operation("other".into()), ..of(Limit::ErrorRate { max_basis_points: 0 }) };
    assert_eq!(judge(&other, vec![sample::snapshot(0, &[1])]).holds(), None);
}

#[test]
fn the_worst_node_decides() {
    let mut snapshot = sample::snapshot(0, &[MILLISECOND; 100]);
    let mut slow = snapshot.nodes[0].clone();
    slow.address = "slow:6379".into();
    slow.service =
        redisbench_wire::histogram::EncodedHistogram::encode(&sample::histogram(Kind::Node, &[9 * MILLISECOND; 100]))
            .unwrap();
    snapshot.nodes.push(slow);
    let limit = Limit::ServiceTime { quantile: quantile("0.5"), max: Duration::from_millis(5) };
    let standing = judge(&Threshold { scope: Scope::EachNode, ..of(limit) }, vec![snapshot]);
    let worst = standing.worst.unwrap();
    assert_eq!((worst.holds, worst.node.as_deref()), (false, Some("slow:6379")));
}

#[test]
fn people_are_told_what_was_seen_and_what_is_wanted() {
    let threshold = of(response("0.999", Duration::from_millis(2)));
    let standing = judge(&threshold, vec![sample::snapshot(0, &[MILLISECOND; 10_000])]);
    assert_eq!(threshold.describe(&standing), "p99.9 of response time is 1.00 ms; at most 2.00 ms is wanted");
    let errors = Threshold { scope: Scope::Operation("get".into()), ..of(Limit::ErrorRate { max_basis_points: 1 }) };
    assert_eq!(
        errors.describe(&Standing::default()),
        "the error rate of get could not be judged: too few requests; at most 0.01 % is wanted"
    );
}

/// A shard that measures, after so many seconds, with these response times.
fn measuring(seconds: u64, values: &[u64]) -> Snapshot {
    let mut snapshot = sample::snapshot(0, values);
    snapshot.stage = Stage::Measuring;
    snapshot.taken_nanoseconds = snapshot.window.measure_from_nanoseconds + seconds * SECOND;
    snapshot.window.measure_to_nanoseconds = 0;
    snapshot
}

fn windowed(limit: Limit, seconds: u64) -> Threshold {
    Threshold { window: Some(Duration::from_secs(seconds)), ..of(limit) }
}

#[test]
fn a_window_holds_what_came_in_it_and_no_more() {
    // A request per millisecond; all those of the 7th second take 9 ms.
    let so_far = |seconds: u64| -> Vec<u64> {
        (0..seconds * 1000).map(|at| if at / 1000 == 6 { 9 * MILLISECOND } else { MILLISECOND }).collect()
    };
    let limit = response("0.6", Duration::from_millis(5));
    let mut watch = Watch::new(vec![windowed(limit, 2), windowed(limit, 4)], Vec::new());
    for second in 0..=12 {
        assert_eq!(watch.look(&[&measuring(second, &so_far(second))]), None);
    }
    let [two, four] = &watch.judged()[..] else { panic!() };
    // Half of a window of two seconds are slow, which is more than 0.4; a quarter of one of four is not.
    assert_eq!((two.standing.windows, two.standing.failed_windows), (11, 2));
    assert_eq!((four.standing.windows, four.standing.failed_windows), (9, 0));
    let worst = two.standing.worst.as_ref().unwrap();
    assert_eq!((worst.holds, worst.at), (false, Some(Duration::from_secs(7))));
    assert!(two.threshold.describe(&two.standing).contains("7s after the measurement began"), "{two:?}");
}

#[test]
fn a_stall_shows_in_the_throughput_of_a_window() {
    let limit = Limit::Throughput { min_per_second: 500 };
    let mut watch = Watch::new(vec![Threshold { abort_on_fail: true, ..windowed(limit, 2) }], Vec::new());
    let mut said = Vec::new();
    for second in 0..=10_u64 {
        // 1000/s, and nothing after the fifth second.
        said.extend(
            watch.look(&[&measuring(second, &vec![MILLISECOND; 1000 * usize::try_from(second.min(5)).unwrap()])]),
        );
    }
    assert_eq!(said.len(), 4, "from the 7th second on: {said:?}");
    assert!(said[0].contains("0.00/s") || said[0].contains("0/s"), "{said:?}");
}

#[test]
fn a_quantile_waits_for_enough_requests_before_it_stops_the_load() {
    let stop = Threshold { abort_on_fail: true, ..of(response("0.99", Duration::from_millis(5))) };
    let mut watch = Watch::new(vec![stop], Vec::new());
    assert_eq!(watch.look(&[&measuring(1, &[9 * MILLISECOND; 999])]), None);
    assert!(watch.look(&[&measuring(1, &[9 * MILLISECOND; 1000])]).unwrap().contains("9.0"));
}

#[test]
fn what_is_in_flight_is_not_held_against_a_quantile_while_the_load_runs() {
    let stop = Threshold { abort_on_fail: true, ..of(response("0.9", Duration::from_millis(5))) };
    let mut watch = Watch::new(vec![stop], Vec::new());
    let mut busy = measuring(1, &[MILLISECOND; 100]);
    busy.total.add(&Tally { scheduled: 50, in_flight: 50, ..Tally::default() });
    assert_eq!(watch.look(&[&busy]), None);
    let mut unsent = measuring(1, &[MILLISECOND; 100]);
    unsent.total.add(&Tally { scheduled: 50, unsent: 50, ..Tally::default() });
    assert!(watch.look(&[&unsent]).unwrap().contains("had no answer"));
}

#[test]
fn only_load_that_counts_is_judged() {
    let stop = Threshold { abort_on_fail: true, ..of(Limit::Throughput { min_per_second: 1 }) };
    let mut watch = Watch::new(vec![stop], Vec::new());
    for stage in [Stage::Waiting, Stage::Warmup, Stage::Draining, Stage::Done] {
        assert_eq!(watch.look(&[&Snapshot { stage, ..measuring(1, &[]) }]), None);
    }
    assert!(watch.look(&[&measuring(1, &[])]).is_some());
    watch.forget();
    assert_eq!(watch.judged()[0].standing, Standing::default());
}

proptest! {
    #[test]
    fn a_window_is_the_difference_of_what_was_recorded(
        before in prop::collection::vec(1_u64..10_000_000, 0..60),
        within in prop::collection::vec(1_u64..10_000_000, 1..60),
        millionths in 1_u32..=1_000_000,
    ) {
        let quantile = Quantile::of_millionths(millionths).unwrap();
        let limit = Limit::ResponseTime { quantile, max: Duration::from_millis(1) };
        let all = [before.clone(), within.clone()].concat();
        let first = Sight::so_far(&[&measuring(3, &before)], &[]).unwrap();
        let second = Sight::so_far(&[&measuring(5, &all)], &[]).unwrap();
        let window = second.since(&first, 2 * SECOND).unwrap();
        let alone = Sight::so_far(&[&measuring(2, &within)], &[]).unwrap();
        let threshold = of(limit);
        prop_assert_eq!(threshold.worst(&window, 1, None), threshold.worst(&alone, 1, None));
        let throughput = of(Limit::Throughput { min_per_second: 1 });
        prop_assert_eq!(throughput.worst(&window, 1, None), throughput.worst(&alone, 1, None));
        // Counts that went back are of another attempt.
        prop_assert!(before.is_empty() || first.since(&second, SECOND).is_none());
    }
}

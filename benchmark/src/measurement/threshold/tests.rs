use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::timeline::{Coarse, History, NodePart, Outcomes, Span, SpanPart};

use super::*;
use crate::api::{Scope, watches_nodes};
use crate::measurement::merge::merge;
use crate::quantile::Quantile;
use crate::sample::{self, open_loop, outcome, with_timeouts};

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

fn whole(snapshots: Vec<Snapshot>) -> Observation {
    let spec = open_loop(u32::try_from(snapshots.len()).unwrap());
    Observation::whole(&merge(&spec.plan, &outcome(snapshots)).unwrap().unwrap())
}

fn judge(threshold: &Threshold, snapshots: Vec<Snapshot>) -> ThresholdState {
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
    // A histogram has a precision of one thousandth.
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
    let worst = standing.worst.unwrap();
    assert!(matches!(worst.observed, Observed::Latency(Censored::MoreThan(_))));
    assert_eq!(worst.interval, None);
}

/// Every latency from 1 µs to 10 ms occurs once: p99 is 9.9 ms, and its interval spans about 40 µs. A histogram is exact to 9 µs there.
#[test]
fn the_message_says_whether_the_bound_is_in_the_interval() {
    let values: Vec<u64> = (1..=10_000).map(|step| 1_000 * step).collect();
    for service in [false, true] {
        for (microseconds, holds, unclear) in
            [(9_800, false, false), (9_895, false, true), (9_915, true, true), (10_000, true, false)]
        {
            let (quantile, max) = (quantile("0.99"), Duration::from_micros(microseconds));
            let limit =
                if service { Limit::ServiceTime { quantile, max } } else { Limit::ResponseTime { quantile, max } };
            let standing = judge(&of(limit), vec![sample::snapshot(0, &values)]);
            assert_eq!(standing.holds(), Some(holds), "{microseconds}");
            let interval = standing.worst.as_ref().unwrap().interval.unwrap();
            let (low, high) = (interval.low / 1_000, interval.high.unwrap() / 1_000);
            assert!((9_860..9_895).contains(&low) && (9_916..9_940).contains(&high), "{low} {high}");
            let message = of(limit).describe(&standing);
            assert!(message.contains(" ms (95 % interval 9.8") && message.contains(" to 9.9"), "{message}");
            assert_eq!(message.ends_with("; not clear: the interval includes the bound"), unclear, "{message}");
        }
    }
    // Its upper end is among requests without an answer.
    let censored = with_timeouts(sample::snapshot(0, &values[..9_905]), 95);
    let limit = response("0.99", Duration::from_millis(10));
    let standing = judge(&of(limit), vec![censored]);
    assert_eq!(standing.worst.as_ref().unwrap().interval.unwrap().high, None);
    let message = of(limit).describe(&standing);
    assert!(message.contains(" ms, upper end unknown); must be at most 10.0 ms; not clear: "), "{message}");
}

/// One request would have decided it.
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
        assert!(said.contains("could not be judged: fewer than the required 100,000 requests"), "{said}");
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
    // A throughput of zero is known even without requests.
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
    assert!(worst.interval.unwrap().low > 8 * MILLISECOND, "its own interval: {worst:?}");
}

#[test]
fn people_are_told_what_was_seen_and_what_is_wanted() {
    let threshold = of(response("0.999", Duration::from_millis(2)));
    let standing = judge(&threshold, vec![sample::snapshot(0, &[MILLISECOND; 10_000])]);
    assert_eq!(
        threshold.describe(&standing),
        "p99.9 of response time is 1.00 ms (95 % interval 1.00 ms to 1.00 ms); must be at most 2.00 ms"
    );
    let errors = Threshold { scope: Scope::Operation("get".into()), ..of(Limit::ErrorRate { max_basis_points: 1 }) };
    assert_eq!(
        errors.describe(&ThresholdState::default()),
        "the error rate of get could not be judged: too few requests; must be at most 0.01 %"
    );
}

/// Judges seconds one by one. Each is given as parts by operation.
struct Seconds {
    watch: Watch,
    history: History,
}

impl Seconds {
    fn new(thresholds: Vec<Threshold>) -> Self {
        let operations = vec!["get".to_owned(), "set".to_owned()];
        Self { watch: Watch::new(thresholds, Vec::new(), operations), history: History::default() }
    }

    fn push(&mut self, parts: Vec<SpanPart>) -> Option<String> {
        let second = self.history.complete();
        self.history.push(Span { second, seconds: 1, parts, ..Span::default() }, 3_600);
        self.watch.look(&self.history, 0..u32::MAX)
    }

    /// Adds a second in which an operation succeeds `count` times, in `nanoseconds` each.
    fn come(&mut self, count: u64, nanoseconds: u64) -> Option<String> {
        self.push(vec![part(count, nanoseconds)])
    }
}

fn part(count: u64, nanoseconds: u64) -> SpanPart {
    let mut response = Coarse::default();
    response.record(nanoseconds, count);
    let counts = Outcomes { scheduled: count, succeeded: count, ..Outcomes::default() };
    SpanPart { counts, response: response.buckets(), ..SpanPart::default() }
}

fn windowed(limit: Limit, seconds: u64) -> Threshold {
    Threshold { window: Some(Duration::from_secs(seconds)), ..of(limit) }
}

#[test]
fn a_window_holds_what_came_in_it_and_no_more() {
    // A thousand requests a second; all those of the 7th second take 9 ms.
    let limit = response("0.6", Duration::from_millis(5));
    let mut seconds = Seconds::new(vec![windowed(limit, 2), windowed(limit, 4)]);
    for second in 0..12 {
        assert_eq!(seconds.come(1_000, if second == 6 { 9 * MILLISECOND } else { MILLISECOND }), None);
    }
    let [two, four] = &seconds.watch.judged()[..] else { panic!() };
    // Half of a window of two seconds is slow, which is more than 0.4; a quarter of one of four is not.
    assert_eq!((two.standing.windows, two.standing.failed_windows), (11, 2));
    assert_eq!((four.standing.windows, four.standing.failed_windows), (9, 0));
    let worst = two.standing.worst.as_ref().unwrap();
    assert_eq!((worst.holds, worst.at, worst.interval), (false, Some(Duration::from_secs(7)), None));
    assert!(two.threshold.describe(&two.standing).contains("7s after the measurement began"), "{two:?}");
}

#[test]
fn seconds_that_come_together_are_judged_one_by_one() {
    let limit = response("0.6", Duration::from_millis(5));
    let (mut one_by_one, mut together) =
        (Seconds::new(vec![windowed(limit, 2)]), Seconds::new(vec![windowed(limit, 2)]));
    for second in 0..20 {
        let parts = vec![part(1_000, if second == 6 { 9 * MILLISECOND } else { MILLISECOND })];
        one_by_one.push(parts.clone());
        together.history.push(Span { second, seconds: 1, parts, ..Span::default() }, 3_600);
    }
    together.watch.look(&together.history, 0..u32::MAX);
    assert_eq!(together.watch.judged(), one_by_one.watch.judged());
    assert_eq!(together.watch.judged()[0].standing.failed_windows, 2);
}

#[test]
fn a_stall_shows_in_the_throughput_of_a_window() {
    let limit = Limit::Throughput { min_per_second: 500 };
    let mut seconds = Seconds::new(vec![Threshold { abort_on_fail: true, ..windowed(limit, 2) }]);
    // 1000/s, and nothing after the fifth second.
    let said: Vec<String> =
        (0..10).filter_map(|second| seconds.come(if second < 5 { 1000 } else { 0 }, MILLISECOND)).collect();
    assert_eq!(said.len(), 4, "from the 7th second on: {said:?}");
    assert!(said[0].contains("0.00/s") || said[0].contains("0/s"), "{said:?}");
}

#[test]
fn an_operation_is_judged_by_its_own_requests() {
    let limit = response("0.9", Duration::from_millis(5));
    let of_set = |limit| Threshold { scope: Scope::Operation("set".into()), ..windowed(limit, 2) };
    let mut seconds =
        Seconds::new(vec![windowed(limit, 2), of_set(limit), of_set(Limit::Throughput { min_per_second: 11 })]);
    for _ in 0..4 {
        seconds.push(vec![part(1_000, MILLISECOND), part(10, 9 * MILLISECOND)]);
    }
    let holds: Vec<_> = seconds.watch.judged().iter().map(|one| one.standing.holds()).collect();
    // 20 requests are too few for the quantile: it needs a hundred.
    assert_eq!(holds, [Some(true), None, Some(false)]);
    for _ in 0..4 {
        seconds.push(vec![part(1_000, MILLISECOND), part(100, 9 * MILLISECOND)]);
    }
    assert_eq!(seconds.watch.judged()[1].standing.holds(), Some(false));
}

#[test]
fn a_quantile_waits_for_enough_requests_before_it_stops_the_load() {
    let stop = Threshold { abort_on_fail: true, ..of(response("0.99", Duration::from_millis(5))) };
    let mut seconds = Seconds::new(vec![stop]);
    assert_eq!(seconds.come(999, 9 * MILLISECOND), None);
    assert!(seconds.come(1, 9 * MILLISECOND).unwrap().contains("9."));
}

#[test]
fn a_throughput_waits_for_the_first_answers_before_it_stops_the_load() {
    let stop = Threshold { abort_on_fail: true, ..of(Limit::Throughput { min_per_second: 900 }) };
    let mut seconds = Seconds::new(vec![stop]);
    // The first replies come late, and those after it on time.
    let said: Vec<_> = (0..8).map(|second| seconds.come(if second == 0 { 700 } else { 1_000 }, MILLISECOND)).collect();
    assert_eq!(said, vec![None; 8]);
}

#[test]
fn the_first_round_trip_stops_no_load() {
    let stop = |scope| Threshold { abort_on_fail: true, scope, ..of(Limit::Throughput { min_per_second: 980 }) };
    // Returns the message, if any, after eight seconds at 1,000/s from second `from` on. The first one lacks `missing` requests.
    let said = |scope: Scope, nanoseconds: u64, missing: u64, from: u32| {
        let mut seconds = Seconds::new(vec![stop(scope)]);
        for second in 0..from + 8 {
            let count = if second == from { 1_000 - missing } else { 1_000 };
            let (parts, nodes) = (vec![part(count, nanoseconds)], second_of(&[("a", count, 0, nanoseconds)]));
            seconds.history.push(Span { second, seconds: 1, parts, nodes, ..Span::default() }, 3_600);
        }
        seconds.watch.look(&seconds.history, from..u32::MAX)
    };
    for scope in [Scope::Total, Scope::Operation("get".into()), Scope::EachNode] {
        assert_eq!(said(scope.clone(), 150 * MILLISECOND, 150, 0), None, "{scope:?}");
        let near = said(scope.clone(), MILLISECOND, 150, 0);
        assert!(near.is_some_and(|why| why.contains("970/s")), "{scope:?}");
    }
    // After a warm-up, replies to its requests arrive from the first second on.
    assert!(said(Scope::Total, 150 * MILLISECOND, 150, 1).is_some());
}

/// Time in the queue of an overloaded target is no round trip.
#[test]
fn a_queue_that_grows_does_not_hold_the_stop_up() {
    let stop = Threshold { abort_on_fail: true, ..of(Limit::Throughput { min_per_second: 900 }) };
    let mut seconds = Seconds::new(vec![stop]);
    let overloaded = |second: u64| {
        let queued = part(820, 180 * second * MILLISECOND + MILLISECOND);
        SpanPart { service: part(820, MILLISECOND).response, ..queued }
    };
    assert!((0..6).any(|second| seconds.push(vec![overloaded(second)]).is_some()));
}

#[test]
fn what_is_in_flight_is_not_held_against_a_quantile_while_the_load_runs() {
    let stop = Threshold { abort_on_fail: true, ..of(response("0.9", Duration::from_millis(5))) };
    let mut busy = part(100, MILLISECOND);
    busy.counts.scheduled += 50;
    assert_eq!(Seconds::new(vec![stop.clone()]).push(vec![busy]), None);
    let mut unsent = part(100, MILLISECOND);
    unsent.counts.unsent += 50;
    assert!(Seconds::new(vec![stop]).push(vec![unsent]).unwrap().contains("got no reply"));
}

#[test]
fn only_load_that_counts_is_judged() {
    let stop = Threshold { abort_on_fail: true, ..windowed(Limit::Throughput { min_per_second: 1 }, 2) };
    let mut seconds = Seconds::new(vec![stop]);
    (0..10).for_each(|second| seconds.history.push(Span { second, seconds: 1, ..Span::default() }, 3_600));
    // Not complete yet, in the future, and too short.
    for measured in [20..30, 9..30, 3..4] {
        assert_eq!(seconds.watch.look(&seconds.history, measured), None);
        seconds.watch.forget();
    }
    assert!(seconds.watch.look(&seconds.history, 3..5).is_some());
    seconds.watch.forget();
    assert_eq!(seconds.watch.judged()[0].standing, ThresholdState::default());
}

#[test]
fn who_takes_over_judges_all_windows_again_that_are_kept_by_the_second() {
    let limit = Limit::Throughput { min_per_second: 500 };
    let mut former = Seconds::new(vec![windowed(limit, 2)]);
    (0..20).for_each(|second| drop(former.come(if second == 6 { 0 } else { 1_000 }, MILLISECOND)));
    let left: Vec<_> = former.watch.judged().into_iter().map(|one| one.standing).collect();
    assert_eq!((left[0].windows, left[0].failed_windows), (19, 0));
    let again = || Watch::new(vec![windowed(limit, 2)], left.clone(), Vec::new());
    let mut successor = again();
    successor.look(&former.history, 0..u32::MAX);
    assert_eq!(successor.judged()[0].standing, left[0]);
    // Seconds of an hour ago are merged into minutes, which cannot be split into windows.
    let mut history = History::default();
    let minute = Span { second: 0, seconds: 60, parts: vec![part(60_000, MILLISECOND)], ..Span::default() };
    history.push(minute, 3_600);
    (60..70).for_each(|second| {
        history.push(Span { second, seconds: 1, parts: vec![part(1_000, MILLISECOND)], ..Span::default() }, 3_600);
    });
    let mut successor = again();
    successor.look(&history, 0..u32::MAX);
    let standing = &successor.judged()[0].standing;
    assert_eq!((standing.windows, standing.failed_windows), (19 + 9, 0));
}

/// A second of these nodes: address, requests, errors, and the service time of the rest.
fn second_of(nodes: &[(&str, u64, u64, u64)]) -> Vec<NodePart> {
    let node = |(address, requests, errors, nanoseconds): &(&str, u64, u64, u64)| {
        let mut service = Coarse::default();
        service.record(*nanoseconds, requests - errors);
        let (address, service) = ((*address).to_owned(), service.buckets());
        NodePart { address, requests: *requests, errors: *errors, service }
    };
    nodes.iter().map(node).collect()
}

impl Seconds {
    fn of_nodes(&mut self, nodes: &[(&str, u64, u64, u64)]) -> Option<String> {
        let second = self.history.complete();
        let span = Span { second, seconds: 1, nodes: second_of(nodes), ..Span::default() };
        self.history.push(span, 3_600);
        self.watch.look(&self.history, 0..u32::MAX)
    }
}

fn each_node(threshold: Threshold) -> Threshold {
    Threshold { scope: Scope::EachNode, ..threshold }
}

#[test]
fn each_nodes_windows_hold_what_it_did_in_them_and_no_more() {
    let slow = Limit::ServiceTime { quantile: quantile("0.6"), max: Duration::from_millis(5) };
    let errors = Limit::ErrorRate { max_basis_points: 1_000 };
    let limits = [slow, errors, Limit::Throughput { min_per_second: 900 }];
    let mut seconds = Seconds::new(limits.map(|limit| each_node(windowed(limit, 2))).to_vec());
    for second in 0..12 {
        let (errors, time) = match second {
            3 => (500, MILLISECOND),
            6 => (0, 9 * MILLISECOND),
            _ => (0, MILLISECOND),
        };
        assert_eq!(seconds.of_nodes(&[("a", 1_000, 0, MILLISECOND), ("b", 1_000, errors, time)]), None);
    }
    let judged = seconds.watch.judged();
    let found = judged.iter().map(|one| {
        let worst = one.standing.worst.as_ref().unwrap();
        (one.standing.windows, one.standing.failed_windows, worst.node.as_deref(), worst.at.map(|at| at.as_secs()))
    });
    // Two windows of two seconds hold the bad one.
    assert_eq!(
        found.collect::<Vec<_>>(),
        [(11, 2, Some("b"), Some(7)), (11, 2, Some("b"), Some(4)), (11, 2, Some("b"), Some(4))]
    );
}

#[test]
fn a_node_that_falls_silent_is_judged_by_that() {
    let mut seconds = Seconds::new(vec![each_node(windowed(Limit::Throughput { min_per_second: 1 }, 2))]);
    for second in 0..6 {
        let both = [("a", 10, 0, MILLISECOND), ("b", 10, 0, MILLISECOND)];
        // After that the node is missing from the seconds.
        seconds.of_nodes(if second < 3 { &both } else { &both[..1] });
    }
    let standing = &seconds.watch.judged()[0].standing;
    assert_eq!((standing.windows, standing.failed_windows), (5, 2));
    assert_eq!(standing.worst.as_ref().unwrap().node.as_deref(), Some("b"));
}

#[test]
fn a_node_stops_the_load_by_all_that_it_has_done() {
    let limit = Limit::ServiceTime { quantile: quantile("0.99"), max: Duration::from_millis(5) };
    let mut seconds = Seconds::new(vec![each_node(Threshold { abort_on_fail: true, ..of(limit) })]);
    assert_eq!(seconds.of_nodes(&[("a", 5_000, 0, MILLISECOND), ("b", 999, 0, 9 * MILLISECOND)]), None);
    let said = seconds.of_nodes(&[("a", 5_000, 0, MILLISECOND), ("b", 1, 0, 9 * MILLISECOND)]).unwrap();
    assert!(said.contains("p99 of service time of each node is 9.") && said.contains("on b"), "{said}");
}

#[test]
fn only_thresholds_that_are_watched_count_nodes_by_the_second() {
    let limit = Limit::Throughput { min_per_second: 1 };
    let watched = |threshold| watches_nodes(&[threshold]);
    assert!(watched(each_node(windowed(limit, 2))));
    assert!(watched(each_node(Threshold { abort_on_fail: true, ..of(limit) })));
    assert!(!watched(each_node(of(limit))) && !watched(windowed(limit, 2)));
}

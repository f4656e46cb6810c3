use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::Load;
use redisbench_wire::snapshot::{Generator, Snapshot};
use redisbench_wire::strain::{Shares, Strain};

use super::*;
use crate::api::status::Verdict;
use crate::measurement::merge::merge;
use crate::sample::{SECOND, encoded, open_loop, outcome, snapshot, spec, verdict_on};
use crate::verdict::verdict;

const MICROSECOND: u64 = 1_000;

/// Ten thousand requests of an open loop with these response and service times, whose replies lay in the kernel for `unread`.
fn measured(response: &[u64], service: &[u64], unread: u64) -> Snapshot {
    let mut snapshot = snapshot(0, response);
    snapshot.latency.service = Some(encoded(Kind::Request, service));
    let steps = (0..128).map(|step| u64::from(step == step_of(unread)));
    snapshot.generator.waited_for_room = Some(0);
    snapshot.generator.receive_delay = Some(ReceiveDelay { connections: 1, counts: steps.collect() });
    snapshot
}

/// The step of a delay, by the contract's formula.
fn step_of(nanoseconds: u64) -> u64 {
    (0..128).rfind(|step| (4 + step % 4) << (step / 4) <= nanoseconds).unwrap_or(0)
}

fn judged(snapshot: Snapshot) -> (Vec<GeneratorShare>, Verdict) {
    let (spec, outcome) = (open_loop(1), outcome(vec![snapshot]));
    let merged = merge(&spec.plan, &outcome).unwrap().unwrap();
    (shares(&outcome, &merged), verdict(&spec, &outcome, &merged))
}

fn reasons(verdict: &Verdict) -> Vec<ReasonKind> {
    verdict.reasons.iter().map(|reason| reason.reason).collect()
}

/// Ten thousand of the same length.
fn all(length: u64) -> Vec<u64> {
    vec![length; 10_000]
}

/// `slow` of ten thousand take `long`, the others `short`.
fn mixed(short: u64, long: u64, slow: usize) -> Vec<u64> {
    [vec![short; 10_000 - slow], vec![long; slow]].concat()
}

/// The server caused only 0.36 ms of the shown p99 of 1.16 ms.
#[test]
fn lateness_below_a_millisecond_is_told_where_it_is_most_of_a_latency() {
    let response = mixed(100 * MICROSECOND, 1_160 * MICROSECOND, 200);
    let service = mixed(90 * MICROSECOND, 360 * MICROSECOND, 200);
    let (shares, verdict) = judged(measured(&response, &service, 0));
    let [p50, p99, p999] = &shares[..] else { panic!("{shares:?}") };
    // A histogram has a precision of one thousandth.
    assert!(p50.percentile == "50" && p50.basis_points.abs_diff(1_000) < 10, "{p50:?}");
    assert_eq!((p99.percentile.as_str(), p99.basis_points / 100), ("99", 68));
    assert!(p99.sending_nanoseconds.abs_diff(800 * MICROSECOND) < 2 * MICROSECOND, "{p99:?}");
    assert_eq!(p999.basis_points, p99.basis_points);
    assert_eq!(reasons(&verdict), [ReasonKind::GeneratorDelay]);
    assert_eq!(verdict.value, VerdictValue::Degraded);
    let message = &verdict.reasons[0].message;
    assert!(message.starts_with("68 % of the p99"), "{message}");
}

#[test]
fn a_fifth_is_allowed() {
    let (_, verdict) = judged(measured(&all(100 * MICROSECOND), &all(81 * MICROSECOND), 0));
    assert_eq!(reasons(&verdict), []);
    let (_, verdict) = judged(measured(&all(100 * MICROSECOND), &all(79 * MICROSECOND), 0));
    assert_eq!(reasons(&verdict), [ReasonKind::GeneratorDelay]);
}

/// A target that stood still for a while: 3 % of the requests waited for room.
#[test]
fn what_waited_for_the_target_is_not_the_generators() {
    let waited = |waited_for_room: u64| {
        let mut snapshot = measured(&mixed(100 * MICROSECOND, 500_000 * MICROSECOND, 300), &all(95 * MICROSECOND), 0);
        snapshot.generator.waited_for_room = Some(waited_for_room);
        judged(snapshot)
    };
    let (shares, verdict) = waited(300);
    assert!(shares[0].basis_points.abs_diff(500) < 10, "{shares:?}");
    assert_eq!(shares[1..].iter().map(|share| share.basis_points).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(reasons(&verdict), []);
    // If none waited, all of it was the generator's.
    assert_eq!(reasons(&waited(0).1), [ReasonKind::GeneratorDelay]);
    // If only a few waited, most of it still was.
    assert_eq!(reasons(&waited(10).1), [ReasonKind::GeneratorDelay]);
}

#[test]
fn replies_that_lay_unread_are_a_part_of_it() {
    let of = |unread: u64| judged(measured(&all(100 * MICROSECOND), &all(100 * MICROSECOND), unread));
    let (shares, verdict) = of(16 * MICROSECOND);
    assert!((1_000..2_000).contains(&shares[0].basis_points), "{shares:?}");
    assert_eq!((shares[0].sending_nanoseconds, reasons(&verdict)), (0, vec![]));
    assert_eq!(reasons(&of(32 * MICROSECOND).1), [ReasonKind::GeneratorDelay]);
    // Capped at the latency itself.
    assert_eq!(of(400 * MICROSECOND).0[0].basis_points, 10_000);
}

#[test]
fn the_time_of_unread_replies_may_be_unknown() {
    // Client libraries do not report it, and UNIX sockets have no timestamps.
    for unknown in [None, Some(ReceiveDelay { connections: 4, counts: vec![0; 128] })] {
        let judged = |service: u64| {
            let mut snapshot = measured(&all(100 * MICROSECOND), &all(service), 0);
            snapshot.generator.receive_delay.clone_from(&unknown);
            judged(snapshot)
        };
        let (shares, verdict) = judged(70 * MICROSECOND);
        assert_eq!(shares.len(), 3);
        for share in shares {
            assert_eq!((share.reading_nanoseconds, share.is_known()), (None, true));
            assert!(share.basis_points.abs_diff(3_000) < 10, "{share:?}");
        }
        assert_eq!(reasons(&verdict), [ReasonKind::GeneratorDelay]);
        let message = &verdict.reasons[0].message;
        assert!(message.starts_with("at least ") && message.contains("unread for an unknown time;"), "{message}");
        // Without lateness, nothing is known.
        let (shares, verdict) = judged(100 * MICROSECOND);
        assert!(!shares[0].is_known(), "{shares:?}");
        assert_eq!(reasons(&verdict), []);
    }
}

#[test]
fn a_worker_with_little_time_to_spare_is_doubtful_for_latencies() {
    let busy = |millionths: u32| {
        let mut snapshot = snapshot(0, &all(100 * MICROSECOND));
        snapshot.generator = Generator { busiest_worker_millionths: millionths, ..Generator::default() };
        snapshot
    };
    assert_eq!(reasons(&judged(busy(699_999)).1), []);
    let (_, verdict) = judged(busy(780_000));
    assert_eq!(reasons(&verdict), [ReasonKind::GeneratorDelay]);
    assert!(verdict.reasons[0].message.contains("ran for 78 % of the load"), "{verdict:?}");
    assert_eq!(reasons(&judged(busy(960_000)).1), [ReasonKind::GeneratorCPU]);
    // A recording has due times, and no rate.
    let mut paced = open_loop(1);
    crate::sample::plan(&mut paced).load =
        Load::Recorded { pace_millionths: 1_000_000, pacing_grid_nanoseconds: 0, unsent_after_nanoseconds: SECOND };
    let mut recorded = busy(780_000);
    recorded.latency.lateness = Some(encoded(Kind::Request, &all(MICROSECOND)));
    assert_eq!(reasons(&verdict_on(&paced, &outcome(vec![recorded]))), [ReasonKind::GeneratorDelay]);
    // A closed loop has no due times.
    let mut closed = busy(780_000);
    closed.latency.service = None;
    let spec = spec(1, &serde_json::json!({"type": "ClosedLoop", "duration": "10s"}));
    let outcome = outcome(vec![closed]);
    assert_eq!(reasons(&verdict_on(&spec, &outcome)), []);
}

/// An open loop of ten seconds on `shards` shards. In `seconds` of them the first shard's worker ran for `share`, in hundredths of a per
/// cent.
fn at_times(shards: u32, seconds: usize, share: u32) -> Outcome {
    let each = |shard: u32| {
        let mut snapshot = snapshot(shard, &vec![100 * MICROSECOND; 10_000 / shards as usize]);
        let mut strain = Strain::default();
        for second in 0..10 {
            let busiest_worker = if shard == 0 && (4..4 + seconds).contains(&second) { share } else { 3_000 };
            strain.push(Shares { busiest_worker, ..Shares::default() }, SECOND);
        }
        snapshot.generator.strain = Some(strain);
        snapshot
    };
    outcome((0..shards).map(each).collect())
}

#[test]
fn seconds_with_little_time_to_spare_are_doubtful_if_they_decide_p99() {
    let told = |shards: u32, seconds: usize, share: u32| {
        reasons(&verdict_on(&open_loop(shards), &at_times(shards, seconds, share)))
    };
    assert_eq!(told(1, 3, 8_000), [ReasonKind::GeneratorDelay]);
    assert_eq!(told(1, 3, 6_999), []);
    assert_eq!(told(1, 2, 8_000), [], "a fifth of the time, but only two seconds");
    assert_eq!(told(20, 3, 8_000), [ReasonKind::GeneratorDelay], "1.5 % of the time of all shards");
    assert_eq!(told(40, 3, 8_000), [], "0.75 %");
    assert_eq!(told(1, 3, 9_800), [ReasonKind::GeneratorCPU], "a lack of processor time explains it");
    let verdict = verdict_on(&open_loop(1), &at_times(1, 3, 8_000));
    let message = &verdict.reasons[0].message;
    assert!(
        message.starts_with(
            "the busiest worker of shard 0 ran for 45 % of the measurement (80 % of the worst second, 4.00 s after the \
             measurement began; 70 % or more for 30.0 % of the time): in such seconds requests queue"
        ),
        "{message}"
    );
}

#[test]
fn busy_seconds_that_delayed_nothing_are_silent() {
    let unread = |nanoseconds: u64| {
        let mut outcome = at_times(1, 3, 8_000);
        let counts = (0..128).map(|step| u64::from(step == step_of(nanoseconds)));
        let receive_delay = Some(ReceiveDelay { connections: 1, counts: counts.collect() });
        outcome.shards[0].snapshot.as_mut().unwrap().generator.receive_delay = receive_delay;
        reasons(&verdict_on(&open_loop(1), &outcome))
    };
    assert_eq!(unread(64), []);
    assert_eq!(unread(10 * MICROSECOND), [ReasonKind::GeneratorDelay]);
    // A closed loop has no due times.
    let mut closed = at_times(1, 3, 8_000);
    closed.shards[0].snapshot.as_mut().unwrap().latency.service = None;
    let spec = spec(1, &serde_json::json!({"type": "ClosedLoop", "duration": "10s"}));
    assert_eq!(reasons(&verdict_on(&spec, &closed)), []);
}

#[test]
fn too_few_requests_say_nothing() {
    let (shares, _) = judged(measured(&[100 * MICROSECOND; 999], &[1; 999], 0));
    assert_eq!(shares.len(), 1, "{shares:?}");
    assert_eq!(judged(snapshot(0, &[])).0, []);
}

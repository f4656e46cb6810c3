use redisbench_wire::snapshot::{Generator, ReceiveDelay, Snapshot};

use super::*;
use crate::api::status::{LimitedBy, ReasonKind, Verdict, VerdictValue};
use crate::measurement::Outcome;
use crate::sample::{outcome, snapshot, spec, verdict_on};
use crate::verdict::worst_seconds;

const QUIET: Shares =
    Shares { busiest_worker: 5_400, longest_waiting_worker: 300, run_queue: 400, throttled: 0, stolen: 100 };
const FULL: Shares = Shares { busiest_worker: 10_000, ..QUIET };

fn strain(seconds: impl IntoIterator<Item = Shares>) -> Strain {
    let mut strain = Strain::default();
    seconds.into_iter().for_each(|second| strain.push(second, SECOND));
    strain
}

/// `all` seconds from the start. From `from` on, `count` of them are `bad`.
fn some(all: usize, from: usize, count: usize, bad: Shares) -> Strain {
    strain((0..all).map(|second| if (from..from + count).contains(&second) { bad } else { QUIET }))
}

/// A shard of a closed loop that measured for `seconds` seconds from `from` on.
fn shard(index: u32, from: u64, seconds: u64, strain: Option<Strain>) -> Snapshot {
    let mut shard = snapshot(index, &vec![1_000_000; 6_000]);
    let start = shard.window.start_nanoseconds;
    shard.window.measure_from_nanoseconds = start + from * SECOND;
    shard.window.measure_to_nanoseconds = start + (from + seconds) * SECOND;
    shard.window.drained_nanoseconds = shard.window.measure_to_nanoseconds;
    shard.taken_nanoseconds = shard.window.drained_nanoseconds + SECOND;
    shard.series.interval_nanoseconds = SECOND;
    shard.series.completed = vec![6_000 / seconds; usize::try_from(from + seconds).unwrap()];
    shard.generator = Generator {
        load_nanoseconds: (from + seconds) * SECOND,
        processors: 4,
        busiest_worker_millionths: 578_000,
        longest_waiting_worker_millionths: 50_000,
        run_queue_nanoseconds: seconds * SECOND / 20,
        strain,
        ..Generator::default()
    };
    shard
}

fn judged_all(shards: Vec<Snapshot>) -> (Verdict, Outcome) {
    let count = u32::try_from(shards.len()).unwrap();
    let outcome = outcome(shards);
    let spec = spec(count, &serde_json::json!({"type": "ClosedLoop", "duration": "60s"}));
    (verdict_on(&spec, &outcome), outcome)
}

fn judged(shard: Snapshot) -> Verdict {
    judged_all(vec![shard]).0
}

/// The only reason, if any.
fn told(shard: Snapshot) -> Option<(VerdictValue, String)> {
    let mut verdict = judged(shard);
    assert!(verdict.reasons.len() <= 1, "{verdict:?}");
    assert!(verdict.reasons.iter().all(|reason| reason.reason == ReasonKind::GeneratorCPU), "{verdict:?}");
    verdict.reasons.pop().map(|reason| (reason.severity, reason.message))
}

#[test]
fn five_saturated_seconds_of_a_minute_are_told_with_the_worst_and_their_share() {
    assert_eq!(told(shard(0, 0, 60, None)), None, "the mean is fine");
    let verdict = judged(shard(0, 0, 60, Some(some(60, 31, 5, FULL))));
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Degraded, LimitedBy::Unknown), "{verdict:?}");
    let message = &verdict.reasons[0].message;
    assert!(message.starts_with("1 of 1 shard lacked processor time now and then, shard 0 the most: "), "{message}");
    assert!(
        message.contains(
            "its busiest worker ran for 57 % of the measurement (100 % of the worst second, 31.0 s after the measurement began; \
             95 % or more for 8.3 % of the time)"
        ),
        "{message}"
    );
    assert!(message.contains("spec.shards.template.resources"), "{message}");
}

#[test]
fn seconds_that_are_all_below_the_bounds_are_silent() {
    let near =
        Shares { busiest_worker: 9_499, longest_waiting_worker: 1_999, run_queue: 2_000, throttled: 499, stolen: 999 };
    assert_eq!(told(shard(0, 0, 60, Some(strain([near; 60])))), None);
}

#[test]
fn a_lone_second_counts_as_far_as_it_decides_percentiles() {
    let lone = |seconds: usize| told(shard(0, 0, seconds as u64, Some(some(seconds, 7, 1, FULL)))).map(|told| told.0);
    assert_eq!(lone(60), Some(VerdictValue::Degraded), "1.7 %: p99");
    assert_eq!(lone(120), Some(VerdictValue::Valid), "0.8 %: p99.9, a note");
    assert_eq!(lone(1_200), None);
}

#[test]
fn saturation_all_along_is_the_limit() {
    let verdict = judged(shard(0, 0, 60, Some(strain([FULL; 60]))));
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Degraded, LimitedBy::GeneratorCPU), "{verdict:?}");
    let message = &verdict.reasons[0].message;
    assert!(
        message.contains("lacked processor time, shard 0") && message.contains("95 % or more for 100.0 %"),
        "{message}"
    );
}

#[test]
fn what_was_saturated_in_the_warm_up_alone_is_silent() {
    let mut shard = shard(0, 30, 60, Some(some(90, 0, 30, FULL)));
    shard.generator.busiest_worker_millionths = 960_000;
    assert_eq!(told(shard), None);
}

/// Replies lay unread for `reads` of a thousand reads, for 40 ms each; the mean response time is 1 ms.
fn unread(reads: u64) -> ReceiveDelay {
    let mut counts = vec![0; 128];
    counts[4 * 4] = 1_000_000 - 1_000 * reads;
    counts[4 * 23] = 1_000 * reads;
    ReceiveDelay { connections: 1_000_000, counts }
}

#[test]
fn seconds_without_a_processor_count_as_far_as_they_delayed_replies() {
    let waiting = Shares { longest_waiting_worker: 4_000, ..QUIET };
    let stolen = Shares { stolen: 3_000, ..QUIET };
    let throttled = Shares { throttled: 2_000, longest_waiting_worker: 1_900, ..QUIET };
    for (bad, words) in [
        (waiting, "waited for a processor for 6 % of the measurement (40 % of the worst second, 31.0 s"),
        (stolen, "steal time took 3 % of its machine (30 % of the worst second"),
    ] {
        let with = |delay: Option<ReceiveDelay>| {
            let mut shard = shard(0, 0, 60, Some(some(60, 31, 5, bad)));
            shard.generator.receive_delay = delay;
            told(shard)
        };
        assert_eq!(with(Some(unread(0))), None, "nothing was delayed");
        let (severity, message) = with(Some(unread(2))).unwrap();
        assert_eq!(severity, VerdictValue::Degraded);
        assert!(message.contains(words), "{message}");
        assert_eq!(with(None).unwrap().0, VerdictValue::Degraded, "where it is not known");
        let unstamped = ReceiveDelay { connections: 4, counts: vec![0; 128] };
        assert_eq!(with(Some(unstamped)).unwrap().0, VerdictValue::Degraded, "over a UNIX socket");
    }
    let mut shard = shard(0, 0, 60, Some(some(60, 31, 5, throttled)));
    shard.generator.throttled_nanoseconds = SECOND;
    let (_, message) = told(shard).unwrap();
    assert!(message.contains("throttled it for 1.00 s in 60.0 s (19 % of the worst second"), "{message}");
}

#[test]
fn seconds_that_were_taken_from_a_client_stay_a_finding() {
    let load = serde_json::json!({
        "type": "ClosedLoop", "duration": "60s", "clients": [{"name": "sample-client", "type": "Fred"}],
    });
    let judge = |bad: Shares| {
        let shard = shard(0, 0, 60, Some(some(60, 31, 5, bad)));
        verdict_on(&spec(1, &load), &outcome(vec![shard]))
    };
    let busy = judge(FULL);
    assert_eq!((busy.value, busy.limited_by, busy.reasons), (VerdictValue::Valid, LimitedBy::Client, Vec::new()));
    let stolen = judge(Shares { stolen: 3_000, ..FULL });
    assert_eq!((stolen.value, stolen.limited_by), (VerdictValue::Degraded, LimitedBy::Unknown));
    assert_eq!(stolen.reasons.len(), 1, "{stolen:?}");
}

/// The kernel sums throttled time over all processors, and includes threads that make no requests.
#[test]
fn a_quota_holds_a_worker_back_as_far_as_it_waited_in_that_second() {
    let throttled = Shares { throttled: 9_000, ..QUIET };
    assert_eq!(told(shard(0, 0, 60, Some(some(60, 31, 5, throttled)))), None);
}

#[test]
fn partial_seconds_count_as_much_as_was_measured() {
    let with = |strain: Strain, milliseconds: u64| {
        let mut shard = shard(0, 0, 2, Some(strain));
        shard.window.measure_to_nanoseconds = shard.window.start_nanoseconds + milliseconds * 1_000_000;
        measured(&shard, &Waits::new()).map(|all| (all[0].mean, all[0].beyond))
    };
    let mut half = some(2, 0, 0, FULL);
    half.push(FULL, SECOND);
    assert_eq!(with(half.clone(), 2_500), Some((632_000, 200_000)));
    assert_eq!(with(half, 2_499), Some((540_000, 0)), "less than half of it");
    let mut short = some(2, 0, 0, FULL);
    short.push(FULL, SECOND / 3);
    assert_eq!(with(short, 3_000), Some((540_000, 0)), "a third of a second is too coarse");
    assert_eq!(with(strain([FULL]), 400), None, "nothing is left, and the mean of the load counts");
}

#[test]
fn the_more_shards_the_less_a_second_of_one_of_them_decides() {
    let twenty = |bad: usize| {
        let each = (0..20).map(|index: u32| {
            let count = usize::from((index as usize) < bad);
            shard(index, 0, 60, Some(some(60, index as usize, count, FULL)))
        });
        judged_all(each.collect()).0.reasons.first().map(|reason| reason.severity)
    };
    assert_eq!(twenty(1), None);
    assert_eq!(twenty(2), Some(VerdictValue::Valid));
    assert_eq!(twenty(20), Some(VerdictValue::Degraded), "a second of each is as much as one of all");
}

#[test]
fn what_the_shards_of_a_machine_wait_in_a_second_adds_up() {
    // Twenty workers that wait for 5 % of five seconds each, for four processors.
    let crowded = Shares { longest_waiting_worker: 500, run_queue: 500, ..QUIET };
    let idle = Shares { longest_waiting_worker: 0, run_queue: 0, ..QUIET };
    let each = (0..20).map(|index| {
        let seconds = (0..60).map(|second| if (31..36).contains(&second) { crowded } else { idle });
        let mut shard = shard(index, 0, 60, Some(strain(seconds)));
        shard.generator.host = "n1".into();
        shard.generator.run_queue_nanoseconds = 1;
        shard
    });
    let (verdict, outcome) = judged_all(each.collect());
    let message = &verdict.reasons[0].message;
    assert!(message.starts_with("20 of 20 shards lacked processor time now and then"), "{message}");
    assert!(
        message.contains(
            "on n1 0.02 workers waited for each processor on average (0.25 in the worst second, 31.0 s after the measurement \
             began; 0.20 or more for 8.3 % of the time)"
        ),
        "{message}"
    );
    let worst = WorstSecond { lack: Lack::Machine, after_milliseconds: 31_000, percent: 25, beyond_basis_points: 833 };
    assert_eq!(worst_seconds(&outcome)[19], Some(worst));
}

#[test]
fn the_status_has_the_worst_second_by_its_bound() {
    let worst = |seconds: Strain| worst_seconds(&outcome(vec![shard(0, 0, 60, Some(seconds))]))[0];
    let second = |lack, percent, beyond_basis_points| {
        Some(WorstSecond { lack, after_milliseconds: 31_000, percent, beyond_basis_points })
    };
    assert_eq!(worst(some(60, 31, 5, FULL)), second(Lack::BusiestWorker, 100, 833));
    assert_eq!(worst(some(60, 31, 1, Shares { stolen: 4_000, ..FULL })), second(Lack::Stolen, 40, 166));
    assert_eq!(worst(some(60, 31, 1, Shares { busiest_worker: 5_500, ..QUIET })), second(Lack::BusiestWorker, 55, 0));
    assert_eq!(worst_seconds(&outcome(vec![snapshot(0, &[1000])])), [None]);
}

#[test]
fn what_is_kept_by_the_minute_counts_whole_by_its_mean_and_else_by_its_worst_second() {
    let hours = shard(0, 0, 3 * 3_600, Some(some(3 * 3_600, 0, 1_800, FULL)));
    assert_eq!(measured(&hours, &Waits::new()).unwrap()[0].beyond, 1_000_000 / 6);
    let lone = shard(0, 0, 3 * 3_600, Some(some(3 * 3_600, 70, 1, FULL)));
    let busy = measured(&lone, &Waits::new()).unwrap()[0];
    assert_eq!((busy.beyond, busy.worst, busy.worst_at), (1_000_000 / (3 * 3_600), 1_000_000, 60 * SECOND));
}

#[test]
fn spans_count_as_far_as_they_lie_in_seconds_whose_shares_fit() {
    let half = SECOND / 2;
    let saturated = shard(0, 0, 60, Some(some(60, 31, 5, FULL)));
    let within = |spans: &[Range<u64>]| time_within(spans, &saturated, &Waits::new(), |shares| shares[0] >= BUSY);
    assert_eq!(within(&[]), 0);
    let [first, second, later] = [61, 63, 80].map(|begin| begin * half..begin * half + SECOND);
    assert_eq!(within(&[first, second, later]), 3 * half);
}

#[test]
fn absurd_shares_are_still_shares() {
    let absurd = Shares {
        busiest_worker: u32::MAX,
        longest_waiting_worker: u32::MAX,
        run_queue: u32::MAX,
        throttled: u32::MAX,
        stolen: u32::MAX,
    };
    let mut shard = shard(0, 0, 60, Some(strain([absurd; 60])));
    shard.generator.host = "n1".into();
    assert_eq!(told(shard).unwrap().0, VerdictValue::Degraded);
}

#[test]
fn a_load_that_measured_nothing_waited_for_nothing() {
    assert_eq!((share(5, 0), share(1, 4), share(u64::MAX, 1)), (0, 250_000, u64::MAX));
}

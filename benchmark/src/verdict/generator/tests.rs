use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::snapshot::{ClientUsage, ReceiveDelay};

use super::*;
use crate::api::status::{LimitedBy, Verdict};
use crate::sample::{SECOND, histogram, open_loop, outcome, snapshot, spec, verdict_on};

/// A closed loop of ten seconds on `shards` shards. The last shard reports `generator`.
fn judged(shards: u32, generator: Generator) -> Verdict {
    let spec = spec(shards, &serde_json::json!({"type": "ClosedLoop", "duration": "10s"}));
    let mut snapshots: Vec<_> = (0..shards).map(|shard| snapshot(shard, &[1000; 500])).collect();
    snapshots.last_mut().unwrap().generator = generator;
    verdict_on(&spec, &outcome(snapshots))
}

fn generator() -> Generator {
    Generator {
        load_nanoseconds: 10 * SECOND,
        processors: 4,
        busiest_worker_millionths: 400_000,
        ..Generator::default()
    }
}

fn assert_silent(generator: Generator) {
    let verdict = judged(1, generator);
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Valid, LimitedBy::Unknown), "{verdict:?}");
}

/// It lacked time but still slept, so that was not the limit.
fn assert_told(generator: Generator, words: &str) {
    assert_told_with(LimitedBy::Unknown, generator, words);
}

fn assert_told_with(limit: LimitedBy, generator: Generator, words: &str) {
    let verdict = judged(1, generator);
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Degraded, limit), "{verdict:?}");
    assert_eq!(verdict.reasons.len(), 1);
    assert_eq!(verdict.reasons[0].reason, ReasonKind::GeneratorCPU);
    let message = &verdict.reasons[0].message;
    assert!(message.contains(words) && message.contains("spec.shards.template.resources"), "{message}");
}

#[test]
fn each_lack_of_processor_time_is_told_with_its_number() {
    assert_silent(generator());
    let busy = |millionths| Generator { busiest_worker_millionths: millionths, ..generator() };
    assert_silent(busy(949_999));
    assert_told_with(LimitedBy::GeneratorCPU, busy(971_234), "its busiest worker ran for 97 % of the load");
    let waiting = |millionths| Generator { longest_waiting_worker_millionths: millionths, ..generator() };
    assert_silent(waiting(199_999));
    assert_told(waiting(310_000), "waited for a processor for 31 %");
    assert_told_with(LimitedBy::GeneratorCPU, waiting(500_000), "waited for a processor for 50 %");
    let throttled = |nanoseconds| Generator { throttled_nanoseconds: nanoseconds, ..generator() };
    assert_silent(throttled(SECOND / 2 - 1));
    assert_told(throttled(3 * SECOND), "its CPU limit throttled it for 3.00 s in 10.0 s");
    // Of four processors' ten seconds each.
    let stolen = |nanoseconds| Generator { stolen_nanoseconds: nanoseconds, ..generator() };
    assert_silent(stolen(4 * SECOND - 1));
    assert_told(stolen(6 * SECOND), "steal time took 15 % of its machine");
    assert_eq!(stolen_percent(&stolen(6 * SECOND)), 15);
}

/// Other threads, such as those that observe the machine, are throttled too, on their own processors.
#[test]
fn a_quota_that_no_worker_waited_for_is_no_lack() {
    let throttled = |waited: u64| Generator {
        throttled_nanoseconds: 3 * SECOND,
        run_queue_nanoseconds: waited,
        longest_waiting_worker_millionths: u32::try_from(waited / 10_000).unwrap(),
        ..generator()
    };
    assert_silent(throttled(SECOND / 2 - 10_000));
    assert_told(throttled(SECOND / 2), "its CPU limit throttled it for 3.00 s in 10.0 s");
}

/// A worker that ran for 4 % was throttled by a quota of 5 %: if the message is cut, the throttling must remain.
#[test]
fn what_was_lacking_is_said_first() {
    let told = |generator: Generator| judged(1, generator).reasons.remove(0).message;
    let held = Generator { busiest_worker_millionths: 40_000, throttled_nanoseconds: 3 * SECOND, ..generator() };
    let message = told(held.clone());
    assert!(
        message.contains("shard 0 the most: its CPU limit throttled it for 3.00 s in 10.0 s, its busiest"),
        "{message}"
    );
    let message = told(Generator { longest_waiting_worker_millionths: 700_000, throttled_nanoseconds: SECOND, ..held });
    assert!(message.contains("the most: a worker waited for a processor for 70 % of the load, its CPU"), "{message}");
}

#[test]
fn a_shard_that_says_nothing_lacks_nothing() {
    assert_silent(Generator::default());
    assert_silent(Generator { load_nanoseconds: 0, throttled_nanoseconds: SECOND, ..Generator::default() });
}

#[test]
fn a_few_shards_of_many_are_told_but_are_not_the_limit() {
    let verdict = judged(3, Generator { busiest_worker_millionths: 990_000, ..generator() });
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Degraded, LimitedBy::Unknown));
    assert!(verdict.reasons[0].message.starts_with("1 of 3 shards lacked processor time, shard 2 the most"));
}

#[test]
fn a_rate_that_was_met_is_the_limit_all_the_same() {
    let mut snapshot = snapshot(0, &vec![1000; 10_000]);
    snapshot.generator = Generator { busiest_worker_millionths: 990_000, ..generator() };
    let verdict = verdict_on(&open_loop(1), &outcome(vec![snapshot]));
    assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Degraded, LimitedBy::Rate));
}

/// A busy client is what is measured; a client without a processor is not.
#[test]
fn lacks_of_a_client_count_if_they_come_from_outside() {
    let load = serde_json::json!({
        "type": "ClosedLoop", "duration": "10s", "clients": [{"name": "sample-client", "type": "Fred"}],
    });
    let spec = spec(1, &load);
    let judge = |generator: Generator| {
        let mut snapshot = snapshot(0, &[1000; 500]);
        snapshot.generator = generator;
        verdict_on(&spec, &outcome(vec![snapshot]))
    };
    let waiting = |workers| Generator { workers, longest_waiting_worker_millionths: 500_000, ..generator() };
    let busy = Generator { busiest_worker_millionths: 990_000, workers: 2, ..generator() };
    for own in [busy.clone(), waiting(5), waiting(0)] {
        let verdict = judge(own);
        assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Valid, LimitedBy::Client), "{verdict:?}");
        assert_eq!((verdict.reasons, verdict.component.as_deref()), (Vec::new(), Some("sample-client")));
    }
    let throttled = Generator { throttled_nanoseconds: 3 * SECOND, ..busy.clone() };
    let stolen = Generator { stolen_nanoseconds: 6 * SECOND, ..busy };
    for (outside, words) in [
        (waiting(4), "waited for a processor for 50 %"),
        (throttled, "its CPU limit throttled it for 3.00 s in 10.0 s"),
        (stolen, "steal time took 15 % of its machine"),
    ] {
        let verdict = judge(outside);
        assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Degraded, LimitedBy::GeneratorCPU));
        let [reason] = &verdict.reasons[..] else { panic!("{verdict:?}") };
        assert_eq!(reason.reason, ReasonKind::GeneratorCPU);
        assert!(reason.message.contains(words), "{}", reason.message);
    }
}

/// On four processors with one worker, a program that needed more than the other three took the worker's time.
#[test]
fn the_program_of_a_driver_is_no_other_process() {
    let load = serde_json::json!({
        "type": "ClosedLoop", "duration": "10s", "clients": [{"name": "own", "type": "Driver", "driver": "go"}],
    });
    let spec = spec(1, &load);
    let judge = |program: Option<u64>| {
        let mut snapshot = snapshot(0, &[1000; 500]);
        snapshot.generator = Generator { workers: 1, longest_waiting_worker_millionths: 500_000, ..generator() };
        let usage = |time: u64| ClientUsage {
            user_nanoseconds: SECOND,
            system_nanoseconds: time - SECOND,
            ..ClientUsage::default()
        };
        snapshot.client = program.map(usage);
        let verdict = verdict_on(&spec, &outcome(vec![snapshot]));
        (verdict.value, verdict.limited_by)
    };
    assert_eq!(judge(Some(30 * SECOND + 1)), (VerdictValue::Valid, LimitedBy::Client));
    assert_eq!(judge(Some(30 * SECOND)), (VerdictValue::Degraded, LimitedBy::GeneratorCPU));
    assert_eq!(judge(None), (VerdictValue::Degraded, LimitedBy::GeneratorCPU), "a program that the shard cannot see");
}

/// Many shards with little work each: none of them waits for long.
#[test]
fn what_the_shards_of_a_machine_wait_adds_up() {
    let judge = |waited: u64| {
        let crowd = |shard: u32| {
            let mut snapshot = snapshot(shard, &[1000; 500]);
            snapshot.generator = Generator {
                host: "n1".into(),
                processors: 2,
                longest_waiting_worker_millionths: u32::try_from(waited / 10_000).unwrap(),
                run_queue_nanoseconds: waited,
                ..generator()
            };
            snapshot
        };
        let spec = spec(20, &serde_json::json!({"type": "ClosedLoop", "duration": "10s"}));
        verdict_on(&spec, &outcome((0..20).map(crowd).collect()))
    };
    // 20 times 0.19 s and 0.3 s, of two processors' ten seconds.
    assert_eq!(judge(SECOND * 19 / 100).reasons, []);
    let told = judge(SECOND * 3 / 10);
    assert_eq!((told.value, told.limited_by), (VerdictValue::Degraded, LimitedBy::Unknown));
    let message = &told.reasons[0].message;
    assert!(message.starts_with("20 of 20 shards lacked processor time"), "{message}");
    assert!(message.contains("on n1 0.30 workers waited for each processor"), "{message}");
}

const MILLISECOND: u64 = SECOND / 1000;

/// Histogram of delays, from counts and lengths.
fn delays(of: &[(u64, u64)]) -> Vec<u64> {
    let mut counts = vec![0; 136];
    for (count, length) in of {
        let step = (1..136).take_while(|step| delay_step(*step) <= *length).count();
        counts[step] += count;
    }
    counts
}

/// An open loop of ten seconds with ten thousand requests of this lateness and response time, spread over `shards` shards. `own` lists each
/// shard's own delays: count and length.
fn late(shards: u32, late: u64, response: u64, own: &[(u64, u64)]) -> Verdict {
    let each = |shard: u32| {
        let requests = 10_000 / shards as usize;
        let mut snapshot = snapshot(shard, &vec![response; requests]);
        let lateness = histogram(Kind::Request, &vec![late; requests]);
        snapshot.latency.lateness = Some(EncodedHistogram::encode(&lateness).unwrap());
        snapshot.generator = Generator {
            workers: 1,
            delayed_nanoseconds: own.iter().map(|(count, length)| count * length).sum(),
            longest_delay_nanoseconds: own.iter().map(|(_, length)| *length).max().unwrap(),
            send_delays: delays(own),
            ..generator()
        };
        snapshot
    };
    verdict_on(&open_loop(shards), &outcome((0..shards).map(each).collect()))
}

#[test]
fn late_sends_are_told_if_they_are_the_shards_own_and_much_of_the_response_time() {
    let told = late(1, 60 * MILLISECOND, 100 * MILLISECOND, &[(3, 100 * MILLISECOND)]);
    assert_eq!((told.value, told.reasons.len()), (VerdictValue::Degraded, 1), "{told:?}");
    assert_eq!(told.reasons[0].reason, ReasonKind::SendLate);
    let message = &told.reasons[0].message;
    assert!(message.contains("p99 of response time is 100 ms,") && message.contains("by up to 100 ms"), "{message}");
    // A small part of the response time; a timer's usual lateness; waiting for room in a pipeline.
    for (late_by, response, delayed) in [(40, 100, 3), (0, 1, 3), (60, 100, 1)] {
        let own = [(delayed, 100 * MILLISECOND)];
        let silent = late(1, late_by * MILLISECOND, response * MILLISECOND, &own);
        assert_eq!(silent.value, VerdictValue::Valid, "{silent:?}");
    }
}

/// A server does not answer for half a second, and the machine is busy: 2 % of the time in short delays.
#[test]
fn what_an_outage_delayed_is_not_the_shards_own_doing() {
    let own = [(150, MILLISECOND * 11 / 10), (1, 40 * MILLISECOND)];
    assert_eq!(late(1, 455 * MILLISECOND, 460 * MILLISECOND, &own).reasons, []);
}

/// Each shard sends 50 requests per second and was late for 6 of 500: a thousandth of its time, and a hundredth of all requests.
#[test]
fn many_shards_that_are_late_for_a_few_requests_each_are_late() {
    let own = [(6, 11 * MILLISECOND)];
    let told = late(20, 10 * MILLISECOND, 18 * MILLISECOND, &own);
    assert_eq!(told.reasons.iter().map(|reason| reason.reason).collect::<Vec<_>>(), [ReasonKind::SendLate]);
    let few = late(20, 10 * MILLISECOND, 18 * MILLISECOND, &[(4, 11 * MILLISECOND)]);
    assert_eq!(few.reasons, []);
}

/// `delays` delays of 40 ms and many of 64 ns, on two connections, in ten seconds.
fn unread(delays: u64) -> Generator {
    let mut counts = vec![0; 128];
    counts[4 * 4] = 1_000_000;
    // From 33.6 ms to 41.9 ms.
    counts[4 * 23] = delays;
    let receive_delay = Some(ReceiveDelay { connections: 2, counts });
    Generator { receive_delay, ..generator() }
}

#[test]
fn replies_that_nobody_read_are_told_unless_a_lack_of_processor_time_explains_it() {
    assert_silent(unread(119));
    let told = judged(1, unread(240));
    assert_eq!((told.value, told.limited_by), (VerdictValue::Degraded, LimitedBy::Unknown), "{told:?}");
    assert_eq!(told.reasons.len(), 1);
    assert_eq!(told.reasons[0].reason, ReasonKind::ReceiveLate);
    let message = &told.reasons[0].message;
    assert!(message.contains("for 40 % of the time of its connections, and up to 41.9 ms at a time"), "{message}");
    let busy = Generator { busiest_worker_millionths: 960_000, ..unread(240) };
    assert_told_with(LimitedBy::GeneratorCPU, busy, "its busiest worker ran for 96 %");
    assert_silent(Generator { load_nanoseconds: 0, ..unread(240) });
    // So many connections that reading them one after another takes as long.
    let spec = spec(1, &serde_json::json!({"type": "ClosedLoop", "duration": "10s"}));
    let mut slow = snapshot(0, &[SECOND / 50; 500]);
    slow.generator = unread(240);
    assert_eq!(verdict_on(&spec, &outcome(vec![slow])).reasons, []);
}

#[test]
fn absurd_numbers_are_still_numbers() {
    let absurd = Generator {
        load_nanoseconds: 1,
        throttled_nanoseconds: u64::MAX,
        stolen_nanoseconds: u64::MAX,
        processors: u32::MAX,
        busiest_worker_millionths: u32::MAX,
        longest_waiting_worker_millionths: u32::MAX,
        receive_delay: Some(ReceiveDelay { connections: u32::MAX, counts: vec![u64::MAX; 256] }),
        ..Generator::default()
    };
    assert_eq!(judged(1, absurd).limited_by, LimitedBy::GeneratorCPU);
}

use proptest::prelude::*;
use redisbench_wire::Detail;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::{Operation, Topology};
use redisbench_wire::snapshot::{ReceiveDelay, Snapshot, Stage, Window, delay_step};
use redisbench_wire::timeline::{NodePart, Span};

use super::Period::Measured;
use super::*;

fn plan(open_loop: bool) -> TrialPlan {
    let load = if open_loop { crate::open_loop::open_loop(1) } else { Load::ClosedLoop };
    let mut plan = TrialPlan { load, node_seconds: true, ..TrialPlan::basic("redis:6379") };
    plan.target.topology = Topology::Cluster;
    plan.workload_mut().operations = ["a", "b"].map(|name| Operation::of(name, 1, "PING")).into();
    plan
}

fn recording(open_loop: bool, nodes: &[&str]) -> Recording {
    let mut recording = Recording::new(&plan(open_loop));
    for (index, id) in nodes.iter().enumerate() {
        recording.name_node(index, id, &format!("{id}:6379"));
    }
    recording
}

fn report(recording: Recording) -> WorkerReport {
    WorkerReport {
        taken_nanoseconds: 400,
        seconds: recording.seconds_since(0),
        recording,
        stage: Stage::Done,
        window: Window {
            start_nanoseconds: 100,
            first_due_nanoseconds: 105,
            first_send_nanoseconds: 110,
            measure_from_nanoseconds: 200,
            measure_to_nanoseconds: 300,
            drained_nanoseconds: 310,
        },
        preloaded_keys: 5,
        preload_commands: 6,
        cpu_nanoseconds: 50,
        run_queue_nanoseconds: 20,
        wall_nanoseconds: 100,
        delayed_nanoseconds: 7,
        longest_delay_nanoseconds: 5,
        waited_for_room: 3,
        in_flight: 30,
        room: 40,
        reconnects: 1,
        slots: vec![16000],
        replicas: vec![false],
        ..WorkerReport::default()
    }
}

fn merged(reports: Vec<WorkerReport>, detail: Detail) -> Snapshot {
    let meta = Meta { sequence: 9, shard: 3, attempt: 2, detail, from: 0 };
    merge(reports, meta, Machine::default(), &["a".into(), "b".into()]).unwrap()
}

fn completion(operation: u16, node: u32, latency: u64) -> Completion {
    Completion { operation, node, due: 1000, now: 1000 + latency, redirected: false }
}

/// A request sent half way between its due time and its reply.
fn succeed(recording: &mut Recording, operation: u16, node: u32, latency: u64, nil: bool) {
    recording.responded(operation, latency, 1);
    recording.succeeded(Measured, operation, 1, u64::from(nil));
    recording.served(operation, node, latency - latency / 2, 1);
}

#[test]
fn overflow_is_counted_with_its_true_maximum() {
    let mut recording = recording(false, &["x"]);
    for latency in [5, HIGHEST_NANOSECONDS + 7, HIGHEST_NANOSECONDS + 3] {
        recording.scheduled(Measured, 0, 1);
        succeed(&mut recording, 0, 0, latency, false);
    }
    let snapshot = merged(vec![report(recording)], Detail::Full);
    assert_eq!((snapshot.total.overflow, snapshot.total.overflow_max_nanoseconds), (2, HIGHEST_NANOSECONDS + 7));
    assert_eq!(snapshot.latency.response.count(Kind::Request).unwrap(), 1);
}

#[test]
fn windows_of_workers_become_one() {
    let worker = |dry: u64, drained: u64| {
        let mut report = report(recording(false, &[]));
        report.window.measure_to_nanoseconds = dry;
        report.window.drained_nanoseconds = drained;
        report
    };
    let snapshot = merged(vec![worker(280, 320), worker(260, 290), worker(u64::MAX, 0)], Detail::Full);
    assert_eq!((snapshot.window.measure_to_nanoseconds, snapshot.window.drained_nanoseconds), (260, 320));
    let mut running = worker(u64::MAX, 0);
    running.stage = Stage::Measuring;
    let snapshot = merged(vec![running, worker(u64::MAX, 320)], Detail::Full);
    assert_eq!((snapshot.window.measure_to_nanoseconds, snapshot.window.drained_nanoseconds), (0, 0));
    assert_eq!(snapshot.stage, Stage::Measuring);
}

#[test]
fn the_delay_of_replies_is_unknown_without_timestamps() {
    let delay = |counts: [u64; 2]| {
        let receive_delay = ReceiveDelay { connections: 1, counts: counts.to_vec() };
        let report = WorkerReport { receive_delay, ..report(recording(false, &[])) };
        merged(vec![report], Detail::Full).generator.receive_delay
    };
    assert_eq!(delay([0, 0]), None);
    assert_eq!(delay([0, 3]).map(|known| (known.connections, known.counts[1])), Some((1, 3)));
}

#[test]
fn nodes_are_told_apart_by_their_id() {
    let (mut first, mut second) = (recording(false, &["x", "y"]), recording(false, &["y", "z"]));
    first.scheduled(Measured, 0, 1);
    succeed(&mut first, 0, 1, 10, false);
    second.scheduled(Measured, 0, 1);
    second.scheduled(Measured, 0, 1);
    succeed(&mut second, 0, 0, 10, false);
    second.failed(Measured, &completion(0, 1, 10), true);
    second.redirected(Measured, 0, 1);
    let snapshot = merged(vec![report(first), report(second)], Detail::Full);
    let nodes: Vec<_> = snapshot
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node.slots, node.requests, node.errors, node.redirects))
        .collect();
    assert_eq!(nodes, [("x", 16000, 0, 0, 0), ("y", 0, 2, 0, 0), ("z", 0, 1, 1, 1)]);
}

#[test]
fn a_node_that_moved_is_two() {
    let moved = || {
        let mut recording = recording(false, &["x"]);
        recording.name_node(1, "x", "elsewhere:6379");
        recording.scheduled(Measured, 0, 1);
        succeed(&mut recording, 0, 1, 10, false);
        let mut report = report(recording);
        report.slots = vec![0, 16384];
        report
    };
    let snapshot = merged(vec![moved(), moved()], Detail::Full);
    let nodes: Vec<_> = snapshot.nodes.iter().map(|node| (node.address.as_str(), node.slots, node.requests)).collect();
    assert_eq!(nodes, [("x:6379", 0, 0), ("elsewhere:6379", 16384, 2)]);
}

#[test]
fn kinds_of_errors_stay_bounded_in_the_merge() {
    let of = |prefix: &str| {
        let mut recording = recording(false, &[]);
        (0..100).for_each(|kind| recording.error(&format!("{prefix}{kind}"), || "message".into()));
        report(recording)
    };
    let errors = merged(vec![of("A"), of("B")], Detail::Live).errors;
    assert_eq!(errors.len(), limits::ERROR_KINDS);
    assert_eq!(errors.iter().map(|error| error.count).sum::<u64>(), 200);
    assert_eq!(errors.iter().filter(|error| error.kind == OTHER).count(), 1);
}

#[test]
fn what_waits_in_the_schedule_is_in_flight() {
    let mut waiting = report(recording(true, &[]));
    waiting.stage = Stage::Measuring;
    (waiting.backlog, waiting.warmup_backlog) = (7, 3);
    let snapshot = merged(vec![waiting], Detail::Live);
    assert_eq!((snapshot.total.scheduled, snapshot.total.in_flight), (7, 7));
    assert_eq!((snapshot.warmup.scheduled, snapshot.warmup.in_flight), (3, 3));
}

#[test]
fn a_request_belongs_to_the_second_of_its_outcome() {
    const SECOND: u64 = 1_000_000_000;
    let mut recording = recording(true, &["x"]);
    recording.begin(SECOND / 2);
    let request = |recording: &mut Recording, operation, at| {
        recording.come_to(at);
        recording.scheduled(Measured, operation, 1);
        succeed(recording, operation, 0, 1_000_000, false);
    };
    recording.come_to(SECOND);
    recording.warmup.succeeded += 1;
    request(&mut recording, 0, 3 * SECOND / 2 - 1);
    request(&mut recording, 0, 3 * SECOND / 2);
    request(&mut recording, 1, 5 * SECOND);
    let (spans, complete) = recording.seconds_since(0);
    let found: Vec<_> = spans
        .iter()
        .map(|span| (span.second, span.warmup.succeeded, span.parts.iter().map(|part| part.counts.succeeded).collect()))
        .collect::<Vec<(u32, u64, Vec<u64>)>>();
    assert_eq!(found, [(0, 1, vec![1, 0]), (1, 0, vec![1, 0]), (4, 0, vec![0, 1])]);
    assert_eq!(complete, 4);
    assert_eq!(recording.seconds_since(2).0, spans[2..]);
}

#[test]
fn a_node_is_counted_in_the_second_of_each_outcome() {
    const SECOND: u64 = 1_000_000_000;
    let mut recording = recording(true, &["x", "y"]);
    recording.begin(0);
    let mut request = |node, at, fails: bool| {
        recording.come_to(at);
        recording.scheduled(Measured, 0, 1);
        if fails {
            recording.failed(Measured, &completion(0, node, 10), true);
        } else {
            succeed(&mut recording, 0, node, 10, false);
        }
    };
    request(0, 1, false);
    request(0, SECOND - 1, false);
    request(1, SECOND, true);
    request(0, 3 * SECOND, false);
    // Half of the latency is service time.
    let service = |count| {
        let mut coarse = Coarse::default();
        coarse.record(5, count);
        coarse.buckets()
    };
    let part = |address: &str, requests, errors| NodePart {
        address: format!("{address}:6379"),
        requests,
        errors,
        service: service(requests - errors),
    };
    let found: Vec<_> = recording.seconds_since(0).0.into_iter().map(|span| (span.second, span.nodes)).collect();
    let idle = |address| NodePart { service: redisbench_wire::timeline::Buckets::default(), ..part(address, 0, 0) };
    assert_eq!(
        found,
        [
            (0, vec![part("x", 2, 0), idle("y")]),
            (1, vec![idle("x"), part("y", 1, 1)]),
            (3, vec![part("x", 1, 0), idle("y")]),
        ]
    );
}

/// The worker adds up its operations for a live snapshot between two requests. Adding 200 KB for each histogram of each operation would
/// take about a millisecond.
#[test]
fn a_live_snapshot_looks_at_no_bucket_that_is_not_in_use() {
    let mut recording = recording(true, &["x"]);
    recording.begin(0);
    recording.come_to(1);
    // One request in the current second, one in an earlier second.
    for (operation, second) in [(0, 0), (1, 1)] {
        recording.come_to(1 + second * 1_000_000_000);
        recording.scheduled(Measured, operation, 1);
        succeed(&mut recording, operation, 0, 1_000_000, false);
    }
    let ranges: Vec<usize> = recording.operations.iter().map(|operation| operation.second.used().count()).collect();
    assert_eq!(ranges, [2, 2], "one of response times and one of service times");
    // Counts that are in no second would be found only by reading every bucket.
    for operation in &mut recording.operations {
        operation.response.record(9_000_000, 1);
        operation.service.as_mut().unwrap().record(9_000_000, 1);
    }
    let live = recording.summary(Detail::Live);
    let [whole] = &live.operations[..] else { panic!("{} operations", live.operations.len()) };
    let found = [&whole.response, whole.service.as_ref().unwrap()].map(RequestCounts::histogram);
    assert_eq!(found.map(|histogram| (histogram.len(), histogram.max() < 2_000_000)), [(2, true); 2]);
}

/// A report made in slices, with `between` called after each, and the number of slices.
fn sliced(recording: &mut Recording, mut between: impl FnMut(&mut Recording, u32)) -> (WorkerReport, u32) {
    let (mut draft, mut slices) = (recording.draft(0), 0);
    while !draft.is_whole() {
        recording.sketch(&mut draft);
        slices += 1;
        between(recording, slices);
    }
    let (summary, seconds) = draft.finish(recording);
    (WorkerReport { recording: summary, seconds, stage: Stage::Measuring, ..report(recording.clone()) }, slices)
}

/// A worker sends between the slices, so what was copied first is older than what is copied last.
#[test]
fn a_live_summary_in_slices_is_sound_whatever_is_counted_meanwhile() {
    let mut plan = plan(true);
    plan.workload_mut().operations = (0..64).map(|index| Operation::of(&format!("o{index}"), 1, "PING")).collect();
    let mut recording = Recording::new(&plan);
    recording.name_node(0, "x", "x:6379");
    recording.begin(0);
    let count = |recording: &mut Recording, latency: u64| {
        for operation in 0..64 {
            recording.scheduled(Measured, operation, 3);
            succeed(recording, operation, 0, latency, false);
            recording.failed(Measured, &completion(operation, 0, latency), true);
            recording.error("ERR", || "message".into());
            recording.unsent(Measured, operation, Unsent::NoRoom);
            recording.wrote(7);
            recording.wrote_of(operation, 5);
            recording.read(9, true);
            recording.read_of(operation, 4);
        }
    };
    let succeeded = |snapshot: &Snapshot| snapshot.total.succeeded;
    for second in 0..4 {
        recording.come_to(second * seconds::SECOND);
        count(&mut recording, 1_000_000 << second);
    }
    let summary = recording.summary(Detail::Live);
    let (seconds, stage) = (recording.seconds_since(0), Stage::Measuring);
    let at_once = merged(vec![WorkerReport { seconds, stage, ..report(summary) }], Detail::Live);
    let (quiet, slices) = sliced(&mut recording, |_, _| {});
    assert!(slices > 10, "{slices} slices of 64 operations");
    assert_eq!(merged(vec![quiet], Detail::Live), at_once);

    let (busy, _) = sliced(&mut recording, |recording, slice| count(recording, u64::from(slice) * 1_000));
    let busy = merged(vec![busy], Detail::Live);
    assert_eq!(busy.check(), Ok(()), "the sum over all seconds is the total");
    assert!(succeeded(&busy) > succeeded(&at_once));
    let scheduled = recording.operations.iter().map(|operation| operation.tally.scheduled).sum::<u64>();
    assert_eq!(busy.total.scheduled, scheduled, "as of the end, as those that wait in the schedule");

    // A second ends after every slice, but not without end.
    let (restarted, slices) = sliced(&mut recording, |recording, slice| {
        recording.come_to((4 + u64::from(slice)) * seconds::SECOND);
        count(recording, 2_000);
    });
    assert_eq!(slices, 3);
    let restarted = merged(vec![restarted], Detail::Live);
    assert_eq!(restarted.check(), Ok(()));
    assert_eq!(restarted.timeline.spans.last().map(Span::end), Some(7), "the second of the last copy");
}

#[test]
fn a_second_is_complete_once_no_worker_counts_in_it() {
    let worker = |stage, complete| {
        let mut report = report(recording(false, &[]));
        let part = redisbench_wire::timeline::SpanPart::default();
        let span = Span { second: 3, seconds: 1, sent_bytes: 1, parts: vec![part], ..Span::default() };
        (report.stage, report.seconds) = (stage, (vec![span], complete));
        report
    };
    let complete = |workers| merged(workers, Detail::Live).timeline.complete;
    assert_eq!(complete(vec![worker(Stage::Measuring, 4), worker(Stage::Measuring, 3)]), 3);
    assert_eq!(complete(vec![worker(Stage::Measuring, 7), worker(Stage::Done, 3)]), 7);
    assert_eq!(complete(vec![worker(Stage::Done, 3), worker(Stage::Done, 3)]), 4);
}

proptest! {
    #[test]
    fn merging_workers_is_recording_on_one(
        requests in prop::collection::vec(
            (0u16..2, 0u32..2, 0..HIGHEST_NANOSECONDS, 0usize..3, any::<bool>(), 0u8..10), 0..200,
        ),
        open_loop: bool,
        live: bool,
    ) {
        let mut workers = vec![recording(open_loop, &["x", "y"]); 3];
        let mut alone = recording(open_loop, &["x", "y"]);
        workers.iter_mut().chain([&mut alone]).for_each(|recording| recording.begin(1_000));
        let mut now = 1_000;
        for (operation, node, latency, worker, nil, fate) in requests {
            now += latency % 700_000_000;
            for recording in [&mut workers[worker], &mut alone] {
                recording.come_to(now);
                recording.scheduled(Measured, operation, 1);
                recording.sent(Measured, operation, latency / 3);
                match fate {
                    0 => {
                        recording.failed(Measured, &completion(operation, node, latency), latency % 2 == 0);
                        recording.error(["ERR", "Timeout"][node as usize], || "message".into());
                    }
                    1 => recording.unsent(Measured, operation, Unsent::NotConnected),
                    _ => succeed(recording, operation, node, latency, nil),
                }
                recording.series.add(latency / 1000, 1);
                recording.wrote(7);
                recording.wrote_of(operation, 5);
                recording.read(9, nil);
                recording.read_of(operation, 4);
            }
        }
        workers.iter_mut().chain([&mut alone]).for_each(|recording| recording.come_to(now));
        let detail = if live { Detail::Live } else { Detail::Full };
        let report = |recording: &Recording| WorkerReport {
            seconds: recording.seconds_since(0),
            ..report(recording.summary(detail))
        };
        let mut together = merged(workers.iter().map(report).collect(), detail);
        let mut single = merged(vec![report(&alone)], detail);
        // The sum over all seconds is also the total.
        prop_assert_eq!(together.check(), Ok(()));
        prop_assert_eq!(together.timeline.spans.is_empty(), together.total.scheduled == 0);
        prop_assert!(together.total.balances());
        prop_assert_eq!(together.generator.workers, 3);
        together.errors.sort_by(|one, other| one.kind.cmp(&other.kind));
        single.errors.sort_by(|one, other| one.kind.cmp(&other.kind));
        // Fields about the workers themselves differ.
        together.generator = single.generator.clone();
        together.preloaded_keys = single.preloaded_keys;
        together.preload_commands = single.preload_commands;
        prop_assert_eq!(&together, &single);
        prop_assert_eq!(together.operations.is_empty() && together.nodes.is_empty(), live);
        for node in &together.nodes {
            let seconds = together.timeline.spans.iter().flat_map(|span| &span.nodes);
            let seconds = seconds.filter(|part| part.address == node.address);
            let sum = seconds.fold((0, 0), |sum, part| (sum.0 + part.requests, sum.1 + part.errors));
            prop_assert_eq!(sum, (node.requests, node.errors));
        }
        let lateness = together.latency.lateness.as_ref().map(EncodedHistogram::as_str);
        prop_assert_eq!(lateness.is_some(), open_loop && !live);
    }
}

#[test]
fn send_delays_of_all_workers_are_one_histogram() {
    let late = |delays: &[u64]| {
        let mut report = report(recording(true, &["a"]));
        for delay in delays {
            report.send_delays.record(*delay);
        }
        report
    };
    let told = merged(vec![late(&[5_000_000, 70]), late(&[5_000_000])], Detail::Full).generator.send_delays;
    let by_step: Vec<(u64, u64)> = (0..).map(delay_step).zip(told).filter(|(_, count)| *count > 0).collect();
    assert_eq!(by_step, [(64, 1), (4_194_304, 2)]);
    assert!(merged(vec![late(&[])], Detail::Full).generator.send_delays.is_empty());
}

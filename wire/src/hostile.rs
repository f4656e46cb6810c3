//! Fuzzes everything that the two sides read from each other with hostile input. See `redisbench_testkit::hostile`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use redisbench_testkit::hostile::{Meter, Target, drive, peak};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::histogram::tests::{assert_matches_reference, bomb, deflated, with_counts};
use crate::histogram::{EncodedHistogram, HIGHEST_NANOSECONDS, Kind};
use crate::limits::{self, LARGEST_COUNT};
use crate::plan::tests::plan;
use crate::snapshot::{
    Cache, CacheCounts, Churn, ClientUsage, ErrorTally, Finding, FindingKind, Generator, Latency, NodeTally,
    OperationTally, Series, ServerCommands, ServerCpu, ServerNode, ServerSample, ServerStats, Snapshot, Stage, Tally,
    Verification, VerificationCounts, Window,
};
use crate::strain::{Shares, Strain};
use crate::timeline::{Coarse, Outcomes, Span, Timeline};
use crate::topology::{Change, ChangeKind, Outage, SlotRange, TopologyReport};
use crate::{
    AbortRequest, AbortThen, AcceptedStart, AfterRequest, Answer, CleanupState, ClockReading, EpochRequest,
    FailureReason, PlanRequest, Preparation, Probe, ProbeState, Refusal, RefusalCode, ShardFailure, ShardPhase,
    ShardState, StartRequest,
};

#[global_allocator]
static METER: Meter = Meter;

const TARGETS: [Target; 4] = [
    // A request histogram takes 0.2 MiB, and its largest inflated form the same again.
    Target {
        name: "histogram",
        run: histogram,
        seeds: histograms,
        words: Vec::new,
        memory: (2 << 20, 8),
        cases: 3_000,
    },
    // The longest series takes 1.4 MiB, and up to twice that while it grows.
    Target { name: "snapshot", run: snapshot, seeds: snapshots, words, memory: (6 << 20, 4), cases: 1_500 },
    Target { name: "answer", run: answer, seeds: answers, words, memory: (64 << 10, 4), cases: 3_000 },
    // A parsed plan is about ten times as large as a short body: `[[]]` is two lists.
    Target { name: "request", run: request, seeds: requests, words, memory: (64 << 10, 64), cases: 3_000 },
];

#[test]
fn hostile_input_is_refused_in_bounded_memory() {
    drive(env!("CARGO_MANIFEST_DIR"), &TARGETS);
}

#[test]
fn what_is_good_is_read() {
    for snapshot in snapshots() {
        let answer: Answer<Snapshot> = serde_json::from_slice(&snapshot).unwrap();
        assert_eq!(answer.body.check(), Ok(()));
    }
    for inflated in histograms() {
        let read = [Kind::Request, Kind::Node].map(|kind| deflated(&inflated).decode(kind).is_ok());
        assert!(read[0] != read[1], "of one kind, and not of the other");
    }
}

#[test]
fn a_histogram_that_is_counted_or_added_is_not_allocated() {
    let one = 8 * Kind::Request.empty().distinct_values();
    let values: Vec<u64> = (0..5_000).map(|n| 1_000 + n * n * 1_000).collect();
    let encoded = EncodedHistogram::encode(&recorded(Kind::Request, &values)).unwrap();
    let (count, counted) = peak(|| encoded.count(Kind::Request).unwrap());
    assert!(count == 5_000 && counted < one / 2, "{counted} of {one} bytes");
    let mut sum = recorded(Kind::Request, &[1_000]);
    let ((), added) = peak(|| encoded.add_to(&mut sum, Kind::Request).unwrap());
    assert!(sum.len() == 5_001 && added < one / 2, "{added} of {one} bytes");
    let (decoded, held) = peak(|| encoded.decode(Kind::Request).unwrap());
    assert!(decoded.len() == 5_000 && held < one * 3 / 2, "{held} of {one} bytes");
}

/// Mutates the inflated form, because most mutations of the deflated stream could not be inflated at all.
fn histogram(inflated: &[u8]) {
    let encoded = deflated(inflated);
    for kind in [Kind::Request, Kind::Node] {
        assert_matches_reference(&encoded, kind);
        if let Ok(decoded) = encoded.decode(kind) {
            assert!(decoded.max() <= decoded.highest_equivalent(HIGHEST_NANOSECONDS));
            let again = EncodedHistogram::encode(&decoded).unwrap().decode(kind).unwrap();
            assert_eq!(again, decoded);
        }
    }
    let _ = serde_json::from_value::<EncodedHistogram>(BASE64.encode(inflated).into()).unwrap().decode(Kind::Node);
}

fn snapshot(bytes: &[u8]) {
    let Ok(answer) = serde_json::from_slice::<Answer<Snapshot>>(bytes) else { return };
    let snapshot = answer.body;
    if snapshot.check().is_err() {
        return;
    }
    // Accepted counts can be summed over the maximum number of shards.
    let most = u64::MAX / u64::from(limits::SHARDS);
    let tallies = snapshot.operations.iter().map(|part| &part.tally).chain([&snapshot.total, &snapshot.warmup]);
    for tally in tallies {
        assert!(tally.balances());
        let counts = [
            tally.scheduled,
            tally.sent_bytes,
            tally.received_bytes,
            tally.redirect_hops,
            tally.deferral_hops,
            tally.late,
        ];
        assert!(counts.iter().all(|count| *count <= most));
    }
    let outages = crate::outage::agreed(&[&snapshot.topology.outages], 1);
    assert!(outages.iter().all(|outage| outage.nanoseconds() >= Outage::SHORTEST_NANOSECONDS));
    let errors: u64 = snapshot.errors.iter().map(|error| error.count).sum();
    let nodes: u64 = snapshot.nodes.iter().map(|node| node.requests + node.redirects).sum();
    let completed: u64 = snapshot.series.completed.iter().sum();
    assert!(errors <= most && nodes <= most && completed <= most);
    let spans = crate::timeline::merge(snapshot.timeline.spans.clone());
    assert_eq!(spans, snapshot.timeline.spans, "in order, and each second once");
    let seconds = spans.iter().map(|span| span.counts().finished()).sum::<u64>();
    assert!(seconds <= most && spans.iter().all(|span| span.end() <= limits::TRIAL_SECONDS));
    let response = snapshot.latency.response.count(Kind::Request).unwrap();
    assert_eq!(response + snapshot.total.overflow, snapshot.total.succeeded);
}

fn answer(bytes: &[u8]) {
    let texts = |answer: &Answer<()>| [answer.run.len(), answer.incarnation.len()];
    assert!(read::<Answer<()>>(bytes).is_none_or(|answer| texts(&answer).into_iter().all(|length| length <= 1024)));
    read::<Answer<ClockReading>>(bytes);
    read::<Answer<AcceptedStart>>(bytes);
    let cleanup = read::<Answer<CleanupState>>(bytes).map(|answer| answer.body);
    assert!(
        cleanup.is_none_or(|state| {
            state.removed_keys <= 1 << 52 && state.failure.is_none_or(|text| text.len() <= 1024)
        })
    );
    let probe = read::<Answer<ProbeState>>(bytes).and_then(|answer| answer.body.probe);
    let probe = probe.filter(|probe| probe.check().is_ok());
    // Accepted numbers can be multiplied by a rate and summed over the maximum number of shards.
    let shards = u64::from(limits::SHARDS);
    let sum = |probe: Probe| u128::from(probe.succeeded) * u128::from(shards);
    let product = |probe: Probe| u128::from(probe.mean_nanoseconds).checked_mul(sum(probe));
    assert!(probe.is_none_or(|probe| product(probe).is_some() && probe.of_room <= u64::MAX / shards));
    let refusal = read::<Answer<Refusal>>(bytes);
    assert!(refusal.is_none_or(|answer| answer.body.message.len() <= 1024));
    let state = read::<Answer<ShardState>>(bytes);
    assert!(state.is_none_or(|answer| {
        let said = [answer.body.preparation.waiting_for, answer.body.failure.map(|failure| failure.message)];
        said.into_iter().flatten().all(|text| text.len() <= 1024)
    }));
}

fn request(bytes: &[u8]) {
    if let Some(request) = read::<PlanRequest>(bytes) {
        assert_eq!(request.plan.hash("run", 0).len(), 64);
        assert_eq!(request.plan.part(&"run".into(), 0, 3).shard, 3);
    }
    read::<StartRequest>(bytes);
    read::<AfterRequest>(bytes);
    read::<EpochRequest>(bytes);
    read::<AbortRequest>(bytes);
}

/// Accepted input must survive a round trip.
fn read<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_vec(&read).unwrap();
    assert_eq!(serde_json::from_slice::<T>(&written).unwrap(), read);
    Some(read)
}

fn recorded(kind: Kind, values: &[u64]) -> hdrhistogram::Histogram<u64> {
    let mut histogram = kind.empty();
    for value in values {
        histogram.record(*value).unwrap();
    }
    histogram
}

fn histograms() -> Vec<Vec<u8>> {
    let inflated = |histogram: &hdrhistogram::Histogram<u64>| {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).unwrap();
        bytes
    };
    let values: Vec<u64> = (0..200).map(|n| 64 << (n % 33)).filter(|n| *n < HIGHEST_NANOSECONDS).collect();
    let mut all: Vec<Vec<u8>> = [Kind::Request, Kind::Node]
        .into_iter()
        .flat_map(|kind| [recorded(kind, &[]), recorded(kind, &[1, 1_000, 1_000_000]), recorded(kind, &values)])
        .map(|histogram| inflated(&histogram))
        .collect();
    let mut full = Kind::Node.empty();
    full.record_n(1_000, i64::MAX.unsigned_abs()).unwrap();
    all.push(inflated(&full));
    all
}

/// Invalid histograms of every kind, as JSON strings.
fn words() -> Vec<String> {
    let text = |encoded: &EncodedHistogram| encoded.as_str().to_owned();
    let mut words: Vec<String> = histograms().iter().map(|inflated| text(&deflated(inflated))).collect();
    // The longest run, counts that overflow every sum, an unterminated number, more buckets than exist.
    let (longest_run, huge) = ([0xff; 9], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe].repeat(8));
    for counts in [&longest_run[..], &huge, &[0x80], &vec![2; 60_000]] {
        words.extend([Kind::Request, Kind::Node].map(|kind| text(&with_counts(kind, counts))));
    }
    words.push(text(&bomb(8 << 20)));
    words.extend(["Done", "Measuring", "Armed", "Internal", "StaleEpoch", "full", ""].map(str::to_owned));
    words
}

fn tally(succeeded: u64, errors: u64) -> Tally {
    Tally {
        scheduled: succeeded + errors + 2,
        succeeded,
        errors,
        unsent: 2,
        unsent_not_connected: 1,
        unsent_at_end: 1,
        redirect_hops: 3,
        deferral_hops: 2,
        sent_bytes: 100,
        received_bytes: 200,
        ..Tally::default()
    }
}

fn latency(values: &[u64], errors: &[u64]) -> Latency {
    let encoded = |values| EncodedHistogram::encode(&recorded(Kind::Request, values)).unwrap();
    Latency {
        response: encoded(values),
        service: Some(encoded(values)),
        error_replies: Some(encoded(errors)),
        lateness: None,
    }
}

fn strain() -> Strain {
    let mut strain = Strain::default();
    strain.push(
        Shares { busiest_worker: 4_000, longest_waiting_worker: 20, run_queue: 30, ..Shares::default() },
        1_000_000_000,
    );
    strain.push(Shares { throttled: 9_000, stolen: 100, ..Shares::default() }, 500_000_000);
    strain
}

fn snapshots() -> Vec<Vec<u8>> {
    let values = [1_000, 2_000, 3_000_000];
    let full = Snapshot {
        client: Some(ClientUsage {
            version: "redis-rs 1".into(),
            connections: 4,
            callers: 8,
            ..ClientUsage::default()
        }),
        sequence: 9,
        shard: 1,
        attempt: 2,
        taken_nanoseconds: 30_000_000_000,
        stage: Stage::Done,
        aborted: false,
        terminated: false,
        window: Window {
            start_nanoseconds: 10_000_000_000,
            first_due_nanoseconds: 10_000_000_000,
            first_send_nanoseconds: 10_000_000_001,
            measure_from_nanoseconds: 11_000_000_000,
            measure_to_nanoseconds: 21_000_000_000,
            drained_nanoseconds: 21_000_000_500,
        },
        total: tally(3, 2),
        warmup: tally(7, 0),
        preloaded_keys: 10,
        preload_commands: 10,
        latency: latency(&values, &[500, 600]),
        series: Series { interval_nanoseconds: 100_000_000, completed: vec![1; 100] },
        timeline: timeline(tally(7, 0), tally(3, 2), &values, &[500, 600]),
        operations: vec![OperationTally {
            name: "get".into(),
            tally: tally(3, 2),
            nil_replies: 1,
            latency: latency(&values, &[500, 600]),
        }],
        nodes: vec![NodeTally {
            id: "a".into(),
            address: "redis:6379".into(),
            slots: 16_384,
            replica: false,
            connections: 3,
            requests: 5,
            errors: 2,
            redirects: 1,
            service: EncodedHistogram::encode(&recorded(Kind::Node, &values)).unwrap(),
        }],
        errors: vec![ErrorTally { kind: "WRONGTYPE".into(), count: 2, first_message: "WRONGTYPE no".into() }],
        verification: Some(Verification {
            counts: VerificationCounts { checked: 9, lost_writes: 1, ..VerificationCounts::default() },
            findings: vec![Finding {
                kind: FindingKind::LostWrite,
                key: "rb:1".into(),
                expected: "7".into(),
                seen: "6".into(),
                node: "redis:6379".into(),
                at_nanoseconds: 12_000_000_000,
            }],
        }),
        cache: Some(Cache {
            counts: CacheCounts {
                hits: 9,
                stale_hits: 1,
                misses: 3,
                invalidations: 4,
                not_cached: 1,
                ..CacheCounts::default()
            },
            invalidation: EncodedHistogram::encode(&recorded(Kind::Request, &values)).unwrap(),
        }),
        churn: Some(Churn {
            made: 3,
            closed: 2,
            connect: EncodedHistogram::encode(&recorded(Kind::Request, &values)).unwrap(),
            tls_handshake: None,
        }),
        generator: Generator { host: "n1".into(), workers: 1, strain: Some(strain()), ..Generator::default() },
        topology: topology(),
        servers: Some(servers()),
    };
    let live = Snapshot {
        stage: Stage::Measuring,
        series: Series::default(),
        operations: Vec::new(),
        nodes: Vec::new(),
        ..full.clone()
    };
    let large = Snapshot {
        total: Tally { sent_bytes: LARGEST_COUNT, ..full.total },
        timeline: Timeline { from: 1, ..full.timeline.clone() },
        series: Series { completed: vec![1; 1_000], ..full.series.clone() },
        ..full.clone()
    };
    [full, live, large].iter().map(|snapshot| answered(Some(0), snapshot)).collect()
}

/// The warm-up in the first second, and all measured requests in the second minute.
fn timeline(warmup: Tally, total: Tally, values: &[u64], errors: &[u64]) -> Timeline {
    let coarse = |values: &[u64]| {
        let mut coarse = Coarse::default();
        for value in values {
            coarse.record(*value, 1);
        }
        coarse.buckets()
    };
    let part = crate::timeline::SpanPart {
        counts: Outcomes::of(&total),
        response: coarse(values),
        service: coarse(values),
        error_replies: coarse(errors),
    };
    let first = Span { second: 0, seconds: 1, warmup: Outcomes::of(&warmup), ..Span::default() };
    let (sent_bytes, received_bytes) = (total.sent_bytes, total.received_bytes);
    let rest = Span { second: 60, seconds: 60, sent_bytes, received_bytes, parts: vec![part], ..Span::default() };
    Timeline { from: 0, complete: 120, more: false, spans: vec![first, rest] }
}

fn servers() -> ServerStats {
    let sample = ServerSample {
        taken_nanoseconds: 9_000_000_000,
        keys: 10,
        cpu_nanoseconds: Some(4_000),
        commands: Some(12),
        reads: Some(6),
        ..ServerSample::default()
    };
    let node = ServerNode {
        id: "a".into(),
        address: "redis:6379".into(),
        note: Some("silent once".into()),
        before: Some(sample),
        after: Some(ServerSample { io_threads_active: Some(false), ..sample }),
        cpu: Some(ServerCpu { main_thread: true, mean_basis_points: 9_000, ..ServerCpu::default() }),
        commands: Some(ServerCommands { calls: 12, failed: 2, rejected: Some(1), ..ServerCommands::default() }),
        ..ServerNode::default()
    };
    ServerStats { nodes: vec![node], not_compared: vec!["ping".into()] }
}

fn topology() -> TopologyReport {
    let slots = SlotRange { first: 5461, last: 10922 };
    let change = Change {
        at_nanoseconds: 12_000_000_000,
        what: ChangeKind::SlotsMoved,
        node: "b:6379".into(),
        from: Some("a:6379".into()),
        slots: vec![slots],
    };
    let outage = Outage {
        slots,
        reads: false,
        node: "a:6379".into(),
        from_nanoseconds: 12_000_000_000,
        until_nanoseconds: 13_000_000_000,
        lasting: false,
    };
    TopologyReport {
        primaries: 3,
        replicas: 3,
        changes: vec![change],
        outages: vec![outage],
        ..TopologyReport::default()
    }
}

fn answered(trial: Option<u32>, body: impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Answer::new("run", "pod", trial, body)).unwrap()
}

fn answers() -> Vec<Vec<u8>> {
    let state = ShardState {
        phase: ShardPhase::Failed,
        failure: Some(ShardFailure { reason: FailureReason::Internal, message: "why".into() }),
        plan_hash: Some("abc".into()),
        accepted: Some(AcceptedStart { attempt: 1, start_nanoseconds: 5 }),
        epoch: 3,
        preparation: Preparation { waiting_for: Some("connection refused".into()), ..Preparation::default() },
    };
    let probe = Probe {
        room: 2,
        of_room: 4,
        nanoseconds: 2_000_000_000,
        succeeded: 3,
        mean_nanoseconds: 500,
        tally: tally(3, 2),
    };
    vec![
        answered(Some(0), state),
        answered(Some(0), ProbeState { after_nanoseconds: 9, over: true, probe: Some(probe) }),
        answered(Some(0), CleanupState { removed_keys: 7, done: false, failure: Some("gone".into()) }),
        answered(None, ClockReading { monotonic_nanoseconds: 42 }),
        answered(Some(0), AcceptedStart { attempt: 1, start_nanoseconds: 5 }),
        answered(Some(0), Refusal { code: RefusalCode::WrongPhase, message: "no".into() }),
    ]
}

fn requests() -> Vec<Vec<u8>> {
    let plan = plan();
    vec![
        serde_json::to_vec(&PlanRequest { epoch: 1, hash: plan.hash("run", 0), plan: plan.into() }).unwrap(),
        serde_json::to_vec(&StartRequest { epoch: 1, attempt: 1, start_nanoseconds: 5 }).unwrap(),
        serde_json::to_vec(&AfterRequest { epoch: 1, attempt: 1, after_nanoseconds: 5 }).unwrap(),
        serde_json::to_vec(&EpochRequest { epoch: 1 }).unwrap(),
        serde_json::to_vec(&AbortRequest { epoch: 1, attempt: Some(1), then: AbortThen::Stop }).unwrap(),
    ]
}

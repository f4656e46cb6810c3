//! Fuzzes all answers of a shard and all input of a user: impossible input is refused, and everything else can be merged, judged, reported
//! and written. See `redisbench_testkit::hostile`.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use redisbench_testkit::hostile::{Meter, Random, Target, drive, mutate};
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::ShardPlan;
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{AcceptedStart, Answer, FailureReason, Preparation, ShardFailure, ShardPhase, ShardState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::fake::RATE;
use super::https::RUN;
use super::{MEASURED, https, part, plan, probing};
use crate::api::{self, RedisBenchmark, RedisBenchmarkStatus, Validated};
use crate::conductor::client::ShardClient;
use crate::conductor::seconds::Course;
use crate::conductor::shards::{Shard, Standing};
use crate::conductor::snapshots::replaces;
use crate::conductor::{CallError, Endpoint, Reply, live};
use crate::measurement::Ending;
use crate::measurement::parts::Parts;
use crate::report::measurement::{PIECE_BYTES, PIECES};
use crate::report::{Finished, STATUS_BYTES, Subject};
use crate::sample::{self, open_loop, outcome};

#[global_allocator]
static METER: Meter = Meter;

const TARGETS: [Target; 4] = [
    // Merges about ten histograms of 0.2 MiB, and writes them once as JSON and once as pieces.
    Target { name: "snapshot", run: snapshot, seeds: snapshots, words, memory: (16 << 20, 16), cases: 250 },
    Target { name: "state", run: state, seeds: states, words, memory: (256 << 10, 8), cases: 1_500 },
    // Holds the plans of 2,000 shards, each with its operations, and every problem with its text.
    Target { name: "manifest", run: manifest, seeds: manifests, words, memory: (64 << 20, 256), cases: 400 },
    // Runs two shards. One lies whenever the input decides so.
    Target { name: "run", run, seeds: || vec![vec![1]], words: Vec::new, memory: (32 << 20, 0), cases: 12 },
];

#[test]
fn hostile_input_is_refused_and_the_rest_can_be_reported() {
    drive(env!("CARGO_MANIFEST_DIR"), &TARGETS);
}

#[test]
fn what_is_good_is_read() {
    for answer in snapshots() {
        let snapshot: Snapshot = read(&answer).unwrap();
        assert_eq!(replaces(None, &snapshot, &open_loop_part(), 1), Ok(true));
    }
    assert!(states().iter().all(|answer| read::<ShardState>(answer).is_ok()));
}

fn open_loop_part() -> ShardPlan {
    open_loop(2).plan.part(&RUN.into(), 0, 0)
}

fn hash() -> String {
    plan(3).hash(RUN, 0)
}

fn endpoint() -> Endpoint {
    Endpoint { shard: 0, incarnation: "pod".into(), address: SocketAddr::from(([127, 0, 0, 1], 1)), host: "n1".into() }
}

/// Parses an answer of trial 0 like the client.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CallError> {
    thread_local! {
        static CLIENT: RefCell<Option<ShardClient>> = const { RefCell::new(None) };
    }
    CLIENT.with_borrow_mut(|client| {
        client.get_or_insert_with(https::client).read(&endpoint(), http::StatusCode::OK, bytes, Some(0))
    })
}

fn snapshot(bytes: &[u8]) {
    let Ok(hostile) = read::<Snapshot>(bytes) else { return };
    let part = open_loop_part();
    if replaces(None, &hostile, &part, 1) != Ok(true) {
        return;
    }
    let mut shard = Shard::new(part, String::new());
    shard.standing = Standing::Running;
    shard.keep(hostile.clone(), Duration::ZERO);
    let (mut shards, mut course) = ([shard], Course::new(1, 0));
    course.advance(&mut shards);
    let shown = live::of(&shards, &Parts::default(), course.history(), 1).unwrap();
    assert_eq!(shown.total.scheduled, hostile.total.scheduled);

    let honest = sample::snapshot(1, &vec![1_450_000; 5_000]);
    let succeeded = hostile.total.succeeded + honest.total.succeeded;
    let outcome = outcome(vec![hostile, honest]);
    let finished = Finished::of("sample", RUN, &sample::trial(open_loop(2)), outcome).unwrap();
    let requests = finished.result().unwrap().requests;
    assert_eq!(requests.succeeded, succeeded);
    assert_eq!(
        requests.scheduled,
        requests.succeeded + requests.errors + requests.unsent + requests.in_flight + requests.unknown
    );
    assert_fits(&finished);
}

/// The result fits into its ConfigMaps and status, and the API server accepts it.
fn assert_fits(finished: &Finished) {
    let benchmark = api::read(&serde_json::from_slice(&manifests()[0]).unwrap()).unwrap();
    let mut status = RedisBenchmarkStatus::default();
    sample::subject(&benchmark).over(&mut status, finished);
    assert_eq!(api::status_problems(&status), []);
    assert!(serde_json::to_vec(&status).unwrap().len() <= STATUS_BYTES);
    assert!(finished.pieces.len() <= PIECES);
    assert!(finished.pieces.iter().all(|(_, piece)| piece.len() <= PIECE_BYTES));
}

fn state(bytes: &[u8]) {
    let Ok(state) = read::<ShardState>(bytes) else { return };
    let mut shards: Vec<Shard> = (0..3).map(|index| Shard::new(part(index, 3), hash())).collect();
    for shard in &mut shards {
        shard.endpoint = Some(endpoint());
        let _ = shard.observe_state(state.clone());
        assert!(shard.obstacle().len() <= 2048);
        shard.held_attempt.checked_add(1).unwrap();
    }
    assert!(live::preloaded_percent(&shards) <= 100);
    live::waiting_for(&shards);
    for shard in &mut shards {
        shard.standing = Standing::Running;
        shard.observe_state_after_start(state.clone(), 1);
    }
}

fn manifest(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice(bytes) else { return };
    // Messages are bounded, however many problems there are.
    let judged = api::read(&document).and_then(|benchmark| api::validate(&benchmark.spec, "sample"));
    if let Ok(Validated { plan, .. }) = judged {
        assert_eq!(plan.part(&RUN.into(), 0, plan.shards - 1).shards, plan.shards);
    }
    // Parses like the operator: the object may come from another version.
    if let Ok(benchmark) = serde_json::from_slice::<RedisBenchmark>(bytes) {
        let _ = api::validate(&benchmark.spec, "sample");
        let mut status = benchmark.status.clone().unwrap_or_default();
        let subject = Subject { generation: None, ..sample::subject(&benchmark) };
        subject.ended(&mut status, "Failed", "as it was");
    }
}

/// Shard 0 lies now and then.
fn lie(random: &mut Random, endpoint: &Endpoint, reply: Result<Reply, CallError>) -> Result<Reply, CallError> {
    let truth = reply?;
    if endpoint.shard != 0 || !random.once_in(3) {
        return Ok(truth);
    }
    Ok(match truth {
        Reply::Clock(truth) => Reply::Clock(lie_about(random, truth)?),
        Reply::State(truth) => Reply::State(lie_about(random, truth)?),
        Reply::Start(truth) => Reply::Start(lie_about(random, truth)?),
        Reply::Snapshot(truth) => Reply::Snapshot(lie_about(random, truth)?),
        Reply::Probe(truth) => Reply::Probe(lie_about(random, truth)?),
        Reply::Cleanup(truth) => Reply::Cleanup(lie_about(random, truth)?),
    })
}

fn lie_about<T: Serialize + DeserializeOwned>(random: &mut Random, truth: T) -> Result<T, CallError> {
    let bytes = serde_json::to_vec(&Answer::new(RUN, "pod", Some(0), truth)).unwrap();
    read(&mutate(&bytes, &words(), random))
}

/// However one of two shards lies, the run ends within its limits and the other shard's numbers are right.
fn run(bytes: &[u8]) {
    let seed = bytes.iter().fold(7_u64, |seed, byte| seed.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte));
    let mut rig = probing::rig(2);
    let mut random = Random::new(seed);
    rig.lie = Some(Box::new(move |endpoint, reply| lie(&mut random, endpoint, reply)));
    let outcome = rig.conduct();
    // Preparing, three starts, the trial and collecting all have limits of minutes.
    assert!(rig.now() < Duration::from_secs(3_600));
    let [lying, honest] = &outcome.shards[..] else { panic!("two shards") };
    if let Some(snapshot) = &lying.snapshot {
        assert_eq!(snapshot.check(), Ok(()));
    }
    if outcome.ending == Ending::Completed {
        let measured = honest.snapshot.as_ref().unwrap();
        assert_eq!((measured.total.succeeded, honest.partial), (RATE * MEASURED.as_secs(), false));
        // A shard without a usable final snapshot is lost, and the result contains that.
        assert_eq!(lying.partial || lying.snapshot.is_none(), lying.lost.is_some());
    }
    let finished = Finished::of("sample", RUN, &sample::trial(open_loop(2)), outcome).unwrap();
    assert_fits(&finished);
}

fn words() -> Vec<String> {
    let mut huge = Kind::Request.empty();
    huge.record_n(1_000, i64::MAX.unsigned_abs()).unwrap();
    let mut words: Vec<String> = [huge, Kind::Request.empty(), Kind::Node.empty()]
        .iter()
        .map(|histogram| EncodedHistogram::encode(histogram).unwrap().as_str().to_owned())
        .collect();
    let texts = ["Done", "Measuring", "Idle", "Armed", "Running", "get", "GET __key__ __data__", "10s", "-1s", "9e9h"];
    words.extend(texts.map(str::to_owned));
    words
}

fn answered(body: impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Answer::new(RUN, "pod", Some(0), body)).unwrap()
}

fn snapshots() -> Vec<Vec<u8>> {
    let values: Vec<u64> = (0..500).map(|n| 1_000 + n * n * 1_000).collect();
    let full = sample::snapshot(0, &values);
    let mut live = sample::snapshot(0, &values);
    live.operations.clear();
    live.nodes.clear();
    live.series = redisbench_wire::snapshot::Series::default();
    vec![answered(full), answered(live), answered(sample::snapshot(0, &[]))]
}

fn states() -> Vec<Vec<u8>> {
    let state = |phase, accepted| ShardState {
        phase,
        failure: Some(ShardFailure { reason: FailureReason::Internal, message: "why".into() }),
        plan_hash: Some(hash()),
        accepted,
        epoch: 3,
        preparation: Preparation { waiting_for: Some("refused".into()), preload_commands: 9, ..Preparation::default() },
    };
    let start = Some(AcceptedStart { attempt: 1, start_nanoseconds: 5 });
    vec![
        answered(state(ShardPhase::Running, start)),
        answered(state(ShardPhase::Armed, None)),
        answered(state(ShardPhase::Failed, start)),
    ]
}

fn manifests() -> Vec<Vec<u8>> {
    let object = json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "sample", "labels": {"a": "b"}},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"],
                "auth": {"secretRef": {"name": "s", "passwordKey": "p"}}}],
            "workload": {
                "operations": [
                    {"name": "get", "weight": 80, "command": "GET __key__"},
                    {"name": "set", "weight": 20, "command": "SET __key__ __data__"},
                ],
                "keys": {"count": 10000, "prefix": "rb:", "pattern": {"type": "Partitioned"}},
                "values": {"size": {"type": "Fixed", "fixed": {"bytes": 100}}},
            },
            "preload": {"mode": "FillMissing"},
            "load": {"type": "OpenLoop", "openLoop": {"rate": 5000, "unsentAfter": "1s"}, "connections": 2000,
                "pipeline": 4, "warmup": "2s", "duration": "10s"},
            "shards": {"count": 2, "onLost": "Restart", "maxStartSkew": "10ms", "template": {
                "nodeSelector": {"a": "b"}, "resources": {"limits": {"cpu": "250m"}}}},
        },
    });
    let mut over = object.clone();
    over["status"] = json!({
        "phase": "Running", "runId": "0123", "conductorEpoch": 3, "observedGeneration": 1,
        "trial": {"index": 0, "of": 1, "attempt": 2, "startAt": "2026-01-01T01:00:00.123456Z"},
        "conditions": [{"type": "Finished", "status": "False", "reason": "A", "message": "b",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    });
    [object, over].iter().map(|object| object.to_string().into_bytes()).collect()
}

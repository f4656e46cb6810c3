//! Specs, snapshots and outcomes for tests.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use redisbench_testkit::api_server::merge;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::TrialPlan;
use redisbench_wire::snapshot::{
    ErrorTally, Generator, Latency, NodeTally, OperationTally, Series, Snapshot, Stage, Tally, Window,
};
use redisbench_wire::timeline::Timeline;
use redisbench_wire::topology::TopologyReport;
use serde_json::{Value, json};

use crate::api::status::Verdict;
use crate::api::{self, RedisBenchmark, Validated};
use crate::measurement::{Outcome, ShardEvidence};
use crate::plan::{Trial, compile};
use crate::report::Subject;
use crate::verdict::verdict;

pub const SECOND: u64 = 1_000_000_000;

/// A manifest without an end of its load.
fn manifest(shards: u32) -> Value {
    json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "sample"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
            "load": {"connections": 4000, "warmup": "0s"},
            "shards": {"count": shards},
        },
    })
}

/// A complete manifest.
pub fn object() -> Value {
    let mut object = manifest(1);
    object["spec"]["load"]["type"] = "ClosedLoop".into();
    object["spec"]["load"]["duration"] = "10s".into();
    object
}

/// The sample with `change` merged into its spec, checked.
pub fn checked(change: &Value) -> Validated {
    let mut object = object();
    merge(&mut object["spec"], change.clone());
    api::validate(&api::read(&object).unwrap().spec, "sample").unwrap()
}

/// The problems of `object` with `change` merged into its spec.
pub fn problems(mut object: Value, change: &Value) -> Vec<String> {
    merge(&mut object["spec"], change.clone());
    let benchmark: RedisBenchmark = serde_json::from_value(object).unwrap();
    api::validate(&benchmark.spec, "cart").err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// The problems of `object` with `change` merged into its spec, from reading it or from planning its trials.
pub fn refused(mut object: Value, change: &Value) -> Vec<String> {
    merge(&mut object["spec"], change.clone());
    let plan = api::read(&object).and_then(|benchmark| compile(&benchmark.spec, "sample"));
    plan.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Checks a table of problems that `find` finds in `object`. Each case is a line with a change to its spec, in YAML, and one with the only
/// problem of that: the whole of it, or after `... ` the parts that it must contain, with ` ... ` between them. After `also `, there may be
/// other problems, too.
pub fn assert_problems(find: fn(Value, &Value) -> Vec<String>, object: &Value, table: &str) {
    let lines: Vec<&str> = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(!lines.is_empty());
    for case in lines.chunks(2) {
        let [change, expected] = case else { panic!("{case:?}") };
        let found = find(object.clone(), &serde_yaml::from_str(&format!("{{{change}}}")).unwrap());
        let (alone, problem) =
            expected.trim().strip_prefix("also ").map_or((true, expected.trim()), |one| (false, one));
        let fits = |found: &String| match problem.strip_prefix("... ") {
            None => found == problem,
            Some(parts) => parts.split(" ... ").all(|part| found.contains(part)),
        };
        assert!(found.iter().any(fits) && (found.len() == 1 || !alone), "{change}: {found:#?}, not {problem}");
    }
}

/// The plan of `spec`, to change it.
pub fn plan(spec: &mut Validated) -> &mut TrialPlan {
    Arc::make_mut(&mut spec.plan)
}

/// Ten seconds at 1000 requests per second, with `load` merged in, on `shards` shards.
pub fn spec(shards: u32, load: &Value) -> Validated {
    let mut object = manifest(shards);
    let load = load.as_object().cloned().unwrap();
    object["spec"]["load"].as_object_mut().unwrap().extend(load);
    let benchmark = api::read(&object).unwrap();
    api::validate(&benchmark.spec, "sample").unwrap()
}

/// The only trial of `spec`.
pub fn trial(spec: Validated) -> Trial {
    Trial { index: 0, of: 1, kind: crate::plan::Kind::default(), spec, interval: Duration::ZERO, search: None }
}

/// Reports on `benchmark`, at the beginning of time.
pub fn subject(benchmark: &RedisBenchmark) -> Subject<'_> {
    let shards = benchmark.spec.shards.count;
    Subject { spec: &benchmark.spec, shards, generation: Some(1), now: jiff::Timestamp::UNIX_EPOCH }
}

pub fn open_loop(shards: u32) -> Validated {
    spec(shards, &json!({"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "10s"}))
}

pub fn histogram(kind: Kind, values: &[u64]) -> Histogram<u64> {
    let mut histogram = kind.empty();
    for value in values {
        histogram.record(*value).unwrap();
    }
    histogram
}

pub fn encoded(kind: Kind, values: &[u64]) -> EncodedHistogram {
    EncodedHistogram::encode(&histogram(kind, values)).unwrap()
}

/// The final snapshot of a shard with its own clock and these response times, spread evenly over ten seconds.
pub fn snapshot(shard: u32, values: &[u64]) -> Snapshot {
    let count = values.len() as u64;
    let start = SECOND * 1_000 * u64::from(shard + 1);
    let tally = Tally { scheduled: count, succeeded: count, sent_bytes: 10 * count, ..Tally::default() };
    let latency = Latency {
        response: encoded(Kind::Request, values),
        service: Some(encoded(Kind::Request, values)),
        error_replies: None,
        lateness: None,
    };
    Snapshot {
        sequence: 1,
        shard,
        attempt: 1,
        taken_nanoseconds: start + 11 * SECOND,
        stage: Stage::Done,
        aborted: false,
        terminated: false,
        window: Window {
            start_nanoseconds: start,
            first_due_nanoseconds: start,
            first_send_nanoseconds: start + 1,
            measure_from_nanoseconds: start,
            measure_to_nanoseconds: start + 10 * SECOND,
            drained_nanoseconds: start + 10 * SECOND,
        },
        total: tally,
        warmup: Tally::default(),
        preloaded_keys: 0,
        preload_commands: 0,
        series: Series {
            interval_nanoseconds: SECOND / 10,
            completed: (0..100).map(|point| (point + 1) * count / 100 - point * count / 100).collect(),
        },
        timeline: Timeline::default(),
        operations: vec![OperationTally { name: "get".into(), tally, nil_replies: 0, latency: latency.clone() }],
        nodes: vec![NodeTally {
            id: "redis:6379".into(),
            address: "redis:6379".into(),
            slots: 0,
            replica: false,
            connections: 0,
            requests: count,
            errors: 0,
            redirects: 0,
            service: encoded(Kind::Node, values),
        }],
        errors: Vec::new(),
        latency,
        verification: None,
        cache: None,
        churn: None,
        client: None,
        generator: Generator::default(),
        topology: TopologyReport::default(),
        servers: None,
    }
}

/// Adds errors without a reply.
pub fn with_timeouts(mut snapshot: Snapshot, timeouts: u64) -> Snapshot {
    snapshot.total.add(&Tally { scheduled: timeouts, errors: timeouts, unanswered: timeouts, ..Tally::default() });
    let first_message = "no reply within 1s".to_owned();
    snapshot.errors.push(ErrorTally { kind: "Timeout".into(), count: timeouts, first_message });
    snapshot
}

pub fn outcome(snapshots: Vec<Snapshot>) -> Outcome {
    let shard = |snapshot: Snapshot| ShardEvidence {
        shard: snapshot.shard,
        incarnation: format!("pod-{}", snapshot.shard),
        host: "n1".into(),
        snapshot: Some(snapshot),
        ..ShardEvidence::default()
    };
    Outcome {
        of: 1,
        attempt: 1,
        start_at_unix_nanoseconds: Some(1_790_000_000 * SECOND),
        shards: snapshots.into_iter().map(shard).collect(),
        start_skew: Some(Duration::from_millis(1)),
        clock_uncertainty: Some(Duration::from_micros(200)),
        ..Outcome::default()
    }
}

/// The verdict on a trial of `spec`.
pub fn verdict_on(spec: &Validated, outcome: &Outcome) -> Verdict {
    verdict(spec, outcome, &crate::measurement::merge::merge(&spec.plan, outcome).unwrap().unwrap())
}

/// Loses the shard at `index` halfway: its last snapshot is a live one.
pub fn lose(outcome: &mut Outcome, index: usize) {
    let shard = &mut outcome.shards[index];
    shard.lost = Some("pod deleted".into());
    shard.partial = true;
    if let Some(snapshot) = &mut shard.snapshot {
        snapshot.series = Series::default();
        snapshot.operations.clear();
        snapshot.nodes.clear();
        snapshot.stage = Stage::Measuring;
        snapshot.taken_nanoseconds = snapshot.window.start_nanoseconds + 5 * SECOND;
    }
}

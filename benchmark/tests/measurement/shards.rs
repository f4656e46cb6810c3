//! Synthetic shards.

use std::sync::Arc;

use redisbench_benchmark::api::{RedisBenchmarkSpec, Validated, validate};
use redisbench_benchmark::measurement::{Ending, Outcome, ShardOutcome};
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::TrialPlan;
use redisbench_wire::snapshot::{Generator, Latency, Series, Snapshot, Stage, Tally, Window};
use redisbench_wire::timeline::Timeline;
use serde_json::{Value, json};

pub const SECOND: u64 = 1_000_000_000;

/// A checked open loop of 1000 requests per second over 10 s on two shards, with `patch` merged into `spec.load`.
pub fn spec(patch: &Value) -> Validated {
    let mut spec = json!({
        "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
        "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
        "load": {"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "10s", "warmup": "0s"},
        "shards": {"count": 2},
    });
    for (field, value) in patch.as_object().into_iter().flatten() {
        spec["load"][field] = value.clone();
    }
    let spec: RedisBenchmarkSpec = serde_json::from_value(spec).unwrap();
    validate(&spec, "made-up").unwrap()
}

pub fn plan(spec: &Validated) -> Arc<TrialPlan> {
    Arc::clone(&spec.plan)
}

/// A shard's requests by outcome. Latencies are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    pub succeeded: Vec<u64>,
    pub answered_with_errors: Vec<u64>,
    pub unanswered: u64,
    pub unsent: u64,
}

impl Requests {
    pub fn tally(&self) -> Tally {
        let (succeeded, answered) = (self.succeeded.len() as u64, self.answered_with_errors.len() as u64);
        let errors = answered + self.unanswered;
        Tally {
            scheduled: succeeded + errors + self.unsent,
            succeeded,
            errors,
            unsent: self.unsent,
            unanswered: self.unanswered,
            ..Tally::default()
        }
    }
}

pub fn encoded(values: &[u64]) -> EncodedHistogram {
    let mut histogram = Kind::Request.empty();
    for value in values {
        histogram.record(*value).unwrap();
    }
    EncodedHistogram::encode(&histogram).unwrap()
}

/// A snapshot of 10 s of measurement without warm-up, with even completions.
pub fn snapshot(shard: u32, requests: &Requests) -> Snapshot {
    let start = 1_000 * SECOND * u64::from(shard + 1);
    let per_point = requests.succeeded.len() as u64 / 100;
    Snapshot {
        sequence: 1,
        shard,
        attempt: 1,
        taken_nanoseconds: start + 11 * SECOND,
        stage: Stage::Done,
        aborted: false,
        window: Window {
            start_nanoseconds: start,
            first_due_nanoseconds: start,
            first_send_nanoseconds: start,
            measure_from_nanoseconds: start,
            measure_to_nanoseconds: start + 10 * SECOND,
            drained_nanoseconds: start + 10 * SECOND,
        },
        total: requests.tally(),
        warmup: Tally::default(),
        preloaded_keys: 0,
        preload_commands: 0,
        latency: Latency {
            response: encoded(&requests.succeeded),
            service: None,
            error_replies: (!requests.answered_with_errors.is_empty()).then(|| encoded(&requests.answered_with_errors)),
            lateness: None,
        },
        series: Series { interval_nanoseconds: SECOND / 10, completed: vec![per_point; 100] },
        timeline: Timeline::default(),
        operations: Vec::new(),
        nodes: Vec::new(),
        errors: Vec::new(),
        verification: None,
        generator: Generator::default(),
        topology: redisbench_wire::topology::TopologyReport::default(),
        servers: None,
    }
}

/// A completed trial of these snapshots.
pub fn outcome(snapshots: impl IntoIterator<Item = Snapshot>) -> Outcome {
    let shards = snapshots.into_iter().map(|snapshot| ShardOutcome {
        shard: snapshot.shard,
        incarnation: format!("pod-{}", snapshot.shard),
        host: "node".into(),
        snapshot: Some(snapshot),
        partial: false,
        lost: None,
        unacknowledged: false,
        clock: None,
    });
    Outcome {
        of: 1,
        ending: Ending::Completed,
        attempt: 1,
        start_at_unix_nanoseconds: Some(1_700_000_000 * SECOND),
        shards: shards.collect(),
        timeline: Vec::new(),
        start_skew: None,
        clock_uncertainty: None,
        thresholds: Vec::new(),
        probes: Vec::new(),
        cleanup: None,
    }
}

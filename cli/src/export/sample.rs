//! A trial for tests: a thousand requests in two seconds after a warm-up of one, which took 10 µs, 20 µs and so on up to 10 ms.

use hdrhistogram::Histogram;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use redisbench_benchmark::api::status::{
    Bandwidth, LimitedBy, OperationResult, Requests, Synchronization, ThresholdOutcome, ThresholdStatus, Throughput,
    TrialResult, TrialStatus, Verdict, VerdictValue,
};
use redisbench_benchmark::measurement::latencies::response_time;
use redisbench_benchmark::measurement::measured::Measured;
use redisbench_benchmark::quantile::Quantile;
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::measurement::{
    HistogramSet, Histograms, NamedHistograms, NamedPart, Second, Versions,
};
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::snapshot::Tally;
use redisbench_wire::timeline::{Coarse, Outcomes, SpanPart};
use serde_json::{Value, json};

use crate::manifest;
use crate::reading::Reading;

pub fn reading() -> Reading {
    Reading { measurements: vec![trial()], ..Reading::default() }
}

/// Operations `get` and `set` take turns.
pub fn trial() -> Measurement {
    let times: Vec<u64> = (1..=1_000).map(|number| number * 10_000).collect();
    let (gets, sets): (Vec<u64>, Vec<u64>) = times.iter().copied().partition(|time| time / 10_000 % 2 == 1);
    let operations = [("get", gets, 400), ("set", sets, 500)];
    let verdict =
        Verdict { value: VerdictValue::Valid, reasons: Vec::new(), limited_by: LimitedBy::Rate, component: None };
    let result = TrialResult {
        requests: requests(1_000),
        throughput: Throughput { achieved_per_second: 500, ..Throughput::default() },
        bandwidth: Bandwidth { sent_bytes_per_second: 2_048, received_bytes_per_second: 4_096 },
        response_time: response_time(&measured(&times), &Quantile::USUAL),
        operations: operations
            .iter()
            .map(|(name, times, hits)| OperationResult {
                name: (*name).to_owned(),
                requests: requests(500),
                hits: *hits,
                misses: 500 - hits,
                bandwidth: Some(Bandwidth { sent_bytes_per_second: 1_024, received_bytes_per_second: 1_536 }),
                response_time: response_time(&measured(times), &Quantile::USUAL),
                service_time: None,
            })
            .collect(),
        ..TrialResult::default()
    };
    let second = |second: u32, times: &[u64]| Second {
        second,
        seconds: 1,
        warmup: None,
        sent_bytes: 2_048,
        received_bytes: 4_096,
        total: part(times),
        operations: vec![
            NamedPart { name: "get".to_owned(), part: part(&every_other(times, 0)) },
            NamedPart { name: "set".to_owned(), part: part(&every_other(times, 1)) },
        ],
    };
    Measurement {
        benchmark: "sample".to_owned(),
        run_id: "run".to_owned(),
        spec: Some(Box::new(serde_json::from_value(spec()).unwrap())),
        versions: Versions { redisbench: Some("0.1.0".to_owned()), servers: vec!["Valkey 9.1.2".to_owned()] },
        synchronization: Synchronization {
            warmup_milliseconds: 1_000,
            common_window_milliseconds: 2_000,
            ..Synchronization::default()
        },
        thresholds: vec![
            threshold("p99", ThresholdOutcome::Passed, "p99 is 9.90 ms, at most 20 ms"),
            threshold("rate", ThresholdOutcome::Failed, "500/s, at least <1.00k/s>"),
            threshold("tail", ThresholdOutcome::NotJudged, "p99.99 needs 100,000 requests"),
        ],
        histograms: Some(Histograms {
            total: histograms(&times),
            operations: operations
                .iter()
                .map(|(name, times, _)| NamedHistograms { name: (*name).to_owned(), histograms: histograms(times) })
                .collect(),
            operations_left_out: false,
            nodes: Vec::new(),
            nodes_left_out: false,
        }),
        seconds: vec![second(1, &times[..500]), second(2, &times[500..])],
        ..Measurement::new(place(), result, verdict)
    }
}

fn place() -> TrialStatus {
    let start: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
    TrialStatus { index: 0, of: 1, attempt: 1, start_at: Some(MicroTime(start)), setting: None }
}

pub fn spec() -> Value {
    json!({
        "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"],
            "auth": {"secretRef": {"name": "login"}}}],
        "workload": {
            "operations": [
                {"name": "get", "command": "GET __key__"},
                {"name": "set", "command": "SET __key__ __data__"},
            ],
        },
        "load": {"type": "OpenLoop", "openLoop": {"rate": 500}, "duration": "2s", "warmup": "1s", "connections": 8},
        "shards": {"count": 2},
    })
}

/// The benchmark of [`spec`] with this status; without a status it is a manifest.
pub fn object(status: &Value) -> Value {
    let mut object = json!({
        "apiVersion": manifest::API_VERSION, "kind": manifest::KIND, "metadata": {"name": "sample"}, "spec": spec(),
    });
    if !status.is_null() {
        object["status"] = status.clone();
    }
    object
}

fn threshold(name: &str, outcome: ThresholdOutcome, message: &str) -> ThresholdStatus {
    serde_json::from_value(json!({"name": name, "outcome": outcome, "message": message})).unwrap()
}

fn every_other(times: &[u64], from: usize) -> Vec<u64> {
    times.iter().skip(from).step_by(2).copied().collect()
}

fn requests(succeeded: u64) -> Requests {
    Requests { scheduled: succeeded, succeeded, ..Requests::default() }
}

fn histogram(times: &[u64]) -> Histogram<u64> {
    let mut histogram = Kind::Request.empty();
    for time in times {
        histogram.record(*time).unwrap();
    }
    histogram
}

fn histograms(times: &[u64]) -> HistogramSet {
    let response = EncodedHistogram::encode(&histogram(times)).unwrap();
    HistogramSet { response, service: None, error_replies: None }
}

fn measured(times: &[u64]) -> Measured {
    let count = times.len() as u64;
    let tally = Tally { scheduled: count, succeeded: count, ..Tally::default() };
    Measured { tally, unknown: 0, response: histogram(times), service: None, error_replies: None }
}

fn part(times: &[u64]) -> SpanPart {
    let count = times.len() as u64;
    let mut response = Coarse::default();
    for time in times {
        response.record(*time, 1);
    }
    let counts = Outcomes {
        scheduled: count,
        succeeded: count,
        sent_bytes: 4 * count,
        received_bytes: 6 * count,
        ..Outcomes::default()
    };
    SpanPart { counts, response: response.buckets(), ..SpanPart::default() }
}

//! Results for the tests of the report.

use hdrhistogram::Histogram;
use redisbench_benchmark::api::status::Synchronization;
use redisbench_benchmark::report::measurement::{HistogramSet, Histograms, Measurement, NamedPart, Second};
use redisbench_benchmark::report::repeats::{ExperimentDocument, Together};
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::timeline::{Coarse, Outcomes, SpanPart};
use serde_json::{Value, json};

use crate::reading::Reading;

/// Seconds before the measurement.
const WARMUP: u32 = 2;

#[derive(Clone, Copy)]
pub struct Size {
    pub trials: u32,
    pub seconds: u32,
    pub operations: usize,
    pub nodes: usize,
    pub shards: u32,
    /// Requests per second.
    pub rate: u64,
}

pub const SMALL: Size = Size { trials: 1, seconds: 60, operations: 3, nodes: 6, shards: 4, rate: 400 };

fn requests(succeeded: u64, errors: u64) -> Value {
    json!({"scheduled": succeeded + errors, "succeeded": succeeded, "errors": errors, "unsent": 0, "unanswered": errors, "late": 0,
        "redirected": 0})
}

fn latencies(scale: u64) -> Value {
    json!({"meanNanoseconds": 120_000 * scale, "p50Nanoseconds": 110_000 * scale, "p99Nanoseconds": 310_000 * scale,
        "maxNanoseconds": 4_400_000 * scale})
}

/// Response times between 60 µs and some ms with a long tail, and a pause in the middle, the same for every call.
fn response_times(size: Size) -> Vec<Vec<u64>> {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 + 1.0) / f64::from(u32::MAX / 2 + 2)
    };
    let mut second = |nth: u32| -> Vec<u64> {
        let slow = if nth == size.seconds / 2 { 40.0 } else { 1.0 };
        let values = (0..size.rate).map(|_| {
            let nanoseconds = 60_000.0 * slow / random().powf(0.55);
            format!("{nanoseconds:.0}").parse().unwrap()
        });
        values.collect()
    };
    (0..size.seconds).map(&mut second).collect()
}

/// Its seconds, and the distributions of response and service time.
fn timeline(size: Size, name: &str) -> (Vec<Second>, Histogram<u64>, Histogram<u64>) {
    let times = response_times(size);
    let mut histogram = Kind::Request.empty();
    let mut service = Kind::Request.empty();
    let mut seconds = Vec::new();
    for (nth, values) in (0..).zip(&times) {
        let mut response = Coarse::default();
        for value in values {
            histogram.record(*value).unwrap();
            service.record(value * 3 / 4).unwrap();
            response.record(*value, 1);
        }
        let errors = u64::from(nth == size.seconds / 2) * 3;
        let succeeded = values.len() as u64;
        let counts =
            Outcomes { scheduled: succeeded + errors, succeeded, errors, unanswered: errors, ..Outcomes::default() };
        let total = SpanPart { counts, response: response.buckets(), ..SpanPart::default() };
        let operations = vec![NamedPart { name: name.to_owned(), part: total.clone() }];
        let second = nth + WARMUP;
        seconds.push(Second { second, seconds: 1, warmup: None, sent_bytes: 1, received_bytes: 1, total, operations });
    }
    (seconds, histogram, service)
}

/// The full result of a trial, with `name` in every name that a user, a server or a shard chooses.
pub fn measurement(size: Size, index: u32, name: &str) -> Measurement {
    let (seconds, histogram, service) = timeline(size, name);
    let succeeded = histogram.len();
    let asked = ["50", "90", "95", "99", "99.9", "99.99"].map(|percentile| json!({"percentile": percentile}));
    let address = |nth: usize| format!("{name}-{nth}:6379");
    let operation = |nth: usize| {
        json!({"name": format!("{name} {nth}"), "requests": requests(succeeded / 3, 0), "hits": succeeded / 3, "misses": 0,
            "responseTime": latencies(1), "serviceTime": latencies(1)})
    };
    let node = |nth: usize| {
        json!({"id": address(nth), "address": address(nth), "slots": 16, "requests": succeeded, "errors": 0, "redirects": nth,
            "serviceTime": latencies(1 + nth as u64), "imbalancePercent": 95 + nth,
            "server": {"memoryBeforeBytes": 1, "memoryAfterBytes": 2, "keysBefore": 3, "keysAfter": 4, "evictedKeys": 0,
                "expiredKeys": 0, "keyspaceHits": 1, "keyspaceMisses": 1, "mostClients": 9}})
    };
    let shard = |nth: u32| {
        json!({"index": nth, "node": format!("{name}-host"), "state": if nth == 1 { "Lost" } else { "Finished" },
            "requests": requests(succeeded / u64::from(size.shards) + u64::from(nth), 0), "p99Nanoseconds": 310_000 + nth,
            "busiestWorkerPercent": nth % 100, "throttledMilliseconds": 0, "reconnects": 0, "startSkewMicroseconds": nth})
    };
    let own = |percentile: &str, nanoseconds: u64| {
        json!({"percentile": percentile, "ofNanoseconds": nanoseconds, "sendingNanoseconds": nanoseconds / 8,
            "readingNanoseconds": nanoseconds / 16, "basisPoints": 1_875})
    };
    let stage = |index: u32| {
        let half = 1_000 * size.seconds / 2;
        let from = 1_000 * WARMUP + index * half;
        json!({"index": index, "fromMilliseconds": from, "toMilliseconds": from + half, "seconds": size.seconds / 2,
            "rate": {"from": size.rate, "to": size.rate}, "targetPerSecond": size.rate, "achievedPerSecond": size.rate,
            "requests": requests(succeeded / 2, 0), "responseTime": latencies(1)})
    };
    let result = json!({
        "requests": requests(succeeded, 3),
        "throughput": {"targetPerSecond": size.rate, "achievedPerSecond": size.rate, "minPerSecond": size.rate - 3,
            "maxPerSecond": size.rate + 2},
        "bandwidth": {"sentBytesPerSecond": 1, "receivedBytesPerSecond": 1},
        "responseTime": {"percentiles": asked},
        "generatorShare": [own("50", 90_000), own("99", 760_000), own("99.9", 2_700_000)],
        "stages": [stage(0), stage(1)],
        "operations": (0..size.operations).map(operation).collect::<Vec<_>>(),
        "nodes": (0..size.nodes).map(node).collect::<Vec<_>>(),
        "errors": [{"kind": "Timeout", "count": 3, "firstMessage": format!("no reply from {name} within 1s")}],
        "shards": (0..size.shards).map(shard).collect::<Vec<_>>(),
    });
    let verdict = json!({"value": "Degraded", "limitedBy": "Target", "component": format!("{name}-0:6379/MainThread"), "reasons": [
        {"reason": "Unavailable", "severity": "Degraded", "message": format!("{name} did not reply for 1.00 s")},
        {"reason": "TopologyChanged", "severity": "Degraded", "message": format!("{name}-1:6379 took over")},
        {"reason": "Forked", "severity": "Valid", "message": "a server forked during the measurement"},
    ]});
    let trial = json!({"index": index, "of": size.trials, "attempt": 1, "setting": format!("{name}, repeat {index}")});
    let read = |value: Value| serde_json::from_value(value).unwrap();
    let mut whole = Measurement {
        benchmark: name.to_owned(),
        run_id: name.to_owned(),
        topology: serde_json::from_value(json!({
            "primaries": 3, "replicas": 3,
            "unavailability": [{"startMilliseconds": 1000 * (size.seconds / 2), "lengthMilliseconds": 1000, "slots": 5461,
                "ranges": ["0-5460"], "node": address(0)}],
            "changes": [{"milliseconds": 1000 * (size.seconds / 2) + 400, "what": "BecamePrimary", "node": address(1)}],
        }))
        .unwrap(),
        histograms: Some(Histograms {
            total: HistogramSet {
                response: EncodedHistogram::encode(&histogram).unwrap(),
                service: Some(EncodedHistogram::encode(&service).unwrap()),
                error_replies: None,
            },
            operations: Vec::new(),
            operations_left_out: true,
            nodes: Vec::new(),
            nodes_left_out: true,
        }),
        seconds,
        ..Measurement::new(read(trial), serde_json::from_value(result).unwrap(), serde_json::from_value(verdict).unwrap())
    };
    whole.synchronization = Synchronization {
        start_skew_microseconds: 410,
        clock_uncertainty_microseconds: 90,
        warmup_milliseconds: u64::from(WARMUP) * 1000,
        common_window_milliseconds: u64::from(size.seconds) * 1000,
    };
    let mut together = Together::default();
    together.add(&whole).unwrap();
    whole.result.response_time = together.response_time();
    whole
}

/// A run of trials: a sweep of the pipeline with two repeats on two targets, compared.
pub fn reading(size: Size, name: &str) -> Reading {
    let first = measurement(size, 0, name);
    let mut measurements = vec![first.clone()];
    for index in 1..size.trials {
        // Trials share the room of one, so all but one lack their seconds.
        let mut trial = Measurement { seconds: Vec::new(), ..first.clone() };
        trial.trial.index = index;
        measurements.push(trial);
    }
    measurements.rotate_left(1);
    let experiment = (size.trials > 1).then(|| experiment(size, name));
    Reading { object: None, measurements, experiment }
}

fn experiment(size: Size, name: &str) -> ExperimentDocument {
    let parameters = |cell: u32| json!({"load.pipeline": (1 + cell / 2).to_string()});
    let target = |cell: u32| format!("{name}-{}", cell % 2);
    let line = |index: u32| {
        json!({"index": index, "target": target(index / 2), "parameters": parameters(index / 2), "cell": index / 2,
            "repeat": index % 2, "state": "Completed", "attempt": 1, "achievedPerSecond": 1_000 + 37 * index,
            "p50Nanoseconds": 100_000, "p99Nanoseconds": 300_000 + 1_000 * index, "succeeded": 60_000, "verdict": "Valid", "limitedBy": "Target"})
    };
    let spread = |mean: u32, unit: &str| {
        json!({format!("mean{unit}"): mean, format!("median{unit}"): mean, format!("standardDeviation{unit}"): 3,
            format!("low{unit}"): mean - mean / 20, format!("high{unit}"): mean + mean / 20, "bestTrial": 0, "worstTrial": 1})
    };
    let cell = |cell: u32| {
        json!({"cell": cell, "target": target(cell), "parameters": parameters(cell), "trials": [2 * cell, 2 * cell + 1],
            "throughput": spread(1_000 + 74 * cell, "PerSecond"), "p99": spread(300_000 + 2_000 * cell, "Nanoseconds")})
    };
    let metric = |metric: &str, ratio: u32| {
        json!({"metric": metric, "outcome": "Slower", "ratioMillionths": ratio, "lowMillionths": ratio - 20_000,
            "highMillionths": ratio + 25_000, "confidenceBasisPoints": 9_500})
    };
    let cells = size.trials / 2;
    let comparison = |setting: u32| {
        json!({"target": target(1), "baseline": target(0), "parameters": parameters(2 * setting), "pairs": 2, "trials": 2,
            "baselineTrials": 2, "outcome": "Slower", "metrics": [metric("Throughput", 950_000), metric("MeanResponseTime", 1_050_000), metric("P99", 1_100_000)]})
    };
    serde_json::from_value(json!({
        "format": "redisbench.dev/experiment/v1", "benchmark": name, "runId": name,
        "trials": (0..size.trials).map(line).collect::<Vec<_>>(),
        "cells": (0..cells).map(cell).collect::<Vec<_>>(),
        "comparison": (0..cells / 2).map(comparison).collect::<Vec<_>>(),
    }))
    .unwrap()
}

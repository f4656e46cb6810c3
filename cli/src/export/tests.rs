//! Every format of the same trial, against what was recorded. `UPDATE=1` records it again.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use redisbench_benchmark::api::status::{CacheResult, ClientResult};
use redisbench_benchmark::report::repeats::FORMAT;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use serde_json::{Value, json};

use super::*;

fn written(name: &str, reading: &Reading) -> Result<Vec<u8>, ExportError> {
    (FORMATS.iter().find(|format| format.name == name).unwrap().write)(reading)
}

/// Every format, whether possible or not.
pub fn export_all(reading: &Reading) {
    for format in FORMATS {
        let _ = (format.write)(reading);
    }
}

fn document(reading: &Reading) -> Value {
    serde_json::from_slice(&written("memtier-json", reading).unwrap()).unwrap()
}

/// Formats whose bytes depend on the version of a compressor or writer.
const COMPRESSED: [&str; 3] = ["hlog", "memtier-json", "parquet"];

#[test]
fn text_is_as_recorded() {
    for Format { name, write, .. } in FORMATS.iter().filter(|format| !COMPRESSED.contains(&format.name)) {
        let text = String::from_utf8(write(&sample::reading()).unwrap()).unwrap();
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/recorded").join(name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&recorded, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(&recorded).unwrap(), "{name}");
    }
}

/// The fields of memtier's JSON that scripts read.
#[test]
fn memtier_json_has_the_fields_of_memtier() {
    let found = document(&sample::reading());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&found), ["ALL STATS", "configuration", "run information"]);
    let run = json!({"Threads": 2, "Connections per thread": 4, "Seconds": 2, "Format version": 2});
    assert_eq!(found["run information"], run);
    let all = &found["ALL STATS"];
    assert_eq!(keys(all), ["GET", "Gets", "Runtime", "SET", "Sets", "Totals"]);
    let runtime = json!({"Start time": 1_795_435_201_000_u64, "Finish time": 1_795_435_203_000_u64,
        "Total duration": 2_000, "Time unit": "MILLISECONDS", "Interrupted": "false"});
    assert_eq!(all["Runtime"], runtime);
    let section = [
        "Accumulated Latency",
        "Average Latency",
        "Connection Errors",
        "Connection Errors/sec",
        "Count",
        "Hits/sec",
        "KB/sec",
        "KB/sec RX",
        "KB/sec RX/TX",
        "KB/sec TX",
        "Latency",
        "Max Latency",
        "Min Latency",
        "Misses/sec",
        "Ops/sec",
        "Percentile Latencies",
        "Time-Serie",
    ];
    assert_eq!(keys(&all["Gets"]), section);
    assert_eq!(keys(&all["Totals"]), section);
    assert_eq!((&all["Gets"]["Ops/sec"], &all["Gets"]["Hits/sec"]), (&json!(250.0), &json!(200.0)));
    assert_eq!((&all["Gets"]["KB/sec RX"], &all["Gets"]["KB/sec"]), (&json!(1.5), &json!(2.5)));
    let bytes = &all["Gets"]["Time-Serie"]["1"];
    assert_eq!((&bytes["Bytes RX"], &bytes["Bytes TX"]), (&json!(1_500), &json!(1_000)));
    assert_eq!((&all["Totals"]["Count"], &all["Totals"]["KB/sec RX"]), (&json!(1_000), &json!(4.0)));
    let percentiles = &all["Totals"]["Percentile Latencies"];
    assert_eq!(keys(percentiles), ["Histogram log format", "p50.00", "p90.00", "p95.00", "p99.00", "p99.90", "p99.99"]);
    // Too few requests for the last two.
    assert!(percentiles["p99.00"].as_f64().unwrap() > 9.89 && percentiles["p99.90"].is_null(), "{percentiles}");
    let second = &all["Totals"]["Time-Serie"]["1"];
    let of_second = [
        "Accumulated Latency",
        "Average Latency",
        "Bytes RX",
        "Bytes TX",
        "Count",
        "Max Latency",
        "Min Latency",
        "p50.00",
        "p99.00",
        "p99.90",
    ];
    assert_eq!(keys(second), of_second);
    assert_eq!((&second["Count"], &second["p99.00"]), (&json!(500), &Value::Null));
    assert_eq!(keys(&all["GET"][0]), ["<=msec", "percent"]);
    assert_eq!(all["GET"].as_array().unwrap().last().unwrap()["percent"], 100.0);
}

#[test]
fn memtier_json_has_no_credentials() {
    let found = document(&sample::reading());
    assert!(found["configuration"].as_object().unwrap().keys().all(|key| key != "authenticate"));
    assert!(!found.to_string().contains("login"));
    assert_eq!((&found["configuration"]["server"], &found["configuration"]["port"]), (&json!("redis"), &json!(6379)));
}

#[test]
fn a_histogram_for_memtier_is_of_microseconds() {
    let found = document(&sample::reading());
    let encoded = &found["ALL STATS"]["Totals"]["Percentile Latencies"]["Histogram log format"]["Compressed Histogram"];
    let bytes = STANDARD.decode(encoded.as_str().unwrap()).unwrap();
    let histogram: hdrhistogram::Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    assert_eq!(
        (histogram.len(), histogram.min(), histogram.value_at_quantile(0.5)),
        (1_000, 11, 5_003),
        "10.047 µs is rounded up"
    );
}

#[test]
fn an_interval_log_has_every_request() {
    let text = written("hlog", &sample::reading()).unwrap();
    let comment = "#Values are rounded up by at most 3.2 %.\n";
    assert!(String::from_utf8(text.clone()).unwrap().contains(comment));
    let mut intervals = Vec::new();
    for entry in IntervalLogIterator::new(&text) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let times: EncodedHistogram = serde_json::from_value(interval.encoded_histogram().into()).unwrap();
            let count = times.count(Kind::Request).unwrap();
            intervals.push((interval.start_timestamp().as_secs(), interval.duration().as_secs(), count));
        }
    }
    assert_eq!(intervals, [(1, 1, 500), (2, 1, 500)]);
}

#[cfg(feature = "parquet")]
#[test]
fn columns_have_every_row() {
    use std::io::Write as _;

    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use ::parquet::record::Field;

    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&written("parquet", &sample::reading()).unwrap()).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect();
    let column = |row: &::parquet::record::Row, name: &str| {
        row.get_column_iter().find(|(column, _)| *column == name).unwrap().1.clone()
    };
    assert_eq!(rows.len(), 6);
    assert_eq!(column(&rows[0], "operation"), Field::Null);
    assert_eq!(column(&rows[1], "operation"), Field::Str("get".to_owned()));
    assert_eq!(column(&rows[0], "succeeded"), Field::Long(500));
    assert_eq!(column(&rows[0], "p99Nanoseconds"), Field::Null, "too few requests");
}

#[test]
fn one_trial_of_several_must_be_chosen() {
    let mut reading = sample::reading();
    for index in [0, 1] {
        let mut trial = sample::trial();
        (trial.trial.index, trial.trial.of) = (index, 2);
        trial.trial.setting = Some(format!("load.connections={}", 8 << index));
        reading.measurements.push(trial);
    }
    reading.measurements.remove(0);
    for name in ["hgrm", "hlog"] {
        let error = written(name, &reading).unwrap_err().to_string();
        assert_eq!(error, "this format has one trial, and there are 2: choose one with --trial INDEX, from 0");
        assert!(written(name, &chosen(reading.clone(), Some(1)).unwrap()).is_ok());
    }
    let error = chosen(reading.clone(), Some(2)).unwrap_err().to_string();
    assert_eq!(error, "--trial 2: there is no full result of it; there are: 0, 1");
    let csv = String::from_utf8(written("csv", &reading).unwrap()).unwrap();
    assert!(csv.contains("\"get (load.connections=8)\"") && csv.contains("\"set (load.connections=16)\""), "{csv}");
    let document = document(&reading);
    assert!(document["RUN #1 RESULTS"].is_object() && document["RUN #2 RESULTS"].is_object());
}

#[test]
fn repeats_have_the_best_the_worst_and_the_average_run() {
    let mut reading = sample::reading();
    let mut second = sample::trial();
    (second.trial.index, second.result.throughput.achieved_per_second) = (1, 700);
    (second.result.operations[0].hits, second.result.operations[0].misses) = (300, 200);
    reading.measurements.push(second);
    let throughput = json!({"meanPerSecond": 600, "medianPerSecond": 600, "standardDeviationPerSecond": 1, "lowPerSecond": 1,
        "highPerSecond": 2, "bestTrial": 1, "worstTrial": 0});
    let cell = json!({"cell": 0, "trials": [0, 1], "throughput": throughput});
    let experiment = |cells: &[&Value]| {
        let document = json!({"format": FORMAT, "benchmark": "sample", "runId": "run", "trials": [], "cells": cells});
        serde_json::from_value(document).unwrap()
    };
    reading.experiment = Some(experiment(&[&cell]));
    let found = document(&reading);
    let rates = ["RUN #1 RESULTS", "BEST RUN RESULTS", "WORST RUN RESULTS"];
    assert_eq!(rates.map(|name| found[name]["Totals"]["Ops/sec"].as_f64()), [Some(500.0), Some(700.0), Some(500.0)]);
    let average = &found["AGGREGATED AVERAGE RESULTS (2 runs)"];
    let of = |section: &str, field: &str| average[section][field].as_f64();
    assert_eq!((of("Totals", "Ops/sec"), of("Totals", "Count")), (Some(600.0), Some(1_000.0)));
    // Half of the requests are reads: 400 hits of 500 in one trial, 300 in the other.
    assert_eq!((of("Gets", "Ops/sec"), of("Gets", "Hits/sec")), (Some(300.0), Some(210.0)));
    assert!(average["Gets"]["Percentile Latencies"]["p99.00"].as_f64().unwrap() > 9.8, "{average}");
    assert!(average["Runtime"]["Start time"].is_null());
    let configuration = &found["configuration"];
    assert_eq!((&configuration["print-all-runs"], &configuration["run_count"]), (&json!("true"), &json!(2)));
    // Cells do not repeat one another.
    reading.experiment = Some(experiment(&[&cell, &cell]));
    assert!(document(&reading)["BEST RUN RESULTS"].is_null());
}

#[test]
fn what_a_status_does_not_have_is_not_made_up() {
    let mut reading = sample::reading();
    let trial = &mut reading.measurements[0];
    (trial.seconds_left_out, trial.spec) = (true, None);
    trial.seconds.clear();
    for name in ["hlog", "jsonl", "openmetrics"] {
        let error = written(name, &reading).unwrap_err();
        assert!(matches!(error, ExportError::NoSeconds(0)), "{name}: {error}");
    }
    for name in ["csv", "github-summary", "hgrm", "junit", "memtier-json"] {
        assert!(written(name, &reading).is_ok(), "{name}");
    }
}

#[test]
fn a_summary_has_the_caches_and_clients_of_trials() {
    let mut reading = sample::reading();
    let cache = CacheResult { hits: 9_000, misses: 1_000, invalidations: 54_272, ..CacheResult::default() };
    reading.measurements[0].result.cache = Some(cache);
    let client = ClientResult { cpu_per_request_nanoseconds: 41_000, ..ClientResult::default() };
    reading.measurements[0].result.clients = vec![client];
    let text = String::from_utf8(written("github-summary", &reading).unwrap()).unwrap();
    let has_line = |end: &str| text.lines().any(|line| line.ends_with(end));
    assert!(has_line(" | cache hits | invalidations | CPU/request |"), "{text}");
    assert!(has_line(" | 9,000 (90.0 %) | 54,272 | 41.0 µs |"), "{text}");
    let bars = |line: &str| line.matches('|').count();
    let table: Vec<_> = text.lines().skip_while(|line| !line.starts_with("| |")).take(5).map(bars).collect();
    assert_eq!(table, [table[0]; 5], "{text}");
}

#[test]
fn a_run_that_was_not_measured_fails_its_test_case() {
    let object = serde_json::from_value(sample::object(&json!({"phase": "Failed"}))).unwrap();
    let reading = Reading { object: Some(object), ..Reading::default() };
    let junit = String::from_utf8(written("junit", &reading).unwrap()).unwrap();
    assert!(junit.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{junit}");
    assert!(written("github-summary", &reading).unwrap().starts_with(b"## sample: not measured\n"));
    let error = written("csv", &reading).unwrap_err();
    assert!(matches!(error, ExportError::NotMeasured(_)), "{error}");
}

/// Two trials and the object of their run. The first trial has a finding, which the status of the object shortens.
pub fn with_findings(message: &str) -> Reading {
    let reason =
        |kind: &str, severity: &str, message: &str| json!({"reason": kind, "severity": severity, "message": message});
    let verdict = |value: &str, reasons: &[Value]| json!({"value": value, "limitedBy": "Rate", "reasons": reasons});
    let trial = |index: u32, verdict: Value| {
        let mut trial = sample::trial();
        (trial.trial.index, trial.trial.of) = (index, 2);
        trial.trial.setting = Some(format!("load.connections={}", 8 << index));
        trial.verdict = serde_json::from_value(verdict).unwrap();
        trial
    };
    let misses = reason("Misses", "Valid", "all replies were empty");
    let line = |index: u32, verdict: &str| {
        json!({"index": index, "cell": index, "state": "Completed", "attempt": 1, "verdict": verdict, "limitedBy": "Rate",
            "parameters": {"load.connections": (8 << index).to_string()}, "achievedPerSecond": 500 + index, "p99Nanoseconds": 9_900_000,
            "meanNanoseconds": 5_000_000, "cpuPerRequestNanoseconds": 41_000,
            "requests": {"scheduled": 1_000, "succeeded": 1_000, "errors": 0, "unsent": 0}})
    };
    let shortened = format!("trial 1 of 2, load.connections=8: {}…", &message[..9]);
    let combined = [reason("Trial", "Degraded", &shortened), reason("GeneratorLimited", "Degraded", "of the run")];
    let status = json!({"phase": "Succeeded", "runId": "run", "verdict": verdict("Degraded", &combined),
        "trials": [line(0, "Degraded"), line(1, "Valid")]});
    Reading {
        object: Some(serde_json::from_value(sample::object(&status)).unwrap()),
        measurements: vec![
            trial(0, verdict("Degraded", &[reason("Unsteady", "Degraded", message), misses.clone()])),
            trial(1, verdict("Valid", &[misses])),
        ],
        experiment: None,
    }
}

#[test]
fn a_summary_says_which_trials_a_finding_is_of() {
    let message = "the throughput fell by 31 % in the second half of the measurement";
    let whole = with_findings(message);
    let text = |reading: &Reading| String::from_utf8(written("github-summary", reading).unwrap()).unwrap();
    let of_trial = format!("- **Degraded** Unsteady, trial 1 of 2, load.connections=8: {message}\n");
    let findings = format!("{of_trial}- note Misses, trial 1 of 2, trial 2 of 2: all replies were empty\n");
    let of_run = "- **Degraded** GeneratorLimited: of the run\n";
    let plain = |text: String| text.replace("\\_", "_");
    assert!(plain(text(&whole)).contains(&format!("{of_run}{findings}")), "{}", text(&whole));
    assert!(!text(&whole).contains("limiting factor"), "{}", text(&whole));
    let results = Reading { object: None, ..whole.clone() };
    assert!(plain(text(&results)).contains(&findings), "{}", text(&results));
    // Without the full result, the status has the worst reason.
    let object = Reading { measurements: Vec::new(), ..whole };
    let shortened = "- **Degraded** Trial: trial 1 of 2, load.connections=8: the throu…\n";
    assert!(text(&object).contains(shortened), "{}", text(&object));
}

#[test]
fn a_saved_object_of_several_trials_has_what_its_lines_have() {
    let object = Reading { measurements: Vec::new(), ..with_findings("a message") };
    let csv = String::from_utf8(written("csv", &object).unwrap()).unwrap();
    let lines: Vec<_> = csv.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "\"all (load.connections=8)\",\"500.00\",\"5.000000\",\"\",\"\",\"\",\"9.900000\",\"\"",
            "\"all (load.connections=16)\",\"501.00\",\"5.000000\",\"\",\"\",\"\",\"9.900000\",\"\""
        ]
    );
    let summary = String::from_utf8(written("github-summary", &object).unwrap()).unwrap();
    assert!(summary.contains("| | rate | succeeded | errors | p50 | p99 | p99.9 | CPU/request |"), "{summary}");
    assert!(
        summary.contains("| load.connections=8 | 500/s | 1,000 | 0 (0 %) |  | 9.90 ms |  | 41.0 µs |"),
        "{summary}"
    );
    for name in ["memtier-json", "hgrm", "hlog", "jsonl", "openmetrics"] {
        let error = written(name, &object).unwrap_err().to_string();
        assert!(error.starts_with("this format needs the full results of the trials, which a saved object"), "{error}");
        assert!(error.contains("add -f with the directory of `local --output-dir`"), "{error}");
    }
}

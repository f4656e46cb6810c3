//! `export` of real local runs, read back.

use std::path::Path;
use std::process::{Command, Stdio};

use redisbench_testkit::servers::RedisServer;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Run, benchmark, number, program, run, standalone};

/// Names of all formats, from the message about one that does not exist.
fn formats() -> Vec<String> {
    let (_, _, stderr) = run(&["export", "-f", "-", "--format", "?"], "");
    let (_, names) = stderr.split_once("[possible values: ").unwrap();
    names.split_once(']').unwrap().0.split(", ").map(str::to_owned).collect()
}

const REQUESTS: u64 = 4_000;

/// Every export of a local run as `result.FORMAT` and its report as `result.html`, beside its full result in `results`.
fn exported() -> TempDir {
    let redis = RedisServer::start(&[]);
    let directory = tempfile::tempdir().unwrap();
    let manifest = benchmark(
        &standalone(redis.endpoint()),
        "
  workload:
    operations: [{name: get, command: GET __key__}, {name: set, command: SET __key__ __data__}]
    keys: {count: 100}
  load: {type: ClosedLoop, warmup: 0s, connections: 4, requests: 4000}
  shards: {count: 2}
  measurement: {serverStats: true}
  thresholds: [{name: p99, metric: ResponseTime, quantile: '0.99', max: 10s}]
",
    );
    let results = directory.path().join("results");
    let finished = Run::local(&manifest, &["--output-dir", results.to_str().unwrap()]).finish();
    finished.succeeded();
    assert_eq!(number(&finished.result()["requests"]["succeeded"]), REQUESTS);
    for format in formats() {
        let file = directory.path().join(format!("result.{format}"));
        let arguments = ["export", "-f", results.to_str().unwrap(), "--format", &format, "-o", file.to_str().unwrap()];
        assert_eq!(run(&arguments, ""), (Some(0), String::new(), String::new()), "{format}");
    }
    let report = directory.path().join("result.html");
    let arguments = ["report", "-f", results.to_str().unwrap(), "-o", report.to_str().unwrap()];
    assert_eq!(run(&arguments, ""), (Some(0), String::new(), String::new()));
    directory
}

#[test]
fn every_format_has_all_requests() {
    let directory = exported();
    let text = |format: &str| std::fs::read_to_string(directory.path().join(format!("result.{format}"))).unwrap();
    let rows: Vec<Value> = text("jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |of: fn(&Value) -> bool| -> u64 {
        rows.iter().filter(|row| of(&row["operation"])).map(|row| number(&row["succeeded"])).sum()
    };
    assert_eq!((sum(Value::is_null), sum(Value::is_string)), (REQUESTS, REQUESTS));
    let memtier: Value = serde_json::from_str(&text("memtier-json")).unwrap();
    let statistics = &memtier["ALL STATS"];
    let parts = number(&statistics["Gets"]["Count"]) + number(&statistics["Sets"]["Count"]);
    assert_eq!((number(&statistics["Totals"]["Count"]), parts), (REQUESTS, REQUESTS));
    let csv = text("csv");
    assert!(csv.lines().map(|line| line.split(',').count()).eq([8, 8, 8]), "{csv}");
    assert!(text("hgrm").contains(&format!("Total count    = {REQUESTS:>12}]")));
    let metrics = text("openmetrics");
    let last = |name: &str| {
        let line = metrics.lines().rfind(|line| line.starts_with(name)).unwrap();
        line.split(' ').nth_back(1).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(last("redisbench_response_time_seconds_count"), REQUESTS);
    assert!(metrics.ends_with("# EOF\n"));
    let junit = text("junit");
    assert!(junit.contains("errors=\"0\" skipped=\"0\"") && junit.contains("name=\"threshold p99\""), "{junit}");
    assert!(text("github-summary").starts_with("## tiny: "));
    let report = text("html");
    let (_, cells) = report.split_once("id=\"heat-counts\">").unwrap();
    let cells: Value = serde_json::from_str(cells.split_once("</script>").unwrap().0).unwrap();
    let columns = cells["rowsAndCounts"].as_array().unwrap().iter();
    let counts = columns.flat_map(|rows_and_counts| rows_and_counts.as_array().unwrap().iter().skip(1).step_by(2));
    assert_eq!(counts.map(number).sum::<u64>(), REQUESTS);
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let directory = exported();
    let results = directory.path().join("results");
    let arguments = ["export", "-f", results.to_str().unwrap(), "--format", "openmetrics"];
    let (code, stdout, stderr) = run(&arguments, "");
    let written = std::fs::read_to_string(directory.path().join("result.openmetrics")).unwrap();
    assert_eq!((code, stderr.as_str(), stdout), (Some(0), "", written));
    let mut child =
        Command::new(program()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn a_manifest_is_not_a_result() {
    let (code, stdout, stderr) = run(&["export", "-f", "-", "--format", "csv"], crate::usage::GOOD);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.starts_with("error: -: status: is missing: this is a manifest"), "{stderr}");
}

/// Other people's readers of each format. `make test-exports` installs them.
#[test]
#[ignore = "needs other readers: run make test-exports"]
fn other_readers_agree() {
    let python = std::env::var("READERS_PYTHON").expect("READERS_PYTHON: a Python with the readers");
    let directory = exported();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers.py");
    let output = Command::new(python).arg(script).arg(directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

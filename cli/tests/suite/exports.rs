//! `export` of real local runs, read back.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use redisbench_testkit::servers::RedisServer;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Finished, Run, benchmark, number, program, run, standalone};

const FORMATS: [(&str, &str); 9] = [
    ("csv", "csv"),
    ("github-summary", "md"),
    ("hgrm", "hgrm"),
    ("hlog", "hlog"),
    ("jsonl", "jsonl"),
    ("junit", "xml"),
    ("memtier-json", "json"),
    ("openmetrics", "om"),
    ("parquet", "parquet"),
];

/// A local run with its full result and every export of it, as `result.FORMAT`.
struct Exported {
    finished: Finished,
    directory: TempDir,
    _redis: RedisServer,
}

impl Exported {
    fn of(more: &str) -> Self {
        let redis = RedisServer::start(&[]);
        let directory = tempfile::tempdir().unwrap();
        let manifest = benchmark(
            &standalone(redis.endpoint()),
            &format!(
                "
  workload:
    operations: [{{name: get, command: GET __key__}}, {{name: set, command: SET __key__ __data__}}]
    keys: {{count: 100}}
  load: {{type: ClosedLoop, warmup: 0s, connections: 4, requests: 4000}}
  shards: {{count: 2}}
  measurement: {{serverStats: true}}
  thresholds: [{{name: p99, metric: ResponseTime, quantile: '0.99', max: 10s}}]
{more}
"
            ),
        );
        let results = directory.path().join("results");
        let finished = Run::local(&manifest, &["--output-dir", results.to_str().unwrap()]).finish();
        finished.succeeded();
        for (format, ending) in FORMATS {
            let file = directory.path().join(format!("result.{ending}"));
            let arguments =
                ["export", "-f", results.to_str().unwrap(), "--format", format, "-o", file.to_str().unwrap()];
            assert_eq!(run(&arguments, ""), (Some(0), String::new(), String::new()), "{format}");
        }
        Self { finished, directory, _redis: redis }
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.directory.path().join(format!("result.{ending}"))
    }

    fn text(&self, ending: &str) -> String {
        std::fs::read_to_string(self.file(ending)).unwrap()
    }

    fn requests(&self) -> u64 {
        number(&self.finished.result()["requests"]["succeeded"])
    }
}

#[test]
fn every_format_has_all_requests() {
    let exported = Exported::of("");
    let all = exported.requests();
    assert_eq!(all, 4_000);
    let rows: Vec<Value> = exported.text("jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |of: fn(&Value) -> bool| -> u64 {
        rows.iter().filter(|row| of(&row["operation"])).map(|row| number(&row["succeeded"])).sum()
    };
    assert_eq!((sum(Value::is_null), sum(Value::is_string)), (all, all));
    let memtier: Value = serde_json::from_str(&exported.text("json")).unwrap();
    let statistics = &memtier["ALL STATS"];
    let parts = number(&statistics["Gets"]["Count"]) + number(&statistics["Sets"]["Count"]);
    assert_eq!((number(&statistics["Totals"]["Count"]), parts), (all, all));
    let csv = exported.text("csv");
    assert!(csv.lines().map(|line| line.split(',').count()).eq([8, 8, 8]), "{csv}");
    assert!(exported.text("hgrm").contains(&format!("Total count    = {all:>12}]")));
    let metrics = exported.text("om");
    let last = |name: &str| {
        let line = metrics.lines().rfind(|line| line.starts_with(name)).unwrap();
        line.split(' ').nth_back(1).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(last("redisbench_response_time_seconds_count"), all);
    assert!(metrics.ends_with("# EOF\n"));
    let junit = exported.text("xml");
    assert!(junit.contains("errors=\"0\" skipped=\"0\"") && junit.contains("name=\"threshold p99\""), "{junit}");
    assert!(exported.text("md").starts_with("## tiny: "));
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let exported = Exported::of("");
    let results = exported.directory.path().join("results");
    let arguments = ["export", "-f", results.to_str().unwrap(), "--format", "openmetrics"];
    let (code, stdout, stderr) = run(&arguments, "");
    assert_eq!((code, stderr.as_str(), stdout), (Some(0), "", exported.text("om")));
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

/// Python's hdrhistogram and pyarrow, and promtool. `make test-exports` installs them.
#[test]
#[ignore = "needs other readers: run make test-exports"]
fn other_readers_agree() {
    let python = std::env::var("READERS_PYTHON").expect("READERS_PYTHON: a Python with hdrhistogram and pyarrow");
    let exported = Exported::of("");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers.py");
    let output = Command::new(python).arg(script).arg(exported.directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

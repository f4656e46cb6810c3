//! `local --output-dir`: the full result of every trial as a file.

use std::fs;
use std::path::Path;

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::timeline::Buckets;
use serde_json::Value;

use crate::support::{Run, benchmark, number, standalone};

fn manifest(redis: &RedisServer, more: &str) -> String {
    benchmark(
        &standalone(redis.endpoint()),
        &format!(
            "
  workload:
    operations: [{{name: get, command: GET __key__}}, {{name: set, command: SET __key__ __data__}}]
    keys: {{count: 100}}
  preload: {{mode: FillMissing}}
  load: {{type: ClosedLoop, warmup: 0s, connections: 4, requests: 2000}}
  shards: {{count: 2}}
{more}
"
        ),
    )
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn document(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// The requests of all seconds, and their number in the histograms.
fn sum<'a>(parts: &(impl Iterator<Item = &'a Value> + Clone)) -> ([u64; 4], u64) {
    let of = |field: &str| parts.clone().map(|part| number(&part["counts"][field])).sum::<u64>();
    let in_histogram =
        |part: &Value| serde_json::from_value::<Buckets>(part["response"].clone()).map_or(0, |b| b.count());
    (["scheduled", "succeeded", "errors", "unsent"].map(of), parts.clone().map(in_histogram).sum())
}

fn requests(requests: &Value) -> ([u64; 4], u64) {
    let of = |field: &str| number(&requests[field]);
    (["scheduled", "succeeded", "errors", "unsent"].map(of), of("succeeded") - of("overflow"))
}

#[test]
fn the_full_result_is_saved_and_its_seconds_are_its_total() {
    let redis = RedisServer::start(&[]);
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("results/today");
    let output = ["--output-dir", directory.to_str().unwrap()];
    let finished = Run::local(&manifest(&redis, ""), &output).finish();
    finished.succeeded();
    assert_eq!(files(&directory), ["tiny-trial-0.json"]);
    let full = document(&directory.join("tiny-trial-0.json"));
    assert_eq!((&full["benchmark"], &full["runId"]), (&"tiny".into(), &finished.object["status"]["runId"]));
    assert_eq!(full["result"]["requests"], finished.result()["requests"]);
    assert_eq!(full["shards"].as_array().unwrap().len(), 2);
    let seconds = full["seconds"].as_array().unwrap();
    assert_eq!(sum(&seconds.iter().map(|second| &second["total"])), requests(&full["result"]["requests"]));
    for (index, operation) in full["result"]["operations"].as_array().unwrap().iter().enumerate() {
        let parts = seconds.iter().map(|second| &second["operations"][index]);
        assert!(parts.clone().all(|part| part["name"] == operation["name"]), "{full:#}");
        assert_eq!(sum(&parts), requests(&operation["requests"]), "{operation:#}");
    }

    let again = Run::local(&manifest(&redis, ""), &output).finish();
    again.assert_refused(&format!("--output-dir {}: has tiny-trial-0.json of an earlier run", directory.display()));
    assert_eq!(document(&directory.join("tiny-trial-0.json")), full);

    // Results of two benchmarks could not be read together.
    let other = manifest(&redis, "").replace("name: tiny", "name: other");
    let refused = Run::local(&other, &output).finish();
    refused.assert_refused(&format!(
        "--output-dir {}: has tiny-trial-0.json of an earlier run: use another directory, or remove the files of that run",
        directory.display()
    ));
    assert_eq!(files(&directory), ["tiny-trial-0.json"]);
}

#[test]
fn several_trials_have_a_file_each_and_one_for_all() {
    let redis = RedisServer::start(&[]);
    let directory = tempfile::tempdir().unwrap();
    let output = ["--output-dir", directory.path().to_str().unwrap()];
    let finished = Run::local(&manifest(&redis, "  repeats: {count: 2}"), &output).finish();
    finished.succeeded();
    assert_eq!(files(directory.path()), ["tiny-experiment.json", "tiny-trial-0.json", "tiny-trial-1.json"]);
    for index in 0..2 {
        let full = document(&directory.path().join(format!("tiny-trial-{index}.json")));
        assert_eq!(number(&full["trial"]["index"]), index);
        assert_eq!(number(&full["result"]["requests"]["scheduled"]), 2_000);
    }
    let experiment = document(&directory.path().join("tiny-experiment.json"));
    assert_eq!(experiment["trials"], finished.object["status"]["trials"]);
    let cell = &experiment["cells"][0];
    assert_eq!(cell["aggregate"], finished.object["status"]["repeats"][0]["aggregate"]);
    assert!(cell["histogram"].is_string(), "{cell:#}");
}

#[test]
fn a_directory_that_cannot_be_written_to_is_refused_before_any_load() {
    let redis = RedisServer::start(&[]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let finished = Run::local(&manifest(&redis, ""), &["--output-dir", file.to_str().unwrap()]).finish();
    finished.assert_refused(&format!("--output-dir {}: must be a writable directory: ", file.display()));
    assert_eq!(redis.calls("get") + redis.calls("set"), 0);
}

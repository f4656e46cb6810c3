//! `workload.preset`: a trial each, one after the other, against a real Redis whose own count is compared.

use serde_json::Value;

use crate::support::{Redis, Run, number, rest};

fn manifest(redis: &Redis, preset: &str, load: &str) -> String {
    format!(
        "
apiVersion: redisbench.dev/v1alpha1
kind: RedisBenchmark
metadata: {{name: tiny}}
spec:
  targets: [{{name: redis, type: Standalone, endpoints: ['{}']}}]
  workload:
    preset: [{preset}]
    keys: {{count: 100}}
    values: {{size: {{type: Fixed, fixed: {{bytes: 3}}}}}}
  cleanup: {{keys: DeletePrefix}}
  load: {{connections: 4, {load}}}
  shards: {{count: 2}}
",
        redis.address()
    )
}

fn lines(object: &Value) -> &Vec<Value> {
    object["status"]["trials"].as_array().unwrap()
}

#[test]
fn presets_run_one_after_the_other_on_keys_of_their_own() {
    let redis = Redis::start(None);
    let presets = "get, lpush, lpop, spop, zpopmin, lrange_100, mset";
    let load = "type: ClosedLoop, requests: 300, warmup: 0s";
    let finished = Run::local(&manifest(&redis, presets, load), &[]).finish();
    let status = &finished.object["status"];
    assert_eq!(status["phase"], "Succeeded", "{}\n{status:#}", finished.stderr);
    assert!(status["result"].is_null(), "a line each");
    let names: Vec<_> = lines(&finished.object).iter().map(|line| line["preset"].as_str().unwrap()).collect();
    assert_eq!(names.join(", "), presets);
    for (index, line) in (0..).zip(lines(&finished.object)) {
        assert_eq!((line["index"].as_u64(), line["state"].as_str()), (Some(index), Some("Completed")), "{line}");
        let requests = &line["requests"];
        assert_eq!((number(&requests["succeeded"]), number(&requests["errors"])), (300, 0), "{line}");
        // Enough was there to be found or taken.
        assert!(line["misses"].is_null(), "{line}");
    }
    // An element for each of 300 requests, 1 % more, and 1000.
    let elements = 300 + 3 + 1_000;
    for (command, calls) in [
        ("set", 100),
        ("get", 300),
        ("lpush", 300 + elements + 100),
        ("lpop", 300),
        ("sadd", elements),
        ("spop", 300),
        ("zadd", elements),
        ("zpopmin", 300),
        ("lrange", 300),
        ("mset", 300),
    ] {
        assert_eq!(redis.calls(command), calls, "{command}");
    }
    assert_eq!(redis.ask::<u64>(&["DBSIZE"]), 0, "each trial deletes its keys: {}", finished.stderr);
}

#[test]
fn an_interrupt_ends_the_trial_that_runs_and_no_other_begins() {
    let redis = Redis::start(None);
    let load = "type: OpenLoop, openLoop: {rate: 500}, duration: 60s, warmup: 0s";
    let mut run = Run::local(&manifest(&redis, "set, incr", load), &[]);
    let stderr = run.wait_for_line("Running   trial 1 of 2");
    run.signal("INT");
    let told = rest(stderr);
    let finished = run.finish();
    let status = &finished.object["status"];
    assert_eq!(status["phase"], "Aborted", "{told}\n{status:#}");
    let ended: Vec<_> = lines(&finished.object).iter().map(|line| line["state"].clone()).collect();
    assert_eq!(ended, ["Aborted"]);
    assert_eq!((redis.calls("incr"), finished.code), (0, Some(1)));
}

#[test]
fn a_preset_that_is_none_is_refused_with_what_there_is() {
    let redis = Redis::start(None);
    let load = "type: ClosedLoop, requests: 300, warmup: 0s";
    let finished = Run::local(&manifest(&redis, "set, geet", load), &[]).finish();
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("spec.workload.preset: geet: is not known; there are ping_mbulk, set, get"));
    let baseline = Run::local(&manifest(&redis, "set, get", load), &["--baseline"]).finish();
    assert_eq!(baseline.code, Some(2), "{}", baseline.stderr);
    assert!(baseline.stderr.contains("makes 2 trials"), "{}", baseline.stderr);
}

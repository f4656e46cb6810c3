//! `workload.preset`: one trial each, with a real Redis whose own counts are compared.

use redisbench_benchmark::api::preset::PRESETS;
use redisbench_testkit::servers::{RedisServer, wait_until};
use serde_json::Value;

use crate::support::{Run, benchmark, number, rest, standalone};

fn manifest(redis: &RedisServer, preset: &str, load: &str) -> String {
    benchmark(
        &standalone(redis.endpoint()),
        &format!(
            "
  workload:
    preset: [{preset}]
    keys: {{count: 100}}
    values: {{size: {{type: Fixed, fixed: {{bytes: 3}}}}}}
  cleanup: {{keys: DeletePrefix}}
  load: {{connections: 4, {load}}}
  shards: {{count: 2}}
"
        ),
    )
}

fn lines(object: &Value) -> &Vec<Value> {
    object["status"]["trials"].as_array().unwrap()
}

#[test]
fn all_presets_run_one_after_the_other_on_keys_of_their_own() {
    let redis = RedisServer::start(&[]);
    let presets = PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
    let load = "type: ClosedLoop, requests: 300, warmup: 0s";
    let finished = Run::local(&manifest(&redis, &presets, load), &[]).finish();
    let status = finished.succeeded();
    assert!(status["result"].is_null(), "a line each");
    let names: Vec<_> = lines(&finished.object).iter().map(|line| line["preset"].as_str().unwrap()).collect();
    assert_eq!(names.join(", "), presets);
    for (index, line) in (0..).zip(lines(&finished.object)) {
        assert_eq!((line["index"].as_u64(), line["state"].as_str()), (Some(index), Some("Completed")), "{line}");
        let requests = &line["requests"];
        assert_eq!((number(&requests["succeeded"]), number(&requests["errors"])), (300, 0), "{line}");
        // There were enough elements for all requests.
        assert_eq!(line["misses"].as_u64(), Some(0), "{line}");
    }
    // One element per request, 1 % more, and 1000.
    let elements = 300 + 3 + 1_000;
    for (command, calls) in [
        ("set", 300 + 100),
        ("get", 300),
        ("incr", 300),
        ("lpush", 300 + 2 * elements + 100 + 300 + 500 + 600),
        ("rpush", 300),
        ("lpop", 300),
        ("rpop", 300),
        ("sadd", 300 + elements),
        ("hset", 300),
        ("spop", 300),
        ("zadd", 300 + elements),
        ("zpopmin", 300),
        ("lrange", 4 * 300),
        ("mset", 300),
        ("xadd", 300),
    ] {
        assert_eq!(redis.calls(command), calls, "{command}");
    }
    // New connections send PING too.
    assert!(redis.calls("ping") >= 300);
    assert_eq!(redis.ask::<u64>(&["DBSIZE"]), 0, "each trial deletes its keys: {}", finished.stderr);
}

/// Removes the existing elements, and returns their number.
const ROB: &str = "
    local key = redis.call('KEYS', '*')[1]
    local size = {list = 'LLEN', set = 'SCARD', zset = 'ZCARD'}
    local elements = redis.call(size[redis.call('TYPE', key).ok], key)
    redis.call('DEL', key)
    return elements";

#[test]
fn what_takes_elements_reports_the_share_of_empty_replies() {
    let redis = RedisServer::start(&[]);
    let names: Vec<_> = PRESETS.iter().filter(|preset| preset.takes()).map(|preset| preset.name).collect();
    assert_eq!(names, ["lpop", "rpop", "spop", "zpopmin"]);
    let load = "type: OpenLoop, openLoop: {rate: 200}, duration: 3s, warmup: 0s";
    let run = Run::local(&manifest(&redis, &names.join(", "), load), &[]);
    let robbed: Vec<u64> = names
        .iter()
        .map(|name| {
            wait_until("the load is under way", || redis.calls(name) >= 100);
            redis.ask(&["EVAL", ROB, "0"])
        })
        .collect();
    let finished = run.finish();
    finished.succeeded();
    let elements = 600 + 6 + 1_000;
    for (line, robbed) in lines(&finished.object).iter().zip(robbed) {
        // A busy machine may leave some unsent.
        let [succeeded, unsent] = ["succeeded", "unsent"].map(|part| number(&line["requests"][part]));
        assert_eq!((succeeded + unsent, number(&line["misses"])), (600, succeeded - (elements - robbed)), "{line}");
    }
}

#[test]
fn an_interrupt_ends_the_trial_that_runs_and_no_other_begins() {
    let redis = RedisServer::start(&[]);
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
    let redis = RedisServer::start(&[]);
    let load = "type: ClosedLoop, requests: 300, warmup: 0s";
    let finished = Run::local(&manifest(&redis, "set, geet", load), &[]).finish();
    finished.assert_refused("spec.workload.preset: geet: is unknown; supported are ping_mbulk, set, get");
    let baseline = Run::local(&manifest(&redis, "set, get", load), &["--baseline"]).finish();
    baseline.assert_refused("makes 2 trials");
}

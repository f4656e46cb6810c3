//! `local` end to end: the program, its shards, a real Redis.

use redisbench_testkit::servers::RedisServer;
use serde_json::{Value, json};

use crate::support::{Run, benchmark, number, rest, standalone};

fn manifest(target: &str, load: &str) -> String {
    benchmark(
        target,
        &format!(
            "
  workload:
    operations:
    - {{name: get, weight: 3, command: GET __key__}}
    - {{name: set, weight: 1, command: SET __key__ __data__}}
    keys: {{count: 500}}
    values: {{size: {{type: Fixed, fixed: {{bytes: 32}}}}}}
  preload: {{mode: Always}}
  load: {{connections: 4, {load}}}
  shards: {{count: 2}}
"
        ),
    )
}

const ANYWHERE: &str = "type: Standalone, endpoints: ['redis:6379']";
/// Appended to manifests whose requests the server counts: a probe would add more.
const NOT_PROBED: &str = "  measurement: {probe: false}\n";

const CLOSED: &str = "type: ClosedLoop, duration: 1s, warmup: 200ms";

#[test]
fn closed_loop_counts_what_the_server_counts() {
    let redis = RedisServer::start(&[]);
    let manifest = manifest(&standalone(redis.endpoint()), CLOSED) + NOT_PROBED;
    let finished = Run::local(&manifest, &[]).finish();
    finished.assert_balanced();
    let result = finished.result();
    finished.succeeded();
    assert_eq!(number(&result["requests"]["errors"]), 0);
    assert!(number(&result["requests"]["succeeded"]) > 0);
    assert!(result["serviceTime"].is_null(), "a closed loop has one latency");
    assert_eq!(result["load"], json!({"type": "ClosedLoop", "pipelineMode": "Window", "concurrency": 4}));
    // The server's count includes warm-up and preload.
    let warmup = number(&result["warmup"]["succeeded"]);
    let preload = number(&result["preload"]["commands"]);
    assert_eq!(preload, 500);
    let asked = redis.calls("get") + redis.calls("set");
    assert_eq!(asked, number(&result["requests"]["succeeded"]) + warmup + preload);
    let verdict = &finished.object["status"]["verdict"]["value"];
    assert_eq!(finished.code, Some(i32::from(verdict == "Invalid")), "{:#}", finished.object["status"]["verdict"]);
}

/// A rate beneath two phases. Due requests count as scheduled even if a busy machine does not send them.
#[test]
fn operations_have_exact_rates_and_stages_a_mix() {
    let redis = RedisServer::start(&[]);
    let manifest = benchmark(
        &standalone(redis.endpoint()),
        "
  workload:
    operations:
    - {name: get, command: GET __key__}
    - {name: set, command: SET __key__ __data__}
    - {name: exists, command: EXISTS __key__, rate: 300}
    keys: {count: 500}
  load:
    type: OpenLoop
    connections: 4
    pipeline: 8
    warmup: 0s
    stages:
    - {name: write, duration: 2s, rate: {from: 500, to: 500}, mix: {set: 1}}
    - {name: read, duration: 2s, rate: {from: 400, to: 400}, mix: {get: 1}}
  shards: {count: 2}
",
    );
    let finished = Run::local(&manifest, &[]).finish();
    finished.assert_balanced();
    let result = finished.result();
    let operations = result["operations"].as_array().unwrap().iter();
    let scheduled: Vec<_> =
        operations.map(|one| (one["name"].as_str().unwrap(), number(&one["requests"]["scheduled"]))).collect();
    assert_eq!(scheduled, [("get", 800), ("set", 1_000), ("exists", 1_200)], "{}", finished.stderr);
    let stages: Vec<_> = result["stages"].as_array().unwrap().iter().map(|stage| &stage["name"]).collect();
    assert_eq!(stages, ["write", "read"]);
    let asked = ["get", "set", "exists"].map(|command| redis.calls(command)).iter().sum::<u64>();
    assert_eq!(asked, number(&result["requests"]["succeeded"]) + number(&result["requests"]["errors"]));
}

#[test]
fn a_unix_socket_is_as_good_as_a_port() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("redis.sock");
    let redis = RedisServer::start(&["--unixsocket", socket.to_str().unwrap()]);
    let target = format!("type: Standalone, endpoints: ['unix:{}']", socket.display());
    for load in [CLOSED, "type: OpenLoop, openLoop: {rate: 1000}, duration: 1s, warmup: 200ms, pipeline: 4"] {
        redis.ask::<()>(&["CONFIG", "RESETSTAT"]);
        let manifest = manifest(&target, load) + NOT_PROBED + "  cleanup: {keys: DeletePrefix}\n";
        let finished = Run::local(&manifest, &[]).finish();
        finished.assert_balanced();
        let result = finished.result();
        assert_eq!(number(&result["requests"]["errors"]), 0);
        let asked = redis.calls("get") + redis.calls("set");
        let warmup = number(&result["warmup"]["succeeded"]);
        assert_eq!(asked, number(&result["requests"]["succeeded"]) + warmup + number(&result["preload"]["commands"]));
        assert_eq!(redis.ask::<u64>(&["DBSIZE"]), 0, "{}", finished.stderr);
        // Such a socket has no timestamps.
        let delays = result["shards"].as_array().unwrap().iter().map(|shard| &shard["receiveDelayP99Nanoseconds"]);
        let readings = result["generatorShare"].as_array().unwrap().iter().map(|share| &share["readingNanoseconds"]);
        assert!(delays.chain(readings).all(Value::is_null), "{result:#}");
    }
}

#[test]
fn keys_are_deleted_and_no_others() {
    let redis = RedisServer::start(&[]);
    let kept = ["rb:500", "rb:0", "rb:0001", "other:001"];
    for key in kept {
        redis.ask::<()>(&["SET", key, "kept"]);
    }
    let manifest =
        manifest(&standalone(redis.endpoint()), CLOSED).replace("  load:", "  cleanup: {keys: DeletePrefix}\n  load:");
    let finished = Run::local(&manifest, &[]).finish();
    let status = finished.succeeded();
    assert_eq!(number(&status["result"]["preload"]["keys"]), 500);
    assert!(finished.stderr.contains("500 keys deleted"), "{}", finished.stderr);
    let complete = finished.condition("Finished");
    assert!(complete["message"].as_str().unwrap().ends_with("; 500 keys deleted"), "{complete}");
    assert_eq!(redis.ask::<u64>(&["DBSIZE"]), 4);
    assert_eq!(redis.ask::<u64>(&["EXISTS", kept[0], kept[1], kept[2], kept[3]]), 4);
}

#[test]
fn open_loop_schedules_rate_times_duration() {
    let load = "type: OpenLoop, openLoop: {rate: 1000}, duration: 2s, warmup: 500ms, pipeline: 4";
    let finished = Run::local(&manifest(ANYWHERE, load), &["--with-redis"]).finish();
    finished.assert_balanced();
    let result = finished.result();
    assert_eq!(number(&result["requests"]["scheduled"]), 2000);
    assert_eq!(number(&result["warmup"]["scheduled"]), 500);
    assert_eq!(number(&result["throughput"]["targetPerSecond"]), 1000);
    assert!(result["serviceTime"]["p50Nanoseconds"].is_u64());
    assert!(finished.stderr.contains("a throwaway redis-server at 127.0.0.1:"), "{}", finished.stderr);
    let status = finished.succeeded();
    assert_eq!(status["shards"]["finished"], 2);
    assert_eq!(status["trial"]["attempt"], 1);
    assert!(status["synchronization"]["commonWindowMilliseconds"].is_u64());
    let finished = finished.condition("Finished");
    assert_eq!((&finished["status"], &finished["reason"]), (&json!("True"), &json!("Succeeded")));
}

#[test]
fn a_ramp_schedules_what_lies_below_it() {
    let stages =
        "[{name: up, duration: 1s, rate: {from: 500, to: 1500}}, {duration: 1s, rate: {from: 1500, to: 1500}}]";
    let load = format!("type: OpenLoop, openLoop: {{pacingGrid: 1ms}}, stages: {stages}, warmup: 1s, pipeline: 4");
    let finished = Run::local(&manifest(ANYWHERE, &load), &["--with-redis"]).finish();
    finished.assert_balanced();
    let result = finished.result();
    // Up to one millisecond of requests may be counted in the next part at each border.
    assert!(number(&result["requests"]["scheduled"]).abs_diff(2500) <= 4, "{}", result["requests"]);
    assert!(number(&result["warmup"]["scheduled"]).abs_diff(500) <= 4, "{}", result["warmup"]);
    // The mean over the common window: the measurement minus the start skew and half a point.
    assert!(number(&result["throughput"]["targetPerSecond"]).abs_diff(1250) < 50, "{}", result["throughput"]);
    let load = json!({"type": "OpenLoop", "arrival": "Constant", "pacingGridNanoseconds": 1_000_000});
    assert_eq!(result["load"], load);
    let stages = result["stages"].as_array().unwrap();
    let facts = |stage: &Value| (stage["name"].clone(), number(&stage["seconds"]), number(&stage["targetPerSecond"]));
    assert_eq!(stages.iter().map(facts).collect::<Vec<_>>(), [(json!("up"), 1, 1000), (json!(null), 1, 1500)]);
    // All borders are at whole seconds, so each request belongs to one stage.
    for count in ["scheduled", "succeeded", "errors", "unsent"] {
        let sum: u64 = stages.iter().map(|stage| number(&stage["requests"][count])).sum();
        assert_eq!(sum, number(&result["requests"][count]), "{count}: {stages:#?}");
    }
    assert!(stages.iter().all(|stage| stage["responseTime"]["p50Nanoseconds"].is_u64()), "{stages:#?}");
}

#[test]
fn number_of_requests_is_exact_and_shards_can_be_overridden() {
    let load = "type: ClosedLoop, requests: 5001, maxDuration: 1m, warmup: 0s";
    let finished = Run::local(&manifest(ANYWHERE, load), &["--with-redis", "--shards", "3"]).finish();
    finished.assert_balanced();
    assert_eq!(number(&finished.result()["requests"]["scheduled"]), 5001);
    assert_eq!(finished.result()["shards"].as_array().unwrap().len(), 3);
    assert_eq!(finished.object["spec"]["shards"]["count"], 3);
}

#[test]
fn cluster_is_broken_down_by_node() {
    let target = "type: Cluster, endpoints: ['redis:6379']";
    let load = "type: OpenLoop, openLoop: {rate: 600}, duration: 2s, warmup: 500ms";
    let manifest = manifest(target, load).replace("connections: 4", "connections: 6");
    let finished = Run::local(&manifest, &["--with-redis"]).finish();
    finished.assert_balanced();
    let result = finished.result();
    assert_eq!(number(&result["requests"]["errors"]), 0, "{:#}", result["errors"]);
    let nodes = result["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 3, "{nodes:#?}");
    let answered: u64 = nodes.iter().map(|node| number(&node["requests"])).sum();
    assert_eq!(answered, number(&result["requests"]["scheduled"]) - number(&result["requests"]["unsent"]));
    let slots: u64 = nodes.iter().map(|node| number(&node["slots"])).sum();
    assert_eq!(slots, 16384);
    // Replicas that nothing needs would appear during the load.
    let topology = &finished.object["status"]["topology"];
    assert_eq!((number(&topology["replicas"]), &topology["changes"]), (0, &Value::Null), "{topology:#}");
}

#[test]
fn baseline_tells_what_the_load_generator_can_do() {
    let load = "type: OpenLoop, openLoop: {rate: 1000}, duration: 1s, warmup: 1h";
    let finished = Run::local(&with_secret(ANYWHERE, load, "any"), &["--baseline", "--shards", "1"]).finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let (most, written) = (&finished.object["atMost"], &finished.object["asWritten"]);
    assert!(most["targetPerSecond"].is_null());
    assert_eq!(number(&written["targetPerSecond"]), 1000);
    // The maximum is far above the manifest's rate.
    assert!(number(&most["achievedPerSecond"]) > number(&written["achievedPerSecond"]), "{:#}", finished.object);
    for figures in [most, written] {
        assert!(number(&figures["achievedPerSecond"]) > 0, "{:#}", finished.object);
        assert!(number(&figures["cpuNanosecondsPerRequest"]) > 0, "{:#}", finished.object);
        assert!(number(&figures["p99Nanoseconds"]) >= number(&figures["p50Nanoseconds"]), "{:#}", finished.object);
        assert!(figures["limitedBy"].is_string());
    }
    assert!(!finished.stderr.contains("redis:6379"), "nobody asks the target: {}", finished.stderr);
}

#[test]
fn baseline_measures_no_client_library() {
    let load = "type: ClosedLoop, duration: 1s, clients: [{name: f, type: Fred}]";
    let finished = Run::local(&with_secret(ANYWHERE, load, "any"), &["--baseline"]).finish();
    finished.assert_refused("spec.load.clients: is not supported with --baseline");
}

#[test]
fn baseline_of_a_cluster_is_a_cluster() {
    let target = "type: Cluster, endpoints: ['redis:6379']";
    let finished = Run::local(&manifest(target, CLOSED), &["--baseline", "--shards", "1"]).finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(number(&finished.object["atMost"]["achievedPerSecond"]) > 0, "{:#}", finished.object);
    assert!(finished.object["asWritten"].is_null(), "a closed loop has no rate");
}

#[test]
fn values_and_keys_come_from_config_maps_of_the_manifest() {
    let redis = RedisServer::start(&[]);
    let spec = "
  workload:
    operations: [{name: set, command: SET __key__ __data__}]
    keys: {count: 2, file: {configMapRef: {name: k, key: b.txt}}}
    values: {content: {type: File, file: {configMapRef: {name: v, key: a.txt}}}}
  preload: {mode: Always}
  load: {type: ClosedLoop, duration: 1s, warmup: 200ms, connections: 4}
";
    let map = |name: &str, key: &str, text: &str| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{{key}: \"{text}\"}}\n")
    };
    let maps = map("v", "a.txt", "same\\nsame\\n") + &map("k", "b.txt", "user:1\\nuser:2\\n");
    let manifest = benchmark(&standalone(redis.endpoint()), spec) + &maps;
    Run::local(&manifest, &[]).finish().succeeded();
    assert_eq!(redis.ask::<String>(&["GET", "user:2"]), "same");
    assert_eq!(redis.ask::<u64>(&["DBSIZE"]), 2);
}

#[test]
fn a_trace_is_replayed_at_its_own_times_until_the_load_ends() {
    let redis = RedisServer::start(&[]);
    let spec = "
  workload:
    trace: {configMapRef: {name: v, key: a.txt}, pace: \"2\"}
  load: {type: OpenLoop, duration: 2s, warmup: 0s, connections: 4}
";
    // 100 requests in a second, and so 400 in two seconds at twice the speed.
    let line = |number: u64| format!("    1.{:06} [0 127.0.0.1:1] \"incr\" \"key:{}\"\n", number * 10_000, number % 7);
    let lines: String = (0..100).map(line).collect();
    let map = format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: v}}\ndata:\n  a.txt: |\n{lines}");
    let finished = Run::local(&(benchmark(&standalone(redis.endpoint()), spec) + &map), &[]).finish();
    finished.succeeded();
    let requests = &finished.object["status"]["result"]["requests"];
    assert_eq!((number(&requests["scheduled"]), number(&requests["errors"])), (400, 0));
    // On a busy machine the last ones may become due too late to be sent.
    assert_eq!(redis.calls("incr"), number(&requests["succeeded"]));
}

fn with_secret(target: &str, load: &str, password: &str) -> String {
    let auth = "auth: {secretRef: {name: login, usernameKey: user, passwordKey: word}}";
    format!(
        "{}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData: {{user: default, word: {password}}}\n",
        manifest(&format!("{target}, {auth}"), load)
    )
}

#[test]
fn password_is_in_no_argument_environment_or_output() {
    const PASSWORD: &str = "correct-horse-battery";
    let load = "type: OpenLoop, openLoop: {rate: 200}, duration: 3s, warmup: 0s";
    let mut run = Run::local(&with_secret(ANYWHERE, load, PASSWORD), &["--with-redis"]);
    let reader = run.wait_for_line("Running");
    // Two shards and a server.
    run.assert_hidden(PASSWORD, 3);
    let stderr = rest(reader);
    let finished = run.finish();
    assert!(!stderr.contains(PASSWORD), "{stderr}");
    assert!(!finished.object.to_string().contains(PASSWORD));
    assert_eq!(finished.object["status"]["phase"], "Succeeded", "{stderr}");
}

#[test]
fn wrong_password_fails_and_says_what_to_do() {
    let redis = RedisServer::start(&["--requirepass", "right"]);
    let finished = Run::local(&with_secret(&standalone(redis.endpoint()), CLOSED, "surely-wrong"), &[]).finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_eq!(finished.object["status"]["phase"], "Failed");
    let failed = finished.condition("Failed");
    assert_eq!((&failed["status"], &failed["reason"]), (&json!("True"), &json!("AuthenticationFailed")));
    assert!(!finished.stderr.contains("surely-wrong"), "{}", finished.stderr);
    assert!(!finished.object.to_string().contains("surely-wrong"));
}

#[test]
fn interrupt_keeps_what_was_measured() {
    let load = "type: OpenLoop, openLoop: {rate: 500}, duration: 1h, warmup: 0s";
    let mut run = Run::local(&manifest(ANYWHERE, load), &["--with-redis"]);
    let reader = run.wait_for_line("p99");
    run.signal("INT");
    let stderr = rest(reader);
    let finished = run.finish();
    assert_eq!(finished.code, Some(1), "{stderr}");
    assert_eq!(finished.object["status"]["phase"], "Aborted", "{stderr}");
    finished.assert_balanced();
}

#[test]
fn second_interrupt_stops_at_once() {
    let load = "type: OpenLoop, openLoop: {rate: 500}, duration: 1h, warmup: 0s";
    let mut run = Run::local(&manifest(ANYWHERE, load), &["--with-redis"]);
    let reader = run.wait_for_line("Running");
    run.signal("INT");
    run.signal("TERM");
    let _ = rest(reader);
    assert_eq!(run.finish().code, Some(1));
}

#[test]
fn children_die_with_their_parent() {
    let load = "type: OpenLoop, openLoop: {rate: 100}, duration: 1h, warmup: 0s";
    let mut run = Run::local(&manifest(ANYWHERE, load), &["--with-redis"]);
    let _reader = run.wait_for_line("Running");
    assert_eq!(run.children().len(), 3);
    run.kill();
}

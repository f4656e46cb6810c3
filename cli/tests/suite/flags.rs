//! `local` without a manifest.

use redisbench_testkit::servers::RedisServer;
use serde_json::json;

use crate::support::{Run, number, run, run_with};

#[test]
fn a_run_from_flags_sends_what_the_server_counts() {
    let redis = RedisServer::start(&[]);
    let endpoint = redis.endpoint();
    let arguments = [
        "--target", &endpoint, "-c", "4", "-P", "3", "-n", "3000", "-d", "32", "-r", "500", "--warmup", "0",
        "--shards", "2",
    ];
    let finished = Run::from_flags(&arguments, &[]).finish();
    finished.assert_balanced();
    finished.succeeded();
    let result = finished.result();
    assert_eq!(number(&result["requests"]["scheduled"]), 3000);
    assert_eq!(number(&result["requests"]["errors"]), 0);
    // Every key is written before.
    assert_eq!(redis.calls("get") + redis.calls("set"), 3000 + 500);
    assert_eq!((redis.ask::<u64>(&["DBSIZE"]), redis.ask::<u64>(&["STRLEN", "rb:123"])), (500, 32));
    assert_eq!(result["shards"].as_array().map(Vec::len), Some(2));
    assert_eq!(finished.object["spec"]["targets"][0]["endpoints"], json!([endpoint]));
}

#[test]
fn tests_of_redis_benchmark_run_by_name() {
    let redis = RedisServer::start(&[]);
    let (host, port) = ("127.0.0.1", redis.address().port().to_string());
    let arguments = ["-h", host, "-p", &port, "-t", "sadd,incr", "-n", "1000", "-c", "4", "--warmup", "0"];
    let finished = Run::from_flags(&arguments, &[]).finish();
    finished.succeeded();
    assert_eq!((redis.calls("sadd"), redis.calls("incr")), (1000, 1000));
}

#[test]
fn a_password_from_the_environment_is_in_no_child_and_no_output() {
    const PASSWORD: &str = "correct-horse-battery";
    let arguments =
        ["--with-redis", "--user", "bob", "--rate", "200", "--duration", "2s", "--warmup", "0", "-r", "100"];
    let mut run = Run::from_flags(&arguments, &[("REDISCLI_AUTH", PASSWORD)]);
    let reader = run.wait_for_line("Running");
    // A shard and a server.
    run.assert_hidden(PASSWORD, 2);
    let stderr = crate::support::rest(reader);
    let finished = run.finish();
    assert_eq!(finished.object["status"]["phase"], "Succeeded", "{stderr}");
    assert_eq!(number(&finished.result()["requests"]["errors"]), 0, "{stderr}");
    assert!(!finished.object.to_string().contains(PASSWORD) && !stderr.contains(PASSWORD), "{stderr}");
}

#[test]
fn a_printed_manifest_is_valid_and_has_no_password() {
    let arguments =
        ["local", "--target", "redis", "-a", "hunter2", "--rate", "500", "--shards", "3", "--print-manifest"];
    let (code, manifest, _) = run(&arguments, "");
    assert_eq!(code, Some(0));
    assert!(
        manifest.contains("rate: 500") && manifest.contains("count: 3") && !manifest.contains("hunter2"),
        "{manifest}"
    );
    assert_eq!(run(&["validate", "-f", "-"], &manifest).0, Some(0));
}

#[test]
fn a_password_cannot_be_asked_for_without_a_terminal() {
    let program = run_with(&["local", "--target", "127.0.0.1:1", "--askpass"], "", &[]);
    let (code, _, stderr) = program.finish();
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("error: --askpass: needs a terminal: set REDISCLI_AUTH"), "{stderr}");
    let (code, _, stderr) =
        run(&["local", "--target", "127.0.0.1:1", "-a", "hunter2", "--loadgen", "/does/not/exist"], "");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("warning: other users") && !stderr.contains("hunter2"), "{stderr}");
    // Shown before the run.
    assert!(stderr.contains("\nkind: RedisBenchmark\n") && stderr.contains("[\"127.0.0.1:1\"]"), "{stderr}");
}

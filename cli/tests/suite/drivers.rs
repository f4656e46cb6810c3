//! Client libraries in programs of their own, with a small one in Python.

use std::fs;
use std::path::Path;

use redisbench_testkit::servers::RedisServer;
use serde_json::{Value, json};

use crate::support::{Run, list, number};

/// The value of `--driver` that starts the small driver as `name`.
pub fn small(name: &str, arguments: &str) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver.py");
    format!("{name}=python3 '{}' {arguments}", program.display())
}

fn manifest(target: &Value, clients: &Value, more: &Value) -> String {
    let mut benchmark = json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "drivers"},
        "spec": {
            "targets": [target],
            "workload": {
                "operations": [{"name": "set", "command": "SET __key__ __data__"}, {"name": "get", "command": "GET __key__"}],
                "keys": {"count": 100},
            },
            "load": {
                "type": "ClosedLoop", "connections": 4, "requests": 2_000, "warmup": "0s", "clients": clients,
                "timeouts": {"request": "30s"},
            },
            "measurement": {"probe": false},
        },
    });
    benchmark["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    benchmark.to_string()
}

/// Ten trials in two shards, each with a driver that stays for its five.
#[test]
fn a_driver_is_compared_with_the_engine() {
    let redis = RedisServer::start(&["--requirepass", "geheim"]);
    let target = json!({"name": "redis", "type": "Standalone", "endpoints": [redis.endpoint()],
        "auth": {"secretRef": {"name": "login"}}});
    let clients = json!([{"name": "engine", "type": "Engine"}, {"name": "own", "type": "Driver", "driver": "small"}]);
    let more = json!({
        "comparison": {"baseline": "engine", "metric": "CpuPerRequest"}, "repeats": {"count": 5}, "shards": {"count": 2},
    });
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "stringData": {"password": "geheim"}});
    let text = format!("{secret}\n---\n{}", manifest(&target, &clients, &more));
    let directory = tempfile::tempdir().unwrap();
    let starts = directory.path().join("starts");
    let noting = small("small", &format!("--note '{}'", starts.display()));
    let finished = Run::local(&text, &["--driver", &noting]).finish();
    let status = finished.succeeded();
    assert_eq!(list(&status["trials"]).len(), 10, "{status:#}");
    assert_eq!(fs::read_to_string(starts).unwrap().lines().count(), 2, "{}", finished.stderr);
    let [engine, own] = list(&status["repeats"]) else { panic!("{status:#}") };
    let cost = &own["cost"];
    assert_eq!((&cost["name"], &cost["version"]), (&json!("own"), &json!("smallest 1 (Python)")), "{status:#}");
    assert!(number(&cost["cpuPerRequestNanoseconds"]) > 0 && number(&cost["peakBytes"]) > 0, "{status:#}");
    assert_ne!(cost["version"], engine["cost"]["version"]);
    assert_eq!(redis.calls("get") + redis.calls("set"), 10 * 2_000);
    assert!(!finished.stderr.contains("geheim") && !finished.object.to_string().contains("geheim"));
}

#[test]
fn a_driver_that_fails_is_named_with_what_it_did() {
    let redis = RedisServer::start(&[]);
    let target = json!({"name": "redis", "type": "Standalone", "endpoints": [redis.endpoint()]});
    let clients = json!([{"name": "own", "type": "Driver", "driver": "small"}]);
    let text = manifest(&target, &clients, &json!({}));
    for (arguments, what) in [
        ("--fail", "its command ended before Hello: exit status: 1"),
        ("--die", "calls in flight, and ended with exit status: 3"),
    ] {
        let finished = Run::local(&text, &["--driver", &small("small", arguments)]).finish();
        let message = finished.condition("Failed")["message"].as_str().unwrap();
        assert!(message.contains("driver small: ") && message.contains(what), "{message}\n{}", finished.stderr);
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    }
    let finished = Run::local(&text, &["--driver", "other=true"]).finish();
    finished.assert_refused(
        "spec.load.clients[0].driver: small: is unknown; the drivers are other: name one of these, or start it",
    );
    let finished = Run::local(&text, &["--driver", "small=true", "--driver", "small=false"]).finish();
    finished.assert_refused("--driver: small: is given twice: remove one");
}

/// A library that repeats calls makes the target execute more than the requests that are counted.
#[test]
fn a_driver_that_repeats_calls_is_found_by_the_servers_counts() {
    for (retries, why) in [
        (0, "client own repeats calls although load.clients[].retries is 0"),
        (2, "client own repeats failed calls (load.clients[].retries is 2)"),
    ] {
        let redis = RedisServer::start(&[]);
        let target = json!({"name": "redis", "type": "Standalone", "endpoints": [redis.endpoint()]});
        let clients = json!([{"name": "own", "type": "Driver", "driver": "small", "retries": retries}]);
        let text = manifest(&target, &clients, &json!({}));
        let finished = Run::local(&text, &["--driver", &small("small", "--repeat")]).finish();
        let status = finished.succeeded();
        assert_eq!(number(&finished.result()["requests"]["succeeded"]), 2_000, "{status:#}");
        assert_eq!(redis.calls("get") + redis.calls("set"), 2 * 2_000);
        let reasons = list(&status["verdict"]["reasons"]);
        let found = reasons.iter().find(|reason| reason["reason"] == "Unreconciled");
        let message = found.and_then(|reason| reason["message"].as_str()).unwrap_or_default();
        assert!(message.contains("counted 4,000 commands") && message.contains(why), "{status:#}");
    }
}

/// Its commands are those that `drivers/build.sh` writes.
#[test]
#[ignore = "needs other languages: make test-drivers"]
fn every_driver_runs_a_benchmark() {
    let commands = std::env::var("DRIVERS").expect("DRIVERS: the directory of drivers/build.sh");
    for (name, library) in [
        ("go-redis", "go-redis "),
        ("rueidis", "rueidis "),
        ("jedis", "jedis "),
        ("lettuce", "lettuce-core "),
        ("redis-py", "redis "),
        ("ioredis", "ioredis "),
        ("node-redis", "redis "),
    ] {
        let redis = RedisServer::start(&[]);
        let target = json!({"name": "redis", "type": "Standalone", "endpoints": [redis.endpoint()]});
        let clients = json!([{"name": "own", "type": "Driver", "driver": name, "pool": {"sharing": "Exclusive"}}]);
        let command = format!("{name}={commands}/{name}");
        let finished = Run::local(&manifest(&target, &clients, &json!({})), &["--driver", &command]).finish();
        finished.succeeded();
        let result = finished.result();
        assert_eq!(number(&result["requests"]["succeeded"]), 2_000, "{name}: {result:#}");
        assert_eq!(redis.calls("get") + redis.calls("set"), 2_000, "{name}");
        let cost = &result["clients"][0];
        assert!(cost["version"].as_str().unwrap().starts_with(library), "{name}: {cost}");
        assert!(number(&cost["cpuPerRequestNanoseconds"]) > 0 && number(&cost["peakBytes"]) > 0, "{name}: {cost}");
    }
}

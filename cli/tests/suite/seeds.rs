//! Runs the manifests of `examples/seeds` with `local`, unchanged except for the addresses.

use std::fs;
use std::path::Path;

use redisbench_testkit::haproxy::HaProxy;
use redisbench_testkit::servers::RedisServer;

use crate::support::{Finished, Run, number, secure};

/// Runs a tool's example, with the target at `address`.
fn run(name: &str, endpoint: &str, address: &str) -> Finished {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/seeds").join(name);
    let manifest = fs::read_to_string(path).unwrap();
    assert_eq!(manifest.matches(endpoint).count(), 1, "{name} names {endpoint} once");
    let finished = Run::local(&manifest.replace(endpoint, address), &[]).finish();
    finished.succeeded();
    finished
}

/// Asserts that a benchmark with one trial made its requests and none failed. On a busy machine some may not have been sent in time.
/// Returns the number of commands that the server must have counted.
fn assert_made(finished: &Finished, requests: u64) -> u64 {
    finished.assert_balanced();
    let result = finished.result();
    let [scheduled, errors] = ["scheduled", "errors"].map(|field| number(&result["requests"][field]));
    assert_eq!((scheduled, errors), (requests, 0), "{:#}", result["errors"]);
    let sent = [&result["requests"]["succeeded"], &result["warmup"]["succeeded"], &result["preload"]["commands"]];
    sent.into_iter().map(number).sum()
}

#[test]
fn redis_client() {
    let redis = RedisServer::start(&[]);
    let finished = run("redis-client.yaml", "redis:6379", &redis.endpoint());
    let sent = assert_made(&finished, 200_000);
    assert_eq!(redis.calls("get") + redis.calls("set"), sent);
    let key: String = redis.ask(&["RANDOMKEY"]);
    let length: usize = redis.ask(&["STRLEN", &key]);
    assert_eq!((key.len(), length), (20, 100), "{key}");
}

#[test]
fn memtier() {
    let directory = tempfile::tempdir().unwrap();
    let user = ["--user", "bench", "on", ">change-me", "~*", "&*", "+@all", "-config"];
    let (redis, port, ..) = secure(directory.path(), &[&["--tls-auth-clients", "no"][..], &user].concat());
    let finished = run("memtier.yaml", "redis:6380", &format!("localhost:{port}"));
    let sent = assert_made(&finished, 100_000);
    assert_eq!(redis.calls("get") + redis.calls("set"), sent);
    let reasons = finished.object["status"]["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["reason"] == "NotVerified"), "{reasons:?}");
}

#[test]
fn redis_benchmark_go() {
    let primary = RedisServer::start(&[]);
    let replica = RedisServer::start(&["--replicaof", &primary.endpoint().replace(':', " ")]);
    while !replica.ask::<String>(&["INFO", "replication"]).contains("link_status:up") {
        std::thread::yield_now();
    }
    let finished = run("redis-benchmark-go.yaml", "redis:6379", &primary.endpoint());
    let sent = assert_made(&finished, 10_000);
    assert_eq!((primary.calls("set"), primary.calls("wait")), (sent, sent));
    assert_eq!(number(&finished.result()["requests"]["underReplicated"]), 0);
}

#[test]
fn fred() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/seeds/fred.yaml");
    let manifest = fs::read_to_string(path).unwrap();
    let finished = Run::local(&manifest, &["--with-redis"]).finish();
    finished.succeeded();
    assert_made(&finished, 1_000_000);
}

#[test]
fn redishappy() {
    let redis = RedisServer::start(&[]);
    let proxy = HaProxy::start(&[&[redis.endpoint()]]);
    let finished = run("redishappy.yaml", "haproxy:6379", &proxy.endpoints()[0]);
    let trials = finished.object["status"]["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 7, "{trials:#?}");
    for command in ["get", "incr", "lpop", "spop"] {
        assert_eq!(redis.calls(command), 20_000, "{command}");
    }
}

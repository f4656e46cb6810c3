//! Runs manifests of `examples/seeds` with `local`, unchanged except for the addresses, and for a timeout that a busy machine keeps.
//! `examples.rs` runs the others.

use redisbench_testkit::documents::read;
use redisbench_testkit::haproxy::HaProxy;
use redisbench_testkit::sentinel::Group;
use redisbench_testkit::servers::{RedisServer, wait_until};
use redisbench_testkit::status::OUTCOMES;

use crate::support::{Finished, Run, list, number, rest, secure};

/// The manifests that run here as a whole.
pub const RUN_HERE: [&str; 10] = [
    "fred.yaml",
    "memtier.yaml",
    "redis-benchmark-go-caching-two.yaml",
    "redis-benchmark-go-caching.yaml",
    "redis-benchmark-go-hset-rate.yaml",
    "redis-benchmark-go-hset.yaml",
    "redis-benchmark-go-loop.yaml",
    "redis-benchmark-go.yaml",
    "redis-client.yaml",
    "redishappy-proxy.yaml",
];

#[test]
fn every_listed_manifest_runs_here() {
    let source = include_str!("seeds.rs");
    for name in RUN_HERE {
        let count = source.matches(&format!("\"{name}\"")).count();
        assert_eq!(count, 2, "{name} must be here twice: in the list, and where it runs");
    }
}

fn unchanged(name: &str) -> String {
    assert!(RUN_HERE.contains(&name), "{name} is not in the list");
    read(&format!("examples/seeds/{name}"))
}

/// A tool's example, with the target at `address`.
fn manifest(name: &str, endpoint: &str, address: &str) -> String {
    let manifest = unchanged(name);
    assert_eq!(manifest.matches(endpoint).count(), 1, "{name} names {endpoint} once");
    let mut manifest = manifest.replace(endpoint, address);
    if !manifest.contains("\n    timeouts:") {
        assert_eq!(manifest.matches("\n  load:\n").count(), 1, "{name} has one load");
        manifest = manifest.replace("\n  load:\n", "\n  load:\n    timeouts: {request: 30s}\n");
    }
    manifest
}

/// Runs a tool's example, with the target at `address`.
fn run(name: &str, endpoint: &str, address: &str) -> Finished {
    let finished = Run::local(&manifest(name, endpoint, address), &[]).finish();
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
    let status = &finished.object["status"];
    let trials = list(&status["trials"]);
    assert_eq!(trials.len(), 10, "{trials:#?}");
    // Every read finds what its connection wrote, as in that tool's output.
    for trial in trials {
        let [succeeded, misses] = [&trial["requests"]["succeeded"], &trial["misses"]].map(number);
        assert_eq!((succeeded, misses), (100_000, 0), "{trial:#}");
    }
    assert_eq!(redis.calls("get") + redis.calls("set"), 1_000_000);
    let [cell] = list(&status["repeats"]) else { panic!("{status:#}") };
    let [best, worst] = ["bestTrial", "worstTrial"].map(|field| cell["throughput"][field].is_number());
    assert!(best && worst && cell["aggregate"].is_object(), "{cell:#}");
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
fn redis_benchmark_go_at_a_rate_and_at_full_speed() {
    for (name, port, requests, open) in [
        ("redis-benchmark-go-hset-rate.yaml", 6379, 100_000, true),
        ("redis-benchmark-go-hset.yaml", 20000, 500_000, false),
    ] {
        let redis = RedisServer::start(&[]);
        let finished = run(name, &format!("redis:{port}"), &redis.endpoint());
        let sent = assert_made(&finished, requests);
        assert_eq!(redis.calls("hset"), sent, "{name}");
        let result = finished.result();
        assert_eq!(result["sendLateness"].is_object(), open, "{name}");
        // Values of 3 bytes in field f1, of no more keys than the tool's.
        let key: String = redis.ask(&["RANDOMKEY"]);
        let length: u64 = redis.ask(&["HSTRLEN", &key, "f1"]);
        let keys: u64 = redis.ask(&["DBSIZE"]);
        assert!(length == 3 && keys <= if open { 1_000 } else { 1_000_000 }, "{name}: {keys}");
    }
}

#[test]
fn redis_benchmark_go_in_a_loop_counts_until_the_interrupt() {
    let redis = RedisServer::start(&[]);
    let manifest = manifest("redis-benchmark-go-loop.yaml", "redis:20000", &redis.endpoint());
    let mut run = Run::local(&manifest, &[]);
    let reader = run.wait_for_line("Running");
    wait_until("it has sent some", || redis.calls("hset") > 2_000);
    run.signal("INT");
    let _ = rest(reader);
    let finished = run.finish();
    assert_eq!(finished.object["status"]["phase"], "Aborted", "{}", finished.stderr);
    finished.assert_balanced();
    assert!(number(&finished.result()["requests"]["succeeded"]) > 1_000);
}

#[test]
fn redis_benchmark_go_with_client_side_caching() {
    let redis = RedisServer::start(&[]);
    let finished = run("redis-benchmark-go-caching.yaml", "redis:6379", &redis.endpoint());
    finished.assert_balanced();
    let result = finished.result();
    let cache = &result["cache"];
    let [hits, misses, invalidations, opted_in] =
        ["hits", "misses", "invalidations", "cachingCalls"].map(|field| number(&cache[field]));
    assert_eq!(hits + number(&result["requests"]["scheduled"]), 400_000, "{cache:#}");
    // As that tool shows: with 50 caches of few reads each, invalidations exceed hits.
    assert!(hits > 0 && invalidations > hits, "{cache:#}");
    assert_eq!((redis.calls("get"), redis.calls("client|caching")), (misses, opted_in));
    assert!(opted_in == misses && cache["invalidationTime"]["p50Nanoseconds"].is_number(), "{cache:#}");
}

#[test]
fn redis_benchmark_go_reads_twice_and_sends_once() {
    let redis = RedisServer::start(&[]);
    let finished = run("redis-benchmark-go-caching-two.yaml", "redis:6379", &redis.endpoint());
    finished.assert_balanced();
    let cache = &finished.result()["cache"];
    let [hits, misses] = ["hits", "misses"].map(|field| number(&cache[field]));
    assert_eq!((hits, misses, redis.calls("get")), (1, 1, 1), "{cache:#}");
}

#[test]
fn fred() {
    let finished = Run::local(&unchanged("fred.yaml"), &["--with-redis"]).finish();
    finished.succeeded();
    assert_made(&finished, 1_000_000);
}

#[test]
fn redishappy() {
    let redis = RedisServer::start(&[]);
    let proxy = HaProxy::start(&[&[redis.endpoint()]]);
    let finished = run("redishappy-proxy.yaml", "haproxy:6379", &proxy.endpoints()[0]);
    let trials = finished.object["status"]["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 7, "{trials:#?}");
    for trial in trials {
        let requests = &trial["requests"];
        assert_eq!([&requests["scheduled"], &requests["succeeded"]].map(number), [20_000; 2], "{trial:#}");
    }
    for command in ["get", "incr", "lpop", "spop"] {
        assert_eq!(redis.calls(command), 20_000, "{command}");
    }
}

/// Its whole setup: sentinels and `HAProxy` in front of the same servers. The primary dies in a trial that finds it by the sentinels.
#[test]
fn redishappy_is_compared_across_a_failover() {
    const REQUESTS: u64 = 100_000;
    /// The trial with the failover, after a pair of trials and one more through the proxy.
    const FAILOVER: usize = 3;
    let Group { mut primary, replica, sentinels } = Group::start();
    let proxy = HaProxy::start(&[&[primary.endpoint(), replica.endpoint()]]);
    let proxied = proxy.endpoints().concat();
    let watching: Vec<_> = sentinels.iter().map(|sentinel| format!("{:?}", sentinel.endpoint())).collect();
    let sentinel =
        format!("type: Sentinel\n    sentinel: {{masterName: mymaster}}\n    endpoints: [{}]", watching.join(", "));
    let mut manifest = read("examples/seeds/redishappy.yaml");
    for (from, to) in [
        ("type: Standalone\n    endpoints: [\"redis:6379\"]", sentinel.as_str()),
        ("haproxy:6379", proxied.as_str()),
        ("preset: [set, get, incr, lpush, lpop, sadd, spop]", "preset: [get]"),
        ("values: [1, 10, 100]", "values: [10]"),
        // For the outage, on a busy machine.
        ("\n  load:\n", "\n  load:\n    timeouts: {request: 60s}\n"),
    ] {
        assert_eq!(manifest.matches(from).count(), 1, "{from}");
        manifest = manifest.replace(from, to);
    }
    let run = Run::local(&manifest, &[]);
    for trial in 1..=FAILOVER as u64 {
        wait_until("a trial has made its requests", || primary.calls("get") >= trial * REQUESTS);
    }
    wait_until("the next trial loads the primary", || primary.calls("get") > FAILOVER as u64 * REQUESTS + 1_000);
    primary.kill();
    let finished = run.finish();

    let status = finished.succeeded();
    let trials = list(&status["trials"]);
    assert_eq!(trials.len(), 10, "{trials:#?}");
    assert_eq!(trials[FAILOVER]["target"], "direct", "{trials:#?}");
    for trial in trials {
        let requests = &trial["requests"];
        let all: u64 = OUTCOMES.iter().map(|outcome| number(&requests[*outcome])).sum();
        assert_eq!((number(&requests["scheduled"]), all), (REQUESTS, REQUESTS), "{trial:#}");
        assert!(number(&requests["errors"]) < REQUESTS / 10, "{trial:#}");
    }
    // The other server took over from then on, for both.
    assert!(replica.ask::<String>(&["INFO", "replication"]).contains("role:master"));
    let [direct, through] = ["direct", "redishappy"].map(|target| {
        let later = trials[FAILOVER + 1..].iter().filter(|trial| trial["target"] == target);
        later.map(|trial| number(&trial["requests"]["succeeded"])).sum::<u64>()
    });
    assert!(direct > 2 * REQUESTS && through > 2 * REQUESTS, "{direct} and {through}: {trials:#?}");
    assert!(replica.calls("get") >= direct + through, "{direct} and {through}");
    // A trial that the failover made Invalid does not count.
    let [found] = list(&status["comparison"]) else { panic!("{status:#}") };
    assert_eq!((found["target"].as_str(), found["baseline"].as_str()), (Some("redishappy"), Some("direct")));
    let counted = ["trials", "baselineTrials", "leftOut"].map(|field| number(&found[field])).iter().sum::<u64>();
    assert_eq!((counted, found["parameters"]["load.pipeline"].as_str()), (10, Some("10")), "{found:#}");
}

//! Warm-ups that end once the throughput has settled, with a real Redis.

use redisbench_testkit::servers::RedisServer;

use crate::support::{GETS, Run, benchmark, list, number, standalone};

fn manifest(redis: &RedisServer, load: &str) -> String {
    let spec = format!("{GETS}  load: {{{load}}}\n  shards: {{count: 2}}\n");
    benchmark(&standalone(redis.endpoint()), &spec)
}

#[test]
fn a_warm_up_ends_as_soon_as_the_throughput_has_settled() {
    let redis = RedisServer::start(&[]);
    let load =
        "type: OpenLoop, openLoop: {rate: 300}, connections: 4, warmup: 90s, warmupEnds: WhenSettled, duration: 2s";
    let finished = Run::local(&manifest(&redis, load), &[]).finish();
    let status = finished.succeeded();
    let warmup = number(&status["synchronization"]["warmupMilliseconds"]);
    assert!((10_000..90_000).contains(&warmup), "{status:#}");
    assert_eq!(number(&status["synchronization"]["commonWindowMilliseconds"]), 2_000);
    let result = &status["result"];
    assert_eq!(number(&result["requests"]["scheduled"]), 600);
    // Requests due before the instant that both shards got belong to the warm-up, and the servers counted no others.
    let warm = number(&result["warmup"]["scheduled"]);
    assert!(warm.abs_diff(warmup * 300 / 1_000) <= 2, "{warm} in {warmup} ms");
    assert_eq!(redis.calls("get"), warm + 600);
    assert!(finished.stderr.contains("warming up"), "{}", finished.stderr);
    let reasons = list(&status["verdict"]["reasons"]);
    assert!(reasons.iter().all(|reason| reason["reason"] != "Unreconciled"), "{reasons:#?}");
}

#[test]
fn one_that_may_end_sooner_takes_a_duration_and_time_to_see() {
    let redis = RedisServer::start(&[]);
    for (load, field, why) in [
        ("warmup: 60s, requests: 100", "spec.load.warmupEnds", "requires load.duration"),
        ("warmup: 10s, duration: 5s", "spec.load.warmup", "must be at least 16s"),
    ] {
        let load = format!("type: ClosedLoop, warmupEnds: WhenSettled, {load}");
        let refused = Run::local(&manifest(&redis, &load), &[]).finish();
        refused.assert_refused(field);
        refused.assert_refused(why);
    }
}

#[test]
fn a_baseline_has_no_warm_up_to_wait_for() {
    let redis = RedisServer::start(&[]);
    let load = "type: ClosedLoop, connections: 4, warmup: 90s, warmupEnds: WhenSettled, duration: 1s";
    let finished = Run::local(&manifest(&redis, load), &["--baseline", "--shards", "1"]).finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(redis.calls("get"), 0);
}

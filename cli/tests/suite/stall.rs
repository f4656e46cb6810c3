//! A target that stops for longer than the request timeout, from the manifest to the result.

use std::time::{Duration, Instant};

use redisbench_testkit::servers::RedisServer;

use crate::support::{Run, benchmark, list, number, standalone};

/// 5,000 requests per second for 10 s. The windows have room for 800 requests, which are lost when the server stops: 1.6 %.
const SPEC: &str = "
  workload:
    operations: [{name: get, weight: 1, command: GET __key__}]
    keys: {count: 1000}
    values: {size: {type: Fixed, fixed: {bytes: 32}}}
  load:
    type: OpenLoop
    openLoop: {rate: 5000}
    connections: 50
    pipeline: 16
    warmup: 0s
    duration: 10s
    timeouts: {connect: 5s, request: 1s}
  shards: {count: 1}
";

const STOP: Duration = Duration::from_secs(2);

#[test]
fn a_stop_beyond_the_request_timeout_is_beyond_what_is_known() {
    let redis = RedisServer::start(&[]);
    let run = Run::local(&benchmark(&standalone(redis.endpoint()), SPEC), &[]);
    while redis.calls("get") < 15_000 {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let stopped = Instant::now();
    redis.pause();
    while stopped.elapsed() < STOP {
        std::thread::park_timeout(STOP.saturating_sub(stopped.elapsed()));
    }
    redis.resume();
    let finished = run.finish();
    finished.assert_balanced();
    let (status, result) = (&finished.object["status"], finished.result());
    let lost = number(&result["requests"]["unanswered"]);
    assert!(lost >= number(&result["requests"]["scheduled"]) / 100, "{:#}", result["requests"]);
    // The first request of a connection times out, and all later ones on it fail too.
    let timeout = list(&result["errors"]).iter().find(|error| error["kind"] == "Timeout").unwrap();
    assert_eq!(timeout["firstMessage"].as_str().unwrap().split(" (").next(), Some("no reply within 1000 ms"));
    // The quantile over all requests is unknown, so there must be no number.
    let response = &result["responseTime"];
    assert!(response["p99Nanoseconds"].is_null() && response["p50Nanoseconds"].is_u64(), "{response:#}");
    let p99 = list(&response["percentiles"]).iter().find(|one| one["percentile"] == "99").unwrap();
    assert!(number(&p99["moreThanNanoseconds"]) >= 1_000_000_000, "{p99}");
    assert!(status["summary"]["p99"].as_str().unwrap().starts_with("> "), "{:#}", status["summary"]);
    // The quantile over successful requests is known, in a separate field.
    let succeeded = number(&result["responseTimeOfSucceeded"]["p99Nanoseconds"]);
    assert!(succeeded >= 1_000_000_000, "{:#}", result["responseTimeOfSucceeded"]);
    assert_eq!(status["verdict"]["value"], "Invalid", "{:#}", status["verdict"]);
}

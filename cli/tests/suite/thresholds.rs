//! `spec.thresholds` with a real Redis.

use redisbench_testkit::servers::RedisServer;

use crate::support::{Run, benchmark, number, standalone};

/// A closed loop, because an open one counts what a busy machine did not send in time as errors.
fn manifest(redis: &RedisServer, thresholds: &str, duration: &str) -> String {
    benchmark(
        &standalone(redis.endpoint()),
        &format!(
            "
  workload:
    operations:
    - {{name: right, weight: 9, command: GET __key__}}
    - {{name: wrong, weight: 1, command: LPUSH string x}}
    keys: {{count: 100}}
  load: {{type: ClosedLoop, connections: 4, duration: {duration}, warmup: 0s}}
  shards: {{count: 2}}
  thresholds: [{thresholds}]
"
        ),
    )
}

#[test]
fn thresholds_are_judged_by_operation_and_by_window() {
    let redis = RedisServer::start(&[]);
    redis.ask::<String>(&["SET", "string", "x"]);
    let thresholds = "
    {name: slow, metric: ResponseTime, quantile: '0.5', max: 5s},
    {name: right, metric: ErrorRate, maxBasisPoints: 0, operation: right, window: 2s},
    {name: wrong, metric: ErrorRate, maxBasisPoints: 9999, operation: wrong},
    {name: node, metric: ServiceTime, quantile: '0.5', max: 1us, eachNode: true}";
    let finished = Run::local(&manifest(&redis, thresholds, "4s"), &[]).finish();
    let status = &finished.object["status"];
    let outcomes: Vec<_> = status["thresholds"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["Passed", "Passed", "Failed", "Failed"], "{}\n{:#}", finished.stderr, status["thresholds"]);
    let of = |index: usize| &status["thresholds"][index];
    assert!(number(&of(1)["windows"]) >= 1, "{:#}", of(1));
    let wrong = &status["result"]["operations"][1]["requests"];
    assert_eq!((&of(2)["failedRequests"], &of(2)["ofRequests"]), (&wrong["errors"], &wrong["scheduled"]));
    assert_eq!(of(3)["node"], redis.endpoint());
    let met = finished.condition("ThresholdsMet");
    assert_eq!((met["status"].as_str(), met["reason"].as_str()), (Some("False"), Some("ThresholdFailed")));
    // A tenth of all requests fail, so the result is Invalid.
    assert_eq!((status["verdict"]["value"].as_str(), finished.code), (Some("Invalid"), Some(1)));
}

#[test]
fn a_threshold_that_does_not_hold_stops_the_load() {
    let redis = RedisServer::start(&[]);
    redis.ask::<String>(&["SET", "string", "x"]);
    let thresholds = "{name: errors, metric: ErrorRate, maxBasisPoints: 100, abortOnFail: true}";
    let finished = Run::local(&manifest(&redis, thresholds, "10m"), &[]).finish();
    let status = &finished.object["status"];
    assert_eq!((status["phase"].as_str(), finished.code), (Some("Failed"), Some(4)), "{}", finished.stderr);
    let failed = finished.condition("Failed");
    assert_eq!(failed["reason"], "ThresholdFailed");
    assert!(failed["message"].as_str().unwrap().contains("must be at most 1.00 %"), "{failed}");
    let requests = &status["result"]["requests"];
    let sum = ["succeeded", "errors", "unsent", "inFlight"].iter().map(|part| number(&requests[*part])).sum::<u64>();
    assert_eq!(sum, number(&requests["scheduled"]));
    // The server's count is the requests that were answered, plus those in flight when the load stopped: nothing was sent later.
    let get = &status["result"]["operations"][0]["requests"];
    let (answered, in_flight) = (number(&get["succeeded"]), get["inFlight"].as_u64().unwrap_or_default());
    let calls = redis.calls("get");
    assert!((answered..=answered + in_flight).contains(&calls), "{calls} calls, {get:#}");
}

use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::{LimitedBy, SearchEnding, StageResult, TrialResult};
use serde_json::json;

use super::*;

fn latencies(scale: u64) -> serde_json::Value {
    let known = |percentile: &str, low: u64, value: u64, high: u64| {
        json!({"percentile": percentile, "nanoseconds": value * scale, "lowNanoseconds": low * scale,
            "highNanoseconds": high * scale})
    };
    json!({
        "meanNanoseconds": 120_000 * scale, "p50Nanoseconds": 110_000 * scale, "p90Nanoseconds": 180_000 * scale,
        "p95Nanoseconds": 220_000 * scale, "p99Nanoseconds": 310_000 * scale, "p999Nanoseconds": 900_000 * scale,
        "maxNanoseconds": 4_400_000 * scale,
        "percentiles": [
            known("50", 109_980, 110_000, 110_050),
            known("90", 179_100, 180_000, 181_600),
            known("95", 217_000, 220_000, 222_000),
            known("99", 301_000, 310_000, 319_000),
            known("99.9", 780_000, 900_000, 1_010_000),
            {"percentile": "99.99", "neededRequests": 100_000},
        ],
    })
}

fn share(percentile: &str, basis_points: u32) -> serde_json::Value {
    json!({"percentile": percentile, "ofNanoseconds": 1_000_000, "sendingNanoseconds": 100 * basis_points,
        "readingNanoseconds": 0, "basisPoints": basis_points})
}

fn requests(scheduled: u64, errors: u64) -> serde_json::Value {
    json!({"scheduled": scheduled, "succeeded": scheduled - errors, "errors": errors, "unsent": 0, "late": 3,
        "redirected": 0})
}

fn benchmark() -> RedisBenchmark {
    let operation = |name: &str, scheduled: u64, errors: u64, misses: u64| {
        json!({"name": name, "requests": requests(scheduled, errors), "hits": scheduled - errors - misses,
            "misses": misses, "responseTime": latencies(1), "serviceTime": latencies(1),
            "bandwidth": {"sentBytesPerSecond": 6 * scheduled, "receivedBytesPerSecond": 9 * scheduled}})
    };
    let shard = |index: u32| {
        json!({"index": index, "node": "host", "state": "Finished", "requests": requests(25_000, index.into()),
            "p99Nanoseconds": 310_000, "busiestWorkerPercent": 12 + 80 * index, "throttledMilliseconds": 0,
            "reconnects": 0, "startSkewMicroseconds": 12 * index})
    };
    serde_json::from_value(json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "quickstart"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [
                {"name": "get", "weight": 80, "command": "GET __key__"},
                {"name": "set", "weight": 20, "command": "SET __key__ __data__"},
            ]},
            "load": {"type": "OpenLoop", "openLoop": {"rate": 5000}, "connections": 8, "pipeline": 4, "warmup": "2s",
                "duration": "10s"},
            "shards": {"count": 2},
        },
        "status": {
            "phase": "Succeeded",
            "summary": {"rate": "5.00k/s", "p99": "310 µs", "errors": "1 (0.002 %)", "shards": "2/2",
                "verdict": "Degraded"},
            "shards": {"desired": 2, "armed": 0, "running": 0, "finished": 2, "lost": 0, "unreachable": 0},
            "synchronization": {"startSkewMicroseconds": 12, "clockUncertaintyMicroseconds": 40,
                "commonWindowMilliseconds": 9_990},
            "result": {
                "requests": requests(50_000, 1),
                "throughput": {"targetPerSecond": 5000, "achievedPerSecond": 5000, "minPerSecond": 4987,
                    "maxPerSecond": 5012},
                "bandwidth": {"sentBytesPerSecond": 310_000, "receivedBytesPerSecond": 480_000},
                "responseTime": latencies(1),
                "serviceTime": latencies(1),
                "generatorShare": [share("50", 1_050), share("99", 2_490), share("99.9", 300)],
                "operations": [operation("get", 40_012, 0, 2), operation("set", 9_988, 1, 0)],
                "nodes": [],
                "errors": [{"kind": "OOM", "count": 1, "firstMessage": "OOM command not allowed"}],
                "shards": [shard(0), shard(1)],
                "warmup": requests(10_000, 0),
                "preload": {"keys": 10_000, "commands": 10_000},
            },
            "verdict": {"value": "Degraded", "limitedBy": "Rate", "reasons": [
                {"reason": "Errors", "severity": "Degraded", "message": "1 of 50,000 requests failed"},
            ]},
        },
    }))
    .unwrap()
}

/// The table of the benchmark with this change of its result.
fn shown(change: impl FnOnce(&mut TrialResult)) -> String {
    let mut benchmark = benchmark();
    change(benchmark.status.as_mut().unwrap().result.as_mut().unwrap());
    table(&benchmark, Paint::none())
}

#[test]
fn a_load_is_said_in_a_line() {
    let line = |load: &serde_json::Value| {
        let mut benchmark = benchmark();
        let mut whole = json!({"connections": 8, "pipeline": 4, "warmup": "2s"});
        whole.as_object_mut().unwrap().extend(load.as_object().cloned().unwrap());
        benchmark.spec.load = serde_json::from_value(whole).unwrap();
        let text = setup::setup(&benchmark, Paint::none());
        text.lines().find_map(|line| line.strip_prefix("load    ")).unwrap().to_owned()
    };
    let ends = " after 2s of warm-up, 8 connections x 4 in flight";
    assert_eq!(
        line(&json!({"type": "OpenLoop", "openLoop": {"rate": 5000, "arrival": "Poisson"}, "duration": "10s"})),
        format!("open loop at 5.00k/s, Poisson arrivals for 10s{ends}")
    );
    let stage = |from, to| json!({"duration": "30s", "rate": {"from": from, "to": to}});
    assert_eq!(
        line(
            &json!({"type": "OpenLoop", "openLoop": {"pacingGrid": "1ms"}, "stages": [stage(100, 2000), stage(200, 200)]})
        ),
        format!("open loop, on a grid of 1ms, 100/s to 2.00k/s in 30s, 200/s for 30s{ends}")
    );
    assert!(line(&json!({"type": "OpenLoop", "stages": vec![stage(1, 1); 9]})).contains(", and 5 more stages after"));
    assert_eq!(
        line(&json!({"type": "ClosedLoop", "pipelineMode": "Batch", "requests": 5000})),
        format!("closed loop of 5,000 requests{ends}, in batches")
    );
    assert_eq!(
        line(&json!({"type": "ClosedLoop", "closedLoop": {"concurrency": 9}, "duration": "10s"})),
        format!("closed loop for 10s{ends}, shared by 9 callers")
    );
    let mut replayed = benchmark();
    let trace = json!({"configMapRef": {"name": "monday", "key": "monitor.txt"}, "pace": "2.5"});
    replayed.spec.workload.trace = serde_json::from_value(trace).unwrap();
    replayed.spec.load = serde_json::from_value(json!({"type": "OpenLoop"})).unwrap();
    let text = setup::setup(&replayed, Paint::none());
    assert!(text.contains("open loop of a trace, at 2.5 times its pace, once after 5s"), "{text}");
}

#[test]
fn table_of_a_whole_result() {
    let expected = include_str!("table.golden.txt");
    let shown = table(&benchmark(), Paint::none());
    assert_eq!(shown, expected, "\n{shown}");
}

#[test]
fn censored_quantile_shows_its_bound() {
    let shown = shown(|result| {
        let beyond = json!({"percentile": "99.9", "moreThanNanoseconds": 1_000_000_000});
        result.response_time.percentiles[4] = serde_json::from_value(beyond).unwrap();
        // The upper end of p99's interval is unknown.
        result.response_time.percentiles[3].high_nanoseconds = None;
    });
    let line = |begin: &str| shown.lines().find(|line| line.starts_with(begin)).unwrap();
    assert!(line("response time").contains("310 µs   > 1.00 s        -   4.40 ms"), "{shown}");
    assert!(line("  precision").ends_with("1.4 %   one-sided"), "{shown}");
}

#[test]
fn many_operations_have_no_precision() {
    let rows = |operations: usize| {
        let shown = shown(|result| result.operations = vec![result.operations[0].clone(); operations]);
        // Two more are of all operations together.
        shown.lines().filter(|line| line.trim_start().starts_with("precision")).count()
    };
    assert_eq!((rows(16), rows(17)), (2 * 16 + 2, 2));
}

#[test]
fn an_unknown_share_of_the_load_generator_is_not_zero() {
    let shown = shown(|result| {
        let [p50, p99, _] = &mut result.generator_share[..] else { panic!() };
        (p50.sending_nanoseconds, p50.reading_nanoseconds, p50.basis_points) = (0, None, 0);
        p99.reading_nanoseconds = None;
    });
    let row = shown.lines().find(|line| line.starts_with("  generator share")).unwrap();
    let cells: Vec<_> = row.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["generator share", "-", "at least 24 %", "3 %"], "{shown}");
}

#[test]
fn percentiles_are_those_that_were_asked_for() {
    let shown = shown(|result| {
        let operations = result.operations.iter_mut();
        let parts = operations.flat_map(|part| std::iter::once(&mut part.response_time).chain(&mut part.service_time));
        for latencies in parts.chain([&mut result.response_time]).chain(&mut result.service_time) {
            latencies.percentiles.truncate(1);
            latencies.percentiles[0].percentile = "12.5".to_owned();
        }
    });
    assert!(
        shown.contains("\nLatency          p12.5       max     mean\nresponse time   110 µs   4.40 ms   120 µs\n"),
        "{shown}"
    );
    assert!(!shown.contains("too few requests"), "{shown}");
}

fn stage(name: Option<&str>, index: u32, errors: u64) -> StageResult {
    let mut response_time = latencies(1);
    response_time["percentiles"][4] = json!({"percentile": "99.9", "moreThanNanoseconds": 1_000_000_000});
    serde_json::from_value(json!({
        "index": index, "name": name, "fromMilliseconds": 2_000, "toMilliseconds": 32_000, "seconds": 30,
        "rate": {"from": 4_000, "to": 4_000 + 1_500 * index}, "targetPerSecond": 4_750, "achievedPerSecond": 4_600,
        "requests": requests(138_000, errors), "responseTime": response_time,
    }))
    .unwrap()
}

#[test]
fn each_stage_has_its_numbers_and_the_percentiles_that_were_asked_for() {
    let shown = shown(|result| result.stages = vec![stage(Some("warm"), 0, 0), stage(None, 1, 12)]);
    let expected = "
By stage      time               target   achieved   requests   errors   unsent
warm        30.0 s              4.00k/s    4.60k/s    138,000        0        0
stages[1]   30.0 s   4.00k/s to 5.50k/s    4.60k/s    138,000       12        0

Response time by stage      p50      p90      p95      p99      p99.9   p99.99       max     mean
warm                     110 µs   180 µs   220 µs   310 µs   > 1.00 s        -   4.40 ms   120 µs
  precision               0.1 %    0.9 %    1.4 %    2.9 %
stages[1]                110 µs   180 µs   220 µs   310 µs   > 1.00 s        -   4.40 ms   120 µs
  precision               0.1 %    0.9 %    1.4 %    2.9 %
";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn a_table_is_no_wider_than_a_terminal() {
    let shown = shown(|result| {
        result.stages = vec![stage(None, 1, 12)];
        result.response_time_of_succeeded = Some(result.response_time.clone());
    });
    let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= 120, "{longest}: {shown}");
}

#[test]
fn single_operation_does_not_repeat_the_total() {
    let shown = shown(|result| result.operations.truncate(1));
    assert!(!shown.contains("\n  get"), "{shown}");
    assert!(shown.contains("          3   40,010        2\n"), "hits and misses are in the total's row:\n{shown}");
}

#[test]
fn failure_comes_first_and_has_no_numbers() {
    let mut benchmark = benchmark();
    let status = benchmark.status.as_mut().unwrap();
    status.phase = redisbench_benchmark::api::status::Phase::Failed;
    status.result = None;
    status.verdict = None;
    status.conditions = vec![
        serde_json::from_value(json!({
            "type": "Failed", "status": "True", "reason": "AuthenticationFailed",
            "message": "shard 0: WRONGPASS; check the Secret redis-auth", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }))
        .unwrap(),
    ];
    let shown = table(&benchmark, Paint::none());
    let mut lines = shown.lines();
    assert_eq!(lines.next(), Some("quickstart   Failed"));
    assert_eq!(lines.next(), Some("  AuthenticationFailed: shard 0: WRONGPASS; check the Secret redis-auth"));
    assert!(!shown.contains("Latency"));
}

#[test]
fn what_an_aborted_run_lacks_is_in_the_sum() {
    let shown = shown(|result| {
        result.requests.in_flight = 7;
        result.requests.succeeded -= 7;
    });
    assert!(shown.contains("= succeeded   + errors   + unsent   + in flight   sent late"), "{shown}");
    assert!(
        shown.contains("total         50,000        49,992          1          0             7           3"),
        "{shown}"
    );
}

#[test]
fn nodes_are_for_clusters() {
    let mut benchmark = benchmark();
    let node = json!({"id": "3c5f", "address": "10.0.0.1:6379", "slots": 5461, "requests": 16_667, "errors": 0,
        "redirects": 2, "serviceTime": latencies(1), "imbalancePercent": 101});
    let result = benchmark.status.as_mut().unwrap().result.as_mut().unwrap();
    result.nodes = vec![serde_json::from_value(node).unwrap()];
    assert!(!table(&benchmark, Paint::none()).contains("10.0.0.1"));
    benchmark.spec.targets[0].kind = redisbench_wire::plan::Topology::Cluster;
    let shown = table(&benchmark, Paint::none());
    let expected = "
Nodes           slots   requests   of mean   errors   redirects
10.0.0.1:6379   5,461     16,667     101 %        0           2

Service time by node      p50      p90      p95      p99    p99.9   p99.99       max     mean
10.0.0.1:6379          110 µs   180 µs   220 µs   310 µs   900 µs        -   4.40 ms   120 µs
";
    assert!(shown.contains(expected), "{shown}");
}

fn search() -> RedisBenchmark {
    let mut benchmark = benchmark();
    let step = |index: u32, rate: u64, p99: u64, search: serde_json::Value| {
        let mut step = json!({"ratePerSecond": rate});
        step.as_object_mut().unwrap().extend(search.as_object().cloned().unwrap());
        json!({"index": index, "cell": 0, "state": "Completed", "attempt": 1, "verdict": "Valid", "search": step,
            "requests": requests(rate * 10, 0), "achievedPerSecond": rate, "p50Nanoseconds": 110_000,
            "p99Nanoseconds": p99})
    };
    let passed = |nth: Option<u32>| json!({"outcome": "Passed", "confirmation": nth});
    let failed = json!({"outcome": "Failed", "why": "p99 was 9.60 ms, the maximum is 2.00 ms", "limitedBy": "Target"});
    benchmark.spec.search = Some(
        serde_json::from_value(json!({
            "objective": {"quantile": "0.99", "max": "2ms"},
            "rate": {"min": 4000, "max": 64000, "toleranceBasisPoints": 1000},
        }))
        .unwrap(),
    );
    benchmark.spec.load =
        serde_json::from_value(json!({"type": "OpenLoop", "connections": 8, "pipeline": 4, "warmup": "2s"})).unwrap();
    let status = benchmark.status.as_mut().unwrap();
    (status.result, status.synchronization) = (None, None);
    status.verdict =
        Some(serde_json::from_value(json!({"value": "Valid", "limitedBy": "Unknown", "reasons": []})).unwrap());
    status.trials = serde_json::from_value(json!([
        step(0, 4_000, 310_000, passed(None)),
        step(1, 8_000, 350_000, passed(None)),
        step(2, 16_000, 9_600_000, failed.clone()),
        step(3, 11_314, 1_900_000, passed(None)),
        step(4, 11_314, 1_900_000, passed(Some(1))),
    ]))
    .unwrap();
    status.search = Some(
        serde_json::from_value(json!({
            "ending": "Found", "message": "", "lastGoodPerSecond": 11_314, "firstBadPerSecond": 11_880,
            "why": "p99 was 9.60 ms, the maximum is 2.00 ms", "limitedBy": "Target", "component": "abc/MainThread",
        }))
        .unwrap(),
    );
    benchmark
}

#[test]
fn table_of_a_search() {
    let expected = include_str!("search.golden.txt");
    let shown = table(&search(), Paint::none());
    assert_eq!(shown, expected, "\n{shown}");
}

#[test]
fn a_step_shows_the_share_of_the_load_generator() {
    let mut benchmark = search();
    benchmark.status.as_mut().unwrap().trials[2].generator_share_basis_points = Some(3_100);
    let shown = table(&benchmark, Paint::none());
    assert!(shown.contains("errors   unsent   generator   limited by   objective\n"), "{shown}");
    assert!(shown.contains("0        0        31 %   Target       failed: p99 was"), "{shown}");
}

#[test]
fn a_search_that_ended_at_the_load_generator_says_so_first() {
    let mut benchmark = search();
    let found = benchmark.status.as_mut().unwrap().search.as_mut().unwrap();
    found.ending = Some(SearchEnding::GeneratorLimited);
    found.limited_by = Some(LimitedBy::GeneratorCPU);
    found.message = "p99 of at most 2.00 ms holds at 11,314/s, and the target may hold more".to_owned();
    let shown = table(&benchmark, Paint::none());
    let first = "quickstart   Valid   11,314/s or more: limited by the load generator, not the target\n";
    assert!(shown.starts_with(first), "{shown}");
    assert!(shown.contains("confirmed by three fresh trials"), "{shown}");
    assert!(shown.contains("limited by the load generator's CPU, not by the target"), "{shown}");
    assert!(shown.contains("\np99 of at most 2.00 ms holds at 11,314/s, and the target may hold more\n"), "{shown}");
}

#[test]
fn a_search_without_an_answer_says_why() {
    let mut benchmark = search();
    let found = benchmark.status.as_mut().unwrap().search.as_mut().unwrap();
    (found.ending, found.last_good_per_second) = (Some(SearchEnding::MinFailed), None);
    found.message = "p99 of at most 2.00 ms does not hold at the lowest rate of the search".to_owned();
    let shown = table(&benchmark, Paint::none());
    assert!(shown.starts_with("quickstart   Valid   below 11,880/s\n"), "{shown}");
    assert!(shown.contains("\np99 of at most 2.00 ms does not hold at the lowest rate of the search\n"), "{shown}");
}

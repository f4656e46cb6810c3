use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::export::sample;
use crate::render::Paint;

fn object(name: &str, status: &Value) -> Value {
    let mut object = sample::object(status);
    object["metadata"] = json!({"name": name, "namespace": "perf", "creationTimestamp": "1970-01-01T00:00:00Z"});
    object
}

#[test]
fn a_list_has_a_row_per_benchmark() {
    let status = json!({
        "phase": "Succeeded",
        "summary": {"rate": "2.00M/s", "p99": "1.45 ms", "errors": "0 (0 %)", "verdict": "Valid", "shards": "8/8"},
    });
    let benchmarks: Vec<RedisBenchmark> =
        [object("cart", &status), object("new", &json!({}))].map(|one| serde_json::from_value(one).unwrap()).into();
    let text = list::table(&benchmarks, true, Timestamp::from_second(65).unwrap(), Paint::none());
    let rows: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        rows,
        [
            "Benchmark namespace phase rate p99 errors verdict age",
            "cart perf Succeeded 2.00M/s 1.45 ms 0 (0 %) Valid 1m05s",
            "new perf Pending - - - - 1m05s",
        ]
    );
}

#[test]
fn a_status_has_progress_reasons_shards_nodes_and_conditions() {
    let benchmark = object(
        "cart",
        &json!({
            "phase": "Running",
            "progress": {"percent": 30, "achievedPerSecond": 5_000, "reasons": [
                {"reason": "ShardLost", "severity": "Invalid", "message": "1 of 2 shards are lost"},
            ], "shards": [{"index": 1, "lost": true, "achievedPerSecond": 2_500, "failedRequests": 7, "busiestWorkerPercent": 41,
                "runQueuePercent": 3}], "nodes": [{"address": "10.0.0.1:6379", "requestsPerSecond": 1_700, "errors": 0}], "nodesLeftOut": 4},
            "conditions": [{
                "type": "Reconciling", "status": "True", "reason": "InProgress", "message": "1 of 2 shards are running",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        }),
    );
    let text = status::text(&serde_json::from_value(benchmark).unwrap(), Timestamp::UNIX_EPOCH, Paint::none());
    let words: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "cart Running",
        "Running 30 % 5.00k/s",
        "Invalid ShardLost: 1 of 2 shards are lost",
        "shard rate failed busy queued",
        "1 lost 2.50k/s 7 41 % 3 %",
        "node, and 4 more rate errors p99",
        "10.0.0.1:6379 1.70k/s 0 -",
        "Reconciling True InProgress 1 of 2 shards are running",
    ] {
        assert!(words.iter().any(|words| words == line), "{line} in\n{text}");
    }
}

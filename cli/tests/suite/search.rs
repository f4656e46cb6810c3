//! `spec.search` against a real Redis. Each step takes 12 s, so these searches are short.

use crate::support::{Redis, Run, number};

fn manifest(redis: &Redis, max: &str) -> String {
    format!(
        "
apiVersion: redisbench.dev/v1alpha1
kind: RedisBenchmark
metadata: {{name: tiny}}
spec:
  targets: [{{name: redis, type: Standalone, endpoints: ['{}']}}]
  workload:
    operations: [{{name: get, command: GET __key__}}]
    keys: {{count: 100}}
  search:
    objective: {{quantile: '0.9', max: {max}}}
    rate: {{min: 200, max: 200}}
  load: {{type: OpenLoop, connections: 4, warmup: 2s}}
  shards: {{count: 2}}
",
        redis.address()
    )
}

/// No Redis answers in a microsecond: the lowest rate fails twice.
#[test]
fn a_rate_that_is_out_of_reach_is_said_to_be() {
    let redis = Redis::start(None);
    let finished = Run::local(&manifest(&redis, "1us"), &[]).finish();
    let status = &finished.object["status"];
    assert_eq!(status["phase"], "Succeeded", "{}\n{status:#}", finished.stderr);
    assert_eq!(status["search"]["ending"], "MinFailed", "{status:#}");
    assert_eq!(number(&status["search"]["firstBadPerSecond"]), 200, "{status:#}");
    let steps = status["trials"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{status:#}");
    for step in steps {
        assert_eq!(
            (step["search"]["outcome"].as_str(), number(&step["requests"]["scheduled"])),
            (Some("Failed"), 2_000)
        );
        assert!(step["search"]["why"].as_str().unwrap().contains("1.00 µs is the most"), "{step}");
    }
}

/// The only rate passes, and then three times more.
#[test]
fn the_answer_is_confirmed_by_three_fresh_trials() {
    let redis = Redis::start(None);
    let finished = Run::local(&manifest(&redis, "10m"), &[]).finish();
    let status = &finished.object["status"];
    assert_eq!(status["phase"], "Succeeded", "{}\n{status:#}", finished.stderr);
    assert_eq!(status["search"]["ending"], "MaxPassed", "{status:#}");
    assert_eq!(number(&status["search"]["lastGoodPerSecond"]), 200, "{status:#}");
    let confirmations: Vec<_> =
        status["trials"].as_array().unwrap().iter().map(|step| step["search"]["confirmation"].as_u64()).collect();
    assert_eq!(confirmations, [None, Some(1), Some(2), Some(3)], "{status:#}");
}

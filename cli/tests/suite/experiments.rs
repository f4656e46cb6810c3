//! Several trials of one spec, with a real Redis whose own counts are compared.

use redisbench_testkit::log::is_timed;
use redisbench_testkit::servers::RedisServer;
use serde_json::Value;

use crate::support::{GETS, Run, benchmark, list, number, standalone};

fn manifest(redis: &RedisServer, load: &str, more: &str) -> String {
    let spec = format!("{GETS}  preload: {{mode: FillMissing}}\n  load: {{warmup: 0s, {load}}}\n{more}\n");
    benchmark(&standalone(redis.endpoint()), &spec)
}

fn succeeded(manifest: &str) -> (Value, String) {
    let finished = Run::local(manifest, &[]).finish();
    let status = finished.succeeded().clone();
    assert!(status["result"].is_null(), "a line each");
    (status, finished.stderr)
}

fn started(line: &Value) -> jiff::Timestamp {
    line["startAt"].as_str().unwrap().parse().unwrap()
}

#[test]
fn repeats_say_how_far_runs_are_apart_and_what_they_come_to_together() {
    let redis = RedisServer::start(&[]);
    let load = "type: ClosedLoop, connections: 4, requests: 1000";
    let (status, stderr) = succeeded(&manifest(&redis, load, "  repeats: {count: 3, interval: 300ms}"));
    let lines = list(&status["trials"]);
    assert_eq!(lines.iter().map(|line| number(&line["repeat"])).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(redis.calls("get"), 3_000, "{stderr}");
    for pair in lines.windows(2) {
        let apart = started(&pair[1]).duration_since(started(&pair[0]));
        assert!(apart.as_millis() >= 300, "{apart}");
    }
    let [cell] = list(&status["repeats"]) else { panic!("{status:#}") };
    assert_eq!(cell["trials"], serde_json::json!([0, 1, 2]));
    let of = |field: &str| lines.iter().map(|line| number(&line[field])).collect::<Vec<_>>();
    let rates = of("achievedPerSecond");
    let throughput = &cell["throughput"];
    let best = usize::try_from(number(&throughput["bestTrial"])).unwrap();
    let worst = usize::try_from(number(&throughput["worstTrial"])).unwrap();
    assert_eq!(rates.iter().max(), Some(&rates[best]));
    assert_eq!(rates.iter().min(), Some(&rates[worst]));
    let mean = rates.iter().sum::<u64>() as f64 / 3.0;
    assert!((number(&throughput["meanPerSecond"]) as f64 - mean).abs() <= 1.0, "{throughput} {rates:?}");
    assert!(number(&throughput["lowPerSecond"]) <= number(&throughput["meanPerSecond"]));
    assert!(number(&throughput["highPerSecond"]) >= number(&throughput["meanPerSecond"]));
    assert_eq!(number(&cell["errorRate"]["meanMillionths"]), 0);
    // Over all requests: the maximum is that of any trial, and the median lies between the trials' medians.
    let together = &cell["aggregate"];
    let medians = of("p50Nanoseconds");
    let median = number(&together["p50Nanoseconds"]);
    assert!(medians.iter().min() <= Some(&median) && Some(&median) <= medians.iter().max(), "{together} {medians:?}");
    assert!(number(&together["maxNanoseconds"]) >= *of("p99Nanoseconds").iter().max().unwrap());
}

#[test]
fn a_sweep_runs_every_combination_on_the_same_shards() {
    let redis = RedisServer::start(&[]);
    let load = "type: ClosedLoop, connections: 4, requests: 400";
    let sweep = "  sweep: [{field: shards.count, values: [1, 3]}, {field: load.pipeline, values: [1, 4]}]\n  \
                 sweepOrder: Listed";
    let (status, stderr) = succeeded(&manifest(&redis, load, sweep));
    let cells: Vec<_> = list(&status["trials"])
        .iter()
        .map(|line| {
            let value = |field: &str| line["parameters"][field].as_str().unwrap().to_owned();
            assert_eq!(number(&line["requests"]["succeeded"]), 400, "{line}");
            (number(&line["cell"]), value("shards.count"), value("load.pipeline"))
        })
        .collect();
    let expected = [(0, "1", "1"), (1, "1", "4"), (2, "3", "1"), (3, "3", "4")];
    assert_eq!(cells, expected.map(|(cell, shards, pipeline)| (cell, shards.to_owned(), pipeline.to_owned())));
    assert_eq!(redis.calls("get"), 1_600);
    assert!(stderr.contains("trial 2 of 4, load.pipeline=4, shards.count=1"), "{stderr}");
    assert_eq!(number(&status["shards"]["finished"]), 3);
    assert!(status["repeats"].is_null(), "each ran once");
}

#[test]
fn presets_sweeps_and_repeats_go_together() {
    let redis = RedisServer::start(&[]);
    let text = manifest(
        &redis,
        "type: ClosedLoop, connections: 2, requests: 200",
        "  repeats: {count: 2}\n  sweep: [{field: load.pipeline, values: [1, 8]}]",
    );
    let text = text
        .replace("operations: [{name: get, command: GET __key__}]", "preset: [set, incr]")
        .replace("preload: {mode: FillMissing}", "preload: {}");
    let (status, _) = succeeded(&text);
    assert_eq!(list(&status["trials"]).len(), 8);
    assert_eq!((redis.calls("set"), redis.calls("incr")), (800, 800));
    let cells = list(&status["repeats"]);
    let of = |cell: &Value| (cell["preset"].as_str().unwrap().to_owned(), cell["parameters"]["load.pipeline"].clone());
    let named = |preset: &str, pipeline: &str| (preset.to_owned(), Value::from(pipeline));
    assert_eq!(
        cells.iter().map(of).collect::<Vec<_>>(),
        [named("set", "1"), named("incr", "1"), named("set", "8"), named("incr", "8")]
    );
    assert!(cells.iter().all(|cell| cell["trials"].as_array().unwrap().len() == 2 && cell["aggregate"].is_object()));
}

#[test]
fn an_experiment_that_cannot_be_run_is_refused_before_it_begins() {
    let redis = RedisServer::start(&[]);
    let refused = |more: &str, said: &str| {
        let load = "type: ClosedLoop, connections: 4, requests: 400";
        Run::local(&manifest(&redis, load, more), &[]).finish().assert_refused(said);
    };
    refused("  sweep: [{field: load.pipelin, values: [1]}]", "did you mean load.pipeline?");
    refused(
        "  sweep: [{field: load.pipeline, values: [many]}]",
        "\"many\": must be a whole number, as load.pipeline is",
    );
    refused(
        "  sweep: [{field: shards.count, values: [1, 8]}]",
        "shards.count=8: spec.load.connections: is 4, and must be at least",
    );
    refused("  repeats: {count: 51}", "spec.repeats.count: 51: must be at most 50");
    let values: Vec<_> = (1..=126).map(|value| value.to_string()).collect();
    let large =
        format!("  repeats: {{count: 2}}\n  sweep: [{{field: workload.seed, values: [{}]}}]", values.join(", "));
    refused(&large, "repeats.count make 252 trials, the maximum is 250");
}

/// Like `manifest`, with a second target.
fn two_targets(one: &RedisServer, other: &RedisServer, load: &str, more: &str) -> String {
    let second = format!("}}, {{name: other, type: Standalone, endpoints: ['{}']}}]\n", other.endpoint());
    let text = manifest(one, load, more);
    let both = text.replacen("}]\n", &second, 1);
    assert!(both.contains("{name: redis, ") && both != text, "{text}");
    both
}

#[test]
fn each_setting_of_a_sweep_is_compared() {
    let (one, other) = (RedisServer::start(&[]), RedisServer::start(&[]));
    let more =
        "  repeats: {count: 5}\n  comparison: {baseline: redis}\n  sweep: [{field: load.pipeline, values: [1, 8]}]";
    let text = two_targets(&one, &other, "type: ClosedLoop, connections: 2, requests: 400", more);
    let (status, stderr) = succeeded(&text);
    assert_eq!(list(&status["trials"]).len(), 20);
    assert_eq!((one.calls("get"), other.calls("get")), (4_000, 4_000), "{stderr}");
    let settings: Vec<_> = list(&status["comparison"])
        .iter()
        .map(|one| (one["parameters"]["load.pipeline"].clone(), number(&one["pairs"]), number(&one["leftOut"])))
        .collect();
    assert_eq!(settings, [(Value::from("1"), 5, 0), (Value::from("8"), 5, 0)]);
    // The trials of one setting run consecutively.
    let pipelines: Vec<_> = list(&status["trials"]).iter().map(|line| line["parameters"].clone()).collect();
    assert!(pipelines[..10].iter().all(|first| *first == pipelines[0]), "{pipelines:?}");
}

#[test]
fn targets_are_compared_in_turns() {
    let (one, other) = (RedisServer::start(&[]), RedisServer::start(&[]));
    let load = "type: OpenLoop, openLoop: {rate: 400}, connections: 2, duration: 1s";
    let more = "  repeats: {count: 5}\n  comparison: {baseline: redis, minimumEffectBasisPoints: 1000}";
    let (status, stderr) = succeeded(&two_targets(&one, &other, load, more));
    let targets: Vec<_> =
        list(&status["trials"]).iter().map(|line| line["target"].as_str().unwrap().to_owned()).collect();
    let expected = ["redis", "other", "other", "redis", "other", "redis", "redis", "other", "redis", "other"];
    assert_eq!(targets, expected, "{stderr}");
    for (server, target) in [(&one, "redis"), (&other, "other")] {
        let lines = list(&status["trials"]).iter().filter(|line| line["target"] == target);
        let sums = lines.fold([0, 0], |[scheduled, sent], line| {
            let due = number(&line["requests"]["scheduled"]);
            [scheduled + due, sent + due - number(&line["requests"]["unsent"])]
        });
        assert_eq!(sums, [2_000, server.calls("get")], "{status:#}");
    }
    let [found] = list(&status["comparison"]) else { panic!("{status:#}") };
    assert_eq!((found["target"].as_str(), found["baseline"].as_str()), (Some("other"), Some("redis")));
    // A pair with a trial that a busy machine made Invalid is left out.
    assert_eq!(
        (number(&found["pairs"]) + number(&found["leftOut"]), list(&found["metrics"]).len()),
        (5, 5),
        "{found:#}"
    );
    // Both have the same target rate, and reach it on a machine that is not busy.
    if is_timed() {
        assert_eq!(found["outcome"], "NoDifference", "{found:#}");
        let caution = found["caution"].as_str().unwrap_or_default();
        assert!(caution.starts_with("the requested rate was the limit of "), "{found:#}");
    }
    assert_eq!(list(&status["repeats"]).len(), 2);
}

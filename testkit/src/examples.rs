//! The manifests of `examples/`, shortened for tests.

use serde::Deserialize as _;
use serde_json::{Value, json};

/// The same target and operations, but fewer requests. None without a benchmark.
pub fn shortened(text: &str) -> Option<String> {
    let documents = serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).unwrap());
    let mut documents: Vec<Value> = documents.collect();
    let benchmark = documents.iter_mut().find(|document| document["kind"] == "RedisBenchmark")?;
    let spec = &mut benchmark["spec"];
    // A busy machine delays calls to shards, so that their clocks are known less precisely.
    spec["shards"]["maxStartSkew"] = json!("1s");
    shorten_load(spec);
    if let Some(count) = spec.pointer_mut("/workload/keys/count").filter(|count| count.as_u64() > Some(1_000)) {
        *count = json!(1_000);
    }
    if let Some(preset) = spec.pointer_mut("/workload/preset").and_then(Value::as_array_mut) {
        preset.truncate(1);
    }
    // Several searches stay several.
    let values = if spec["search"].is_object() { 2 } else { 1 };
    for field in spec.get_mut("sweep").and_then(Value::as_array_mut).into_iter().flatten() {
        field["values"].as_array_mut().unwrap().truncate(values);
        for with in field.get_mut("with").and_then(Value::as_array_mut).into_iter().flatten() {
            with["values"].as_array_mut().unwrap().truncate(values);
        }
    }
    let fewest = if spec["comparison"].is_object() { 5 } else { 2 };
    if let Some(repeats) = spec.get_mut("repeats") {
        *repeats = json!({"count": fewest});
    }
    for threshold in spec.get_mut("thresholds").and_then(Value::as_array_mut).into_iter().flatten() {
        let threshold = threshold.as_object_mut().unwrap();
        for field in ["window", "abortOnFail"] {
            threshold.remove(field);
        }
        threshold.entry("minPerSecond").and_modify(|least| *least = json!(1));
    }
    if spec["search"].is_object() {
        // The only rate passes, and three more times. Requests that a busy machine leaves unsent make a step fail, and the verdict depends
        // only on steps that passed, unless none did.
        spec["search"]["objective"] = json!({"quantile": "0.9", "max": "10m"});
        spec["search"]["rate"] = json!({"min": 100, "max": 100});
    }
    Some(documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n"))
}

/// A load that ends by a number of requests leaves none unsent, even on a busy machine.
fn shorten_load(spec: &mut Value) {
    let search = spec["search"].is_object();
    let operations = spec.pointer_mut("/workload/operations").and_then(Value::as_array_mut);
    let mut rated = false;
    for rate in operations.into_iter().flatten().filter_map(|operation| operation.get_mut("rate")) {
        // The last request of each is due long before the end.
        (*rate, rated) = (json!(5), true);
    }
    let trace = spec["workload"]["trace"].is_object();
    let load = spec["load"].as_object_mut().unwrap();
    load.insert("timeouts".into(), json!({"request": "30s"}));
    if search {
        return;
    }
    if trace {
        // Once, so that every command is sent.
        load.remove("duration");
        load.insert("warmup".into(), json!("0s"));
        return;
    }
    load.insert("warmup".into(), json!("200ms"));
    if load.contains_key("requestsPerConnection") {
        load.insert("requestsPerConnection".into(), json!(4));
    } else if let Some(stages) = load.get("stages").cloned() {
        // The last requests are few and far between.
        let stage = |at: usize, length: &str, from: u64, to: u64| {
            let mut stage = json!({"duration": length, "rate": {"from": from, "to": to}});
            if let Some(mix) = stages[at].get("mix") {
                stage["mix"] = mix.clone();
            }
            stage
        };
        let shorter = json!([stage(0, "1s", 50, 400), stage(1, "1s", 400, 400), stage(2, "3s", 400, 1)]);
        load.insert("stages".into(), shorter);
    } else if rated {
        load.insert("duration".into(), json!("5s"));
    } else if load.contains_key("warmupEnds") {
        load.extend([("warmup".into(), json!("16s")), ("duration".into(), json!("1s"))]);
    } else {
        load.remove("duration");
        load.insert("requests".into(), json!(400));
    }
    if let Some(rate) = load.get_mut("openLoop").and_then(|open| open.get_mut("rate")) {
        *rate = json!(400);
    }
}

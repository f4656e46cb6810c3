use serde_json::{Value, json};

use crate::api::{RedisBenchmark, validate};

fn problems(threshold: &Value, patch: &[(&str, Value)]) -> Vec<String> {
    let mut manifest = crate::sample::object();
    manifest["spec"]["thresholds"] = json!([threshold]);
    for (pointer, value) in patch {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        manifest.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    let benchmark: RedisBenchmark = serde_json::from_value(manifest).unwrap();
    validate(&benchmark.spec, "cart").err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn what_can_be_judged_is_accepted() {
    for threshold in [
        json!({"name": "p99", "metric": "ResponseTime", "quantile": "0.99", "max": "2ms", "operation": "get"}),
        json!({"name": "max", "metric": "ServiceTime", "quantile": "1", "max": "1s", "eachNode": true, "window": "2s"}),
        json!({"name": "errors", "metric": "ErrorRate", "maxBasisPoints": 0, "abortOnFail": true}),
        json!({"name": "rate", "metric": "Throughput", "minPerSecond": 1_000_000}),
    ] {
        assert_eq!(problems(&threshold, &[]), Vec::<String>::new(), "{threshold}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_with_the_way_out() {
    let p99 = |more: Value| {
        let mut threshold = json!({"name": "p99", "metric": "ResponseTime", "quantile": "0.99", "max": "2ms"});
        threshold.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        threshold
    };
    let rate = json!({"name": "rate", "metric": "Throughput", "minPerSecond": 2_000});
    for (threshold, patch, parts) in [
        (json!({"name": "x", "metric": "ErrorRate"}), vec![], ["spec.thresholds[0].maxBasisPoints", "must be set"]),
        (json!({"name": "x", "metric": "ErrorRate", "max": "2ms", "maxBasisPoints": 1}), vec![], [".max", "remove it"]),
        (json!({"name": "x", "metric": "ResponseTime", "max": "2ms"}), vec![], [".quantile", "\"0.99\""]),
        (p99(json!({"max": "0s"})), vec![], [".max", "must be from 1us to 10m"]),
        (p99(json!({"operation": "put"})), vec![], [".operation", "operations: get"]),
        (p99(json!({"eachNode": true})), vec![], [".metric", "set ServiceTime"]),
        (p99(json!({"window": "1m"})), vec![], [".window", "longer than the measurement, which is 10s"]),
        (
            p99(json!({"operation": "get"})),
            vec![("/spec/measurement", json!({"breakdown": ["Node"]}))],
            [".operation", "measurement.breakdown"],
        ),
        (
            rate,
            vec![("/spec/load/type", json!("OpenLoop")), ("/spec/load/openLoop", json!({"rate": 1_000}))],
            [".minPerSecond", "the load's rate is 1000/s"],
        ),
    ] {
        let found = problems(&threshold, &patch);
        assert_eq!(found.len(), 1, "{threshold}: {found:?}");
        assert!(parts.iter().all(|part| found[0].contains(part)), "{found:?} lacks {parts:?}");
    }
}

#[test]
fn two_of_one_name_are_refused() {
    let mut manifest = crate::sample::object();
    let one = json!({"name": "errors", "metric": "ErrorRate", "maxBasisPoints": 0});
    manifest["spec"]["thresholds"] = json!([one, one]);
    let benchmark: RedisBenchmark = serde_json::from_value(manifest).unwrap();
    let found = validate(&benchmark.spec, "cart").unwrap_err();
    assert_eq!((found.len(), found[0].field.as_str()), (1, "spec.thresholds[1].name"));
}

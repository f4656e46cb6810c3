use proptest::prelude::*;
use serde_json::json;

use super::super::RedisBenchmark;
use super::*;

fn manifest() -> Value {
    json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "cart"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "weight": 8, "command": "GET __key__"}]},
            "load": {"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "60s"},
        },
    })
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

fn with(patch: &Value) -> RedisBenchmark {
    let mut object = manifest();
    merge(&mut object["spec"], patch);
    serde_json::from_value(object).unwrap()
}

fn problems(patch: &Value) -> Vec<String> {
    let benchmark = with(patch);
    validate(&benchmark.spec, "cart").err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_are_those_of_the_schema() {
    let benchmark = read(&manifest()).unwrap();
    let validated = validate(&benchmark.spec, "cart").unwrap();
    assert_eq!(validated.connections, 50);
    assert_eq!(validated.pipeline, 1);
    assert_eq!(validated.warmup, Duration::from_secs(5));
    assert_eq!(validated.workload.keys.count, 1_000_000);
    assert_eq!(validated.workload.value_bytes, 100);
    assert_eq!(validated.shards.count, 1);
    assert_eq!(validated.shards.max_start_skew, Duration::from_millis(20));
    assert_eq!(
        validated.load,
        plan::Load::OpenLoop {
            rate_per_second: 1000,
            pacing_grid_nanoseconds: 0,
            unsent_after_nanoseconds: 10_000_000_000
        }
    );
    assert_eq!(validated.breakdown, plan::Breakdown { operation: true, node: true });
    assert_eq!(validated.target.endpoints, ["redis:6379"]);
}

#[test]
fn each_problem_names_field_value_and_way_out() {
    let cases = [
        (json!({"shards": {"count": 0}}), "spec.shards.count: 0: must be at least 1"),
        (json!({"shards": {"count": 1_000_000}}), "spec.shards.count: 1000000: must be at most 2000"),
        (
            json!({"cleanup": {"keys": "DeletePrefix"}, "workload": {"keys": {"prefix": ""}}}),
            "spec.workload.keys.prefix: \"\": must not be empty with cleanup.keys DeletePrefix, which would delete keys \
             that are mere numbers: set one that nobody else uses, such as rb:, or cleanup.keys to Keep",
        ),
        (json!({"load": {"connections": 0}}), "spec.load.connections: 0: must be at least 1"),
        (
            json!({"load": {"connections": 3}, "shards": {"count": 4}}),
            "spec.load.connections: 3: must be at least shards.count, which is 4: every shard needs one",
        ),
        (
            json!({"load": {"requests": 3, "duration": null}, "shards": {"count": 4}}),
            "spec.load.requests: 3: must be at least shards.count, which is 4: every shard needs one",
        ),
        (
            json!({"load": {"openLoop": {"rate": 1}, "duration": "3s"}, "shards": {"count": 4}}),
            "spec.load.openLoop.rate: 1: makes 3 requests in 3s, fewer than shards.count, which is 4: raise it or duration",
        ),
        (
            json!({"load": {"requests": 10_000_000, "duration": null}}),
            "spec.load.requests: 10000000: would take 10000 s at 1000 requests per second, longer than maxDuration, \
             which is 1h: raise that",
        ),
        (json!({"load": {"requests": 9}}), "spec.load: exactly one of duration and requests must be set; both are set"),
        (
            json!({"load": {"duration": null}}),
            "spec.load: exactly one of duration and requests must be set; none is set",
        ),
        (
            json!({"load": {"maxDuration": "1h"}}),
            "spec.load.maxDuration: 1h: goes with requests only: remove it, or set requests instead of duration",
        ),
        (json!({"load": {"duration": "999h"}}), "spec.load.duration: 999h: must be from 1s to 48h"),
        (json!({"load": {"duration": "9999999999999h"}}), "spec.load.duration: 9999999999999h: must be from 1s to 48h"),
        (
            json!({"load": {"duration": "5 minutes"}}),
            "spec.load.duration: \"5 minutes\": must be a duration: numbers with units, such as 500ms, 60s, 1m30s",
        ),
        (json!({"load": {"openLoop": {"rate": 0}}}), "spec.load.openLoop.rate: 0: must be at least 1"),
        (
            json!({"load": {"type": "ClosedLoop"}}),
            "spec.load.openLoop: must not be set for type ClosedLoop: remove it, or set type to OpenLoop",
        ),
        (
            json!({"load": {"openLoop": null}}),
            "spec.load.openLoop: must be set for type OpenLoop, such as openLoop: {rate: 10000}",
        ),
        (
            json!({"workload": {"keys": {"start": 99, "count": 2, "width": 2}}}),
            "spec.workload.keys.width: 2: is too small for the largest number 100: set it to 3 or more, or to 0 for as \
             many as needed",
        ),
        (
            json!({"workload": {"keys": {"count": 1, "pattern": {"type": "Partitioned"}}}, "shards": {"count": 2}}),
            "spec.workload.keys.count: 1: must be at least shards.count, which is 2: every shard needs one",
        ),
        (
            json!({"workload": {"values": {"size": {"type": "Fixed"}}}}),
            "spec.workload.values.size.fixed: must be set for type Fixed, such as fixed: {bytes: 100}",
        ),
        (
            json!({"workload": {"operations": [{"name": "get", "command": "GET __kye__"}]}}),
            "spec.workload.operations[0].command: GET __kye__: has the unknown placeholder __kye__: there are __key__ and \
             __data__",
        ),
        (json!({"targets": []}), "spec.targets: 0: must have at least 1 entries"),
        (
            json!({"targets": [{"name": "r", "type": "Cluster", "endpoints": ["r:1"], "database": 3}]}),
            "spec.targets[0].database: 3: must be 0 for type Cluster, which has no other",
        ),
        (
            json!({"targets": [{"name": "r", "type": "Standalone", "endpoints": ["r:1", "s:1"]}]}),
            "spec.targets[0].endpoints: r:1, s:1: must have exactly one entry for type Standalone: of several, only one \
             could be loaded",
        ),
        (
            json!({"targets": [{"name": "r", "type": "Standalone", "endpoints": ["redis://r:1"]}]}),
            "spec.targets[0].endpoints[0]: \"redis://r:1\": must be host:port, with an IPv6 address in brackets, such as \
             redis:6379 or [fd00::1]:6379",
        ),
        (
            json!({"shards": {"template": {"labels": {"batch.kubernetes.io/job-name": "x"}}}}),
            "spec.shards.template.labels[batch.kubernetes.io/job-name]: is set by redisbench or Kubernetes: choose another \
             key",
        ),
    ];
    for (patch, expected) in cases {
        assert_eq!(problems(&patch), [expected], "with {patch}");
    }
}

#[test]
fn all_problems_come_at_once() {
    let found = problems(&json!({
        "load": {"connections": 0, "pipeline": 0, "duration": "0s", "timeouts": {"request": "1h"}},
        "shards": {"count": 3000},
    }));
    let fields: Vec<&str> = found.iter().filter_map(|problem| problem.split(':').next()).collect();
    assert_eq!(
        fields,
        [
            "spec.load.connections",
            "spec.load.duration",
            "spec.load.pipeline",
            "spec.load.timeouts.request",
            "spec.shards.count"
        ]
    );
}

#[test]
fn one_key_per_command_of_a_cluster() {
    let several = json!([{"name": "copy", "command": "COPY __key__ {x}__key__"}]);
    assert!(problems(&json!({"workload": {"operations": several}})).is_empty());
    let target = json!([{"name": "r", "type": "Cluster", "endpoints": ["r:1"]}]);
    assert_eq!(
        problems(&json!({"workload": {"operations": several}, "targets": target})),
        [
            "spec.workload.operations[0].command: COPY __key__ {x}__key__: has __key__ in 2 arguments, and may have it in \
             one only for type Cluster"
        ]
    );
}

#[test]
fn names_are_short_labels() {
    let spec = with(&json!({})).spec;
    assert!(validate(&spec, &"a".repeat(46)).is_ok());
    for name in ["a".repeat(47), String::new(), "a.b".into(), "A".into()] {
        let found = validate(&spec, &name).unwrap_err();
        assert_eq!((found.len(), found[0].field.as_str()), (1, "metadata.name"));
    }
}

#[test]
fn files_are_read_strictly() {
    let mut object = manifest();
    object["apiVersion"] = json!("redisbench.dev/v2");
    object["spec"]["load"]["conections"] = json!(4);
    object["spec"]["shards"] = json!({"template": {"hostNetwork": true, "resources": {"limits": {"cpu": 1}}}});
    object["extra"] = json!(1);
    let found: Vec<String> = read(&object).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(found[0], "apiVersion: redisbench.dev/v2: must be redisbench.dev/v1alpha1");
    assert!(found[1].starts_with("extra: unknown field"), "{found:?}");
    assert_eq!(found[2], "spec.load.conections: unknown field; did you mean connections?");
    assert!(found[3].starts_with("spec.shards.template.hostNetwork: unknown field"), "{found:?}");
    assert_eq!(found.len(), 4);
}

#[test]
fn a_null_is_nothing_and_a_status_is_passed_over() {
    let mut object = manifest();
    object["spec"]["load"]["warmup"] = Value::Null;
    object["status"] = json!({"phase": "Unheard"});
    assert_eq!(read(&object).unwrap().spec.load.warmup, GoDuration::new("5s"));
}

#[test]
fn every_problem_of_a_wrong_manifest_is_said_in_its_place() {
    for wrong in [json!(null), json!([]), json!("text"), json!({}), json!({"spec": []})] {
        assert!(read(&wrong).is_err());
    }
}

/// Any value of the schema, and beyond its bounds.
fn any_of(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return prop::sample::select(values.clone()).boxed();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let mut whole = Just(serde_json::Map::new()).boxed();
            for (name, property) in schema["properties"].as_object().cloned().unwrap_or_default() {
                let inner = if name == "template" { Just(json!({})).boxed() } else { any_of(&property) };
                let present = if required.contains(&json!(name)) { Just(true).boxed() } else { any::<bool>().boxed() };
                whole = (whole, inner, present)
                    .prop_map(move |(mut whole, inner, present)| {
                        if present {
                            whole.insert(name.clone(), inner);
                        }
                        whole
                    })
                    .boxed();
            }
            whole.prop_map(Value::Object).boxed()
        }
        Some("array") => prop::collection::vec(any_of(&schema["items"]), 0..3).prop_map(Value::Array).boxed(),
        Some("integer") => prop_oneof![0..100_u64, 0..=u64::from(u32::MAX)].prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        _ => prop_oneof![
            "[0-9]{1,18}(ns|us|ms|s|m|h)",
            "[a-z0-9-]{0,12}",
            "[a-z.]{1,8}:[0-9]{1,5}",
            "[A-Z]{1,6} __(key|data|x)__ ?['\"]?[ -~]{0,9}",
            "\\PC{0,12}"
        ]
        .prop_map(Value::from)
        .boxed(),
    }
}

proptest! {
    #[test]
    fn no_spec_makes_it_panic(spec in any_of(&crd::schema()["properties"]["spec"]), name in "[a-z.-]{0,50}") {
        let read = read(&json!({"apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark", "metadata": {}, "spec": spec}));
        if let Ok(spec) = serde_json::from_value::<RedisBenchmarkSpec>(spec) {
            // What the operator judges, it judges at least as strictly as the file is read.
            let judged = validate(&spec, &name);
            prop_assert!(read.is_ok() || judged.is_err());
        }
    }
}

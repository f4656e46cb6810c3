//! Values at every bound are accepted, and those one beyond it are refused by their field.

use std::collections::BTreeSet;

use super::*;
use crate::api::patterns::DURATION_PATTERN;

/// Calls `visit` with the path of every schema below `schema`.
fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(property, &format!("{path}.{name}"), visit);
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            walk(&schema[below], &format!("{path}[]"), visit);
        }
    }
}

/// Returns whether `value` itself, without its parts, is refused for a reason that contains `why`.
fn is_refused(schema: &Value, value: &Value, why: &str) -> bool {
    let mut problems = Vec::new();
    schema::check(schema, value, "it", &mut problems);
    problems.iter().map(ToString::to_string).any(|problem| problem.starts_with("it: ") && problem.contains(why))
}

/// A value at a bound of a schema and one beyond it, with the reason for refusing that.
fn at_and_beyond(schema: &Value, keyword: &str) -> Option<(Value, Value, &'static str)> {
    let bound = schema.get(keyword)?;
    let length = || usize::try_from(bound.as_u64().unwrap()).unwrap();
    let list = |length: usize| Value::from(vec![Value::Null; length]);
    let text = |length: usize| Value::from("a".repeat(length));
    let map = |length: usize| (0..length).map(|index| (format!("k{index}"), Value::Null)).collect::<Value>();
    let is_whole = schema["type"] == "integer";
    Some(match keyword {
        "minimum" if is_whole => (bound.clone(), (bound.as_i64().unwrap() - 1).into(), "must be at least"),
        "maximum" if is_whole => (bound.clone(), (bound.as_i64().unwrap() + 1).into(), "must be at most"),
        "minimum" => (bound.clone(), (bound.as_f64().unwrap() / 2.0).into(), "must be at least"),
        "maximum" => (bound.clone(), (bound.as_f64().unwrap() * 1.001).into(), "must be at most"),
        "minItems" => (list(length()), list(length() - 1), "must have at least"),
        "maxItems" => (list(length()), list(length() + 1), "must be at most"),
        "minLength" => (text(length()), text(length() - 1), "must have at least"),
        "maxLength" => (text(length()), text(length() + 1), "must be at most"),
        "maxProperties" => (map(length()), map(length() + 1), "must be at most"),
        _ => return None,
    })
}

#[test]
fn every_bound_of_the_schema_is_the_last_value_that_is_accepted() {
    const KEYWORDS: [&str; 7] =
        ["minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "maxProperties"];
    let mut tried = 0;
    walk(&crd::schema()["properties"]["spec"], "spec", &mut |path, schema| {
        for keyword in KEYWORDS {
            let Some((at, beyond, why)) = at_and_beyond(schema, keyword) else { continue };
            assert!(!is_refused(schema, &at, why), "{path}: {keyword} of {schema}");
            assert!(is_refused(schema, &beyond, why), "{path}: beyond {keyword} of {schema}");
            tried += 1;
        }
    });
    assert!(tried > 300, "only {tried} bounds");
}

/// `value` at the dotted path `field`.
fn set(field: &str, value: Value) -> Value {
    field.rsplit('.').fold(value, |value, name| json!({ name: value }))
}

/// A field, with a change of the manifest at its bound and one beyond it.
type Case = (&'static str, Value, Value);

/// Durations that need nothing else.
const PLAIN: [(&str, &str, &str); 19] = [
    ("load.duration", "48h", "172801s"),
    ("load.duration", "1s", "999ms"),
    ("load.warmup", "1h", "3601s"),
    ("load.openLoop.pacingGrid", "100ms", "101ms"),
    ("load.openLoop.unsentAfter", "10m", "601s"),
    ("load.openLoop.unsentAfter", "1ms", "999us"),
    ("load.timeouts.connect", "10m", "601s"),
    ("load.timeouts.connect", "1ms", "999us"),
    ("load.timeouts.request", "10m", "601s"),
    ("load.timeouts.request", "1ms", "999us"),
    ("repeats.interval", "1h", "3601s"),
    ("safety.unattended", "48h", "172801s"),
    ("safety.unattended", "1m", "59s"),
    ("shards.collectTimeout", "1h", "3601s"),
    ("shards.collectTimeout", "5s", "4s"),
    ("shards.maxStartSkew", "1m", "61s"),
    ("shards.maxStartSkew", "1ms", "999us"),
    ("shards.prepareTimeout", "24h", "86401s"),
    ("shards.prepareTimeout", "10s", "9s"),
];

/// Durations that need other fields.
fn durations() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut add = |field, values: [&str; 2], change: &dyn Fn(&str) -> Value| {
        cases.push((field, change(values[0]), change(values[1])));
    };
    let requests = |length: &str| json!({"load": {"duration": null, "requests": 1000, "maxDuration": length}});
    add("load.maxDuration", ["48h", "172801s"], &requests);
    add("load.maxDuration", ["1s", "999ms"], &requests);
    let settles = |shards: u32, warmup: &str| {
        let load = json!({"connections": shards.max(50), "openLoop": {"rate": 5_000}, "warmup": warmup,
            "warmupEnds": "WhenSettled"});
        json!({"shards": {"count": shards}, "load": load})
    };
    add("load.warmup", ["16s", "15999ms"], &|warmup| settles(1, warmup));
    add("load.warmup", ["24s", "23s"], &|warmup| settles(1_000, warmup));
    add("load.warmup", ["67s", "66s"], &|warmup| settles(5_000, warmup));
    let lifetime = |length: &str| json!({"load": {"connectionLifetime": {"duration": length}}});
    add("load.connectionLifetime.duration", ["24h", "86401s"], &lifetime);
    add("load.connectionLifetime.duration", ["10ms", "9ms"], &lifetime);
    let stages = |stages: &[&str]| {
        let stage = |length: &&str| json!({"duration": length, "rate": {"from": 5, "to": 9}});
        let stages: Vec<Value> = stages.iter().map(stage).collect();
        json!({"load": {"openLoop": null, "duration": null, "stages": stages}})
    };
    add("load.stages[].duration", ["48h", "172801s"], &|length| stages(&[length]));
    add("load.stages[].duration", ["1ms", "999us"], &|length| stages(&[length, "9s"]));
    let data = |min: &str, max: &str| json!({"preload": {"data": [{"type": "Set", "ttl": {"min": min, "max": max}}]}});
    add("preload.data[].ttl.min", ["1s", "0s"], &|min| data(min, "2s"));
    add("preload.data[].ttl.max", ["87600h", "87601h"], &|max| data("1s", max));
    let operations = |command: &str| json!([{"name": "set", "command": command}]);
    let ttl = |min: &str, max: &str| {
        let operations = operations("SET __key__ __data__ EX __ttl__");
        json!({"workload": {"operations": operations, "values": {"ttl": {"min": min, "max": max}}}})
    };
    add("workload.values.ttl.min", ["1s", "0s"], &|min| ttl(min, "2s"));
    add("workload.values.ttl.max", ["87600h", "87601h"], &|max| ttl("1s", max));
    let wait = |timeout: &str| {
        let (operations, wait) = (operations("SET __key__ __data__"), json!({"replicas": 1, "timeout": timeout}));
        json!({"workload": {"operations": operations, "wait": wait}, "load": {"timeouts": {"request": "10m"}}})
    };
    // Requests must not time out before it.
    add("workload.wait.timeout", ["599s", "10m"], &wait);
    add("workload.wait.timeout", ["1ms", "999us"], &wait);
    let cache = |ttl: &str| {
        let target = json!({"name": "r", "type": "Standalone", "endpoints": ["r:1"], "protocol": "RESP3"});
        json!({"targets": [target], "workload": {"caching": {"type": "Default", "ttl": ttl}}})
    };
    add("workload.caching.ttl", ["24h", "86401s"], &cache);
    add("workload.caching.ttl", ["1ms", "999us"], &cache);
    let latency =
        |max: &str| json!({"thresholds": [{"name": "p99", "metric": "ResponseTime", "quantile": "0.99", "max": max}]});
    add("thresholds[].max", ["10m", "601s"], &latency);
    add("thresholds[].max", ["1us", "999ns"], &latency);
    let window = |window: &str| {
        let threshold = json!({"name": "e", "metric": "ErrorRate", "maxBasisPoints": 1, "window": window});
        json!({"thresholds": [threshold], "load": {"duration": "2h"}})
    };
    add("thresholds[].window", ["1h", "3601s"], &window);
    add("thresholds[].window", ["2s", "1s"], &window);
    let search = |max: &str| {
        let search = json!({"objective": {"quantile": "0.99", "max": max}, "rate": {"min": 1000, "max": 64000}});
        json!({"load": {"openLoop": null, "duration": null}, "search": search})
    };
    add("search.objective.max", ["10m", "601s"], &search);
    add("search.objective.max", ["1us", "999ns"], &search);
    cases
}

/// Numbers and lists whose bounds meet other fields, and bounds of what several fields make together.
fn amounts() -> Vec<Case> {
    let case = |field, values: [u64; 2], change: &dyn Fn(u64) -> Value| (field, change(values[0]), change(values[1]));
    let list = |count: u64, item: &dyn Fn(u64) -> Value| Value::from((0..count).map(item).collect::<Vec<_>>());
    let numbers = |count: u64| list(count, &|number| (number + 1).into());
    let sweep = |lists: &[(&str, u64)]| {
        let one = |(field, count): &(&str, u64)| json!({"field": field, "values": numbers(*count)});
        json!({"sweep": lists.iter().map(one).collect::<Vec<_>>()})
    };
    let lists = [("load.pipeline", 2), ("load.connections", 2), ("workload.seed", 2), ("workload.keys.count", 2)];
    let target =
        |kind: &str, name: String, endpoints: Value| json!({"name": name, "type": kind, "endpoints": endpoints});
    vec![
        case(
            "shards.count",
            [5_000, 5_001],
            &|count| json!({"shards": {"count": count}, "load": {"connections": count, "openLoop": {"rate": count}}}),
        ),
        case("load.connections", [1_000_000, 1_000_001], &|count| set("load.connections", count.into())),
        case("load.pipeline", [10_000, 10_001], &|count| set("load.pipeline", count.into())),
        case("load.openLoop.rate", [1_000_000_000, 1_000_000_001], &|rate| set("load.openLoop.rate", rate.into())),
        case("load.requests", [1_000_000_000_000, 1_000_000_000_001], &|count| {
            let rate = json!({"rate": 1_000_000_000});
            json!({"load": {"duration": null, "requests": count, "maxDuration": "48h", "openLoop": rate}})
        }),
        case("load.requestsPerConnection", [1_000_000, 1_000_001], &|count| {
            let rate = json!({"rate": 1_000_000});
            json!({"load": {"duration": null, "requestsPerConnection": count, "maxDuration": "48h", "openLoop": rate}})
        }),
        case("load.closedLoop.concurrency", [1_000_000_000, 1_000_000_001], &|count| {
            let callers = json!({"concurrency": count});
            json!({"load": {"type": "ClosedLoop", "openLoop": null, "closedLoop": callers, "connections": 1_000_000,
                "pipeline": 1_000}})
        }),
        case("load.stages", [64, 65], &|count| {
            let stages = list(count, &|_| json!({"duration": "1s", "rate": {"from": 5, "to": 9}}));
            json!({"load": {"openLoop": null, "duration": null, "stages": stages}})
        }),
        case("measurement.percentiles", [10, 11], &|count| set("measurement.percentiles", numbers(count))),
        case("thresholds", [32, 33], &|count| {
            let one = |index| json!({"name": format!("t{index}"), "metric": "ErrorRate", "maxBasisPoints": index});
            set("thresholds", list(count, &one))
        }),
        case("repeats.count", [50, 51], &|count| set("repeats.count", count.into())),
        case("sweep[].values", [250, 251], &|count| sweep(&[("load.pipeline", count)])),
        // The cells of a sweep are trials.
        case("", [10, 11], &|count| sweep(&[("load.pipeline", 25), ("workload.seed", count)])),
        case("sweep", [3, 4], &|count| sweep(&lists[..usize::try_from(count).unwrap()])),
        case("targets", [8, 9], &|count| {
            let targets = list(count, &|index| target("Standalone", format!("t{index}"), json!(["redis:6379"])));
            json!({"targets": targets, "comparison": {"baseline": "t0"}, "repeats": {"count": 5}})
        }),
        case("targets[].endpoints", [32, 33], &|count| {
            let endpoints = list(count, &|index| format!("redis-{index}:6379").into());
            json!({"targets": [target("Cluster", "r".to_owned(), endpoints)]})
        }),
        case("workload.keys.count", [1_000_000_000_000, 1_000_000_000_001], &|count| {
            set("workload.keys.count", count.into())
        }),
        case("workload.values.size.fixed.bytes", [1 << 24, (1 << 24) + 1], &|bytes| {
            set("workload.values.size", json!({"type": "Fixed", "fixed": {"bytes": bytes}}))
        }),
        case("workload.operations", [64, 65], &|count| {
            let operation = |index| json!({"name": format!("o{index}"), "command": "GET __key__"});
            set("workload.operations", list(count, &operation))
        }),
        case("workload.operations[].command", [4_091, 4_092], &|length| {
            let argument = "a".repeat(usize::try_from(length).unwrap());
            set("workload.operations", json!([{"name": "echo", "command": format!("ECHO {argument}")}]))
        }),
        case("workload.operations[].command", [100, 101], &|keys| {
            set("workload.operations", json!([{"name": "mget", "command": format!("MGET __key__ __key:{keys}__")}]))
        }),
    ]
}

#[test]
fn a_manifest_at_every_bound_is_planned_and_one_beyond_is_refused_by_its_field() {
    let plain = PLAIN.map(|(field, at, beyond)| (field, set(field, at.into()), set(field, beyond.into())));
    let cases: Vec<Case> = plain.into_iter().chain(durations()).chain(amounts()).collect();
    // Places of lists are not in the path.
    let field_of = |problem: &String| -> String {
        let field = problem.split_once(": ").map_or("", |(field, _)| field);
        let field = field.strip_prefix("spec").unwrap_or(field).trim_start_matches('.');
        field.chars().filter(|letter| !letter.is_ascii_digit()).collect()
    };
    for (field, at, beyond) in &cases {
        assert_eq!(sample::refused(manifest(), at), [""; 0], "{field} at its bound");
        let problems = sample::refused(manifest(), beyond);
        assert!(problems.iter().any(|problem| field_of(problem) == *field), "{field} beyond its bound: {problems:?}");
    }
    // The schema has no bounds of durations, so a new one is found here.
    let tried: BTreeSet<&str> = cases.iter().map(|(field, ..)| *field).collect();
    walk(&crd::schema()["properties"]["spec"], "", &mut |path, schema| {
        let field = path.trim_start_matches('.');
        assert!(schema["pattern"] != DURATION_PATTERN || tried.contains(field), "no case for {field}");
    });
}

//! Every YAML block of the documents passes the validation of what it configures.

use redisbench_benchmark::{api, plan};
use redisbench_testkit::documents::read;
use redisbench_testkit::markdown::{pages, parts};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

/// First fields of blocks for other programs.
const FOREIGN: [&str; 1] = ["scrape_configs"];

#[test]
fn manifests_in_documents_are_valid() {
    let chart: Value = serde_yaml::from_str(&read("charts/redisbench-operator/values.yaml")).unwrap();
    let mut checked = 0;
    for page in pages() {
        for block in parts(&read(&page)).1.into_iter().filter(|block| block.language == "yaml") {
            for document in serde_yaml::Deserializer::from_str(&block.text) {
                let document = Value::deserialize(document).unwrap_or_else(|error| panic!("{page}: {error}"));
                if let Err(problem) = check(&document, &chart) {
                    panic!("{page}, line {}: {problem}", block.line);
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 30, "only {checked} blocks");
}

/// Checks a whole object, or a part of one, which gets the rest that it needs.
fn check(document: &Value, chart: &Value) -> Result<(), String> {
    let fields = document.as_object().ok_or("is not an object")?;
    if fields.contains_key("kind") {
        return if document["kind"] == "RedisBenchmark" { validate(document) } else { Ok(()) };
    }
    if let Some(place) = place(fields) {
        return validate(&completed(fields, place));
    }
    let mut unknown = Vec::new();
    unknown_values(chart, document, "", &mut unknown);
    if unknown.is_empty() || fields.keys().any(|field| FOREIGN.contains(&field.as_str())) {
        return Ok(());
    }
    Err(format!("these fields are neither of a RedisBenchmark nor values of the chart: {}", unknown.join(", ")))
}

fn validate(manifest: &Value) -> Result<(), String> {
    let mut problems = Vec::new();
    unknown_status(&api::object_schema()["properties"]["status"], &manifest["status"], "status", &mut problems);
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let compiled = api::read(manifest).and_then(|benchmark| plan::compile(&benchmark.spec, name));
    problems.extend(compiled.err().into_iter().flatten().map(|problem| problem.to_string()));
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// The first place in a manifest, as a JSON pointer, that has all of `fields`.
fn place(fields: &Map<String, Value>) -> Option<&'static str> {
    let object = api::object_schema();
    let spec = &object["properties"]["spec"];
    let target = &spec["properties"]["targets"]["items"];
    let places = [
        ("", object),
        ("/spec", spec),
        ("/spec/targets/0", target),
        ("/spec/workload", &spec["properties"]["workload"]),
    ];
    let has_all = |schema: &Value| fields.keys().all(|field| schema["properties"].get(field).is_some());
    places.into_iter().find(|(_, schema)| has_all(schema)).map(|(place, _)| place)
}

/// A manifest with `fields` at `place`. A part of the load has the default type of this function, a workload its operations.
fn completed(fields: &Map<String, Value>, place: &str) -> Value {
    let mut manifest = json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "documented"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {},
            "load": {"type": "OpenLoop", "openLoop": {"rate": 10000}, "duration": "60s"},
        },
    });
    let at = manifest.pointer_mut(place).unwrap();
    for (name, value) in fields {
        at[name] = value.clone();
    }
    let spec = &mut manifest["spec"];
    if spec["load"]["type"].is_null() {
        spec["load"]["type"] = "ClosedLoop".into();
    }
    let workload = &mut spec["workload"];
    if ["preset", "operations", "trace"].iter().all(|field| workload[field].is_null()) {
        workload["operations"] =
            json!([{"name": "get", "command": "GET __key__"}, {"name": "set", "command": "SET __key__ __data__"}]);
    }
    manifest
}

/// Adds the fields and values of a status that its schema does not have. Users do not write it, so `api::read` does not check it.
fn unknown_status(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{path}.{name}");
                match schema["properties"].get(name) {
                    Some(schema) => unknown_status(schema, field, &path, found),
                    None => found.push(format!("{path} does not exist")),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| unknown_status(&schema["items"], item, path, found)),
        _ => {
            let allowed = schema["enum"].as_array().is_none_or(|values| values.contains(value));
            if !allowed {
                found.push(format!("{path} cannot be {value}"));
            }
        }
    }
}

/// Adds the fields that the chart's values do not have.
fn unknown_values(values: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    for (name, field) in value.as_object().into_iter().flatten() {
        match values.get(name) {
            Some(values) => unknown_values(values, field, &format!("{path}{name}."), found),
            None => found.push(format!("{path}{name}")),
        }
    }
}

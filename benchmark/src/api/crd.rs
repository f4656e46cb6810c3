//! The `CustomResourceDefinition`: the schema derived from the Rust types, with rules and bounds added.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;
use serde_json::{Map, Value, json};

use super::rules;
use super::spec::RedisBenchmark;
use super::sweepable::sweepable;

const HEADER: &str = "# Generated from benchmark/src/api by `make crds`. Do not edit.\n";

/// The definition as JSON. Cached, because it never changes.
static DEFINITION: LazyLock<Value> = LazyLock::new(|| {
    // A definition is plain data with string keys: it always serialises.
    let mut definition = serde_json::to_value(RedisBenchmark::crd()).unwrap_or_default();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
    }
    // Rules refer to the name by its path.
    schema["properties"]["metadata"] = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let fields = sweepable(&schema["properties"]["spec"]);
    schema["properties"]["spec"]["properties"]["sweep"]["items"]["properties"]["field"]["enum"] = fields.into();
    let spec = &schema["properties"]["spec"];
    let is_required =
        |field: &String| spec["required"].as_array().is_some_and(|all| all.iter().any(|one| one == field));
    let fields = spec["properties"].as_object().into_iter().flatten();
    let fields: Vec<(String, bool)> =
        fields.map(|(field, schema)| (field.clone(), is_required(field) || !schema["default"].is_null())).collect();
    rules::define(schema, &fields);
    let spec = &mut schema["properties"]["spec"]["properties"];
    let weight = spec["workload"]["properties"]["operations"]["items"]["properties"]["weight"].clone();
    let weights = &mut spec["load"]["properties"]["stages"]["items"]["properties"]["mix"]["additionalProperties"];
    for bound in ["minimum", "maximum"] {
        weights[bound] = weight[bound].clone();
    }
    let shards = &mut spec["shards"]["properties"];
    shards["jobLabels"]["additionalProperties"]["maxLength"] = LABEL_LENGTH.into();
    let template = &mut shards["template"];
    for (map, length) in [("labels", LABEL_LENGTH), ("nodeSelector", LABEL_LENGTH), ("annotations", ANNOTATION_LENGTH)]
    {
        template["properties"][map]["additionalProperties"]["maxLength"] = length.into();
    }
    bound(template, Bounds::FOREIGN);
    undescribe(template);
    // They refer to claims of the pod, which the template cannot make.
    if let Some(resources) = template["properties"]["resources"]["properties"].as_object_mut() {
        resources.remove("claims");
    }
    let status = &mut schema["properties"]["status"];
    bound(status, Bounds::STATUS);
    plain_integers(status);
    // As kstatus wants it: without an operator, or before its first look, a benchmark is not taken for finished.
    status["default"] = json!({"observedGeneration": -1});
    tidy(&mut definition);
    definition
});

/// The definition to apply to an API server.
pub fn custom_resource_definition() -> CustomResourceDefinition {
    serde_json::from_value(DEFINITION.clone()).unwrap_or_default()
}

/// Schema of a whole object.
pub fn schema() -> &'static Value {
    &DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Content of `crds/redisbenchmarks.redisbench.dev.yaml`.
pub fn crd_yaml() -> String {
    format!("{HEADER}{}", yaml(&DEFINITION))
}

/// Content of `charts/redisbench-operator/templates/crd.yaml`. As a template, it is upgraded with the chart, but can be kept on uninstall.
pub fn chart_crd_template() -> String {
    let mut definition = DEFINITION.clone();
    // Replaced by text below: an expression of the template is no YAML.
    definition["metadata"]["annotations"] = json!({"annotations": "go here"});
    let keep = "  {{- if .Values.crds.keep }}\n  annotations:\n    helm.sh/resource-policy: keep\n  {{- end }}\n  \
                labels:\n    {{- include \"redisbench.labels\" . | nindent 4 }}\n";
    // Braces in a description would be taken for the template's.
    let text =
        yaml(&definition).replace("{{", "{{ \"{{\" }}").replace("  annotations:\n    annotations: go here\n", keep);
    format!("{HEADER}{{{{- if .Values.crds.install }}}}\n{text}{{{{- end }}}}\n")
}

fn yaml(definition: &Value) -> String {
    serde_yaml::to_string(definition).unwrap_or_default()
}

/// Maximum length of a label's value in Kubernetes.
const LABEL_LENGTH: u64 = 63;
/// Maximum length of an annotation's value: enough for a network attachment in JSON. Kubernetes allows 256 KiB for all annotations
/// together.
const ANNOTATION_LENGTH: u64 = 8192;
/// Maximum length of a list of values to choose from, such as instance types in an affinity's expression.
const VALUES: u64 = 64;

/// Bounds for unbounded fields: the API server estimates the cost of rules from them.
#[derive(Clone, Copy)]
struct Bounds {
    items: u64,
    properties: u64,
    length: u64,
}

impl Bounds {
    /// For Kubernetes types in the shards' template.
    const FOREIGN: Self = Self { items: 8, properties: 32, length: 253 };
    /// For fields that the operator writes, unless they set their own.
    const STATUS: Self = Self { items: 64, properties: 64, length: 32_768 };
}

fn bound(schema: &mut Value, bounds: Bounds) {
    let Some(object) = schema.as_object_mut() else { return };
    let is = |kind: &str| object.get("type").and_then(Value::as_str) == Some(kind);
    let (keyword, limit) = if is("array") {
        ("maxItems", bounds.items)
    } else if is("object") && object.contains_key("additionalProperties") {
        ("maxProperties", bounds.properties)
    } else if (is("string") && !object.contains_key("enum")) || object.contains_key("x-kubernetes-int-or-string") {
        ("maxLength", bounds.length)
    } else {
        ("", 0)
    };
    if !keyword.is_empty() && !object.contains_key(keyword) {
        object.insert(keyword.into(), limit.into());
    }
    for (name, child) in children(object) {
        let items = if name == "values" { VALUES.max(bounds.items) } else { bounds.items };
        bound(child, Bounds { items, ..bounds });
    }
}

/// Removes the format and the minimum of integers that only the operator writes: they are a twentieth of the definition, and client-side
/// apply must fit it into an annotation.
fn plain_integers(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.get("type").is_some_and(|kind| kind == "integer") {
        object.remove("format");
        object.remove("minimum");
    }
    children(object).for_each(|(_, child)| plain_integers(child));
}

/// Child schemas with their names. Those of a list's items and a map's values have the keyword as name.
fn children(schema: &mut Map<String, Value>) -> impl Iterator<Item = (&str, &mut Value)> {
    schema.iter_mut().flat_map(|(keyword, value)| match (keyword.as_str(), value) {
        ("properties", Value::Object(properties)) => {
            properties.iter_mut().map(|(name, value)| (name.as_str(), value)).collect::<Vec<_>>()
        }
        (keyword @ ("items" | "additionalProperties"), value) => vec![(keyword, value)],
        _ => Vec::new(),
    })
}

/// Removes the descriptions of Kubernetes' own types: they are most of the schema, `kubectl explain pod.spec` prints them, and client-side
/// apply must fit the definition into an annotation.
fn undescribe(template: &mut Value) {
    fn strip(schema: &mut Value) {
        let Some(object) = schema.as_object_mut() else { return };
        object.remove("description");
        children(object).for_each(|(_, child)| strip(child));
    }
    let Some(properties) = template["properties"].as_object_mut() else { return };
    for property in properties.values_mut() {
        let Some(object) = property.as_object_mut() else { continue };
        children(object).for_each(|(_, child)| strip(child));
    }
}

/// Text up to the first full stop that ends a sentence: an upper-case word follows, and no abbreviation precedes it.
pub fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at).find(|at| {
        let next = text[at + 2..].chars().next();
        let abbreviated = ["e.g", "i.e", "etc"].iter().any(|short| text[..*at].ends_with(short));
        !abbreviated && next.is_some_and(|next| !next.is_lowercase())
    });
    ends.map_or(text, |at| &text[..=at])
}

/// Removes parts of the derived schema that the API server would warn about or that confuse readers.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(format) = object.get_mut("format")
                && let Some("uint8" | "uint16" | "uint32" | "uint64") = format.as_str()
            {
                *format = json!("int64");
            }
            if let Some(Value::String(description)) = object.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            // A null would be a third state beside set and not set: without this the API server drops it.
            if object.get("type").is_some_and(Value::is_string) {
                object.remove("nullable");
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        Value::Number(number) => {
            // Bounds are floats in the definition's type, and whole numbers in fact.
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9.1e15) {
                #[allow(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
                let whole = float as i64;
                *number = whole.into();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;

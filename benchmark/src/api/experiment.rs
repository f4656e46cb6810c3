//! `spec.repeats` and `spec.sweep`: several trials from one spec. The doc comments are the text of `kubectl explain`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::crd;
use super::duration::{DURATION_PATTERN, GoDuration};
use super::keys::DECIMAL_PATTERN;
use super::problem::Problem;
use super::schema;
use super::spec::default_one;

/// Maximum trials of a benchmark. Its status has a line for each, and must fit into the API server's limit.
pub const MOST_TRIALS: u64 = 250;

/// Maximum length of a sweep's value in characters.
const VALUE_LENGTH: usize = 64;

/// Repeats of all trials: a single run proves little.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepeatsSpec {
    /// Number of runs of each trial, 1 to 50. `status.repeats` reports their spread. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 50))]
    pub count: u32,
    /// Time without connections to the target before each trial but the first, 0s to 1h. It also applies to the trials of a sweep and of
    /// `workload.preset`, and to the steps of a search. Default 0s: the next trial starts once all connections are closed.
    #[serde(default = "default_interval")]
    pub interval: GoDuration,
}

/// Field of the spec and its values, one trial for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweepSpec {
    /// Path of the field, such as `load.pipeline`: a number, duration or enum below `load` or `workload`, or `shards.count`.
    pub field: String,
    /// Values of the field, 1 to 250: whole numbers, or strings in the field's own format, such as `"0.99"`, `10s` or `Zipf`.
    #[schemars(length(min = 1, max = 250))]
    pub values: Vec<SweepValue>,
}

/// Value of a swept field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SweepValue {
    /// A whole number.
    Number(i64),
    /// Anything else.
    Text(String),
}

/// Order of the combinations of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SweepOrder {
    /// Random by `workload.seed`, different in each repeat, so that changes over time affect all combinations alike.
    #[default]
    Random,
    /// As listed; the last list varies fastest.
    Listed,
}

impl Default for RepeatsSpec {
    fn default() -> Self {
        Self { count: default_one(), interval: default_interval() }
    }
}

fn default_interval() -> GoDuration {
    GoDuration::new("0s")
}

impl JsonSchema for SweepValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SweepValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "maxLength": VALUE_LENGTH})
    }
}

impl fmt::Display for SweepValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Text(text) => write!(formatter, "{text}"),
        }
    }
}

impl SweepValue {
    /// The value as JSON for a spec.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
        }
    }
}

/// Fields that can be swept, from the schema of a spec: numbers, durations and enums. Entries of lists are excluded, because they have no
/// path.
pub(super) fn sweepable(spec: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    for part in ["load", "workload"] {
        walk(&spec["properties"][part], part, &mut fields);
    }
    fields.push("shards.count".to_owned());
    fields.sort();
    fields
}

fn walk(schema: &Value, path: &str, fields: &mut Vec<String>) {
    if is_sweepable(schema) {
        fields.push(path.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flat_map(Map::iter) {
        walk(property, &format!("{path}.{name}"), fields);
    }
}

fn is_sweepable(schema: &Value) -> bool {
    match schema["type"].as_str() {
        Some("integer") => true,
        Some("string") => {
            let pattern = schema["pattern"].as_str().unwrap_or_default();
            schema["enum"].is_array() || pattern == DECIMAL_PATTERN || pattern == DURATION_PATTERN
        }
        _ => false,
    }
}

/// Checks that each value of a sweep is valid for its field.
pub(crate) fn check_sweep(sweep: &[SweepSpec]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, entry) in sweep.iter().enumerate() {
        let steps = entry.field.split('.');
        let leaf = steps.fold(&crd::schema()["properties"]["spec"], |schema, step| &schema["properties"][step]);
        // The schema's enum has said it already.
        if !is_sweepable(leaf) {
            continue;
        }
        for (place, value) in entry.values.iter().enumerate() {
            let field = format!("spec.sweep[{index}].values[{place}]");
            let before = problems.len();
            schema::check(leaf, &value.to_json(), &field, &mut problems);
            for problem in &mut problems[before..] {
                problem.message = format!("{}, as {} is", problem.message, entry.field);
            }
            if entry.values[..place].contains(value) {
                problems.push(Problem::new(field, value, "is listed twice: remove one, or set repeats.count"));
            }
        }
    }
    problems
}

/// Sets `field`, a path, to `value` in the JSON of a spec.
pub(crate) fn set(spec: &mut Value, field: &str, value: &SweepValue) {
    let mut at = spec;
    for step in field.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[step];
    }
    *at = value.to_json();
}

#[cfg(test)]
pub(crate) fn sweepable_fields() -> Vec<String> {
    sweepable(&crd::schema()["properties"]["spec"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_durations_and_enums_can_be_swept() {
        let fields = sweepable_fields();
        for field in [
            "load.pipeline",
            "load.connections",
            "load.openLoop.rate",
            "load.openLoop.arrival",
            "load.openLoop.pacingGrid",
            "load.closedLoop.concurrency",
            "load.pipelineMode",
            "load.timeouts.request",
            "workload.keys.count",
            "workload.keys.pattern.type",
            "workload.keys.pattern.zipf.exponent",
            "workload.values.size.fixed.bytes",
            "workload.seed",
            "shards.count",
        ] {
            assert!(fields.iter().any(|known| known == field), "{field} is not among {fields:?}");
        }
        for field in ["load", "load.stages", "workload.keys.prefix", "workload.operations", "shards.placement"] {
            assert!(!fields.iter().any(|known| known == field), "{field}");
        }
        assert_eq!(
            crd::schema()["properties"]["spec"]["properties"]["sweep"]["items"]["properties"]["field"]["enum"],
            json!(fields)
        );
    }

    fn problems(field: &str, values: &Value) -> Vec<String> {
        let values = serde_json::from_value(values.clone()).unwrap();
        check_sweep(&[SweepSpec { field: field.into(), values }]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_value_is_one_that_the_field_could_have() {
        assert_eq!(problems("load.pipeline", &json!([1, 10])), [""; 0]);
        assert_eq!(problems("workload.keys.pattern.zipf.exponent", &json!(["0.99", "1.2"])), [""; 0]);
        assert_eq!(problems("load.timeouts.request", &json!(["10ms", "1s"])), [""; 0]);
        assert_eq!(problems("load.openLoop.arrival", &json!(["Constant", "Poisson"])), [""; 0]);
        assert_eq!(
            problems("load.pipeline", &json!(["ten"])),
            ["spec.sweep[0].values[0]: \"ten\": must be a whole number, as load.pipeline is"]
        );
        assert_eq!(
            problems("load.pipeline", &json!([1, 10_001])),
            ["spec.sweep[0].values[1]: 10001: must be at most 10000, as load.pipeline is"]
        );
        assert_eq!(
            problems("load.openLoop.arrival", &json!(["Sometimes"])),
            ["spec.sweep[0].values[0]: Sometimes: must be one of Constant, Poisson, as load.openLoop.arrival is"]
        );
        assert_eq!(
            problems("shards.count", &json!([2, 2])),
            ["spec.sweep[0].values[1]: 2: is listed twice: remove one, or set repeats.count"]
        );
    }

    #[test]
    fn a_path_is_made_where_nothing_was() {
        let mut spec = json!({"load": {"pipeline": 1}});
        set(&mut spec, "load.pipeline", &SweepValue::Number(10));
        set(&mut spec, "load.closedLoop.concurrency", &SweepValue::Number(5));
        assert_eq!(spec, json!({"load": {"pipeline": 10, "closedLoop": {"concurrency": 5}}}));
    }
}

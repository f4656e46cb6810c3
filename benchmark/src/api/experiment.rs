//! `spec.repeats` and `spec.sweep`: what makes several trials of one spec. The doc comments are the text of
//! `kubectl explain`.

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

/// The most characters of a value of a sweep.
const VALUE_LENGTH: usize = 64;

/// Runs everything again, in the same way: one run proves little.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepeatsSpec {
    /// How often each trial is run, 1 to 50. `status.repeats` says how far the runs are apart. Default 1.
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = 50))]
    pub count: u32,
    /// How long nobody is connected to the target before each trial but the first, 0s to 1h. It holds for the trials of a
    /// sweep and of `workload.preset`, and for the steps of a search, too. Default 0s: the next begins as soon as nobody is connected.
    #[serde(default = "default_interval")]
    pub interval: GoDuration,
}

/// A field of the spec, and the values that it takes, one trial each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweepSpec {
    /// Which field: a number, a duration or one of a few words below `load` or `workload`, or `shards.count`, by its path,
    /// such as `load.pipeline`.
    pub field: String,
    /// Its values, 1 to 250 of them: whole numbers, or strings as the field itself would have them, such as `"0.99"`, `10s`
    /// or `Zipf`.
    #[schemars(length(min = 1, max = 250))]
    pub values: Vec<SweepValue>,
}

/// A value of a swept field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SweepValue {
    /// A whole number.
    Number(i64),
    /// Anything else.
    Text(String),
}

/// In which order the cells of a sweep are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SweepOrder {
    /// At random by `workload.seed`, in each repeat in another order: what changes over time hits no cell more than
    /// another.
    #[default]
    Random,
    /// As they are listed; the last list varies fastest.
    Listed,
}

impl Default for RepeatsSpec {
    fn default() -> Self {
        Self { count: default_count(), interval: default_interval() }
    }
}

fn default_count() -> u32 {
    1
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
    /// As it stands in a spec.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
        }
    }
}

/// The fields that can be swept, of the schema of a spec: what is a number, a duration or an enum. Lists are not stepped
/// into: their entries have no path.
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

/// What is wrong with the values of a sweep by themselves: each must be one that the field could have.
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
                problems.push(Problem::new(field, value, "stands there twice: remove one, or set repeats.count"));
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

/// All fields that can be swept.
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
            ["spec.sweep[0].values[1]: 2: stands there twice: remove one, or set repeats.count"]
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

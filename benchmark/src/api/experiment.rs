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

/// Maximum swept fields. Each line of the status names all of them.
pub const MOST_SWEPT: u64 = 4;

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
    /// Path of the field, such as `load.pipeline`: a number, duration or enum below `load` or `workload`, the weight of one of the first
    /// eight operations, such as `workload.operations[0].weight`, or `shards.count`.
    pub field: String,
    /// Values of the field, 1 to 250: whole numbers, or strings in the field's own format, such as `"0.99"`, `10s` or `Zipf`.
    #[schemars(length(min = 1, max = 250))]
    pub values: Vec<SweepValue>,
    /// Further fields that change together with `field`, up to 3: the first values of all, then the second ones and so on. Not set by
    /// default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["field"]))]
    pub with: Vec<SweptWith>,
}

/// Field that changes together with the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweptWith {
    /// Path of the field, one of those of `sweep[].field`.
    #[schemars(length(max = 64))]
    pub field: String,
    /// Values of the field, as many as those of the first.
    #[schemars(length(min = 1, max = 250))]
    pub values: Vec<SweepValue>,
}

impl SweepSpec {
    /// Its field and those of `with`, each with its values and its path below the entry.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[SweepValue], String)> {
        let with = self.with.iter().enumerate();
        let with = with.map(|(index, one)| (one.field.as_str(), one.values.as_slice(), format!(".with[{index}]")));
        std::iter::once((self.field.as_str(), self.values.as_slice(), String::new())).chain(with)
    }

    /// The values that are set together, at `place` of the lists.
    pub fn row(&self, place: usize) -> Vec<(&str, &SweepValue)> {
        self.fields().filter_map(|(field, values, _)| Some((field, values.get(place)?))).collect()
    }
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

/// Operations whose weight can be swept: the first ones.
const OPERATIONS: usize = 8;

/// Fields that can be swept, from the schema of a spec: numbers, durations and enums. Of entries of lists, only weights of operations.
pub(super) fn sweepable(spec: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    for part in ["load", "workload"] {
        walk(&spec["properties"][part], part, &mut fields);
    }
    fields.push("shards.count".to_owned());
    fields.extend((0..OPERATIONS).map(|index| format!("workload.operations[{index}].weight")));
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

/// Checks that each field of a sweep can be swept, is listed once, and has values that are valid for it.
pub(crate) fn check_sweep(sweep: &[SweepSpec]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut known: Vec<&str> = sweep.iter().map(|entry| entry.field.as_str()).collect();
    for (index, entry) in sweep.iter().enumerate() {
        for (place, one) in entry.with.iter().enumerate() {
            let field = format!("spec.sweep[{index}].with[{place}].field");
            let message = if known.contains(&one.field.as_str()) {
                "is swept twice: remove one of them"
            } else if !is_of_the_sweepable(&one.field) {
                "cannot be swept: name a number, duration or enum of those of sweep[].field, such as load.pipeline"
            } else {
                known.push(&one.field);
                continue;
            };
            problems.push(Problem::new(field, &one.field, message));
        }
        for (field, values, path) in entry.fields() {
            let leaf = leaf(field);
            // Reported before: by the schema's enum, or above.
            if !is_sweepable(leaf) {
                continue;
            }
            for (place, value) in values.iter().enumerate() {
                let at = format!("spec.sweep[{index}]{path}.values[{place}]");
                let before = problems.len();
                schema::check(leaf, &value.to_json(), &at, &mut problems);
                for problem in &mut problems[before..] {
                    problem.message = format!("{}, as {field} is", problem.message);
                }
            }
        }
        let rows: Vec<_> = (0..entry.values.len()).map(|place| entry.row(place)).collect();
        for (place, row) in rows.iter().enumerate().filter(|(place, row)| rows[..*place].contains(row)) {
            let shown: Vec<_> = row.iter().map(|(_, value)| value.to_string()).collect();
            let field = format!("spec.sweep[{index}].values[{place}]");
            let message = "is listed twice: remove one, or set repeats.count";
            problems.push(Problem::new(field, shown.join(", "), message));
        }
    }
    problems
}

fn is_of_the_sweepable(field: &str) -> bool {
    sweepable(&crd::schema()["properties"]["spec"]).iter().any(|known| known == field)
}

/// The schema of a field by its path; null if there is none.
fn leaf(field: &str) -> &'static Value {
    field.split('.').fold(&crd::schema()["properties"]["spec"], |schema, step| match entry(step) {
        (list, Some(_)) => &schema["properties"][list]["items"],
        (property, None) => &schema["properties"][property],
    })
}

/// A step of a path: the property, and the index of an entry such as `operations[0]`.
fn entry(step: &str) -> (&str, Option<usize>) {
    let indexed = step.strip_suffix(']').and_then(|step| step.split_once('['));
    match indexed.and_then(|(list, index)| Some((list, index.parse().ok()?))) {
        Some((list, index)) => (list, Some(index)),
        None => (step, None),
    }
}

/// Problems of swept fields of operations that `operations`, their number, does not have.
pub(crate) fn check_swept_operations(sweep: &[SweepSpec], operations: usize) -> Vec<Problem> {
    let swept = |field: &str| field.split('.').find_map(|step| entry(step).1);
    let all = sweep.iter().enumerate().flat_map(|(index, one)| one.fields().map(move |field| (index, field)));
    let missing = all.filter(|(_, (field, ..))| swept(field).is_some_and(|index| index >= operations));
    missing
        .map(|(index, (field, _, path))| {
            let message =
                format!("is none of the {operations} operations, which are numbered from 0: name one of these");
            Problem::new(format!("spec.sweep[{index}]{path}.field"), field, message)
        })
        .collect()
}

/// Sets `field`, a path, to `value` in the JSON of a spec. Without effect if an entry of a list is missing.
pub(crate) fn set(spec: &mut Value, field: &str, value: &SweepValue) {
    let mut at = spec;
    for step in field.split('.') {
        let (property, index) = entry(step);
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[property];
        if let Some(index) = index {
            let Some(entry) = at.get_mut(index) else { return };
            at = entry;
        }
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
            "workload.operations[0].weight",
            "workload.operations[7].weight",
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
        check_sweep(&[SweepSpec { field: field.into(), values, with: Vec::new() }])
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn fields_that_change_together_are_checked_like_the_first() {
        let problems = |with: Value| -> Vec<String> {
            let sweep = json!([{"field": "load.pipeline", "values": [1, 1], "with": with}]);
            let sweep: Vec<SweepSpec> = serde_json::from_value(sweep).unwrap();
            check_sweep(&sweep).iter().map(ToString::to_string).collect()
        };
        assert_eq!(problems(json!([{"field": "load.connections", "values": [10, 20]}])), [""; 0]);
        assert_eq!(
            problems(json!([{"field": "load.connections", "values": [10, 10]}])),
            ["spec.sweep[0].values[1]: 1, 10: is listed twice: remove one, or set repeats.count"]
        );
        assert_eq!(
            problems(json!([{"field": "load.connections", "values": [10, 0]}])),
            ["spec.sweep[0].with[0].values[1]: 0: must be at least 1, as load.connections is"]
        );
        assert_eq!(
            problems(
                json!([{"field": "load.connections", "values": [1, 2]}, {"field": "load.pipeline", "values": [3, 4]}])
            ),
            ["spec.sweep[0].with[1].field: load.pipeline: is swept twice: remove one of them"]
        );
        assert_eq!(
            problems(json!([{"field": "repeats.count", "values": [1, 2]}])),
            [
                "spec.sweep[0].with[0].field: repeats.count: cannot be swept: name a number, duration or enum of those of \
                 sweep[].field, such as load.pipeline"
            ]
        );
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
            problems("workload.operations[1].weight", &json!([1, 0])),
            ["spec.sweep[0].values[1]: 0: must be at least 1, as workload.operations[1].weight is"]
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

//! `spec.sweep`: a trial for each combination of values. The doc comments are the text of `kubectl explain`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum trials of a benchmark. Its status has a line for each, and must fit into the API server's limit.
pub const MOST_TRIALS: u64 = 250;

/// Maximum swept fields. Each line of the status names all of them.
pub const MOST_SWEPT: u64 = 4;

/// Maximum length of a sweep's value in characters.
const VALUE_LENGTH: usize = 64;

/// Field of the spec and its values, one trial for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SweepSpec {
    /// Path of the field, such as `load.pipeline`: a number, duration or enum below `load` or `workload`, the weight or rate of one of the
    /// first eight operations, such as `workload.operations[0].weight`, or `shards.count`.
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

/// A step of a path: the property, and the index of an entry such as `operations[0]`.
pub(super) fn entry(step: &str) -> (&str, Option<usize>) {
    let indexed = step.strip_suffix(']').and_then(|step| step.split_once('['));
    match indexed.and_then(|(list, index)| Some((list, index.parse().ok()?))) {
        Some((list, index)) => (list, Some(index)),
        None => (step, None),
    }
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
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_is_made_where_nothing_was() {
        let mut spec = json!({"load": {"pipeline": 1}});
        set(&mut spec, "load.pipeline", &SweepValue::Number(10));
        set(&mut spec, "load.closedLoop.concurrency", &SweepValue::Number(5));
        assert_eq!(spec, json!({"load": {"pipeline": 10, "closedLoop": {"concurrency": 5}}}));
    }
}

//! The fields of a spec that a sweep can set.

use serde_json::{Map, Value};

use super::patterns::{DECIMAL_PATTERN, DURATION_PATTERN};

/// Operations whose weight or rate can be swept: the first ones.
const OPERATIONS: usize = 8;

/// Fields that can be swept, from the schema of a spec: numbers, durations and enums. Of entries of lists, only weights and rates of
/// operations.
pub(super) fn sweepable(spec: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    for part in ["load", "workload"] {
        walk(&spec["properties"][part], part, &mut fields);
    }
    fields.push("shards.count".to_owned());
    let of_operations = ["weight", "rate"];
    fields
        .extend((0..OPERATIONS).flat_map(|index| of_operations.map(|of| format!("workload.operations[{index}].{of}"))));
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

pub(super) fn is_sweepable(schema: &Value) -> bool {
    match schema["type"].as_str() {
        Some("integer") => true,
        Some("string") => {
            let pattern = schema["pattern"].as_str().unwrap_or_default();
            schema["enum"].is_array() || pattern == DECIMAL_PATTERN || pattern == DURATION_PATTERN
        }
        _ => false,
    }
}

//! Reads JSON by pointer, with errors that name the pointer.

use anyhow::{Context, Result};
use serde_json::Value;

/// The count at a JSON pointer.
pub fn count(object: &Value, pointer: &str) -> Result<u64> {
    object.pointer(pointer).and_then(Value::as_u64).with_context(|| format!("no count at {pointer} in {object}"))
}

/// The text at a JSON pointer.
pub fn text<'a>(object: &'a Value, pointer: &str) -> Result<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).with_context(|| format!("no text at {pointer} in {object}"))
}

/// The list at a JSON pointer; empty if it is missing.
pub fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// JSON merge patch (RFC 7386): members of `patch` replace those of `object`, null removes.
pub fn merge(object: &mut Value, patch: &Value) {
    let (Value::Object(members), Value::Object(changes)) = (&mut *object, patch) else {
        *object = patch.clone();
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            members.remove(key);
        } else if change.is_object() {
            merge(members.entry(key).or_insert_with(|| Value::Object(serde_json::Map::new())), change);
        } else {
            members.insert(key.clone(), change.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::merge;
    use serde_json::json;

    #[test]
    fn a_merge_replaces_adds_and_removes() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        merge(&mut object, &json!({"a": {"b": 3, "c": null}, "d": [2], "e": {"f": 4}}));
        assert_eq!(object, json!({"a": {"b": 3}, "d": [2], "e": {"f": 4}}));
    }
}

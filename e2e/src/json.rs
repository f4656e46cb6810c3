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

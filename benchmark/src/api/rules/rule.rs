//! A rule across fields.

use serde_json::{Value, json};

/// Path of the spec, where most rules are.
pub(super) const SPEC: &str = "spec";

/// Rule and its place in the schema.
pub(super) struct Rule {
    /// Path of properties below the root's, separated by `.`; empty for the root. `[]` steps into a list's items.
    pub(super) at: &'static str,
    /// Path below `at` of the field that the message is about; empty for `at` itself.
    pub(super) field: String,
    /// CEL that is true of a valid object.
    pub(super) condition: String,
    /// The problem with the field, and how to fix it, with a `%s` for each of `values`.
    pub(super) message: String,
    /// CEL of the values that the message shows, all of one type. The API server must be able to bound its cost.
    pub(super) values: Vec<String>,
}

impl Rule {
    pub(super) fn new(
        at: &'static str,
        field: impl Into<String>,
        condition: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { at, field: field.into(), condition: condition.into(), message: message.into(), values: Vec::new() }
    }

    /// Fills in the message's `%s`.
    pub(super) fn showing<const N: usize>(self, values: [&str; N]) -> Self {
        Self { values: values.map(str::to_owned).into(), ..self }
    }

    pub(super) fn to_schema(&self) -> Value {
        let mut rule = json!({"rule": self.condition});
        if self.values.is_empty() {
            rule["message"] = self.message.as_str().into();
        } else {
            let text = self.message.replace('\'', "\\'");
            rule["messageExpression"] = format!("'{text}'.format([{}])", self.values.join(", ")).into();
        }
        if !self.field.is_empty() {
            rule["fieldPath"] = format!(".{}", self.field).into();
        }
        rule
    }
}

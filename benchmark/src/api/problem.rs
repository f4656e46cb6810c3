use std::fmt;

/// Problem with one field of a manifest, and its fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path of the field, such as `spec.load.connections`.
    pub field: String,
    /// Value of the field; empty if unset, or if the message shows it. Long values are cut.
    pub value: String,
    /// Error, and how to fix it.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(field: impl Into<String>, value: impl fmt::Display, message: impl Into<String>) -> Self {
        let value = value.to_string();
        let shown: String = value.chars().take(60).collect();
        let value = if shown.len() < value.len() { format!("{shown}...") } else { value };
        Self { field: field.into(), value, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(formatter, "{}: {}", self.field, self.message)
        } else {
            write!(formatter, "{}: {}: {}", self.field, self.value, self.message)
        }
    }
}

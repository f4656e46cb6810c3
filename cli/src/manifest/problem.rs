//! Problems of manifests.

use std::fmt;

use redisbench_benchmark::api;

/// A problem in a manifest, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field's path, such as `spec.load.connections`. Empty for a problem of the file itself.
    pub field: String,
    /// The problem, and how to fix it.
    pub message: String,
}

impl Problem {
    pub fn field(path: &str, message: String) -> Self {
        Self { field: path.to_owned(), message }
    }

    pub fn file(message: String) -> Self {
        Self { field: String::new(), message }
    }
}

impl From<Problem> for Vec<Problem> {
    fn from(problem: Problem) -> Self {
        vec![problem]
    }
}

impl From<api::Problem> for Problem {
    fn from(problem: api::Problem) -> Self {
        let api::Problem { field, value, message } = problem;
        Self { field, message: if value.is_empty() { message } else { format!("{value}: {message}") } }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            formatter.write_str(&self.message)
        } else {
            write!(formatter, "{}: {}", self.field, self.message)
        }
    }
}

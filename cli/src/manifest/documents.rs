//! Splits a YAML file into its documents.

use std::io::Read as _;
use std::path::Path;

use serde::Deserialize as _;
use serde_json::Value;

use super::problem::Problem;

/// Reads all of `file`, or of standard input for `-`.
///
/// # Errors
/// If it cannot be read, is larger than `most` bytes or is not text.
pub fn read(file: &Path, most: u64) -> Result<String, Problem> {
    let mut text = String::new();
    let unreadable = |error: std::io::Error| Problem::file(format!("cannot be read: {error}"));
    let bounded = most + 1;
    let length = if file == Path::new("-") {
        std::io::stdin().lock().take(bounded).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).map_err(unreadable)?.take(bounded).read_to_string(&mut text)
    }
    .map_err(unreadable)?;
    if length as u64 > most {
        return Err(Problem::file(format!("is larger than {} MiB", most >> 20)));
    }
    Ok(text)
}

/// Splits `text` into its documents, without empty ones.
///
/// # Errors
/// If a document is not YAML, or has keys that JSON does not allow.
pub fn split(text: &str) -> Result<Vec<Value>, Problem> {
    let mut documents = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        // Through a YAML value, which rejects duplicate keys.
        let value =
            serde_yaml::Value::deserialize(document).map_err(|error| Problem::file(format!("is not YAML: {error}")))?;
        let value = serde_json::to_value(value)
            .map_err(|error| Problem::file(format!("has YAML that JSON cannot represent: {error}")))?;
        if !value.is_null() {
            documents.push(value);
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn several_documents() {
        let documents = split("---\na: 1\n---\n# nothing\n---\nc: [x]\n").unwrap();
        assert_eq!(documents, [json!({"a": 1}), json!({"c": ["x"]})]);
    }

    #[test]
    fn a_key_twice_is_refused() {
        assert!(split("a: 1\na: 2\n").unwrap_err().message.contains("duplicate"));
    }

    #[test]
    fn broken_text_names_the_place() {
        let problem = split("a: [1\nb: 2\n").unwrap_err();
        assert!(problem.message.contains("line"), "{}", problem.message);
    }
}

//! Writes a manifest for people: the fields that were set, in the order of the API, with or without their explanations.

use std::fmt::Write as _;

use redisbench_benchmark::api;
use serde_json::{Map, Value};

use super::Manifest;

/// The longest line of a comment.
const WIDTH: usize = 100;

/// Writes `manifest` as YAML below `head`, the lines of a comment. If `explained`, each field has the first sentence of its description in
/// `kubectl explain`.
pub fn write(manifest: &Manifest, head: &[String], explained: bool) -> String {
    let mut text = String::new();
    for line in head {
        comment(&mut text, 0, line);
    }
    // Typed values keep the order of the API. A benchmark always serialises.
    let order = serde_yaml::to_value(&manifest.benchmark).unwrap_or_default();
    let schema = if explained { api::object_schema() } else { &Value::Null };
    if let Some(fields) = manifest.document.as_object() {
        write_fields(&mut text, Place { indent: 0, item: false }, fields, &order, schema);
    }
    text
}

/// Position of an object in the text.
#[derive(Clone, Copy)]
struct Place {
    indent: usize,
    /// The object is an item of a list, so that its first line has a dash.
    item: bool,
}

fn write_fields(
    text: &mut String,
    place: Place,
    fields: &Map<String, Value>,
    order: &serde_yaml::Value,
    schema: &Value,
) {
    let known: Vec<&str> =
        order.as_mapping().into_iter().flat_map(|known| known.keys()).filter_map(serde_yaml::Value::as_str).collect();
    let mut names: Vec<&String> = fields.keys().collect();
    names.sort_by_key(|name| known.iter().position(|known| known == name).unwrap_or(known.len()));
    for (index, name) in names.into_iter().enumerate() {
        let field = &schema["properties"][name.as_str()];
        let (indent, dash) = if place.item && index == 0 { (place.indent - 2, "- ") } else { (place.indent, "") };
        if let Some(description) = field["description"].as_str() {
            comment(text, indent, api::first_sentence(description));
        }
        let _ = write!(text, "{:indent$}{dash}{name}:", "");
        write_value(text, place.indent, &fields[name], &order[name.as_str()], field);
    }
}

/// Writes what follows the colon of a field at `indent`.
fn write_value(text: &mut String, indent: usize, value: &Value, order: &serde_yaml::Value, schema: &Value) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            write_fields(text, Place { indent: indent + 2, item: false }, fields, order, schema);
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            text.push('\n');
            for (index, item) in items.iter().enumerate() {
                // Explained once.
                let schema = if index == 0 { &schema["items"] } else { &Value::Null };
                if let Some(fields) = item.as_object() {
                    write_fields(text, Place { indent: indent + 2, item: true }, fields, &order[index], schema);
                }
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            let _ = writeln!(text, " [{}]", items.join(", "));
        }
        scalar => {
            let _ = writeln!(text, " {}", block(scalar));
        }
    }
}

/// A scalar, or an empty object.
fn block(value: &Value) -> String {
    let plain = serde_yaml::to_string(value).unwrap_or_default();
    let plain = plain.trim_end_matches('\n');
    match value {
        Value::String(text) if plain.contains('\n') || !text.chars().all(is_plain) => quoted(text),
        _ => plain.to_owned(),
    }
}

/// A scalar in brackets, where more characters have a meaning.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if !text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') => {
            quoted(text)
        }
        other => block(other),
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_graphic() || letter == ' '
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        let _ = match letter {
            '"' | '\\' => write!(quoted, "\\{letter}"),
            '\n' => write!(quoted, "\\n"),
            letter if is_plain(letter) => write!(quoted, "{letter}"),
            letter if u32::from(letter) <= 0xffff => write!(quoted, "\\u{:04X}", u32::from(letter)),
            letter => write!(quoted, "\\U{:08X}", u32::from(letter)),
        };
    }
    quoted.push('"');
    quoted
}

/// Writes `words` as a comment, wrapped. A line of the comment never ends early: control characters would end it.
fn comment(text: &mut String, indent: usize, words: &str) {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() && indent + 2 + line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{:indent$}#{line}", "");
            line.clear();
        }
        line.push(' ');
        line.extend(
            word.chars()
                .filter(|letter| !letter.is_control() && !matches!(letter, '\u{feff}' | '\u{fffe}' | '\u{ffff}')),
        );
    }
    let _ = writeln!(text, "{:indent$}#{line}", "");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::manifest::{of, parse};

    fn document(name: &str, prefix: &str, command: &str) -> Value {
        json!({
            "apiVersion": "redisbench.dev/v1alpha1",
            "kind": "RedisBenchmark",
            "metadata": {"name": name},
            "spec": {
                "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["[::1]:6379"], "tls": {}}],
                "workload": {
                    "operations": [{"name": "a", "command": command}, {"name": "b", "weight": 3, "command": "PING"}],
                    "keys": {"prefix": prefix, "count": 10},
                },
                "load": {"type": "ClosedLoop", "duration": "10s"},
                "measurement": {"percentiles": [50, 99.9], "breakdown": ["Node"]},
            },
        })
    }

    #[test]
    fn fields_are_in_the_order_of_the_api_and_explained_once() {
        let manifest = of(document("a", "rb:", "GET __key__"), Vec::new()).unwrap();
        assert_eq!(
            write(&manifest, &["One line.".to_owned()], false),
            "# One line.\napiVersion: redisbench.dev/v1alpha1\nkind: RedisBenchmark\nmetadata:\n  name: a\nspec:\n  targets:\n  \
             - name: redis\n    type: Standalone\n    endpoints: [\"[::1]:6379\"]\n    tls: {}\n  workload:\n    operations:\n    \
             - name: a\n      command: GET __key__\n    - name: b\n      weight: 3\n      command: PING\n    keys:\n      \
             prefix: 'rb:'\n      count: 10\n  load:\n    type: ClosedLoop\n    duration: 10s\n  measurement:\n    \
             breakdown: [Node]\n    percentiles: [50, 99.9]\n"
        );
        let explained = write(&manifest, &[], true);
        let name = "    # Name of the operation in results and metrics: lower-case letters, digits and `-`, at most 32.\n    - name: a\n";
        assert!(explained.contains(name), "{explained}");
        assert_eq!(explained.matches("# Name of the operation").count(), 1, "{explained}");
        let lines = explained.lines().filter(|line| line.trim_start().starts_with('#'));
        assert!(lines.clone().count() > 10 && lines.clone().all(|line| line.len() <= WIDTH), "{explained}");
        assert_eq!(parse(&explained).unwrap().benchmark, manifest.benchmark);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(prefix in ".{0,20}", command in "\\PC{1,40}|(?s:.{1,40})", head in "(?s:.{0,40})", explained: bool) {
            let written = document("a", &prefix, &command);
            if let Ok(manifest) = of(written, Vec::new()) {
                let text = write(&manifest, &[head], explained);
                let read = parse(&text);
                prop_assert!(read.is_ok(), "{text}\n{read:?}");
                let read = read.unwrap();
                prop_assert_eq!(&read.benchmark, &manifest.benchmark);
                prop_assert_eq!(&read.document, &manifest.document);
            }
        }
    }
}

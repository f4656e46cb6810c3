//! Checks a value against the CRD's schema like the API server does, so that bounds are defined once and the command line rejects the same
//! values.

use serde_json::{Map, Value};

use super::duration::{DurationError, GoDuration};
use super::keys::millionths;
use super::measurement::bits_per_second;
use super::patterns::{
    CAPACITY_PATTERN, COLLECTOR_PATTERN, DECIMAL_PATTERN, DURATION_PATTERN, ENDPOINT_PATTERN, HOST_PATTERN,
    NAME_PATTERN, OBJECT_NAME_PATTERN, QUANTILE_PATTERN, SECRET_KEY_PATTERN,
};
use super::problem::Problem;
use crate::human::counted;

/// Error messages suggest the nearest value of an enum only if it has more values than this.
const FEW: usize = 8;

/// Adds all problems of `value`, which is at `field`. Rules across fields are not checked.
pub(super) fn check(schema: &Value, value: &Value, field: &str, problems: &mut Vec<Problem>) {
    if schema["x-kubernetes-int-or-string"] == true {
        if let Some(text) = value.as_str() {
            at_most(schema, "maxLength", text.chars().count(), "character", field, problems);
        } else if !value.is_i64() {
            problems.push(Problem::new(field, value, "must be a whole number, or a string in quotes"));
        }
        return;
    }
    match (schema["type"].as_str().unwrap_or_default(), value) {
        ("object", Value::Object(object)) => check_object(schema, object, field, problems),
        ("array", Value::Array(items)) => check_array(schema, items, field, problems),
        ("string", Value::String(text)) => check_string(schema, text, field, problems),
        ("integer", Value::Number(number)) => check_integer(schema, number, field, problems),
        ("number", Value::Number(number)) => check_number(schema, number, field, problems),
        ("boolean", Value::Bool(_)) => {}
        (wanted, _) => {
            let wanted = match wanted {
                "object" => "an object: indent its fields below it",
                "array" => "a list",
                "string" => "a string: put it in quotes",
                "integer" => "a whole number",
                "number" => "a number: without quotes",
                _ => "true or false",
            };
            problems.push(Problem::new(field, value, format!("must be {wanted}")));
        }
    }
}

fn check_object(schema: &Value, object: &Map<String, Value>, field: &str, problems: &mut Vec<Problem>) {
    if let Some(each) = schema.get("additionalProperties") {
        at_most(schema, "maxProperties", object.len(), "entry", field, problems);
        for (key, value) in object {
            check(each, value, &format!("{field}[{key}]"), problems);
        }
        return;
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let message = match object.get(name) {
            // YAML reads several words as null.
            Some(Value::Null) => "is null, and required: set it, in quotes if it is the text \"Null\"",
            Some(_) => continue,
            None => "is required",
        };
        problems.push(Problem::new(format!("{field}.{name}"), "", message));
    }
    for (name, value) in object {
        let path = format!("{field}.{name}");
        match properties.get(name) {
            // As in Kubernetes, a null is the same as nothing.
            Some(_) if value.is_null() => {}
            Some(property) => check(property, value, &path, problems),
            None => problems.push(Problem::new(path, "", unknown(name, properties))),
        }
    }
}

fn unknown(name: &str, properties: &Map<String, Value>) -> String {
    let nearest = properties.keys().map(|known| (distance(name, known), known)).min();
    match nearest {
        Some((distance, known)) if distance <= 2 => format!("unknown field; did you mean {known}?"),
        _ => {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            format!("unknown field; supported fields: {}", known.join(", "))
        }
    }
}

/// Edit distance: the number of characters to add, drop or change.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn check_array(schema: &Value, items: &[Value], field: &str, problems: &mut Vec<Problem>) {
    if let Some(least) = schema["minItems"].as_u64().filter(|least| (items.len() as u64) < *least) {
        let message = format!("must have at least {}", counted(least, "entry"));
        problems.push(Problem::new(field, items.len(), message));
    }
    at_most(schema, "maxItems", items.len(), "entry", field, problems);
    for (index, item) in items.iter().enumerate().take(256) {
        check(&schema["items"], item, &format!("{field}[{index}]"), problems);
    }
    let kind = schema["x-kubernetes-list-type"].as_str().unwrap_or_default();
    // Every such list of the API has one key.
    let key = schema["x-kubernetes-list-map-keys"][0].as_str().unwrap_or("name");
    let identity = |item: &Value| match kind {
        "map" => Some(item[key].clone()),
        "set" => Some(item.clone()),
        _ => None,
    };
    for (index, item) in items.iter().enumerate().take(256) {
        let Some(own) = identity(item) else { continue };
        if items[..index].iter().any(|earlier| identity(earlier).as_ref() == Some(&own)) {
            let below = if kind == "map" { format!(".{key}") } else { String::new() };
            let value = own.as_str().map_or_else(|| own.to_string(), str::to_owned);
            problems.push(Problem::new(format!("{field}[{index}]{below}"), value, "is listed twice: remove one"));
        }
    }
}

fn check_string(schema: &Value, text: &str, field: &str, problems: &mut Vec<Problem>) {
    if let Some(values) = schema["enum"].as_array() {
        if !values.iter().any(|value| value == text) {
            let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            let nearest = values.iter().map(|known| (distance(text, known), known)).min();
            let meant = match nearest {
                Some((distance, known)) if distance <= 2 && values.len() > FEW => format!("; did you mean {known}?"),
                _ => String::new(),
            };
            problems.push(Problem::new(field, text, format!("must be one of {}{meant}", values.join(", "))));
        }
        return;
    }
    let length = text.chars().count();
    if let Some(least) = schema["minLength"].as_u64().filter(|least| (length as u64) < *least) {
        let message = format!("must have at least {}", counted(least, "character"));
        problems.push(Problem::new(field, format!("{text:?}"), message));
    }
    at_most(schema, "maxLength", length, "character", field, problems);
    let pattern = schema["pattern"].as_str().and_then(pattern);
    if let Some((matches, wanted)) = pattern
        && !matches(text)
    {
        problems.push(Problem::new(field, format!("{text:?}"), wanted));
    }
}

fn check_integer(schema: &Value, number: &serde_json::Number, field: &str, problems: &mut Vec<Problem>) {
    let value = match (number.as_i64(), number.as_u64()) {
        (Some(value), _) => i128::from(value),
        (_, Some(value)) => i128::from(value),
        _ => {
            problems.push(Problem::new(field, number, "must be a whole number"));
            return;
        }
    };
    let bound = |keyword: &str| schema[keyword].as_i64().map(i128::from);
    if let Some(least) = bound("minimum").filter(|least| value < *least) {
        problems.push(Problem::new(field, value, format!("must be at least {least}")));
    }
    if let Some(most) = bound("maximum").filter(|most| value > *most) {
        problems.push(Problem::new(field, value, format!("must be at most {most}")));
    }
}

fn check_number(schema: &Value, number: &serde_json::Number, field: &str, problems: &mut Vec<Problem>) {
    let Some(value) = number.as_f64() else { return };
    if let Some(least) = schema["minimum"].as_f64().filter(|least| value < *least) {
        problems.push(Problem::new(field, number, format!("must be at least {least}")));
    }
    if let Some(most) = schema["maximum"].as_f64().filter(|most| value > *most) {
        problems.push(Problem::new(field, number, format!("must be at most {most}")));
    }
}

fn at_most(schema: &Value, keyword: &str, length: usize, noun: &str, field: &str, problems: &mut Vec<Problem>) {
    if let Some(most) = schema[keyword].as_u64().filter(|most| length as u64 > *most) {
        let (value, most) = (counted(length as u64, noun), counted(most, noun));
        problems.push(Problem::new(field, value, format!("must be at most {most}")));
    }
}

type Pattern = (fn(&str) -> bool, &'static str);

/// The schema's patterns as functions, with their error messages. A test ensures that none is missing.
fn pattern(pattern: &str) -> Option<Pattern> {
    Some(match pattern {
        DURATION_PATTERN => (
            |text| !matches!(GoDuration::new(text).parse(), Err(DurationError::Malformed)),
            "must be a duration: numbers with units, such as 500ms, 60s, 1m30s",
        ),
        DECIMAL_PATTERN => (
            |text| millionths(text).is_some(),
            "must be a decimal number above 0 and below 100 with at most 6 decimals, such as 0.99",
        ),
        CAPACITY_PATTERN => (
            |text| bits_per_second(text).is_some(),
            "must be a number with at most 3 decimals and Kbit, Mbit, Gbit or Tbit, such as 10Gbit",
        ),
        COLLECTOR_PATTERN => (
            super::endpoint::is_plain_url,
            "must be http://host:port, such as http://otel-collector:4318; for a collector with TLS, run an agent beside it",
        ),
        NAME_PATTERN => (is_label, "must be lower-case letters, digits and -, with a letter or digit at both ends"),
        OBJECT_NAME_PATTERN => (
            |text| is_name_of(text, |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')),
            "must be lower-case letters, digits, - and ., with a letter or digit at both ends",
        ),
        SECRET_KEY_PATTERN => (
            |text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)),
            "must be letters, digits, -, _ and .",
        ),
        QUANTILE_PATTERN => (
            |text| {
                let digits = text.strip_prefix("0.").unwrap_or_default();
                text == "1" || (1..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit())
            },
            "must be a decimal from \"0.000001\" to \"1\", such as \"0.99\"",
        ),
        HOST_PATTERN => (super::endpoint::is_host_name, "must be a DNS name or an IPv4 address, such as redis.example"),
        ENDPOINT_PATTERN => (
            |text| super::endpoint::split(text).is_some() || super::endpoint::is_file(text),
            "must be host:port, with an IPv6 address in brackets, such as redis:6379 or [fd00::1]:6379",
        ),
        _ => return None,
    })
}

/// Returns whether `text` is a DNS label. Does not check its length.
pub(super) fn is_label(text: &str) -> bool {
    is_name_of(text, |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn is_name_of(text: &str, letter: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let end = |byte: Option<&u8>| byte.is_some_and(|byte| !b"-.".contains(byte));
    bytes.iter().all(|byte| letter(*byte)) && end(bytes.first()) && end(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patterns(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(object) => {
                found.extend(object.get("pattern").and_then(Value::as_str).map(str::to_owned));
                object.values().for_each(|value| patterns(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| patterns(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_pattern_is_a_function_here() {
        let mut found = Vec::new();
        patterns(super::super::crd::schema(), &mut found);
        assert!(found.len() > 10);
        assert!(found.iter().all(|text| pattern(text).is_some()), "{found:?}");
    }

    fn problems(schema: &Value, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        check(schema, value, "spec", &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_typing_error_gets_a_suggestion() {
        let schema = json!({"type": "object", "properties": {"connections": {"type": "integer"}}});
        assert_eq!(
            problems(&schema, &json!({"conections": 4})),
            ["spec.conections: unknown field; did you mean connections?"]
        );
        let unknown = problems(&schema, &json!({"speed": 4}));
        assert_eq!(unknown, ["spec.speed: unknown field; supported fields: connections"]);
    }

    #[test]
    fn bounds_are_named() {
        let number = json!({"type": "integer", "minimum": 1, "maximum": 9});
        assert_eq!(problems(&number, &json!(0)), ["spec: 0: must be at least 1"]);
        assert_eq!(problems(&number, &json!(u64::MAX)), [format!("spec: {}: must be at most 9", u64::MAX)]);
        assert_eq!(problems(&number, &json!(1.5)), ["spec: 1.5: must be a whole number"]);
        assert_eq!(problems(&number, &json!("1")), ["spec: \"1\": must be a whole number"]);
        let list = json!({"type": "array", "minItems": 1, "maxItems": 1, "items": {"type": "boolean"}});
        assert_eq!(problems(&list, &json!([])), ["spec: 0: must have at least 1 entry"]);
        assert_eq!(
            problems(&list, &json!([true, 1])),
            ["spec: 2 entries: must be at most 1 entry", "spec[1]: 1: must be true or false"]
        );
    }

    #[test]
    fn doubles_are_found() {
        let list = json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}});
        let value = json!([{"name": "a"}, {"name": "b"}, {"name": "a"}]);
        assert_eq!(problems(&list, &value), ["spec[2].name: a: is listed twice: remove one"]);
    }
}

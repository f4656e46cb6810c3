use crate::api::problem::Problem;
use crate::api::schema::is_label;

/// Prefixes of keys that the operator and Kubernetes set on pods.
const RESERVED: [&str; 3] = ["redisbench.dev/", "batch.kubernetes.io/", "app.kubernetes.io/"];

/// Checks a label like the API server does when it creates the pod. Without `value`, checks an annotation.
pub(super) fn check(field: &str, key: &str, value: Option<&str>, problems: &mut Vec<Problem>) {
    let at = format!("{field}[{key}]");
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if !is_name(name) || !prefix.is_none_or(is_domain) {
        problems.push(Problem::new(
            &at,
            "",
            "must be a key such as team or example.com/team, with at most 63 characters",
        ));
    }
    let selects = field.ends_with("nodeSelector");
    if !selects && RESERVED.iter().any(|reserved| key.starts_with(reserved)) {
        problems.push(Problem::new(&at, "", "is set by redisbench or Kubernetes: choose another key"));
    }
    if let Some(value) = value.filter(|value| !value.is_empty() && !is_name(value)) {
        let message = "must be letters, digits, -, _ and ., with a letter or digit at both ends, at most 63";
        problems.push(Problem::new(at, value, message));
    }
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && end(bytes.first())
        && end(bytes.last())
}

fn is_domain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|label| is_label(label) && label.len() <= 63)
}

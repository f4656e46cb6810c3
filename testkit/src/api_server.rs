//! The rules of a Kubernetes API server for single objects: names, optimistic locking, preconditions, merge patches and subresources. Who keeps
//! the objects, and what else happens to them, is the caller's.

use serde_json::{Value, json};

/// A status code, and the body of the reply.
pub type Reply = (u16, Value);

/// A call that the rules permit.
#[derive(Clone, Debug, PartialEq)]
pub enum Permitted {
    Read(Value),
    /// A new object, with its path.
    Create(String, Value),
    /// The new state of an existing object, with its path.
    Update(String, Value),
    /// The object to delete, with its path.
    Delete(String, Value),
}

/// Applies the rules to a call, or returns the reply that refuses it. `current` returns the object at a path.
pub fn permit<'a>(
    method: &str,
    path: &str,
    body: Value,
    current: impl Fn(&str) -> Option<&'a Value>,
) -> Result<Permitted, Reply> {
    if method == "POST" {
        let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default());
        return match current(&path) {
            Some(_) => Err(failure(409, "AlreadyExists")),
            None => Ok(Permitted::Create(path, body)),
        };
    }
    let (path, subresource) = match path.strip_suffix("/status") {
        Some(path) => (path, true),
        None => (path, false),
    };
    let Some(object) = current(path) else { return Err(failure(404, "NotFound")) };
    if method == "GET" {
        return Ok(Permitted::Read(object.clone()));
    }
    let sent = if method == "DELETE" { &body["preconditions"] } else { &body["metadata"] };
    let differs = |field: &str| sent[field].as_str().is_some_and(|sent| object["metadata"][field] != sent);
    if differs("resourceVersion") || differs("uid") {
        return Err(failure(409, "Conflict"));
    }
    let path = path.to_owned();
    match method {
        "PUT" => Ok(Permitted::Update(path, body)),
        "PATCH" => {
            let mut object = object.clone();
            merge(&mut object, if subresource { json!({"status": body["status"]}) } else { body });
            Ok(Permitted::Update(path, object))
        }
        "DELETE" => Ok(Permitted::Delete(path, object.clone())),
        _ => Err(failure(405, "MethodNotAllowed")),
    }
}

/// The reply to a refused call.
pub fn failure(code: u16, reason: &str) -> Reply {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code,
    });
    (code, body)
}

/// A JSON merge patch (RFC 7386).
pub fn merge(object: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *object = patch;
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in patch {
        if !value.is_null() {
            merge(&mut object[key.as_str()], value);
        } else if let Some(object) = object.as_object_mut() {
            object.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_replaces_adds_and_removes() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        merge(&mut object, json!({"a": {"b": 3, "c": null}, "d": [2], "e": {"f": 4}}));
        assert_eq!(object, json!({"a": {"b": 3}, "d": [2], "e": {"f": 4}}));
    }
}

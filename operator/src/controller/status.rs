//! How statuses are compared. Pure.

use redisbench_benchmark::api::RedisBenchmarkStatus;
use serde_json::{Map, Value};

/// Whether `new` must be written at once: it says something else than `old`, not only newer numbers.
pub fn is_urgent(old: &RedisBenchmarkStatus, new: &RedisBenchmarkStatus) -> bool {
    let essence = |status: &RedisBenchmarkStatus| {
        let conditions: Vec<_> = status
            .conditions
            .iter()
            .map(|condition| (condition.type_.clone(), condition.status.clone(), condition.reason.clone()))
            .collect();
        (status.phase, status.run_id.clone(), status.conductor_epoch, status.trial.clone(), conditions)
    };
    essence(old) != essence(new)
        || old.result != new.result
        || old.observed_generation != new.observed_generation
        || old.shards.map(|shards| shards.lost) != new.shards.map(|shards| shards.lost)
}

/// The JSON merge patch that makes `old` into `new`; none when they are equal.
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        if let Some(change) = difference(old.get(key).unwrap_or(&Value::Null), value) {
            patch.insert(key.clone(), change);
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_names_only_what_changed() {
        let old = json!({"a": 1, "b": {"c": 2, "d": [1]}, "e": 3});
        assert_eq!(difference(&old, &old), None);
        let new = json!({"a": 1, "b": {"c": 2, "d": [1, 2]}, "f": {"g": 1}});
        assert_eq!(difference(&old, &new), Some(json!({"b": {"d": [1, 2]}, "e": null, "f": {"g": 1}})));
    }

    #[test]
    fn newer_numbers_are_not_urgent() {
        let old = RedisBenchmarkStatus::default();
        let mut new = old.clone();
        new.progress = Some(redisbench_benchmark::api::status::Progress::default());
        assert!(!is_urgent(&old, &new));
        new.conductor_epoch = Some(1);
        assert!(is_urgent(&old, &new));
    }
}

//! Compares statuses, and shortens those that the API server refused or that the cache need not hold whole. Pure functions.

use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::Truncated;
use redisbench_benchmark::human;
use redisbench_benchmark::report::conditions::condition;
use serde_json::{Map, Value};

/// Returns whether `new` must be written at once, because it differs from `old` in more than numbers.
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
        || old.trials.len() != new.trials.len()
        || old.observed_generation != new.observed_generation
        || old.shards.map(|shards| shards.lost) != new.shards.map(|shards| shards.lost)
}

/// The part that is removed from a refused status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// The lists and the distribution of its result.
    Lists,
    /// Its result and verdict.
    Result,
}

/// The longest quote of a refusal, in bytes.
const REFUSAL_BYTES: usize = 512;

/// A final status with less content, and the message of its condition Complete: `why` the original was refused, and where the rest is.
pub fn shortened(status: &RedisBenchmarkStatus, without: Without, why: &str) -> (RedisBenchmarkStatus, String) {
    let mut shorter = status.clone();
    let (mut what, mut kept) = ("the lists and the distribution", "");
    if let Some(result) = &mut shorter.result {
        let mut truncated = result.truncated.unwrap_or_default();
        truncated = Truncated {
            stages: truncated.stages + result.stages.len() as u64,
            operations: truncated.operations + result.operations.len() as u64,
            nodes: truncated.nodes + result.nodes.len() as u64,
            errors: truncated.errors + result.errors.len() as u64,
            shards: truncated.shards + result.shards.len() as u64,
            findings: truncated.findings
                + result.verification.as_ref().map_or(0, |verification| verification.findings.len() as u64),
            percentiles: truncated.percentiles,
            histogram: truncated.histogram || result.histogram.is_some(),
        };
        (result.stages, result.operations, result.nodes) = Default::default();
        (result.errors, result.shards) = Default::default();
        result.histogram = None;
        if let Some(verification) = &mut result.verification {
            verification.findings = Vec::new();
        }
        result.truncated = Some(truncated);
    }
    if without == Without::Result {
        what = "the result and its verdict";
        (shorter.result, shorter.verdict) = (None, None);
    }
    if !shorter.artifacts.is_empty() {
        kept = ", which are in the artifacts";
    }
    let why = human::cut(why, REFUSAL_BYTES);
    let message = format!("the API server refused the full status, so it lacks {what}{kept}: {why}");
    let complete = shorter.conditions.iter_mut().find(|condition| condition.type_ == condition::COMPLETE);
    if let Some(complete) = complete {
        complete.message = format!("{}; {message}", human::cut(&complete.message, REFUSAL_BYTES));
    }
    (shorter, message)
}

/// Removes from a finished status, for the cache, what only people and other programs read. The cleanup, the time to live and the metrics
/// need the rest. A write is the difference from the cached status, so it leaves the removed fields as they are.
pub fn strip_finished(status: &mut RedisBenchmarkStatus) {
    (status.topology, status.search) = (None, None);
    (status.repeats, status.comparison, status.searches, status.artifacts) = Default::default();
    if let Some(verdict) = &mut status.verdict {
        verdict.reasons = Vec::new();
    }
    for line in &mut status.trials {
        line.why = None;
    }
    status.trials.shrink_to_fit();
    let Some(result) = &mut status.result else { return };
    // The metrics of several trials are those of their lines.
    if !status.trials.is_empty() {
        (result.operations, result.nodes, result.errors, result.histogram) = Default::default();
    }
    (result.response_time_of_succeeded, result.send_lateness) = (None, None);
    (result.generator_share, result.stages, result.shards, result.clients) = Default::default();
    for error in &mut result.errors {
        error.first_message = String::new();
    }
    if let Some(verification) = &mut result.verification {
        verification.findings = Vec::new();
    }
}

/// The JSON merge patch from `old` to `new`. None if they are equal.
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

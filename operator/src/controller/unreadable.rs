//! Decides about objects that do not parse as this version's type. They are refused like an invalid spec, and do not stop the others.

use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::core::error_boundary::InvalidObject;
use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::report::conditions::{Conditions, condition, reason};
use serde_json::{Value, json};

use super::status::difference;

/// The change of the status of `found` that sets `Accepted=False`. None if it is already set with this message.
///
/// # Errors
/// If the conditions cannot be serialised as JSON. Not expected.
pub(super) fn refusal(
    invalid: &InvalidObject,
    found: &DynamicObject,
    now: Timestamp,
) -> serde_json::Result<Option<Value>> {
    let old = found.data.get("status").filter(|status| status.is_object()).cloned().unwrap_or_else(|| json!({}));
    let message = format!("this operator cannot read the spec: {}; change it, or upgrade the operator", invalid.error);
    // The status may have another version's fields too, so the change leaves all others as they are.
    let conditions = old.get("conditions").cloned().unwrap_or_default();
    let mut said = RedisBenchmarkStatus {
        conditions: serde_json::from_value(conditions).unwrap_or_default(),
        ..RedisBenchmarkStatus::default()
    };
    let generation = invalid.metadata.generation;
    Conditions::new(&mut said, generation, now).set(condition::ACCEPTED, false, reason::INVALID_SPEC, &message).set(
        condition::STALLED,
        true,
        reason::INVALID_SPEC,
        &message,
    );
    let mut new = old.clone();
    new["observedGeneration"] = json!(generation);
    new["conditions"] = serde_json::to_value(&said.conditions)?;
    if new.get("phase").is_none() {
        new["phase"] = serde_json::to_value(said.phase)?;
    }
    Ok(difference(&old, &new))
}

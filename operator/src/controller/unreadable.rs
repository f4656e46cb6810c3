//! Objects that do not parse as this version's type. They are refused like an invalid spec, and do not stop the others.

use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, Patch};
use kube::core::error_boundary::InvalidObject;
use kube::runtime::controller::Action as Requeue;
use kube::{Api, Client};
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkStatus};
use redisbench_benchmark::report::conditions::{Conditions, condition, reason};
use serde_json::json;

use super::apply::{ApplyError, call};
use super::error::ReconcileError;
use super::status::difference;
use crate::client;

/// Sets `Accepted=False`, unless it is already set with this message.
pub(super) async fn reject(client: &Client, invalid: &InvalidObject) -> Result<Requeue, ReconcileError> {
    let metadata = &invalid.metadata;
    let (Some(namespace), Some(name)) = (&metadata.namespace, &metadata.name) else {
        return Ok(Requeue::await_change());
    };
    let resource = ApiResource::erase::<RedisBenchmark>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let found = match call("read the benchmark", api.get(name)).await {
        Ok(found) => found,
        Err(error) if error.code() == Some(404) => return Ok(Requeue::await_change()),
        Err(error) => return Err(error.into()),
    };
    let old = found.data.get("status").filter(|status| status.is_object()).cloned().unwrap_or_else(|| json!({}));
    let message = format!("this operator cannot read the spec: {}; change it, or upgrade the operator", invalid.error);
    // The status may have another version's fields too, so the patch leaves all others as they are.
    let conditions = old.get("conditions").cloned().unwrap_or_default();
    let mut said = RedisBenchmarkStatus {
        conditions: serde_json::from_value(conditions).unwrap_or_default(),
        ..RedisBenchmarkStatus::default()
    };
    Conditions::new(&mut said, metadata.generation, Timestamp::now())
        .set(condition::ACCEPTED, false, reason::INVALID_SPEC, &message)
        .set(condition::STALLED, true, reason::INVALID_SPEC, &message);
    let mut new = old.clone();
    new["observedGeneration"] = json!(metadata.generation);
    new["conditions"] = serde_json::to_value(&said.conditions).map_err(ApplyError::Json)?;
    if new.get("phase").is_none() {
        new["phase"] = serde_json::to_value(said.phase).map_err(ApplyError::Json)?;
    }
    if let Some(change) = difference(&old, &new) {
        let patch = json!({"metadata": {"resourceVersion": found.metadata.resource_version}, "status": change});
        let (params, patch) = (client::patch(), Patch::Merge(patch));
        call("write the status", api.patch_status(name, &params, &patch)).await?;
    }
    Ok(Requeue::await_change())
}

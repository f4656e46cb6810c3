//! Length of plans and specs as JSON, which bounds the memory that they take.

use redisbench_wire::limits::PLAN_BYTES;
use redisbench_wire::plan::TrialPlan;
use serde::Serialize;

use super::problem::Problem;

/// Length as JSON.
pub fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

/// The problem of a plan that is too long for a shard.
pub(super) fn check(plan: &TrialPlan) -> Option<Problem> {
    let bytes = json_bytes(plan);
    let message = format!(
        "makes a plan of {bytes} bytes, and a shard reads at most {PLAN_BYTES}: shorten or remove commands, scripts or \
         functions, or lower preload.data[].elements"
    );
    (bytes > PLAN_BYTES).then(|| Problem::new("spec.workload", "", message))
}

//! Validation of `spec.verify`.

use redisbench_wire::plan::{self, PipelineMode, Role, Verify};

use crate::api::problem::Problem;
use crate::api::rules::each_shard;
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::verify::{one_write, too_many_keys};

/// Checks that the commands can be verified and, if mode Replies follows their counts, what the rules check for mode Values.
pub(super) fn check(spec: &RedisBenchmarkSpec, workload: &plan::Workload, problems: &mut Vec<Problem>) {
    let (mode, shards) = (spec.verify.mode, u64::from(spec.shards.count));
    if mode == Verify::Values {
        check_commands(workload, problems);
        return;
    }
    let Some(followed) = workload.followed(mode) else { return };
    let mut refuse = |field: &str, message: String| problems.push(Problem::new(format!("spec.{field}"), "", message));
    let keys = followed.keys.count;
    let most = Verify::KEYS_PER_SHARD.saturating_mul(shards);
    if keys > most {
        refuse("workload.keys.count", too_many_keys(keys, most, "Replies"));
    }
    if keys < shards {
        refuse("workload.keys.count", each_shard(keys, shards));
    }
    if spec.load.pipeline_mode == PipelineMode::Batch {
        refuse("load.pipelineMode", one_write("Replies"));
    }
}

/// Rejects other writes: their values would be reported as corrupt.
fn check_commands(workload: &plan::Workload, problems: &mut Vec<Problem>) {
    for (index, operation) in workload.operations.iter().enumerate() {
        let command = command(operation);
        if operation.keys.as_ref().is_some_and(|keys| !keys.same_names(&workload.keys)) {
            let message =
                "must be those of workload.keys with verify.mode Values, except for the pattern: set only the pattern";
            problems.push(Problem::new(format!("spec.workload.operations[{index}].keys"), &operation.name, message));
        }
        if matches!(Role::of(&operation.arguments), Role::Other | Role::Count { .. }) {
            let message = "is not supported with verify.mode Values, which supports SET __key__ __data__ (with EX, PX, EXAT, \
                           PXAT, KEEPTTL or GET), SETEX, PSETEX, GETSET, GET __key__, commands that do not change the value \
                           (EXISTS, STRLEN, TTL, PTTL, TYPE, TOUCH, GETRANGE, GETBIT), and any without a key: remove it, or \
                           set verify.mode to Replies";
            problems.push(Problem::new(format!("spec.workload.operations[{index}].command"), command, message));
        }
    }
    if !workload.operations.iter().any(|operation| matches!(Role::of(&operation.arguments), Role::Write { .. })) {
        let message = "has no operation that writes a value, such as SET __key__ __data__, which verify.mode Values requires: \
                       add one, or set verify.mode to Replies";
        problems.push(Problem::new("spec.workload.operations", workload.operations.len(), message));
    }
}

fn command(operation: &plan::Operation) -> String {
    let parts = operation.arguments.first().into_iter().flatten();
    parts.map(|part| if let plan::Part::Literal(text) = part { text.as_str() } else { "" }).collect()
}

#[cfg(test)]
mod tests;

//! `spec.verify`: checks of the target's replies. The doc comments are the text of `kubectl explain`.

use std::fmt;

use redisbench_wire::plan::{self, PipelineMode, Role, Verify};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::rules::each_shard;
use super::spec::RedisBenchmarkSpec;

/// Checks of the target's replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifySpec {
    /// `None` checks nothing. `Replies` checks that the type of each reply is valid for its command. If commands count (`INCR`, `DECR`,
    /// `INCRBY`, `DECRBY` of `__key__`, all by the same step) and nothing else writes their keys, it also checks the numbers. `Values` also
    /// checks that reads return the written values, for commands that write the whole value (`SET __key__ __data__` with EX, PX, EXAT,
    /// PXAT, KEEPTTL or GET, `SETEX`, `PSETEX`, `GETSET`) or read it (`GET __key__`). Each value then starts with 24 bytes that identify
    /// the write, and is at least that long. Findings are in `status.result.verification`. To follow values and counts, each shard has
    /// its own keys, at most 8000000, and stores 16 bytes for each; a key has one write in flight at a time; a shard has one thread; and
    /// after the load, for at most a minute, written keys are read once more. Not with `transaction`, `wait`, `onMiss` and `mix: Ratio` of
    /// the workload. Default `None`.
    #[serde(default)]
    pub mode: Verify,
}

/// Reports more keys than shards can follow.
pub(super) fn too_many_keys(keys: impl fmt::Display, most: impl fmt::Display, mode: &str) -> String {
    format!(
        "is {keys}, and must be at most {most} with verify.mode {mode}, {} for each shard, which stores {} bytes for each of its \
         keys: set fewer keys, more shards, or verify.mode to None",
        Verify::KEYS_PER_SHARD,
        Verify::BYTES_PER_KEY
    )
}

/// Reports batches of requests.
pub(super) fn one_write(mode: &str) -> String {
    format!("must be Window with verify.mode {mode}: a key has one write in flight at a time")
}

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

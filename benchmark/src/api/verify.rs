//! `spec.verify`: checks of the target's replies. The doc comments are the text of `kubectl explain`.

use std::fmt;

use redisbench_wire::plan::Verify;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

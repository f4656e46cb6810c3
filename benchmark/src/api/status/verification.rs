//! What was found of the target's answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::verify::VerifyMode;

/// What was found of the target's answers, over preload, warm-up, measurement and the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationResult {
    /// What was checked.
    pub mode: VerifyMode,
    /// Replies without an error that were looked at.
    pub checked: u64,
    /// Replies of a type that the command does not answer with, and counts that are higher than they can be.
    pub mismatched: u64,
    /// Writes that were acknowledged and that a later reply does not show, or counts that it lacks.
    pub lost_writes: u64,
    /// Keys that had an acknowledged write and are missing, without expiry or eviction.
    pub lost_keys: u64,
    /// Replies whose value nobody can have written.
    pub corrupt: u64,
    /// Replies that can neither be said to be right nor wrong, such as a missing key where keys expire or are evicted.
    pub indeterminate: u64,
    /// Writes of which nobody knows whether they were executed: timeouts, broken connections and errors that do not say.
    pub ambiguous_writes: u64,
    /// Keys that were read when the load was over.
    pub read_keys: u64,
    /// Keys that should have been, and could not be within a minute.
    pub unread_keys: u64,
    /// The first of what was found wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub findings: Vec<FindingResult>,
}

impl VerificationResult {
    /// Whether something was found wrong.
    pub fn is_wrong(&self) -> bool {
        self.mismatched > 0 || self.corrupt > 0 || self.lost_writes > 0 || self.lost_keys > 0
    }
}

/// One answer that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingResult {
    /// What is wrong.
    pub kind: FindingKind,
    /// The key, or the operation where the command names none that is followed.
    #[schemars(length(max = 256))]
    pub key: String,
    /// What should have been there: the number of a write of this key, counted from 1, a count, or a type.
    #[schemars(length(max = 128))]
    pub expected: String,
    /// What was.
    #[schemars(length(max = 128))]
    pub seen: String,
    /// The server that said so.
    #[schemars(length(max = 262))]
    pub node: String,
    /// The shard that found it.
    pub shard: u32,
    /// How long after the start instant; what a preload finds is before it, and 0.
    pub after_start_milliseconds: u64,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FindingKind {
    /// Acknowledged writes are gone.
    LostWrite,
    /// The key is gone.
    LostKey,
    /// Nobody wrote this value.
    Corrupt,
    /// The reply is of another type, or a count too high.
    Mismatch,
}

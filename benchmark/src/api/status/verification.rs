//! The findings about the target's replies.

use redisbench_wire::plan::Verify;
use redisbench_wire::snapshot::FindingKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The findings about the target's replies, over preload, warm-up, measurement and the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationResult {
    /// The mode of `spec.verify`.
    pub mode: Verify,
    /// Replies without an error that were checked.
    pub checked: u64,
    /// Replies of a type that the command cannot return, and counts that are too high.
    pub mismatched: u64,
    /// Acknowledged writes that a later reply does not show, also missing steps of counts.
    pub lost_writes: u64,
    /// Keys with an acknowledged write that are missing, without expiry or eviction.
    pub lost_keys: u64,
    /// Replies with a value that no client can have written.
    pub corrupt: u64,
    /// Replies that are neither provably right nor wrong, such as a missing key where keys expire or are evicted.
    pub indeterminate: u64,
    /// Writes that may or may not have been executed: timeouts, broken connections and ambiguous errors.
    pub ambiguous_writes: u64,
    /// Keys read after the load.
    pub read_keys: u64,
    /// Keys that could not be read after the load within a minute.
    pub unread_keys: u64,
    /// The first wrong replies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub findings: Vec<FindingResult>,
}

impl VerificationResult {
    /// Whether a reply was wrong.
    pub fn is_wrong(&self) -> bool {
        self.mismatched > 0 || self.corrupt > 0 || self.lost_writes > 0 || self.lost_keys > 0
    }
}

/// One wrong reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingResult {
    /// The kind of error.
    pub kind: FindingKind,
    /// The key, or the operation if the command names no tracked key.
    #[schemars(length(max = 256))]
    pub key: String,
    /// The expected state: the number of a write of this key, counted from 1, a count, or a type.
    #[schemars(length(max = 128))]
    pub expected: String,
    /// The state that the reply showed.
    #[schemars(length(max = 128))]
    pub seen: String,
    /// The server that sent the reply.
    #[schemars(length(max = 262))]
    pub node: String,
    /// The index of the shard that found it.
    pub shard: u32,
    /// The time after the start instant; 0 for a finding of the preload.
    pub after_start_milliseconds: u64,
}

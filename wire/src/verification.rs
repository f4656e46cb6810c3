//! Results of checking the target's replies.

use serde::{Deserialize, Serialize};

use crate::{bounded, limits};

/// Results of checking the target's replies, over preload, warm-up, measurement and the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Replies without an error that were checked.
    pub checked: u64,
    /// Replies of a type that the command cannot return, and counts that are too high.
    pub mismatched: u64,
    /// Acknowledged writes that a later reply does not show.
    pub lost_writes: u64,
    /// Keys with an acknowledged write that are missing, without expiry or eviction.
    pub lost_keys: u64,
    /// Replies with a value that no client can have written.
    pub corrupt: u64,
    /// Replies that can be classified neither as right nor as wrong.
    pub indeterminate: u64,
    /// Writes that may or may not have been executed: timeouts, broken connections and ambiguous errors.
    pub ambiguous_writes: u64,
    /// Keys that the last read checked.
    pub read_keys: u64,
    /// Keys that the last read could not read.
    pub unread_keys: u64,
    /// The first wrong replies.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::FINDINGS}>")]
    pub findings: Vec<Finding>,
}

impl Verification {
    /// All counts.
    pub fn counts(&self) -> [u64; 9] {
        [
            self.checked,
            self.mismatched,
            self.lost_writes,
            self.lost_keys,
            self.corrupt,
            self.indeterminate,
            self.ambiguous_writes,
            self.read_keys,
            self.unread_keys,
        ]
    }

    /// Adds another result. Counts saturate, because they are untrusted. Keeps at most `most` findings.
    pub fn add(&mut self, other: &Self, most: usize) {
        for (sum, part) in [
            (&mut self.checked, other.checked),
            (&mut self.mismatched, other.mismatched),
            (&mut self.lost_writes, other.lost_writes),
            (&mut self.lost_keys, other.lost_keys),
            (&mut self.corrupt, other.corrupt),
            (&mut self.indeterminate, other.indeterminate),
            (&mut self.ambiguous_writes, other.ambiguous_writes),
            (&mut self.read_keys, other.read_keys),
            (&mut self.unread_keys, other.unread_keys),
        ] {
            *sum = sum.saturating_add(part);
        }
        let room = most.saturating_sub(self.findings.len());
        self.findings.extend(other.findings.iter().take(room).cloned());
    }
}

/// One wrong reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The kind of error.
    pub kind: FindingKind,
    /// The key, or the operation if the command names no known key.
    #[serde(deserialize_with = "bounded::message")]
    pub key: String,
    /// The expected state: the number of a write of this key, a count, or a type.
    #[serde(deserialize_with = "bounded::message")]
    pub expected: String,
    /// The state that the reply showed.
    #[serde(deserialize_with = "bounded::message")]
    pub seen: String,
    /// The server that sent the reply.
    #[serde(deserialize_with = "bounded::message")]
    pub node: String,
    /// When, on the shard's monotonic clock.
    #[serde(deserialize_with = "bounded::instant")]
    pub at_nanoseconds: u64,
}

/// The kind of a wrong reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FindingKind {
    /// Acknowledged writes are gone.
    LostWrite,
    /// The key is gone.
    LostKey,
    /// No client wrote this value.
    Corrupt,
    /// The reply has another type, or its count is too high.
    Mismatch,
}

//! What a shard found of the target's answers.

use serde::{Deserialize, Serialize};

use crate::{bounded, limits};

/// What a shard found of the target's answers, over preload, warm-up, measurement and the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Replies without an error that were looked at.
    pub checked: u64,
    /// Replies of a type that the command does not answer with, and counts that are higher than they can be.
    pub mismatched: u64,
    /// Writes that were acknowledged and that a later reply does not show.
    pub lost_writes: u64,
    /// Keys that had an acknowledged write and are missing, without expiry or eviction.
    pub lost_keys: u64,
    /// Replies whose value nobody can have written.
    pub corrupt: u64,
    /// Replies that can neither be said to be right nor wrong.
    pub indeterminate: u64,
    /// Writes of which nobody knows whether they were executed: timeouts, broken connections and errors that do not say.
    pub ambiguous_writes: u64,
    /// Keys that the last read found in the state that it told of.
    pub read_keys: u64,
    /// Keys that it should have read and could not.
    pub unread_keys: u64,
    /// The first of what was found wrong.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::FINDINGS}>")]
    pub findings: Vec<Finding>,
}

impl Verification {
    /// The counts.
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

    /// Adds what another found. Counts from elsewhere may be anything, so sums stop at the largest number; of the
    /// findings `most` are kept.
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

/// One answer that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The key, or the operation where the command names none that is known.
    #[serde(deserialize_with = "bounded::message")]
    pub key: String,
    /// What should have been there: the number of a write of this key, a count, or a type.
    #[serde(deserialize_with = "bounded::message")]
    pub expected: String,
    /// What was.
    #[serde(deserialize_with = "bounded::message")]
    pub seen: String,
    /// The server that said so.
    #[serde(deserialize_with = "bounded::message")]
    pub node: String,
    /// When, on the shard's monotonic clock.
    #[serde(deserialize_with = "bounded::instant")]
    pub at_nanoseconds: u64,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

//! Results of checking the target's replies.

use serde::{Deserialize, Serialize};

use crate::{bounded, limits};

/// Results of checking the target's replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// The counts.
    #[serde(flatten)]
    pub counts: VerificationCounts,
    /// The first wrong replies.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::FINDINGS}>")]
    pub findings: Vec<Finding>,
}

impl Verification {
    /// Adds another result. Keeps the first findings.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        let room = limits::FINDINGS.saturating_sub(self.findings.len());
        self.findings.extend(other.findings.iter().take(room).cloned());
    }
}

/// The counts of a check of the target's replies, over preload, warm-up, measurement and the last read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerificationCounts {
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
}

impl VerificationCounts {
    fn each(&mut self) -> [&mut u64; 9] {
        [
            &mut self.checked,
            &mut self.mismatched,
            &mut self.lost_writes,
            &mut self.lost_keys,
            &mut self.corrupt,
            &mut self.indeterminate,
            &mut self.ambiguous_writes,
            &mut self.read_keys,
            &mut self.unread_keys,
        ]
    }

    /// All counts.
    pub fn all(mut self) -> [u64; 9] {
        self.each().map(|count| *count)
    }

    /// Adds other counts. They saturate, because they are untrusted.
    pub fn add(&mut self, other: &Self) {
        for (sum, part) in self.each().into_iter().zip(other.all()) {
            *sum = sum.saturating_add(part);
        }
    }

    /// Returns whether a reply was wrong.
    pub fn is_wrong(&self) -> bool {
        self.mismatched > 0 || self.corrupt > 0 || self.lost_writes > 0 || self.lost_keys > 0
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
    /// The time of the reply, on the shard's monotonic clock.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_stand_beside_the_findings() {
        let form = json!({
            "checked": 1, "mismatched": 2, "lostWrites": 3, "lostKeys": 4, "corrupt": 5, "indeterminate": 6, "ambiguousWrites": 7,
            "readKeys": 8, "unreadKeys": u64::MAX, "findings": [],
        });
        let found: Verification = serde_json::from_value(form.clone()).unwrap();
        assert_eq!(found.counts.all(), [1, 2, 3, 4, 5, 6, 7, 8, u64::MAX]);
        assert_eq!(serde_json::to_value(&found).unwrap(), form);
        let mut twice = found.clone();
        twice.add(&found);
        assert_eq!(twice.counts.all(), [2, 4, 6, 8, 10, 12, 14, 16, u64::MAX]);
    }
}

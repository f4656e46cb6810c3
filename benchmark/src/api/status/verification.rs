//! The findings about the target's replies.

use redisbench_wire::plan::Verify;
use redisbench_wire::snapshot::{FindingKind, VerificationCounts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The findings about the target's replies, over preload, warm-up, measurement and the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationResult {
    /// The mode of `spec.verify`.
    pub mode: Verify,
    /// The counts.
    #[serde(flatten)]
    pub counts: VerificationCounts,
    /// The first wrong replies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub findings: Vec<FindingResult>,
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

//! Reasons of a verdict.

use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::human;
use crate::measurement::Outcome;

/// Maximum bytes of a reason: the condition Valid holds all of them in one message.
const REASON_BYTES: usize = 512;

pub(super) fn reason(reason: ReasonKind, severity: VerdictValue, message: &str) -> VerdictReason {
    VerdictReason { reason, severity, message: human::shorten(message, REASON_BYTES).into_owned() }
}

/// The number of shards that a reason applies to, such as `2 of 8 shards`.
pub(super) fn shards(count: usize, outcome: &Outcome) -> String {
    format!("{count} of {}", human::counted(outcome.shards.len() as u64, "shard"))
}

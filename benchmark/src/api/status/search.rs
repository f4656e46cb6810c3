//! A search: its steps, and what it found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LimitedBy;

/// What a trial was as a step of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchStep {
    /// The rate that was offered, in requests per second.
    pub rate_per_second: u64,
    /// Which confirmation of this rate it was, from 1. Not set for a step that climbed or halved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<u32>,
    /// Whether the objective held.
    pub outcome: StepOutcome,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub why: Option<String>,
    /// What the limit was, of one that did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
}

/// How a step of a search went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepOutcome {
    /// The objective held.
    Passed,
    /// It did not.
    Failed,
    /// It does not say; the step is repeated, three times in the whole search.
    Unusable,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// How it ended.
    pub ending: SearchEnding,
    /// In a sentence.
    #[schemars(length(max = 512))]
    pub message: String,
    /// The answer, or else the highest rate below all that failed: requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good_per_second: Option<u64>,
    /// The lowest rate above it that failed: requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad_per_second: Option<u64>,
    /// Why that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub why: Option<String>,
    /// What the limit was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// Failures at a rate that passed later.
    pub contradicted: u32,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SearchEnding {
    /// `lastGoodPerSecond` is the highest rate at which the objective holds.
    Found,
    /// The objective holds at the highest rate of the search.
    MaxPassed,
    /// It does not hold at the lowest.
    MinFailed,
    /// No rate was confirmed, or too many steps said nothing.
    Inconclusive,
}

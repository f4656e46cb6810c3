//! A search: its steps, and what it found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LimitedBy, is_zero};

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
    /// Why it did not, or why nothing can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub why: Option<String>,
    /// What was at its end, if the objective did not hold. Never `Rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// Which part of that, such as `ID/MainThread` of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 288))]
    pub component: Option<String>,
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

/// What a search found, or has found so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// How it ended. Not set while it goes on, nor if it was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<SearchEnding>,
    /// In a sentence.
    #[schemars(length(max = 768))]
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
    /// What was at its end there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// Which part of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 288))]
    pub component: Option<String>,
    /// Failures at a rate that passed later.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub contradicted: u64,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SearchEnding {
    /// `lastGoodPerSecond` is the highest rate at which the objective holds.
    Found,
    /// It holds at `lastGoodPerSecond`, and above that the load generator was at its end, not the target: `limitedBy` says
    /// whether its processors, its network or its connections. The target may hold more.
    GeneratorLimited,
    /// The objective holds at the highest rate of the search.
    MaxPassed,
    /// It does not hold at the lowest.
    MinFailed,
    /// No rate was confirmed, too many steps said nothing, or the load generator was at its end at the lowest rate already.
    Inconclusive,
}

impl LimitedBy {
    /// Whether it is the load generator that was at its end, or what it was given: the target may do more.
    pub fn is_of_the_generator(self) -> bool {
        match self {
            Self::GeneratorCPU | Self::GeneratorNetwork | Self::Connections => true,
            Self::Rate | Self::Target | Self::Unknown => false,
        }
    }
}

//! A search: its steps and its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LimitedBy, is_zero};

/// A trial as a step of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchStep {
    /// The offered rate, in requests per second.
    pub rate_per_second: u64,
    /// The number of the confirmation of this rate, from 1. Not set for a step that climbed or halved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<u32>,
    /// Whether the objective held.
    pub outcome: StepOutcome,
    /// Why the objective did not hold, or why the step is unusable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub why: Option<String>,
    /// The limiting factor, if the objective did not hold. Never `Rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// The limiting component, such as `ID/MainThread` of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 288))]
    pub component: Option<String>,
}

/// The outcome of a step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepOutcome {
    /// The objective held.
    Passed,
    /// The objective did not hold.
    Failed,
    /// The step is inconclusive. It is repeated, at most three times in the whole search.
    Unusable,
}

/// The result of a search, or its result so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// How it ended. Not set while it runs, nor if it was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<SearchEnding>,
    /// The result in a sentence.
    #[schemars(length(max = 768))]
    pub message: String,
    /// The answer, or else the highest rate below all that failed, in requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good_per_second: Option<u64>,
    /// The lowest rate above `lastGoodPerSecond` that failed, in requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad_per_second: Option<u64>,
    /// Why `firstBadPerSecond` failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub why: Option<String>,
    /// The limiting factor at `firstBadPerSecond`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// The limiting component at `firstBadPerSecond`.
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
    /// The objective holds at `lastGoodPerSecond`; above, the load generator was saturated, not the target. `limitedBy` is its processors,
    /// network or connections. The target may hold more.
    GeneratorLimited,
    /// The objective holds at the highest rate of the search.
    MaxPassed,
    /// The objective does not hold at the lowest rate of the search.
    MinFailed,
    /// No rate was confirmed, the steps ran out, too many were unusable, or the load generator was saturated at the lowest rate.
    Inconclusive,
}

impl LimitedBy {
    /// Whether it is the load generator or its resources, so that the target may do more.
    pub fn is_of_the_generator(self) -> bool {
        match self {
            Self::GeneratorCPU | Self::GeneratorNetwork | Self::Connections => true,
            Self::Rate | Self::Target | Self::Unknown => false,
        }
    }
}

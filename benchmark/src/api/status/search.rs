//! A search: its steps and its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::setting::Setting;
use super::verdict::LimitedBy;
use crate::api::fields::is_zero;

/// A trial as a step of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchStep {
    /// The offered rate, in requests per second.
    pub rate_per_second: u64,
    /// The number of the confirmation of this rate, from 1. Not set for a step that climbed or halved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<u32>,
    /// The outcome of the objective.
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
    /// Processor time of the busiest server in the step, in hundredths of a percent. A later step that fails by its latency is limited by
    /// a server only if this grew with the rate. Not set without `measurement.serverStats`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_server_basis_points: Option<u32>,
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
    /// The outcome. Not set while it runs, nor if it was cut short.
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

/// One of several searches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellSearch {
    /// Its cell, as in `trials`.
    pub cell: u32,
    /// The repeat of its cell, from 0. Not set if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// The setting that sets it apart.
    #[serde(flatten)]
    pub setting: Setting,
    /// The number of its finished steps.
    pub steps: u32,
    /// Its result, or its result so far.
    pub result: SearchResult,
}

/// The outcome of a search.
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

impl CellSearch {
    /// The setting that the other searches do not have, for people.
    pub fn name(&self) -> String {
        self.setting.parts(self.repeat, |field| field).join(", ")
    }
}

impl LimitedBy {
    /// Returns whether it is the load generator or its resources, so that the target may do more.
    pub fn is_of_the_generator(self) -> bool {
        match self {
            Self::GeneratorCPU | Self::GeneratorNetwork | Self::Connections => true,
            Self::Rate | Self::Target | Self::Client | Self::Unknown => false,
        }
    }
}

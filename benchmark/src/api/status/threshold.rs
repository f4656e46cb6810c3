//! What became of `spec.thresholds`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_zero;

/// How a threshold stands, or what became of it. Of several trials, the worst there was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdStatus {
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Whether it holds.
    pub outcome: ThresholdOutcome,
    /// The quantile, over all requests. Not set if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_nanoseconds: Option<u64>,
    /// The quantile is not known, but it is more than this: too many requests had no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_than_nanoseconds: Option<u64>,
    /// Requests that failed or were not sent, of a threshold on the error rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_requests: Option<u64>,
    /// Of so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_requests: Option<u64>,
    /// Successful requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_per_second: Option<u64>,
    /// The node that it was observed of, if each is compared by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262))]
    pub node: Option<String>,
    /// The end of the window that it was observed in, since the measurement began. Not set of the whole measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_milliseconds: Option<u64>,
    /// How many windows were compared. Each consists of whole seconds since the start, and a new one ends every second.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub windows: u64,
    /// In how many of them it did not hold.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_windows: u64,
    /// The trial that it was observed in, from 0, of a benchmark that has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// The same, for people.
    #[schemars(length(max = 512))]
    pub message: String,
}

/// Whether a threshold holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ThresholdOutcome {
    /// The load runs, and nothing that was judged so far fails it.
    Pending,
    /// It holds.
    Passed,
    /// Too few requests, or no whole window, to tell.
    NotJudged,
    /// It does not hold.
    Failed,
}

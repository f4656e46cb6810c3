//! The outcome of `spec.thresholds`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::fields::is_zero;

/// The current or final outcome of a threshold. With several trials, the worst one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdStatus {
    /// The threshold's name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// The outcome of the threshold.
    pub outcome: ThresholdOutcome,
    /// The observed quantile, over all requests. Not set if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_nanoseconds: Option<u64>,
    /// The lower end of the observed quantile's 95 % confidence interval for independent requests. Only for the whole measurement; not for
    /// windows, nor for a threshold that stopped the load. The observed quantile alone decides the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_nanoseconds: Option<u64>,
    /// Its upper end. Not set if it is among requests without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_nanoseconds: Option<u64>,
    /// A lower bound of an unknown quantile: too many requests had no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_than_nanoseconds: Option<u64>,
    /// Requests that failed or were not sent, for a threshold on the error rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_requests: Option<u64>,
    /// The number of requests that `failedRequests` is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_requests: Option<u64>,
    /// Successful requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_per_second: Option<u64>,
    /// The observed node, if nodes are judged separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262))]
    pub node: Option<String>,
    /// The end of the observed window, after the start of the measurement. Not set for the whole measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_milliseconds: Option<u64>,
    /// The number of judged windows. They consist of whole seconds, and start a tenth of their length apart, at least 1 s.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub windows: u64,
    /// The number of windows in which it did not hold.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_windows: u64,
    /// The observed trial, from 0, if the benchmark has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// Human-readable outcome.
    #[schemars(length(max = 512))]
    pub message: String,
}

/// The outcome of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ThresholdOutcome {
    /// The load runs, and nothing judged so far fails it.
    Pending,
    /// The threshold holds.
    Passed,
    /// There were too few requests, or no whole window.
    NotJudged,
    /// The threshold does not hold.
    Failed,
}

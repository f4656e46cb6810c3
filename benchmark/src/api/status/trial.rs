//! Trials: the one that goes on, and those that are over.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Requests, VerdictValue, is_zero};

/// The present or last trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialStatus {
    /// Counts from 0.
    pub index: u32,
    /// How many trials the run has.
    pub of: u32,
    /// Which try at this trial, from 1; 0 before the first.
    pub attempt: u32,
    /// The start instant: when all shards begin together. Not set before it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
}

/// A trial that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialLine {
    /// Counts from 0.
    pub index: u32,
    /// The entry of `workload.preset` that it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub preset: Option<String>,
    /// How it ended.
    pub state: TrialOutcome,
    /// Which try it was, from 1.
    pub attempt: u32,
    /// When all shards began together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
    /// Where the measured requests went. Not set if nothing was measured, as are the next five.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// Successful replies that were nil or empty: keys that were not there, or nothing left to take. Divided by
    /// `requests.succeeded` they are the share of requests that measured something else than was meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<u64>,
    /// Successful requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_per_second: Option<u64>,
    /// The median of response time. Not set beyond what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_nanoseconds: Option<u64>,
    /// The 99th percentile of response time. Not set beyond what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// How many thresholds did not hold in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_thresholds: u64,
    /// What the trial is worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictValue>,
    /// The first reason why it is not Valid, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub why: Option<String>,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TrialOutcome {
    /// Measured to its end.
    Completed,
    /// It could not go on, and the run with it.
    Failed,
    /// Stopped by `abort`.
    Aborted,
}

//! The current trial, and lines of finished ones.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache::TrialCache;
use super::requests::TrialRequests;
use super::search::SearchStep;
use super::setting::Setting;
use super::verdict::{LimitedBy, VerdictValue};
use crate::api::fields::is_zero;

/// The current or last trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialStatus {
    /// The index, from 0.
    pub index: u32,
    /// The number of trials of the run; with a search, the maximum.
    pub of: u32,
    /// The attempt at this trial, from 1; 0 before the first.
    pub attempt: u32,
    /// The start instant: when all shards begin together. Not set until it is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
    /// The setting of one of several trials, for people: its target, preset, swept fields and repeat, or a search's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub setting: Option<String>,
}

/// A finished trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialLine {
    /// The index, from 0.
    pub index: u32,
    /// The setting that sets it apart.
    #[serde(flatten)]
    pub setting: Setting,
    /// True in the first block of a comparison, in which caches and processors may have been cold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cold: bool,
    /// The cell, from 0: trials that repeat one another share a cell. In the order of the sweep's lists: the last list varies fastest, with
    /// the presets inside.
    #[serde(default)]
    pub cell: u32,
    /// The repeat of its cell, from 0. Not set if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// The trial as a step of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchStep>,
    /// The outcome of the trial.
    pub state: TrialOutcome,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The common start of all shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
    /// The measured requests by outcome. Not set, like the other measurements, if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<TrialRequests>,
    /// Successful replies that were nil or empty: missing keys, or nothing left to take. Divided by `requests.succeeded`, the share of
    /// requests that measured something else than intended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<u64>,
    /// Client-side caches. Only with `workload.caching`; not set in runs of 100 or more trials with two or more swept fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<TrialCache>,
    /// Successful requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_per_second: Option<u64>,
    /// The mean of response time, if every request had an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_nanoseconds: Option<u64>,
    /// The median of response time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_nanoseconds: Option<u64>,
    /// The 99th percentile of response time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// The number of thresholds that did not hold in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_thresholds: u64,
    /// The 99.9th percentile of response time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_nanoseconds: Option<u64>,
    /// Processor time of the shards per request. Only with `load.clients`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_per_request_nanoseconds: Option<u64>,
    /// The largest share that the load generator itself had in p50, p99 or p99.9 of response time, in hundredths of a percent. A lower bound
    /// if the time of unread replies is unknown. Not set if all of it is, and in runs of 100 or more trials
    /// of several clients or with four swept fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_share_basis_points: Option<u32>,
    /// The value of its verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictValue>,
    /// The factor that limited its throughput. Its artifact names the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// Why it failed, or the worst reason why it is not Valid. Not set in runs of 100 or more trials of several clients with four swept
    /// fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub why: Option<String>,
}

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TrialOutcome {
    /// Measured to the end.
    Completed,
    /// It could not continue, and the run failed with it.
    Failed,
    /// Stopped by `abort`.
    Aborted,
}

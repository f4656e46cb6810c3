//! Trials: the one that goes on, and those that are over.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LimitedBy, Requests, SearchStep, VerdictValue, is_zero};

/// The present or last trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialStatus {
    /// Counts from 0.
    pub index: u32,
    /// How many trials the run has; with a search, at most.
    pub of: u32,
    /// Which try at this trial, from 1; 0 before the first.
    pub attempt: u32,
    /// The start instant: when all shards begin together. Not set before it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
    /// What sets it apart from the others of several, for people: its target, preset, swept fields and repeat, or a search's
    /// rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub setting: Option<String>,
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
    /// The target that it was against, of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub target: Option<String>,
    /// It is of the first block of a comparison, in which caches and processors may have been cold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cold: bool,
    /// The fields of `spec.sweep`, and what they were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 3))]
    pub parameters: BTreeMap<String, String>,
    /// Which cell it is of, from 0: trials that are repeats of one another have one cell. In the order of the sweep's
    /// lists, the last of which varies fastest, its presets within.
    #[serde(default)]
    pub cell: u32,
    /// Which repeat of its cell it is, from 0. Not set if there is one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// What it was as a step of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchStep>,
    /// How it ended.
    pub state: TrialOutcome,
    /// Which try it was, from 1.
    pub attempt: u32,
    /// When all shards began together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
    /// Where the measured requests went. Not set if nothing was measured, as are the next seven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<TrialRequests>,
    /// Successful replies that were nil or empty: keys that were not there, or nothing left to take. Divided by
    /// `requests.succeeded` they are the share of requests that measured something else than was meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<u64>,
    /// Successful requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_per_second: Option<u64>,
    /// The mean of response time. Not set if any request had no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_nanoseconds: Option<u64>,
    /// The median of response time. Not set if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_nanoseconds: Option<u64>,
    /// The 99th percentile of response time. Not set if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// How many thresholds did not hold in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_thresholds: u64,
    /// The 99.9th percentile of response time. Not set if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_nanoseconds: Option<u64>,
    /// What the trial is worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictValue>,
    /// What kept its throughput from being higher; its artifact says which part of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// The first reason why it is not Valid, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 96))]
    pub why: Option<String>,
}

/// Where the requests of a trial went. Its artifact says more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialRequests {
    /// Requests whose slot in the schedule came.
    pub scheduled: u64,
    /// Answered without an error.
    pub succeeded: u64,
    /// Ended in an error of any kind.
    pub errors: u64,
    /// Never sent.
    pub unsent: u64,
    /// Waited for a reply when the run was aborted, or when a lost shard was last heard.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: u64,
    /// What a lost shard would have sent after it was last heard.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
}

impl From<&Requests> for TrialRequests {
    fn from(all: &Requests) -> Self {
        let Requests { scheduled, succeeded, errors, unsent, in_flight, unknown, .. } = *all;
        Self { scheduled, succeeded, errors, unsent, in_flight, unknown }
    }
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

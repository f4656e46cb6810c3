//! Cells: trials that are repeats of one another, and how far their results are apart.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Latencies, VerdictValue};

/// What the repeats of one cell came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellResult {
    /// Which cell, from 0: as in `trials`.
    pub cell: u32,
    /// The entry of `workload.preset` that its trials ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub preset: Option<String>,
    /// The target that they were against, of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub target: Option<String>,
    /// The swept fields, and what they were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 3))]
    pub parameters: BTreeMap<String, String>,
    /// Its trials that were measured to their end, by their indices. All of them count, whatever their verdict.
    #[schemars(length(max = 50))]
    pub trials: Vec<u32>,
    /// The worst verdict of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictValue>,
    /// Successful requests per second. Best is the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<ThroughputSpread>,
    /// The mean of response time. Best is the lowest, as in the next three. Not set if any of the trials does not know it: it had
    /// too few requests, or too many of them had no answer; of a mean, one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_response_time: Option<LatencySpread>,
    /// The median of response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<LatencySpread>,
    /// The 99th percentile of response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<LatencySpread>,
    /// The 99.9th percentile of response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<LatencySpread>,
    /// Errors and unsent requests as a share of all. Best is the lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<ShareSpread>,
    /// Response time over the requests of all these trials together, from their merged histograms: no mean of quantiles.
    /// Set once the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Latencies>,
}

/// A throughput over several trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThroughputSpread {
    /// The mean of the trials.
    pub mean_per_second: u64,
    /// The median of the trials.
    pub median_per_second: u64,
    /// The standard deviation between trials, with n - 1 below.
    pub standard_deviation_per_second: u64,
    /// The lower end of the interval that holds the true mean with 95 % confidence (Student's t). The true mean is that of
    /// endlessly many such trials.
    pub low_per_second: u64,
    /// Its upper end.
    pub high_per_second: u64,
    /// The trial with the best value, by its index.
    pub best_trial: u32,
    /// The trial with the worst value, by its index.
    pub worst_trial: u32,
}

/// A latency over several trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatencySpread {
    /// The mean of the trials.
    pub mean_nanoseconds: u64,
    /// The median of the trials.
    pub median_nanoseconds: u64,
    /// The standard deviation between trials, with n - 1 below.
    pub standard_deviation_nanoseconds: u64,
    /// The lower end of the interval that holds the true mean with 95 % confidence (Student's t), 0 if it reaches below.
    pub low_nanoseconds: u64,
    /// Its upper end.
    pub high_nanoseconds: u64,
    /// The trial with the best value, by its index.
    pub best_trial: u32,
    /// The trial with the worst value, by its index.
    pub worst_trial: u32,
}

/// A share over several trials, in millionths: 10000 are 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareSpread {
    /// The mean of the trials.
    pub mean_millionths: u64,
    /// The median of the trials.
    pub median_millionths: u64,
    /// The standard deviation between trials, with n - 1 below.
    pub standard_deviation_millionths: u64,
    /// The lower end of the interval that holds the true mean with 95 % confidence (Student's t), 0 if it reaches below.
    pub low_millionths: u64,
    /// Its upper end.
    pub high_millionths: u64,
    /// The trial with the best value, by its index.
    pub best_trial: u32,
    /// The trial with the worst value, by its index.
    pub worst_trial: u32,
}

//! Cells: trials that repeat one another, and the spread of their results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::ClientResult;
use super::latencies::Latencies;
use super::setting::Setting;
use super::verdict::VerdictValue;

/// The spread between the repeats of one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellResult {
    /// The cell, from 0, as in `trials`.
    pub cell: u32,
    /// The setting that sets it apart.
    #[serde(flatten)]
    pub setting: Setting,
    /// The indices of its trials that were measured to the end. All of them count, whatever their verdict.
    #[schemars(length(max = 50))]
    pub trials: Vec<u32>,
    /// The worst verdict of its trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictValue>,
    /// True if all trials met the requested rate, so that p99 ranks them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_p99: bool,
    /// Successful requests per second. The highest is the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<ThroughputSpread>,
    /// The mean of response time. The lowest is the best. Not set if a trial has no value: it had too few requests, or too many without an
    /// answer (for the mean, one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_response_time: Option<LatencySpread>,
    /// The median of response time. The lowest is the best. Not set if a trial has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<LatencySpread>,
    /// The 99th percentile of response time. The lowest is the best. Not set if a trial has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<LatencySpread>,
    /// The 99.9th percentile of response time. The lowest is the best. Not set if a trial has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<LatencySpread>,
    /// Errors and unsent requests as a share of all. The lowest is the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<ShareSpread>,
    /// Response time over the requests of all its trials, from their merged histograms, not from averaged quantiles. Set once the run has
    /// finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Latencies>,
    /// Cost of its client over all its trials: means per request, and maxima of connections, callers and memory. Set once the run has
    /// finished. Only with `load.clients`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<ClientResult>,
    /// Client-side caches. Set once the run has finished. Only with `workload.caching`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CellCache>,
    /// Its first 16 operations, if there are several. Set once the run has finished, as far as the status has room; the artifact
    /// `experiment.json` has them in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub operations: Vec<OperationRepeats>,
}

impl CellResult {
    /// The indices of the best and the worst trial, if they are known.
    pub fn ends(&self) -> Option<(u32, u32)> {
        if self.by_p99 {
            return self.p99.map(|spread| (spread.best_trial, spread.worst_trial));
        }
        self.throughput.map(|spread| (spread.best_trial, spread.worst_trial))
    }
}

/// Client-side caches over the repeats of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellCache {
    /// Hits per second. The highest is the best.
    pub hits: ThroughputSpread,
    /// Invalidations per second, the mean of the trials.
    pub mean_invalidations_per_second: u64,
}

/// An operation over the repeats of a cell, as `memtier_benchmark -x` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationRepeats {
    /// The operation's name in the spec.
    #[schemars(length(max = 32))]
    pub name: String,
    /// In the trial `throughput.bestTrial`, or `p99.bestTrial` if `byP99`.
    pub best: OperationRun,
    /// In the worst of them.
    pub worst: OperationRun,
    /// Over all trials: the mean of their rates, and response time over all requests, from merged histograms.
    pub average: OperationRun,
}

/// The throughput and response time of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationRun {
    /// Successful requests per second.
    pub per_second: u64,
    /// The mean of response time, if every request had an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_nanoseconds: Option<u64>,
    /// The median of response time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_nanoseconds: Option<u64>,
    /// The 99th percentile of response time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// The 99.9th percentile of response time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_nanoseconds: Option<u64>,
}

/// A throughput over several trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThroughputSpread {
    /// The mean of the trials.
    pub mean_per_second: u64,
    /// The median of the trials.
    pub median_per_second: u64,
    /// Standard deviation of the trials, with divisor n - 1.
    pub standard_deviation_per_second: u64,
    /// Lower end of the 95 % confidence interval of the true mean (Student's t), which is that of infinitely many such trials.
    pub low_per_second: u64,
    /// Upper end of the 95 % confidence interval.
    pub high_per_second: u64,
    /// Index of the trial with the best value.
    pub best_trial: u32,
    /// Index of the trial with the worst value.
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
    /// Standard deviation of the trials, with divisor n - 1.
    pub standard_deviation_nanoseconds: u64,
    /// Lower end of the 95 % confidence interval of the mean (Student's t).
    pub low_nanoseconds: u64,
    /// Upper end of the 95 % confidence interval.
    pub high_nanoseconds: u64,
    /// Index of the trial with the best value.
    pub best_trial: u32,
    /// Index of the trial with the worst value.
    pub worst_trial: u32,
}

/// A share over several trials, in millionths: 10000 is 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShareSpread {
    /// The mean of the trials.
    pub mean_millionths: u64,
    /// The median of the trials.
    pub median_millionths: u64,
    /// Standard deviation of the trials, with divisor n - 1.
    pub standard_deviation_millionths: u64,
    /// Lower end of the 95 % confidence interval of the mean (Student's t).
    pub low_millionths: u64,
    /// Upper end of the 95 % confidence interval.
    pub high_millionths: u64,
    /// Index of the trial with the best value.
    pub best_trial: u32,
    /// Index of the trial with the worst value.
    pub worst_trial: u32,
}

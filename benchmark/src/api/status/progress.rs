//! The progress of the running trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verdict::VerdictReason;
use crate::api::fields::is_zero;

/// The progress of the running trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The progress from 0 to 100: of the preload while preparing, of warm-up and measurement while running.
    #[schemars(range(min = 0, max = 100))]
    pub percent: u32,
    /// Successful requests per second over the last five whole seconds that all shards have completed.
    pub achieved_per_second: u64,
    /// Hits of client-side caches per second, over the last 5 s of the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hits_per_second: Option<u64>,
    /// Invalidations per second, like `cacheHitsPerSecond`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidations_per_second: Option<u64>,
    /// The median of response time of successful requests over the seconds of `achievedPerSecond`, rounded up by at most 3.2 %. Not set, like
    /// the other percentiles, if there were too few requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_nanoseconds: Option<u64>,
    /// The 99th percentile, like `p50Nanoseconds`. Not set below 1,000 requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// The 99.9th percentile, like `p50Nanoseconds`. Not set below 10,000 requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_nanoseconds: Option<u64>,
    /// True if the warm-up has finished and requests count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measuring: bool,
    /// Reasons of the verdict that the counts so far already give. The verdict judges the finished measurement, and may differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6))]
    pub reasons: Vec<VerdictReason>,
    /// Shards, in index order. Of many, only the lost and unreachable ones and those with the busiest workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub shards: Vec<ShardProgress>,
    /// Redis nodes, the slowest first, if a threshold judges them while the load runs: only then are they counted by the second. Only the
    /// first of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub nodes: Vec<NodeProgress>,
    /// The number of nodes omitted from `nodes`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nodes_left_out: u64,
}

/// The progress of one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardProgress {
    /// The shard's index.
    pub index: u32,
    /// True if it was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// True if it does not answer now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreachable: bool,
    /// Its successful requests per second, over the seconds of `achievedPerSecond` of the trial.
    pub achieved_per_second: u64,
    /// Its measured requests so far that failed or were not sent.
    pub failed_requests: u64,
    /// CPU time of its busiest worker over wall time so far, in percent.
    pub busiest_worker_percent: u32,
    /// Time that a worker was ready without a processor, over wall time so far, in percent, for the worker that waited longest.
    pub run_queue_percent: u32,
}

/// The progress on one Redis node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeProgress {
    /// Its `host:port`.
    #[schemars(length(max = 262))]
    pub address: String,
    /// Measured requests per second that it replied to, over the seconds of `achievedPerSecond` of the trial.
    pub requests_per_second: u64,
    /// Errors among these requests.
    pub errors: u64,
    /// The 99th percentile of their service time, rounded up by at most 3.2 %. Not set below 1,000 requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
}

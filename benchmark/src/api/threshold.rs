//! `spec.thresholds`: limits that the measurement must meet. The doc comments are the text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::patterns::{NAME_PATTERN, QUANTILE_PATTERN};

/// Limit that the measurement must meet, over all shards together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdSpec {
    /// Name of the threshold in the status: lower-case letters, digits and -, at most 63.
    #[schemars(length(min = 1, max = 63), regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// Metric to compare. `ResponseTime` and `ServiceTime` compare their `quantile` with `max`, `ErrorRate` compares with `maxBasisPoints`,
    /// `Throughput` with `minPerSecond`. Requests without a reply count as slower than any with one; in `ErrorRate`, unsent requests are
    /// errors.
    pub metric: ThresholdMetric,
    /// Quantile of `ResponseTime` or `ServiceTime`, required for them: "0.000001" to "1" (the maximum), such as "0.99". It needs on average
    /// 10 requests on either side of it, such as 1,000 for "0.99"; with fewer, the threshold is `NotJudged`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), regex(pattern = QUANTILE_PATTERN))]
    pub quantile: Option<String>,
    /// Maximum of the quantile, required with it: 1us to 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<GoDuration>,
    /// Maximum share of failed or unsent requests in hundredths of a percent, 0 to 9999. Required for `ErrorRate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_999))]
    pub max_basis_points: Option<u32>,
    /// Minimum successful requests per second, 1 to 1000000000. Required for `Throughput`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub min_per_second: Option<u64>,
    /// Operation of the mix to compare. Not set by default: all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub operation: Option<String>,
    /// Compares each Redis node separately; all must meet the limit. Not with `operation`, nor with `ResponseTime`, which includes time
    /// before a node gets the request. Default false.
    #[serde(default)]
    pub each_node: bool,
    /// Compares every window of this length, 2s to 1h, instead of the whole measurement; each must meet the limit. Windows are whole
    /// seconds of all shards. Each starts a tenth of the length, but at least a second, after the previous one. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<GoDuration>,
    /// Stops the load of all shards and fails the run as soon as the threshold is violated. The results so far are kept. Default false.
    #[serde(default)]
    pub abort_on_fail: bool,
}

/// Metric of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ThresholdMetric {
    /// Time from a request's due time to its reply.
    ResponseTime,
    /// Time from sending a request to its reply.
    ServiceTime,
    /// Share of requests that failed or were not sent.
    ErrorRate,
    /// Successful requests per second.
    Throughput,
}

//! Quantiles of latencies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Quantiles of a latency, in nanoseconds. A quantile is not set if there were fewer than 10 requests on either side of it on average, or
/// too many had no answer. `percentiles` has the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Latencies {
    /// The mean, if all were answered within 600 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_nanoseconds: Option<u64>,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_nanoseconds: Option<u64>,
    /// The 90th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_nanoseconds: Option<u64>,
    /// The 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_nanoseconds: Option<u64>,
    /// The 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_nanoseconds: Option<u64>,
    /// The 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_nanoseconds: Option<u64>,
    /// The 99.99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999_nanoseconds: Option<u64>,
    /// Maximum over answered requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nanoseconds: Option<u64>,
    /// `measurement.percentiles`; a long status lacks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub percentiles: Vec<Percentile>,
}

/// A percentile with its precision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Percentile {
    /// Such as `99.9`.
    #[schemars(length(max = 8))]
    pub percentile: String,
    /// Its value, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<u64>,
    /// Lower end of its 95 % confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_nanoseconds: Option<u64>,
    /// Its upper end, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_nanoseconds: Option<u64>,
    /// Its lower bound, if its value is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_than_nanoseconds: Option<u64>,
    /// Requests that it needs, if there were fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_requests: Option<u64>,
}

//! `spec.thresholds`: limits that the measurement must meet. The doc comments are the text of `kubectl explain`.

use std::time::Duration;

use redisbench_wire::plan::Bound;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::limit::{Limit, Scope, Threshold};
use super::problem::Problem;
use super::spec::{BreakdownKind, LoadType, NAME_PATTERN, RedisBenchmarkSpec};
use super::validate::{Durations, HOUR, SECOND};
use crate::quantile::Quantile;

/// Quantile in the format of [`Quantile::parse`].
pub const QUANTILE_PATTERN: &str = r"^(0\.[0-9]{1,6}|1)$";

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

/// Validates `spec.thresholds`. `bound` ends the measurement.
pub(super) fn check(spec: &RedisBenchmarkSpec, bound: Bound, problems: &mut Vec<Problem>) -> Vec<Threshold> {
    let checked =
        (0..).zip(&spec.thresholds).map(|(index, threshold)| Check { spec, threshold, index, problems }.run(bound));
    checked.flatten().collect()
}

struct Check<'a> {
    spec: &'a RedisBenchmarkSpec,
    threshold: &'a ThresholdSpec,
    index: usize,
    problems: &'a mut Vec<Problem>,
}

impl Check<'_> {
    fn refuse(&mut self, field: &str, value: impl std::fmt::Display, message: impl Into<String>) {
        let field = format!("spec.thresholds[{}].{field}", self.index);
        self.problems.push(Problem::new(field, value, message));
    }

    fn run(mut self, bound: Bound) -> Option<Threshold> {
        let threshold = self.threshold;
        let limit = self.limit();
        let scope = self.scope();
        let window = threshold.window.as_ref().map(|window| {
            let within = format!("spec.thresholds[{}]", self.index);
            Durations { problems: &mut *self.problems, within: &within }.between("window", window, 2 * SECOND, HOUR)
        });
        if let (Some(window), Bound::Duration { nanoseconds }) = (window, bound)
            && window > Duration::from_nanos(nanoseconds)
        {
            let length = GoDuration::from(Duration::from_nanos(nanoseconds));
            self.refuse(
                "window",
                GoDuration::from(window),
                format!("is longer than the measurement, which is {length}"),
            );
        }
        Some(Threshold {
            name: threshold.name.clone(),
            limit: limit?,
            scope,
            window,
            abort_on_fail: threshold.abort_on_fail,
        })
    }

    /// The metric and its bound. By the rules, a metric has its fields.
    fn limit(&mut self) -> Option<Limit> {
        let threshold = self.threshold;
        Some(match threshold.metric {
            ThresholdMetric::ErrorRate => Limit::ErrorRate { max_basis_points: threshold.max_basis_points? },
            ThresholdMetric::Throughput => {
                let min_per_second = threshold.min_per_second?;
                self.check_throughput(min_per_second);
                Limit::Throughput { min_per_second }
            }
            ThresholdMetric::ResponseTime | ThresholdMetric::ServiceTime => {
                let within = format!("spec.thresholds[{}]", self.index);
                let mut durations = Durations { problems: &mut *self.problems, within: &within };
                let max = durations.between("max", threshold.max.as_ref()?, Duration::from_micros(1), 600 * SECOND);
                let quantile = self.quantile()?;
                if threshold.metric == ThresholdMetric::ServiceTime {
                    Limit::ServiceTime { quantile, max }
                } else {
                    Limit::ResponseTime { quantile, max }
                }
            }
        })
    }

    fn quantile(&mut self) -> Option<Quantile> {
        let text = self.threshold.quantile.as_ref()?;
        let quantile = Quantile::parse(text);
        if quantile.is_none() {
            self.refuse("quantile", text, "must be from \"0.000001\" to \"1\", such as \"0.99\"");
        }
        quantile
    }

    /// A throughput above the requested rate can never be reached.
    fn check_throughput(&mut self, min_per_second: u64) {
        let load = &self.spec.load;
        let rate = (load.kind == LoadType::OpenLoop).then(|| load.mean_rate()).flatten();
        if let Some(rate) = rate.filter(|rate| *rate < min_per_second) {
            let message = format!("cannot be met: the load's rate is {rate}/s; lower it, or raise the rate");
            self.refuse("minPerSecond", min_per_second, message);
        }
    }

    fn scope(&mut self) -> Scope {
        let (threshold, breakdown) = (self.threshold, &self.spec.measurement.breakdown);
        if threshold.each_node {
            if !breakdown.contains(&BreakdownKind::Node) {
                self.refuse("eachNode", true, "needs Node in measurement.breakdown: add it");
            }
            return Scope::EachNode;
        }
        let Some(name) = &threshold.operation else { return Scope::Total };
        if !breakdown.contains(&BreakdownKind::Operation) {
            self.refuse("operation", name, "needs Operation in measurement.breakdown: add it");
        }
        let operations = &self.spec.workload.operations;
        if !operations.iter().any(|operation| operation.name == *name) {
            let known: Vec<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
            let message = format!("is not an operation of the workload; operations: {}", known.join(", "));
            self.refuse("operation", name, message);
        }
        Scope::Operation(name.clone())
    }
}

#[cfg(test)]
mod tests;

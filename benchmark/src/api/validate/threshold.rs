//! Validation of `spec.thresholds`.

use std::time::Duration;

use redisbench_wire::plan::Bound;

use crate::api::duration::{Durations, GoDuration, HOUR, SECOND};
use crate::api::limit::{Limit, Scope, Threshold};
use crate::api::load::LoadType;
use crate::api::measurement::BreakdownKind;
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::threshold::{ThresholdMetric, ThresholdSpec};
use crate::api::workload::OperationSpec;
use crate::quantile::Quantile;

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
        let (load, workload, threshold) = (&self.spec.load, &self.spec.workload, self.threshold);
        if load.kind == LoadType::ClosedLoop {
            return;
        }
        let is_meant = |operation: &&OperationSpec| Some(&operation.name) == threshold.operation.as_ref();
        let mix = load.mean_rate().unwrap_or_default();
        let rate = match workload.operations.iter().find(is_meant) {
            Some(operation) => operation.rate.unwrap_or(mix),
            None => mix.saturating_add(workload.own_rates()),
        };
        if rate > 0 && rate < min_per_second {
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

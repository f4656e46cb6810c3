//! Rules of `search`.

use super::super::forms::union;
use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    let alone = [
        (
            "load.type",
            "self.load.type == 'OpenLoop'",
            "must be OpenLoop with search, because a closed loop has no target rate",
        ),
        (
            "load.openLoop.rate",
            "!has(self.load.openLoop) || !has(self.load.openLoop.rate)",
            "must not be set with search, which sets the rate: remove it",
        ),
        (
            "load.stages",
            concat!("!", filled!("self.load.stages")),
            "must not be set with search, which sets the rate: remove one of them",
        ),
        (
            "load.requests",
            "!has(self.load.requests)",
            "must not be set with search, whose steps last for a time: set load.duration for longer steps",
        ),
        (
            "load.requestsPerConnection",
            "!has(self.load.requestsPerConnection)",
            "must not be set with search, whose steps last for a time: set load.duration for longer steps",
        ),
        (
            "thresholds",
            concat!("!", filled!("self.thresholds")),
            "must not be set with search, which tries rates that fail: set search.objective instead",
        ),
        (
            "comparison.benchmark",
            "!has(self.comparison) || !has(self.comparison.benchmark)",
            "must not be set with search: compare the targets in one benchmark, with comparison.baseline",
        ),
        (
            "comparison.metric",
            "!has(self.comparison) || self.comparison.metric == 'Throughput'",
            "must be Throughput with search, which compares the rates found: other metrics are those of different rates",
        ),
    ];
    let alone = alone.map(|(field, condition, message)| {
        Rule::new(SPEC, field, format!("!has(self.search) || {condition}"), message)
    });
    let members: [(&str, &[&str], &str); 4] = [
        ("quantile", &["ResponseTime"], "\"0.99\""),
        ("max", &["ResponseTime"], "2ms"),
        ("maxBasisPoints", &["ErrorRate"], "10"),
        ("minBasisPoints", &["AchievedRate"], "9990"),
    ];
    let rate = Rule::new(
        "spec.search.rate",
        "max",
        "self.min <= self.max",
        "is %s, and must be at least search.rate.min, which is %s",
    )
    .showing(["self.max", "self.min"]);
    alone.into_iter().chain(union("spec.search.objective", "metric", &members)).chain([rate]).collect()
}

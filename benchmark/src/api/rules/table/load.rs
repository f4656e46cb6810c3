//! Rules of `load`: its loops and its length.

use super::super::forms::{listed, split, unsupported};
use super::super::rule::{Rule, SPEC};

const LOAD: &str = "spec.load";

pub(super) fn all() -> Vec<Rule> {
    [open_loop(), closed_loop(), length()].into_iter().flatten().collect()
}

fn open_loop() -> Vec<Rule> {
    vec![
        Rule::new(
            SPEC,
            "load.openLoop",
            concat!(
                "self.load.type != 'OpenLoop' || has(self.load.openLoop) || has(self.search) || ",
                "has(self.workload.trace) && has(self.workload.trace.pace) || ",
                filled!("self.load.stages"),
                " || ",
                all_rated!()
            ),
            "must be set for type OpenLoop, such as openLoop: {rate: 10000}",
        ),
        Rule::new(
            SPEC,
            "load.openLoop.rate",
            concat!(
                "!has(self.load.openLoop) || has(self.load.openLoop.rate) || has(self.search) || ",
                "has(self.workload.trace) && has(self.workload.trace.pace) || ",
                filled!("self.load.stages"),
                " || ",
                all_rated!()
            ),
            "must be set, such as 10000, or stages",
        ),
        Rule::new(
            LOAD,
            "openLoop.rate",
            concat!("!has(self.openLoop) || !has(self.openLoop.rate) || !", filled!("self.stages")),
            "must not be set with stages, which set the rate: remove one of them",
        ),
        Rule::new(
            LOAD,
            "openLoop",
            "self.type == 'OpenLoop' || !has(self.openLoop)",
            "must not be set for type ClosedLoop: remove it, or set type to OpenLoop",
        ),
        Rule::new(
            LOAD,
            "stages",
            concat!("self.type == 'OpenLoop' || !", filled!("self.stages")),
            "must not be set for type ClosedLoop: remove them, or set type to OpenLoop",
        ),
        Rule::new(
            LOAD,
            "stages",
            "!has(self.stages) || self.stages.all(stage, !has(stage.name) || \
             self.stages.exists_one(other, has(other.name) && other.name == stage.name))",
            "have two entries of the same name, %s: rename one",
        )
        .showing(["self.stages.filter(stage, has(stage.name) && \
                   !self.stages.exists_one(other, has(other.name) && other.name == stage.name))[0].name"]),
    ]
}

fn closed_loop() -> Vec<Rule> {
    vec![
        split("", "load.connections"),
        split(
            "!has(self.load.closedLoop) || !has(self.load.closedLoop.concurrency) || ",
            "load.closedLoop.concurrency",
        ),
        Rule::new(
            "spec.load.connectionLifetime",
            "",
            "has(self.requests) != has(self.duration)",
            "must have either requests or duration, such as requests: 100: set one of them",
        ),
        Rule::new(
            LOAD,
            "closedLoop",
            "self.type == 'ClosedLoop' || !has(self.closedLoop)",
            "must not be set for type OpenLoop: remove it, or set type to ClosedLoop",
        ),
        Rule::new(
            LOAD,
            "closedLoop.concurrency",
            "!has(self.closedLoop) || !has(self.closedLoop.concurrency) || \
             self.closedLoop.concurrency <= self.connections * self.pipeline",
            "is %s, and must be at most connections x pipeline, which is %s: more are never in flight; raise one of the two",
        )
        .showing(["self.closedLoop.concurrency", "self.connections * self.pipeline"]),
        // An open loop sends requests when they are due, callers one at a time, and in a Cluster or Pool the request selects its connection.
        unsupported(
            "load.pipelineMode",
            "self.load.pipelineMode == 'Batch'",
            "Batch does not support",
            &[
                ("load.type OpenLoop", "self.load.type == 'OpenLoop'"),
                ("load.closedLoop.concurrency", "has(self.load.closedLoop) && has(self.load.closedLoop.concurrency)"),
                ("targets.type Cluster or Pool", "self.targets.exists(target, target.type in ['Cluster', 'Pool'])"),
            ],
            "change these, or set Window",
        ),
    ]
}

fn length() -> Vec<Rule> {
    vec![
        split("!has(self.load.requests) || ", "load.requests"),
        Rule::new(
            LOAD,
            "",
            concat!(
                "(has(self.duration) ? 1 : 0) + (has(self.requests) ? 1 : 0) + \
                 (has(self.requestsPerConnection) ? 1 : 0) + (",
                filled!("self.stages"),
                " ? 1 : 0) <= 1"
            ),
            "at most one of duration, requests, requestsPerConnection and stages may be set: keep one of %s",
        )
        .showing([&listed(&[
            ("duration", "has(self.duration)"),
            ("requests", "has(self.requests)"),
            ("requestsPerConnection", "has(self.requestsPerConnection)"),
            ("stages", filled!("self.stages")),
        ])]),
        Rule::new(
            LOAD,
            "maxDuration",
            "!has(self.maxDuration) || has(self.requests) || has(self.requestsPerConnection)",
            "is only valid with requests or requestsPerConnection: remove it, or set requests instead of duration",
        ),
        Rule::new(
            LOAD,
            "warmupEnds",
            "self.warmupEnds == 'ByTime' || has(self.duration)",
            "WhenSettled requires load.duration: set it instead of requests, requestsPerConnection or stages, or set warmupEnds to \
             ByTime",
        ),
    ]
}

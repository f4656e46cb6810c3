//! Measured requests as thresholds judge them: at the end, or over some seconds.

use hdrhistogram::Histogram;
use redisbench_wire::snapshot::Tally;
use redisbench_wire::timeline::{NodePart, Span};

use crate::api::{Limit, Scope};
use crate::measurement::judged::Observed;
use crate::measurement::latencies::{self, Censored, Interval};
use crate::measurement::measured::Measured;
use crate::measurement::merge::{self, Merged};
use crate::measurement::seconds;

const SECOND: u64 = 1_000_000_000;

/// Requests of all shards together, by the scopes of thresholds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    total: Option<Part>,
    operations: Vec<Part>,
    nodes: Vec<Part>,
}

/// One set of requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// The operation's name, otherwise empty.
    name: String,
    /// The node's address, if it is a node's.
    pub(super) node: Option<String>,
    measured: Measured,
    /// Successful requests per second.
    per_second: u64,
}

impl Observation {
    /// The whole measurement.
    pub fn whole(merged: &Merged) -> Self {
        let succeeded = merged.total.tally.succeeded;
        // Mean over the common window; a part gets its proportional share.
        let per_second = |part: u64| {
            let share = u128::from(merged.throughput.mean) * u128::from(part) / u128::from(succeeded.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let operations = merged.operations.iter().map(|operation| Part {
            name: operation.name.clone(),
            node: None,
            per_second: per_second(operation.measured.tally.succeeded),
            measured: operation.measured.clone(),
        });
        let nodes = merged.nodes.iter().map(|node| {
            let service = node.service.clone();
            Part::of_node(&node.address, (node.requests, node.errors), service, per_second)
        });
        Self {
            total: Some(Part {
                name: String::new(),
                node: None,
                per_second: merged.throughput.mean,
                measured: merged.total.clone(),
            }),
            operations: operations.collect(),
            nodes: nodes.collect(),
        }
    }

    /// The requests that ended in this many whole seconds, all held by `span`. Its parts correspond to `operations`. `warmup`: if these are
    /// the first seconds of the measurement, the number of seconds before them.
    pub(super) fn of_seconds(span: &Span, operations: &[String], seconds: u32, warmup: Option<u32>) -> Self {
        let nanoseconds = u64::from(seconds) * SECOND;
        // The first replies arrive a service time after the first request that counts, so that time is left out: at most half, because a
        // target that stands still has service times as long. A closed loop has no queue, and only response times.
        let trip = |measured: &Measured| measured.service.clone().unwrap_or_else(|| measured.response.clone());
        let time = |trips: &Histogram<u64>, before: u64| {
            let silent = latencies::round(trips.mean()).saturating_sub(before).min(nanoseconds / 2);
            if warmup.is_some() { nanoseconds - silent } else { nanoseconds }
        };
        let part = |(name, part): (&String, _)| {
            let measured = seconds::measured(std::iter::once(part));
            let per_second = merge::per_second(measured.tally.succeeded, time(&trip(&measured), 0));
            Part { name: name.clone(), node: None, per_second, measured }
        };
        let node = |node: &NodePart| {
            let service = seconds::service(node);
            let time = time(&service, 0);
            let per_second = |succeeded: u64| merge::per_second(succeeded, time);
            Part::of_node(&node.address, (node.requests, node.errors), service, per_second)
        };
        // Replies to the warm-up's last requests are part of the target's throughput.
        let completed = span.counts().succeeded.saturating_add(span.warmup.succeeded);
        let total = seconds::measured(span.parts.iter());
        let time_of_total = time(&trip(&total), u64::from(warmup.unwrap_or_default()) * SECOND);
        Self {
            total: Some(Part {
                name: String::new(),
                node: None,
                per_second: merge::per_second(completed, time_of_total),
                measured: total,
            }),
            operations: operations.iter().zip(&span.parts).map(part).collect(),
            nodes: span.nodes.iter().map(node).collect(),
        }
    }

    pub(super) fn parts<'a>(&'a self, scope: &'a Scope) -> Box<dyn Iterator<Item = &'a Part> + 'a> {
        match scope {
            Scope::Total => Box::new(self.total.iter()),
            Scope::Operation(name) => Box::new(self.operations.iter().filter(move |part| part.name == *name)),
            Scope::EachNode => Box::new(self.nodes.iter()),
        }
    }
}

impl Part {
    /// For a node only requests, errors and service times are counted.
    fn of_node(
        address: &str,
        (requests, errors): (u64, u64),
        service: Histogram<u64>,
        per_second: impl Fn(u64) -> u64,
    ) -> Self {
        let succeeded = requests.saturating_sub(errors);
        Self {
            name: String::new(),
            node: Some(address.to_owned()),
            per_second: per_second(succeeded),
            measured: Measured {
                tally: Tally { scheduled: requests, succeeded, errors, ..Tally::default() },
                response: service,
                ..Measured::default()
            },
        }
    }

    /// Requests with an outcome.
    pub(super) fn finished(&self) -> u64 {
        let tally = &self.measured.tally;
        tally.succeeded.saturating_add(tally.errors).saturating_add(tally.unsent)
    }

    /// None if there is not enough data for the metric.
    pub(super) fn observe(&self, limit: &Limit) -> Option<Observed> {
        let measured = &self.measured;
        match limit {
            Limit::ResponseTime { quantile, .. } => {
                latencies::response_time_quantile(measured, *quantile).map(Observed::Latency)
            }
            Limit::ServiceTime { quantile, .. } => {
                latencies::known(self.service(), *quantile).map(Censored::Known).map(Observed::Latency)
            }
            Limit::ErrorRate { .. } => {
                let tally = &measured.tally;
                let failed = tally.errors.saturating_add(tally.unsent);
                (self.finished() > 0).then(|| Observed::Errors { failed, of: self.finished() })
            }
            Limit::Throughput { .. } => Some(Observed::PerSecond(self.per_second)),
        }
    }

    /// The interval of an observed quantile; none for other metrics.
    pub(super) fn interval(&self, limit: &Limit) -> Option<Interval> {
        match limit {
            Limit::ResponseTime { quantile, .. } => latencies::response_time_interval(&self.measured, *quantile),
            Limit::ServiceTime { quantile, .. } => latencies::interval(self.service(), *quantile),
            Limit::ErrorRate { .. } | Limit::Throughput { .. } => None,
        }
    }

    /// Service times. In a closed loop they equal the response times.
    fn service(&self) -> &Histogram<u64> {
        self.measured.service.as_ref().unwrap_or(&self.measured.response)
    }
}

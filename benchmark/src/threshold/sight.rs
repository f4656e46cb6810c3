//! What was measured, as thresholds see it: at the end, in some seconds, or of nodes between two looks.

use redisbench_wire::histogram::HistogramError;
use redisbench_wire::snapshot::{Snapshot, Tally};
use redisbench_wire::timeline::Span;

use super::{Limit, Observed, Scope};
use crate::merge::{self, Measured, Merged};
use crate::seconds;
use crate::stats::{self, Censored};

/// Requests of all shards together, as far as thresholds ask for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sight {
    total: Option<Part>,
    operations: Vec<Part>,
    nodes: Vec<Part>,
}

/// One set of requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// The operation's name; empty of others.
    name: String,
    /// The node's address, if it is a node's.
    pub(super) node: Option<String>,
    measured: Measured,
    /// Successful requests per second.
    per_second: u64,
}

impl Sight {
    /// All that was measured.
    pub fn whole(merged: &Merged) -> Self {
        let succeeded = merged.total.tally.succeeded;
        // The mean over the common window, and of each part its share.
        let per_second = |part: u64| {
            let share = u128::from(merged.pace.mean) * u128::from(part) / u128::from(succeeded.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let operations = merged.operations.iter().map(|operation| Part {
            name: operation.name.clone(),
            node: None,
            per_second: per_second(operation.measured.tally.succeeded),
            measured: operation.measured.clone(),
        });
        let nodes = merged.nodes.iter().map(|node| Part::of_node(node, per_second));
        Self {
            total: Some(Part {
                name: String::new(),
                node: None,
                per_second: merged.pace.mean,
                measured: merged.total.clone(),
            }),
            operations: operations.collect(),
            nodes: nodes.collect(),
        }
    }

    /// What came in this many whole seconds, which `span` holds. Its parts are `operations`.
    pub(super) fn of_seconds(span: &Span, operations: &[String], seconds: u32) -> Self {
        let nanoseconds = u64::from(seconds) * 1_000_000_000;
        let per_second = |succeeded: u64| merge::per_second(succeeded, nanoseconds);
        let part = |(name, part): (&String, _)| {
            let measured = seconds::measured(std::iter::once(part));
            Part { name: name.clone(), node: None, per_second: per_second(measured.tally.succeeded), measured }
        };
        // Answers to the warm-up's last requests are part of the target's throughput.
        let completed = span.counts().succeeded.saturating_add(span.warmup.succeeded);
        Self {
            total: Some(Part {
                name: String::new(),
                node: None,
                per_second: per_second(completed),
                measured: seconds::measured(span.parts.iter()),
            }),
            operations: operations.iter().zip(&span.parts).map(part).collect(),
            nodes: Vec::new(),
        }
    }

    /// Counts and service times of each node, from the newest snapshots of all shards.
    ///
    /// # Errors
    /// When a histogram is not what the contract says.
    pub(super) fn of_nodes(snapshots: &[&Snapshot]) -> Result<Self, HistogramError> {
        let nanoseconds = measured_nanoseconds(snapshots);
        let nodes = merge::nodes(snapshots)?;
        let part = |node| Part::of_node(node, |succeeded| merge::per_second(succeeded, nanoseconds));
        Ok(Self { nodes: nodes.iter().map(part).collect(), ..Self::default() })
    }

    /// What came of nodes between `former` and this, in `nanoseconds`; none if a count has gone back, as after another
    /// attempt.
    pub(super) fn since(&self, former: &Self, nanoseconds: u64) -> Option<Self> {
        let since = |part: &Part| match former.nodes.iter().find(|former| former.node == part.node) {
            Some(former) => part.since(former, nanoseconds),
            // A node that has come is new altogether.
            None => {
                Some(Part { per_second: merge::per_second(part.measured.tally.succeeded, nanoseconds), ..part.clone() })
            }
        };
        Some(Self { nodes: self.nodes.iter().map(since).collect::<Option<_>>()?, ..Self::default() })
    }

    pub(super) fn parts<'a>(&'a self, scope: &'a Scope) -> Box<dyn Iterator<Item = &'a Part> + 'a> {
        match scope {
            Scope::Total => Box::new(self.total.iter()),
            Scope::Operation(name) => Box::new(self.operations.iter().filter(move |part| part.name == *name)),
            Scope::EachNode => Box::new(self.nodes.iter()),
        }
    }
}

/// For how long shards had measured when their snapshots were taken, in nanoseconds: the longest of them, as time goes on
/// for a lost shard too.
pub(super) fn measured_nanoseconds(snapshots: &[&Snapshot]) -> u64 {
    snapshots.iter().map(|snapshot| merge::measured_nanoseconds(snapshot)).max().unwrap_or_default()
}

impl Part {
    /// A node knows when it was asked and what it answered, and no more.
    fn of_node(node: &merge::NodeMeasured, per_second: impl Fn(u64) -> u64) -> Self {
        let succeeded = node.requests.saturating_sub(node.errors);
        Self {
            name: String::new(),
            node: Some(node.address.clone()),
            per_second: per_second(succeeded),
            measured: Measured {
                tally: Tally { scheduled: node.requests, succeeded, errors: node.errors, ..Tally::default() },
                unknown: 0,
                response: node.service.clone(),
                service: None,
                error_replies: None,
            },
        }
    }

    /// Requests that have their outcome.
    pub(super) fn finished(&self) -> u64 {
        let tally = &self.measured.tally;
        tally.succeeded.saturating_add(tally.errors).saturating_add(tally.unsent)
    }

    /// None if nothing was measured that could tell.
    pub(super) fn observe(&self, limit: &Limit) -> Option<Observed> {
        let measured = &self.measured;
        match limit {
            Limit::ResponseTime { quantile, .. } => {
                stats::response_time_quantile(measured, *quantile).map(Observed::Latency)
            }
            Limit::ServiceTime { quantile, .. } => {
                // In a closed loop it is the response time.
                let service = measured.service.as_ref().unwrap_or(&measured.response);
                stats::known(service, *quantile).map(Censored::Known).map(Observed::Latency)
            }
            Limit::ErrorRate { .. } => {
                let tally = &measured.tally;
                let failed = tally.errors.saturating_add(tally.unsent);
                (self.finished() > 0).then(|| Observed::Errors { failed, of: self.finished() })
            }
            Limit::Throughput { .. } => Some(Observed::PerSecond(self.per_second)),
        }
    }

    /// Of a node.
    fn since(&self, former: &Self, nanoseconds: u64) -> Option<Self> {
        let (new, old) = (&self.measured, &former.measured);
        let mut response = new.response.clone();
        response.subtract(&old.response).ok()?;
        let tally = Tally {
            scheduled: new.tally.scheduled.checked_sub(old.tally.scheduled)?,
            succeeded: new.tally.succeeded.checked_sub(old.tally.succeeded)?,
            errors: new.tally.errors.checked_sub(old.tally.errors)?,
            ..Tally::default()
        };
        Some(Self {
            name: String::new(),
            node: self.node.clone(),
            per_second: merge::per_second(tally.succeeded, nanoseconds),
            measured: Measured { tally, unknown: 0, response, service: None, error_replies: None },
        })
    }
}

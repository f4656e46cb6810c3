//! What was measured, as thresholds see it: at the end, so far, or between two looks.

use redisbench_wire::histogram::HistogramError;
use redisbench_wire::snapshot::{Snapshot, Tally};

use super::{Limit, Observed, Scope, Threshold};
use crate::merge::{self, Measured, Merged};
use crate::stats::{self, Censored};

/// Requests of all shards together, as far as thresholds ask for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    total: Part,
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
            total: Part {
                name: String::new(),
                node: None,
                per_second: merged.pace.mean,
                measured: merged.total.clone(),
            },
            operations: operations.collect(),
            nodes: nodes.collect(),
        }
    }

    /// What the newest snapshots of all shards hold of what `thresholds` ask for.
    ///
    /// # Errors
    /// When a histogram is not what the contract says.
    pub fn so_far(snapshots: &[&Snapshot], thresholds: &[Threshold]) -> Result<Self, HistogramError> {
        let total = merge::measured(snapshots.iter().map(|snapshot| (&snapshot.total, &snapshot.latency)))?;
        let nanoseconds = measured_nanoseconds(snapshots);
        let per_second = |succeeded: u64| merge::per_second(succeeded, nanoseconds);
        let asked = |scope: fn(&Scope) -> bool| thresholds.iter().any(|threshold| scope(&threshold.scope));
        let operations = if asked(|scope| matches!(scope, Scope::Operation(_))) {
            merge::operations(snapshots)?
        } else {
            Vec::new()
        };
        let nodes = if asked(|scope| *scope == Scope::EachNode) { merge::nodes(snapshots)? } else { Vec::new() };
        Ok(Self {
            operations: operations
                .into_iter()
                .filter(|part| {
                    thresholds.iter().any(|threshold| threshold.scope == Scope::Operation(part.name.clone()))
                })
                .map(|part| Part {
                    name: part.name,
                    node: None,
                    per_second: per_second(part.measured.tally.succeeded),
                    measured: part.measured,
                })
                .collect(),
            nodes: nodes.iter().map(|node| Part::of_node(node, per_second)).collect(),
            total: Part {
                name: String::new(),
                node: None,
                per_second: per_second(total.tally.succeeded),
                measured: total,
            },
        })
    }

    /// What came between `former` and this, in `nanoseconds`; none if a count has gone back, as after another attempt.
    pub(super) fn since(&self, former: &Self, nanoseconds: u64) -> Option<Self> {
        let of = |parts: &[Part], former: &[Part]| -> Option<Vec<Part>> {
            let since = |part: &Part| match former.iter().find(|former| former.is_of(part)) {
                Some(former) => part.since(former, nanoseconds),
                // A node that has come is new altogether.
                None => Some(Part {
                    per_second: merge::per_second(part.measured.tally.succeeded, nanoseconds),
                    ..part.clone()
                }),
            };
            parts.iter().map(since).collect()
        };
        Some(Self {
            total: self.total.since(&former.total, nanoseconds)?,
            operations: of(&self.operations, &former.operations)?,
            nodes: of(&self.nodes, &former.nodes)?,
        })
    }

    pub(super) fn parts<'a>(&'a self, scope: &'a Scope) -> Box<dyn Iterator<Item = &'a Part> + 'a> {
        match scope {
            Scope::Total => Box::new(std::iter::once(&self.total)),
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

    fn is_of(&self, other: &Self) -> bool {
        self.name == other.name && self.node == other.node
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

    fn since(&self, former: &Self, nanoseconds: u64) -> Option<Self> {
        let (new, old) = (&self.measured, &former.measured);
        let (tally, before) = (&new.tally, &old.tally);
        let subtract = |mut new: hdrhistogram::Histogram<u64>, old: &hdrhistogram::Histogram<u64>| {
            new.subtract(old).ok().map(|()| new)
        };
        let optional =
            |new: &Option<hdrhistogram::Histogram<u64>>, old: &Option<hdrhistogram::Histogram<u64>>| match (new, old) {
                (Some(new), Some(old)) => subtract(new.clone(), old).map(Some),
                (new, _) => Some(new.clone()),
            };
        let tally = Tally {
            scheduled: tally.scheduled.checked_sub(before.scheduled)?,
            succeeded: tally.succeeded.checked_sub(before.succeeded)?,
            errors: tally.errors.checked_sub(before.errors)?,
            unsent: tally.unsent.checked_sub(before.unsent)?,
            unanswered: tally.unanswered.checked_sub(before.unanswered)?,
            overflow: tally.overflow.checked_sub(before.overflow)?,
            overflow_max_nanoseconds: tally.overflow_max_nanoseconds,
            ..Tally::default()
        };
        Some(Self {
            name: self.name.clone(),
            node: self.node.clone(),
            per_second: merge::per_second(tally.succeeded, nanoseconds),
            measured: Measured {
                tally,
                unknown: 0,
                response: subtract(new.response.clone(), &old.response)?,
                service: optional(&new.service, &old.service)?,
                error_replies: optional(&new.error_replies, &old.error_replies)?,
            },
        })
    }
}

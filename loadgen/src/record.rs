//! What a worker counts. One recording per worker, written by its thread alone; merging them into a snapshot is pure.
#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "points and workers are bounded by the contract")]

mod counts;
mod delays;
mod merge;
mod seconds;
mod series;

use redisbench_wire::histogram::HIGHEST_NANOSECONDS;
use redisbench_wire::limits;
use redisbench_wire::plan::{Load, ShardPlan};
use redisbench_wire::snapshot::{ErrorTally, Tally};
use redisbench_wire::timeline::Coarse;

use crate::cluster::Deferral;
use counts::{NodeCounts, RequestCounts};
use seconds::{Latencies, Seconds};

pub use delays::Delays;
pub use merge::{Machine, Meta, WorkerReport, merge};
pub use series::Completions;

/// Sent later than this after the due time is late.
pub(crate) const LATE_NANOSECONDS: u64 = 1_000_000;

/// One request that ended in an error, as the recording needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Index into the mix.
    pub operation: u16,
    /// Index into the worker's nodes.
    pub node: u32,
    /// When it was due; in a closed loop, when it was sent first.
    pub due: u64,
    /// When its outcome was known.
    pub now: u64,
    /// Whether it took a redirect.
    pub redirected: bool,
}

/// Why a request was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// It waited too long for room in a connection's pipeline.
    NoRoom,
    /// It waited too long, and there was no connection to its server.
    NotConnected,
    /// The load ended before it had waited too long.
    AtEnd,
}

impl Unsent {
    fn count(self, tally: &mut Tally) {
        tally.unsent += 1;
        match self {
            Self::NoRoom => {}
            Self::NotConnected => tally.unsent_not_connected += 1,
            Self::AtEnd => tally.unsent_at_end += 1,
        }
    }
}

impl Deferral {
    fn count(self, tally: &mut Tally) {
        tally.deferral_hops += 1;
        match self {
            Self::TryAgain => {}
            Self::ClusterDown => tally.cluster_down_hops += 1,
            Self::Loading => tally.loading_hops += 1,
        }
    }
}

/// Everything that one worker measured in one attempt.
#[derive(Clone, Debug)]
pub struct Recording {
    /// One per operation, or one for all without that breakdown.
    operations: Vec<OperationRecord>,
    nodes: Option<Vec<NodeRecord>>,
    node_seconds: bool,
    lateness: Option<RequestCounts>,
    errors: Vec<ErrorTally>,
    /// The warm-up's requests.
    pub warmup: Tally,
    /// Bytes written while measuring.
    pub sent_bytes: u64,
    /// Bytes read while measuring.
    pub received_bytes: u64,
    /// Completions over time.
    pub series: Completions,
    seconds: Seconds,
}

#[derive(Clone, Debug)]
struct OperationRecord {
    tally: Tally,
    nil_replies: u64,
    response: RequestCounts,
    service: Option<RequestCounts>,
    error_replies: Option<RequestCounts>,
    /// Of the present second.
    second: Latencies,
}

#[derive(Clone, Debug)]
struct NodeRecord {
    id: String,
    label: String,
    requests: u64,
    errors: u64,
    redirects: u64,
    service: NodeCounts,
    /// Of the present second, if nodes are counted by it.
    second: Option<NodeSecond>,
}

/// What a node did in the present second.
#[derive(Clone, Debug, Default)]
struct NodeSecond {
    service: Coarse,
    /// Requests and errors when it began.
    before: (u64, u64),
}

impl OperationRecord {
    fn new(open_loop: bool) -> Self {
        Self {
            tally: Tally::default(),
            nil_replies: 0,
            response: RequestCounts::new(),
            service: open_loop.then(RequestCounts::new),
            error_replies: None,
            second: Latencies::default(),
        }
    }
}

impl OperationRecord {
    #[cold]
    fn overflow(&mut self, response: u64, count: u64) {
        self.tally.overflow += count;
        self.tally.overflow_max_nanoseconds = self.tally.overflow_max_nanoseconds.max(response);
    }
}

impl Recording {
    /// Nothing measured yet.
    pub fn new(plan: &ShardPlan) -> Self {
        let open_loop = matches!(plan.load, Load::OpenLoop { .. });
        let operations = if plan.breakdown.operation { plan.workload.operations.len() } else { 1 };
        Self {
            seconds: Seconds::new(operations),
            operations: vec![OperationRecord::new(open_loop); operations],
            nodes: plan.breakdown.node.then(Vec::new),
            node_seconds: plan.node_seconds,
            lateness: open_loop.then(RequestCounts::new),
            errors: Vec::new(),
            warmup: Tally::default(),
            sent_bytes: 0,
            received_bytes: 0,
            series: Completions::of_plan(plan),
        }
    }

    /// Makes room for another node. Nodes are told apart by the order in which they are added.
    pub fn add_node(&mut self, id: &str, label: &str) {
        let Some(nodes) = &mut self.nodes else { return };
        nodes.push(NodeRecord {
            id: id.to_owned(),
            label: label.to_owned(),
            requests: 0,
            errors: 0,
            redirects: 0,
            service: NodeCounts::new(),
            second: self.node_seconds.then(NodeSecond::default),
        });
        if self.node_seconds {
            self.seconds.keep(self.operations.len() + nodes.len());
        }
    }

    /// Names a node that was known by its address only.
    pub fn rename_node(&mut self, node: usize, id: &str, label: &str) {
        if let Some(node) = self.nodes.as_mut().and_then(|nodes| nodes.get_mut(node)) {
            id.clone_into(&mut node.id);
            label.clone_into(&mut node.label);
        }
    }

    #[inline]
    fn operation(&mut self, operation: u16) -> &mut OperationRecord {
        let index = usize::from(operation).min(self.operations.len() - 1);
        &mut self.operations[index]
    }

    /// The operation that all requests count for, if there is but one.
    #[inline]
    pub fn only_operation(&self) -> Option<u16> {
        (self.operations.len() == 1).then_some(0)
    }

    /// `count` slots of `operation` have come.
    #[inline]
    pub fn scheduled(&mut self, operation: u16, count: u64) {
        self.operation(operation).tally.scheduled += count;
    }

    /// A request was sent for the first time, `late` after it was due.
    #[inline]
    pub fn sent(&mut self, operation: u16, late: u64) {
        if let Some(lateness) = &mut self.lateness {
            lateness.record(late, 1);
            if late > LATE_NANOSECONDS {
                self.operation(operation).tally.late += 1;
            }
        }
    }

    /// A slot was given up.
    pub fn unsent(&mut self, operation: u16, why: Unsent) {
        why.count(&mut self.operation(operation).tally);
    }

    /// A slot of the warm-up was.
    pub fn warmup_unsent(&mut self, why: Unsent) {
        why.count(&mut self.warmup);
    }

    /// `count` requests were answered without an error, `nil` of them with null. Their times are counted by
    /// [`Self::responded`] and [`Self::served`].
    #[inline]
    pub fn succeeded(&mut self, operation: u16, count: u64, nil: u64) {
        let record = self.operation(operation);
        record.tally.succeeded += count;
        record.nil_replies += nil;
    }

    /// It was `response` nanoseconds from the due time of `count` requests to their replies without an error.
    #[inline]
    pub fn responded(&mut self, operation: u16, response: u64, count: u64) {
        let record = self.operation(operation);
        if response > HIGHEST_NANOSECONDS {
            record.overflow(response, count);
        } else {
            record.response.record(response, count);
            record.second.response.record(response, count);
        }
    }

    /// A request that was answered without an error had followed a redirect.
    #[cold]
    pub fn followed(&mut self, operation: u16) {
        self.operation(operation).tally.redirected += 1;
    }

    /// A node took `service` nanoseconds from the send of their last hop to answer `count` requests without an error.
    #[inline]
    pub fn served(&mut self, operation: u16, node: u32, service: u64, count: u64) {
        let record = self.operation(operation);
        if let Some(histogram) = &mut record.service {
            histogram.record(service, count);
            record.second.service.record(service, count);
        }
        if let Some(nodes) = &mut self.nodes {
            let node = &mut nodes[node as usize];
            node.requests += count;
            node.service.record(service, count);
            if let Some(second) = &mut node.second {
                second.service.record(service, count);
            }
        }
    }

    /// A request ended in an error; `answered` if a server said so.
    #[cold]
    pub fn failed(&mut self, request: &Completion, answered: bool) {
        let record = self.operation(request.operation);
        record.tally.errors += 1;
        record.tally.unanswered += u64::from(!answered);
        record.tally.redirected += u64::from(request.redirected);
        if answered {
            let histogram = record.error_replies.get_or_insert_with(RequestCounts::new);
            let response = request.now.saturating_sub(request.due);
            histogram.record(response, 1);
            record.second.error_replies.record(response, 1);
        }
        if let Some(nodes) = &mut self.nodes {
            let node = &mut nodes[request.node as usize];
            node.requests += 1;
            node.errors += 1;
        }
    }

    /// Keeps the kind of an error and the first message of that kind.
    #[cold]
    pub fn error(&mut self, kind: &str, message: impl FnOnce() -> String) {
        if let Some(tally) = self.errors.iter_mut().find(|tally| tally.kind == kind) {
            tally.count += 1;
            return;
        }
        let error = ErrorTally { kind: kind.into(), count: 1, first_message: limits::message(&message()) };
        add_error(&mut self.errors, error);
    }

    /// A request succeeded that fewer replicas had than it waited for.
    #[cold]
    pub fn under_replicated(&mut self, operation: u16) {
        self.operation(operation).tally.under_replicated += 1;
    }

    /// A key that a request of `operation` had missed was written, or not.
    #[cold]
    pub fn filled(&mut self, operation: u16, is_error: bool) {
        let tally = &mut self.operation(operation).tally;
        *(if is_error { &mut tally.fill_errors } else { &mut tally.fills }) += 1;
    }

    /// A node answered with a redirect.
    #[cold]
    pub fn redirected(&mut self, operation: u16, node: u32) {
        self.operation(operation).tally.redirect_hops += 1;
        if let Some(nodes) = &mut self.nodes {
            nodes[node as usize].redirects += 1;
        }
    }

    /// A node answered that it cannot serve this now.
    #[cold]
    pub fn deferred(&mut self, operation: u16, why: Deferral) {
        why.count(&mut self.operation(operation).tally);
    }

    /// The same of the warm-up.
    #[cold]
    pub fn warmup_deferred(&mut self, why: Deferral) {
        why.count(&mut self.warmup);
    }
}

const OTHER: &str = "Other";

/// Adds to the tally of the same kind, or as a new kind. The last place is kept for all the rest.
fn add_error(errors: &mut Vec<ErrorTally>, mut error: ErrorTally) {
    let known = |errors: &[ErrorTally], kind: &str| errors.iter().position(|tally| tally.kind == kind);
    if known(errors, &error.kind).is_none() && errors.len() + 1 >= limits::ERROR_KINDS {
        OTHER.clone_into(&mut error.kind);
    }
    match known(errors, &error.kind) {
        Some(index) => errors[index].count += error.count,
        None => errors.push(error),
    }
}

#[cfg(test)]
mod tests;

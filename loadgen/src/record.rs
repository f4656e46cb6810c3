//! The counters of a worker. Each worker's thread alone writes its recording; merging them into a snapshot is pure.
#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "points and workers are bounded by the contract")]

mod caches;
mod churn;
mod counts;
mod delays;
mod draft;
mod merge;
mod seconds;
mod series;
mod spans;
mod traces;

use redisbench_wire::histogram::HIGHEST_NANOSECONDS;
use redisbench_wire::limits;
use redisbench_wire::plan::{Load, TrialPlan};
use redisbench_wire::snapshot::{ErrorTally, Tally};
use redisbench_wire::timeline::Coarse;

use crate::cluster::Deferral;
use counts::{NodeCounts, RequestCounts};
use seconds::{Latencies, Seconds};
use traces::Traces;

pub use caches::CacheRecord;
pub use churn::ChurnCounts;
pub use delays::Delays;
pub use draft::Draft;
pub use merge::{Machine, Meta, WorkerReport, merge};
pub use series::Completions;
pub use traces::{Span, Traced};

/// A request sent later than this after its due time counts as late.
pub(crate) const LATE_NANOSECONDS: u64 = 1_000_000;

/// The part of a load that a request counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    Warmup,
    Measured,
}

/// One request that ended in an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub operation: u16,
    pub node: u32,
    /// Its due time; in a closed loop, its first send.
    pub due: u64,
    /// The time at which its outcome was known.
    pub now: u64,
    /// True if it followed a redirect.
    pub redirected: bool,
}

/// Why a request was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// It waited too long for room in a connection's pipeline.
    NoRoom,
    /// It waited too long without a connection to its server.
    NotConnected,
    /// The load ended before its deadline.
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

/// All measurements of one worker in one attempt.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// One per operation, or a single one without that breakdown.
    operations: Vec<OperationRecord>,
    nodes: Option<Vec<NodeRecord>>,
    node_seconds: bool,
    lateness: Option<RequestCounts>,
    errors: Vec<ErrorTally>,
    warmup: Tally,
    /// Bytes written while measuring.
    sent_bytes: u64,
    /// Bytes read while measuring.
    received_bytes: u64,
    /// True if the bytes of the current read count for their operations.
    counts_read: bool,
    /// Completions over time.
    series: Completions,
    seconds: Seconds,
    traces: Option<Traces>,
}

#[derive(Clone, Debug)]
struct OperationRecord {
    tally: Tally,
    nil_replies: u64,
    response: RequestCounts,
    service: Option<RequestCounts>,
    error_replies: Option<RequestCounts>,
    /// Latencies of the current second.
    second: Latencies,
}

#[derive(Clone, Debug)]
struct NodeRecord {
    id: String,
    label: String,
    connections: u32,
    requests: u64,
    errors: u64,
    redirects: u64,
    service: NodeCounts,
    /// The current second, if nodes are counted by the second.
    second: Option<NodeSecond>,
}

/// A node's counts of the current second.
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

    #[cold]
    fn overflow(&mut self, response: u64, count: u64) {
        self.tally.overflow += count;
        self.tally.overflow_max_nanoseconds = self.tally.overflow_max_nanoseconds.max(response);
    }
}

impl Recording {
    pub fn new(plan: &TrialPlan) -> Self {
        let open_loop = plan.load != Load::ClosedLoop;
        let operations = if plan.breakdown.operation { plan.operation_names().len() } else { 1 };
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
            counts_read: false,
            series: Completions::of_plan(plan),
            traces: Traces::of(plan),
        }
    }

    /// Adds or renames a node. Nodes are identified by the order in which they are added.
    pub fn name_node(&mut self, node: usize, id: &str, label: &str) {
        let Some(nodes) = &mut self.nodes else { return };
        if let Some(node) = nodes.get_mut(node) {
            id.clone_into(&mut node.id);
            label.clone_into(&mut node.label);
            return;
        }
        nodes.push(NodeRecord {
            id: id.to_owned(),
            label: label.to_owned(),
            connections: 0,
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

    /// Notes how many connections are kept to a node.
    pub fn connect_node(&mut self, node: usize, connections: u32) {
        if let Some(node) = self.nodes.as_mut().and_then(|nodes| nodes.get_mut(node)) {
            node.connections = connections;
        }
    }

    #[inline]
    fn operation(&mut self, operation: u16) -> &mut OperationRecord {
        let index = usize::from(operation).min(self.operations.len() - 1);
        &mut self.operations[index]
    }

    /// The operation that all requests count for, if there is only one.
    #[inline]
    pub fn only_operation(&self) -> Option<u16> {
        (self.operations.len() == 1).then_some(0)
    }

    /// The counts of an operation, with its bytes: all of them if it is the only one, because these are not counted apart.
    fn tally_of(&self, operation: &OperationRecord) -> Tally {
        let mut tally = operation.tally;
        if self.only_operation().is_some() {
            (tally.sent_bytes, tally.received_bytes) = (self.sent_bytes, self.received_bytes);
        }
        tally
    }

    #[inline]
    fn tally(&mut self, period: Period, operation: u16) -> &mut Tally {
        match period {
            Period::Warmup => &mut self.warmup,
            Period::Measured => &mut self.operation(operation).tally,
        }
    }

    /// Counts bytes written while measuring.
    #[inline]
    pub fn wrote(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }

    /// Counts bytes of those as commands of `operation`, if there are several: to the only one, all belong.
    #[inline]
    pub fn wrote_of(&mut self, operation: u16, bytes: usize) {
        self.operation(operation).tally.sent_bytes += bytes as u64;
    }

    /// Notes a read of `bytes`, which count if they arrived while `measuring`.
    #[inline]
    pub fn read(&mut self, bytes: usize, measuring: bool) {
        self.counts_read = measuring && self.operations.len() > 1;
        if measuring {
            self.received_bytes += bytes as u64;
        }
    }

    /// Counts bytes of that read as replies to `operation`, if they count and there are several.
    #[inline]
    pub fn read_of(&mut self, operation: u16, bytes: usize) {
        if self.counts_read {
            self.operation(operation).tally.received_bytes += bytes as u64;
        }
    }

    /// Adds `count` requests that succeeded at `now` to the series.
    #[inline]
    pub fn completed(&mut self, now: u64, count: u64) {
        self.series.add(now, count);
    }

    /// Counts `count` due slots of `operation`.
    #[inline]
    pub fn scheduled(&mut self, period: Period, operation: u16, count: u64) {
        self.tally(period, operation).scheduled += count;
    }

    /// Counts a request sent for the first time, `late` nanoseconds after it was due.
    #[inline]
    pub fn sent(&mut self, period: Period, operation: u16, late: u64) {
        if period == Period::Measured {
            let Some(lateness) = &mut self.lateness else { return };
            lateness.record(late, 1);
        }
        if late > LATE_NANOSECONDS {
            self.tally(period, operation).late += 1;
        }
    }

    /// Counts a slot that was given up.
    pub fn unsent(&mut self, period: Period, operation: u16, why: Unsent) {
        why.count(self.tally(period, operation));
    }

    /// Counts `count` replies without an error, `nil` of them null. [`Self::responded`] and [`Self::served`] record their times.
    #[inline]
    pub fn succeeded(&mut self, period: Period, operation: u16, count: u64, nil: u64) {
        self.tally(period, operation).succeeded += count;
        if period == Period::Measured {
            self.operation(operation).nil_replies += nil;
        }
    }

    /// Records the response time, in nanoseconds from due time to reply, of `count` requests without an error.
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

    /// Counts a request that was redirected and then succeeded.
    #[cold]
    pub fn followed(&mut self, period: Period, operation: u16) {
        self.tally(period, operation).redirected += 1;
    }

    /// Records a node's service time, in nanoseconds since the last hop was sent, for `count` requests without an error.
    #[inline]
    pub fn served(&mut self, operation: u16, node: u32, service: u64, count: u64) {
        self.plain(operation, node, service, (0, count), 0, 0);
    }

    /// Counts measured requests without an error together: `succeeded`, whose replies have `bytes` and of which `nil` are null, as
    /// [`Self::succeeded`] and [`Self::read_of`] do; and the service time of `served`.
    #[inline]
    pub fn plain(
        &mut self,
        operation: u16,
        node: u32,
        service: u64,
        (succeeded, served): (u64, u64),
        nil: u64,
        bytes: usize,
    ) {
        if self.counts_read {
            self.operation(operation).tally.received_bytes += bytes as u64;
        }
        let record = self.operation(operation);
        record.tally.succeeded += succeeded;
        record.nil_replies += nil;
        if let Some(histogram) = &mut record.service {
            histogram.record(service, served);
            record.second.service.record(service, served);
        }
        if let Some(nodes) = &mut self.nodes {
            let node = &mut nodes[node as usize];
            node.requests += served;
            node.service.record(service, served);
            if let Some(second) = &mut node.second {
                second.service.record(service, served);
            }
        }
    }

    /// Counts a request that ended in an error; `answered` if a server replied with it.
    #[cold]
    pub fn failed(&mut self, period: Period, request: &Completion, answered: bool) {
        let tally = self.tally(period, request.operation);
        tally.errors += 1;
        tally.unanswered += u64::from(!answered);
        tally.redirected += u64::from(request.redirected);
        if period == Period::Warmup {
            return;
        }
        if answered {
            let record = self.operation(request.operation);
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

    /// Counts an error by kind, and keeps the first message of each kind.
    #[cold]
    pub fn error(&mut self, kind: &str, message: impl FnOnce() -> String) {
        if let Some(tally) = self.errors.iter_mut().find(|tally| tally.kind == kind) {
            tally.count += 1;
            return;
        }
        let error = ErrorTally { kind: kind.into(), count: 1, first_message: limits::message(&message()) };
        add_error(&mut self.errors, error);
    }

    /// Returns whether request `k` is traced.
    #[inline]
    pub fn traces(&self, k: u64) -> bool {
        self.traces.as_ref().is_some_and(|traces| traces.chooses(k))
    }

    /// Keeps the time stamps of a traced request.
    #[cold]
    pub fn trace(&mut self, span: Span) {
        if let Some(traces) = &mut self.traces {
            traces.add(span);
        }
    }

    /// Removes the traced requests, if there are any.
    pub fn take_traced(&mut self) -> Option<Traced> {
        self.traces.as_mut()?.take()
    }

    /// Counts a request that succeeded with fewer replicas than WAIT asked for.
    #[cold]
    pub fn under_replicated(&mut self, period: Period, operation: u16) {
        self.tally(period, operation).under_replicated += 1;
    }

    /// Counts the write of a key that a request of `operation` had missed.
    #[cold]
    pub fn filled(&mut self, period: Period, operation: u16, is_error: bool) {
        let tally = self.tally(period, operation);
        *(if is_error { &mut tally.fill_errors } else { &mut tally.fills }) += 1;
    }

    /// Counts a redirect from a node.
    #[cold]
    pub fn redirected(&mut self, period: Period, operation: u16, node: u32) {
        self.tally(period, operation).redirect_hops += 1;
        if let Some(nodes) = self.nodes.as_mut().filter(|_| period == Period::Measured) {
            nodes[node as usize].redirects += 1;
        }
    }

    /// Counts a reply that the server cannot serve the request now.
    #[cold]
    pub fn deferred(&mut self, period: Period, operation: u16, why: Deferral) {
        why.count(self.tally(period, operation));
    }
}

const OTHER: &str = "Other";

/// Adds to the tally of the same kind, or as a new kind. The last place holds all other kinds.
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

//! A trial second by second since the start instant: counts and coarse latency histograms.
//!
//! A request belongs to the second of its outcome, and is counted as scheduled in the second in which a worker took it from the schedule.
//! The sum over all spans is the trial's total. Redis nodes are counted by the second only if the plan asks for it.

mod coarse;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

pub use self::coarse::{BUCKETS, Buckets, Coarse, bucket, highest_in, lowest_in};
use crate::tally::Tally;
use crate::{bounded, limits};

/// The lengths of spans, in seconds. The last hour is stored by the second, older times by the minute, then by the hour.
pub const SPAN_SECONDS: [u32; 3] = [1, 60, 3600];

/// The most spans of one length that are stored, if each has few parts.
const SPANS: usize = 3600;

/// The minimum of [`kept_spans`]: the seconds of a minute.
const FEWEST_SPANS: usize = 60;

/// The most parts in all stored spans of one length: four minutes of the largest mix.
const PARTS: usize = 240 * limits::OPERATIONS;

/// The most spans of one length that are stored before they are merged into longer ones, if each has `parts` operations, plus nodes where
/// they are counted.
pub fn kept_spans(parts: usize) -> usize {
    (PARTS / parts.max(1)).clamp(FEWEST_SPANS, SPANS)
}

/// The outcomes of one span's requests, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Outcomes {
    /// Taken from the schedule; in a closed loop, sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub scheduled: u64,
    /// Answered without an error.
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: u64,
    /// Ended in an error.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Errors without a reply.
    #[serde(skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Never sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub unsent: u64,
    /// Sent more than a millisecond after the due time.
    #[serde(skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Succeeded, but longer than the histogram's highest value.
    #[serde(skip_serializing_if = "is_zero")]
    pub overflow: u64,
    /// Bytes of their commands that were written while measuring.
    #[serde(skip_serializing_if = "is_zero")]
    pub sent_bytes: u64,
    /// Bytes of their replies that were read while measuring.
    #[serde(skip_serializing_if = "is_zero")]
    pub received_bytes: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Outcomes {
    /// The same counts of a `tally`.
    pub fn of(tally: &Tally) -> Self {
        Self {
            scheduled: tally.scheduled,
            succeeded: tally.succeeded,
            errors: tally.errors,
            unanswered: tally.unanswered,
            unsent: tally.unsent,
            late: tally.late,
            overflow: tally.overflow,
            sent_bytes: tally.sent_bytes,
            received_bytes: tally.received_bytes,
        }
    }

    /// The difference to `before`, an earlier state of the same counts.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Adds `other`. Saturates: shards' counts are untrusted.
    pub fn add(&mut self, other: &Self) {
        *self = self.with(other, u64::saturating_add);
    }

    /// Requests with an outcome.
    pub fn finished(&self) -> u64 {
        self.succeeded.saturating_add(self.errors).saturating_add(self.unsent)
    }

    fn with(&self, other: &Self, op: fn(u64, u64) -> u64) -> Self {
        Self {
            scheduled: op(self.scheduled, other.scheduled),
            succeeded: op(self.succeeded, other.succeeded),
            errors: op(self.errors, other.errors),
            unanswered: op(self.unanswered, other.unanswered),
            unsent: op(self.unsent, other.unsent),
            late: op(self.late, other.late),
            overflow: op(self.overflow, other.overflow),
            sent_bytes: op(self.sent_bytes, other.sent_bytes),
            received_bytes: op(self.received_bytes, other.received_bytes),
        }
    }
}

/// Requests of one operation in a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpanPart {
    /// Their outcomes.
    pub counts: Outcomes,
    /// Response time of succeeded requests. Its count plus the overflow is `succeeded`.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub response: Buckets,
    /// Service time of succeeded requests. Empty in a closed loop.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub service: Buckets,
    /// Response time of requests that got an error reply.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub error_replies: Buckets,
}

/// Requests of one Redis node in a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePart {
    /// `host:port`.
    #[serde(deserialize_with = "bounded::name")]
    pub address: String,
    /// Measured requests whose final reply came from it, or that ended while waiting for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Errors among these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Service time of the successful ones.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub service: Buckets,
}

/// One or more seconds of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Its beginning, in whole seconds since the start instant.
    pub second: u32,
    /// Its length: one of [`SPAN_SECONDS`].
    pub seconds: u32,
    /// The warm-up's requests.
    #[serde(default)]
    pub warmup: Outcomes,
    /// Bytes written to sockets while measuring.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_bytes: u64,
    /// Bytes read from sockets while measuring.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received_bytes: u64,
    /// The measured requests by operation, in the plan's order. Without that breakdown one part for all. Empty if there were none.
    #[serde(default, deserialize_with = "bounded::list::<_, _, {limits::OPERATIONS}>")]
    pub parts: Vec<SpanPart>,
    /// The same by Redis node, if the plan asks for it: all known nodes, unordered. Empty if `parts` is.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<_, _, {limits::NODES}>"
    )]
    pub nodes: Vec<NodePart>,
}

impl Span {
    /// The first second after it.
    pub fn end(&self) -> u32 {
        self.second.saturating_add(self.seconds)
    }

    /// True if it has no requests and no bytes.
    pub fn is_empty(&self) -> bool {
        let nothing = Outcomes::default();
        self.warmup == nothing
            && (self.sent_bytes, self.received_bytes) == (0, 0)
            && self.parts.iter().all(|part| part.counts == nothing)
    }

    /// The measured requests of all operations.
    pub fn counts(&self) -> Outcomes {
        self.parts.iter().fold(Outcomes::default(), |mut sum, part| {
            sum.add(&part.counts);
            sum
        })
    }

    /// An upper estimate of its size as JSON, in bytes.
    pub fn weight(&self) -> usize {
        let part = |part: &SpanPart| 270 + part.response.weight() + part.service.weight() + part.error_replies.weight();
        let node = |node: &NodePart| 100 + node.address.len() + node.service.weight();
        300 + self.parts.iter().map(part).sum::<usize>() + self.nodes.iter().map(node).sum::<usize>()
    }
}

/// A shard's spans from the requested second on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The requested second.
    pub from: u32,
    /// Seconds before this one are complete and do not change any more. Later ones are as of the snapshot.
    pub complete: u32,
    /// True if more spans, from `complete` on, did not fit into this answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// In order, without empty ones.
    #[serde(default, deserialize_with = "bounded::list::<_, _, {limits::SPANS}>")]
    pub spans: Vec<Span>,
}

impl Timeline {
    /// Removes the last spans until the rest fits into `most_bytes` of JSON. Keeps at least the first.
    pub fn cut(&mut self, most_bytes: usize) {
        let mut weight = 0;
        let fitting = self.spans.iter().take_while(|span| {
            weight += span.weight();
            weight <= most_bytes
        });
        let fitting = fitting.count().clamp(1, limits::SPANS);
        if let Some(next) = self.spans.get(fitting).map(|span| span.second) {
            self.spans.truncate(fitting);
            self.more = true;
            self.complete = self.complete.min(next);
        }
    }
}

/// An accumulator of spans.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    any: bool,
    warmup: Outcomes,
    bytes: (u64, u64),
    parts: Vec<PartSum>,
    nodes: BTreeMap<String, NodeSum>,
}

#[derive(Clone, Debug, Default)]
struct PartSum {
    counts: Outcomes,
    response: Coarse,
    service: Coarse,
    error_replies: Coarse,
}

#[derive(Clone, Debug, Default)]
struct NodeSum {
    requests: u64,
    errors: u64,
    service: Coarse,
}

/// The address for all nodes beyond the limit.
const OTHER_NODES: &str = "Other";

impl Sum {
    /// True if no span was added.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Adds a span. Saturates.
    pub fn add(&mut self, span: &Span) {
        self.any = true;
        self.warmup.add(&span.warmup);
        self.bytes = (self.bytes.0.saturating_add(span.sent_bytes), self.bytes.1.saturating_add(span.received_bytes));
        if self.parts.len() < span.parts.len() {
            self.parts.resize_with(span.parts.len(), PartSum::default);
        }
        for (sum, part) in self.parts.iter_mut().zip(&span.parts) {
            sum.counts.add(&part.counts);
            sum.response.add(&part.response);
            sum.service.add(&part.service);
            sum.error_replies.add(&part.error_replies);
        }
        for part in &span.nodes {
            let sum = self.node(&part.address);
            sum.requests = sum.requests.saturating_add(part.requests);
            sum.errors = sum.errors.saturating_add(part.errors);
            sum.service.add(&part.service);
        }
    }

    /// Adds the nodes of `other` with zero requests where they are missing.
    pub fn know_nodes(&mut self, other: &Self) {
        other.nodes.keys().for_each(|address| _ = self.node(address));
    }

    fn node(&mut self, address: &str) -> &mut NodeSum {
        // Bounds memory: shards choose the names, and each name takes a histogram.
        let full = self.nodes.len() >= limits::NODES - 1 && !self.nodes.contains_key(address);
        let address = if full { OTHER_NODES } else { address };
        self.nodes.entry(address.to_owned()).or_default()
    }

    /// The sum of all added spans.
    pub fn span(&self, second: u32, seconds: u32) -> Span {
        let parts = self.parts.iter().map(|sum| SpanPart {
            counts: sum.counts,
            response: sum.response.buckets(),
            service: sum.service.buckets(),
            error_replies: sum.error_replies.buckets(),
        });
        let nodes = self.nodes.iter().map(|(address, sum)| NodePart {
            address: address.clone(),
            requests: sum.requests,
            errors: sum.errors,
            service: sum.service.buckets(),
        });
        let (sent_bytes, received_bytes) = self.bytes;
        let (parts, nodes) = (parts.collect(), nodes.collect());
        Span { second, seconds, warmup: self.warmup, sent_bytes, received_bytes, parts, nodes }
    }

    /// Like [`Self::span`], and resets the sum.
    pub fn take(&mut self, second: u32, seconds: u32) -> Span {
        let span = self.span(second, seconds);
        (self.any, self.warmup, self.bytes) = (false, Outcomes::default(), (0, 0));
        for part in &mut self.parts {
            part.counts = Outcomes::default();
            [&mut part.response, &mut part.service, &mut part.error_replies].into_iter().for_each(Coarse::clear);
        }
        self.nodes.clear();
        span
    }
}

/// Sums the spans of several shards. Where one shard has a longer span than others, theirs are merged into it.
pub fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by(|a, b| a.second.cmp(&b.second).then(b.seconds.cmp(&a.seconds)));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    let mut spans = spans.into_iter().peekable();
    let mut sum = Sum::default();
    while let Some(first) = spans.next() {
        if spans.peek().is_none_or(|next| next.second >= first.end()) {
            merged.push(first);
            continue;
        }
        let (second, end) = (first.second, first.end());
        sum.add(&first);
        while let Some(span) = spans.next_if(|next| next.second < end) {
            sum.add(&span);
        }
        merged.push(sum.take(second, end - second));
    }
    merged
}

/// The spans of a trial in bounded memory: the latest by the second, older ones by the minute, then by the hour.
#[derive(Clone, Debug, Default)]
pub struct History {
    levels: [Level; SPAN_SECONDS.len()],
    /// The first second that has not been added.
    complete: u32,
}

#[derive(Clone, Debug, Default)]
struct Level {
    spans: VecDeque<Span>,
    /// The first second of its spans. Earlier seconds are in longer spans only.
    from: u32,
    /// The sum of the spans that do not yet fill one of the next level.
    open: Sum,
}

impl History {
    /// Adds the seconds up to the end of `span`; those between the previous span and this one are empty. Keeps at most `kept` spans of each
    /// length, plus those of an unfinished longer span.
    pub fn push(&mut self, span: Span, kept: usize) {
        let end = span.end();
        self.complete_until(span.second, kept);
        self.add(0, span, kept);
        self.complete_until(end, kept);
    }

    /// Closes all spans that end at or before `second`.
    pub fn complete_until(&mut self, second: u32, kept: usize) {
        while self.complete < second {
            // Only the ends of longer spans matter, so empty seconds cost nothing.
            let minute = SPAN_SECONDS[1];
            let border = (self.complete / minute + 1).saturating_mul(minute);
            self.complete = border.min(second);
            if self.complete == border {
                self.close(1, border, kept);
            }
        }
    }

    fn add(&mut self, level: usize, span: Span, kept: usize) {
        if let Some(longer) = self.levels.get_mut(level + 1) {
            longer.open.add(&span);
        }
        self.levels[level].spans.push_back(span);
        self.forget(level, kept);
    }

    /// Completes the span of `level` that ends at `end`.
    fn close(&mut self, level: usize, end: u32, kept: usize) {
        let Some(length) = SPAN_SECONDS.get(level).copied() else { return };
        let open = &mut self.levels[level].open;
        if !open.is_empty() {
            let span = open.take(end - length, length);
            self.add(level, span, kept);
        }
        if let Some(longer) = SPAN_SECONDS.get(level + 1)
            && end.is_multiple_of(*longer)
        {
            self.close(level + 1, end, kept);
        }
        self.forget(level - 1, kept);
    }

    /// Drops spans beyond `kept` that longer spans contain.
    fn forget(&mut self, level: usize, kept: usize) {
        let Some(longer) = SPAN_SECONDS.get(level + 1) else { return };
        let complete = self.complete / longer * longer;
        let level = &mut self.levels[level];
        while level.spans.len() > kept {
            let Some(end) = level.spans.front().map(|span| (span.second / longer + 1) * longer) else { return };
            if end > complete {
                return;
            }
            while level.spans.front().is_some_and(|span| span.second < end) {
                level.spans.pop_front();
            }
            level.from = end;
        }
    }

    /// The first second that is not complete.
    pub fn complete(&self) -> u32 {
        self.complete
    }

    /// The spans from `from` on, in order and without overlap.
    pub fn since(&self, from: u32) -> impl Iterator<Item = &Span> {
        let [seconds, minutes, hours] = &self.levels;
        let (until_minutes, until_seconds) = (minutes.from, seconds.from);
        let hours = hours.spans.iter().filter(move |span| span.second < until_minutes);
        let minutes = minutes.spans.iter().filter(move |span| span.second < until_seconds);
        hours.chain(minutes).chain(&seconds.spans).filter(move |span| span.end() > from)
    }
}

#[cfg(test)]
mod tests;

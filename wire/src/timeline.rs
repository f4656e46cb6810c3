//! What a trial did in every second since the start instant: counts, and coarse histograms of its latencies.
//!
//! A request belongs to the second of its outcome, and counts as scheduled in the second in which a worker took it up.
//! The sum over all spans is the trial's total. Redis nodes are counted by the second only where the plan asks for it.

mod coarse;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

pub use self::coarse::{BUCKETS, Buckets, Coarse, bucket, highest_in, lowest_in};
use crate::snapshot::Tally;
use crate::{bounded, limits};

/// The lengths of spans, in seconds: the last hour is kept by the second, what is older by the minute, then by the hour.
pub const SPAN_SECONDS: [u32; 3] = [1, 60, 3600];

/// The most spans of one length that are kept, if each has few parts.
const SPANS: usize = 3600;

/// The fewest: the seconds of a minute.
const FEWEST_SPANS: usize = 60;

/// How many parts all kept spans of one length may have: four minutes of the largest mix.
const PARTS: usize = 240 * limits::OPERATIONS;

/// The most spans of one length that are kept before longer ones take their place, if each has this many parts:
/// operations, and nodes where they are counted.
pub fn kept_spans(parts: usize) -> usize {
    (PARTS / parts.max(1)).clamp(FEWEST_SPANS, SPANS)
}

/// The outcomes of one span's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Outcomes {
    /// Taken from the schedule, or by a closed loop sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub scheduled: u64,
    /// Answered without an error.
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: u64,
    /// Ended in an error.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Of the errors, those without a reply.
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
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Outcomes {
    /// Those of `tally`.
    pub fn of(tally: &Tally) -> Self {
        Self {
            scheduled: tally.scheduled,
            succeeded: tally.succeeded,
            errors: tally.errors,
            unanswered: tally.unanswered,
            unsent: tally.unsent,
            late: tally.late,
            overflow: tally.overflow,
        }
    }

    /// What came since `before`, which is part of it.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Both together. Saturates: shards' counts are untrusted.
    pub fn add(&mut self, other: &Self) {
        *self = self.with(other, u64::saturating_add);
    }

    /// Requests that have their outcome.
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
        }
    }
}

/// One operation's requests in a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Their outcomes.
    pub counts: Outcomes,
    /// Response time of succeeded requests. Its count and the overflow are `succeeded`.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub response: Buckets,
    /// Service time of succeeded requests; empty in a closed loop.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub service: Buckets,
    /// Response time of requests that were answered with an error.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub error_replies: Buckets,
}

/// One Redis node's requests in a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePart {
    /// `host:port`.
    #[serde(deserialize_with = "bounded::name")]
    pub address: String,
    /// Measured requests whose final reply it gave, or that ended while it held them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Of these, errors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Service time of the rest.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub service: Buckets,
}

/// Some seconds of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// When it begins: whole seconds since the start instant.
    pub second: u32,
    /// How long it is: one of [`SPAN_SECONDS`].
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
    /// The measured requests, by operation in the plan's order; one part for all without that breakdown. Empty if there
    /// were none.
    #[serde(default, deserialize_with = "bounded::list::<_, _, {limits::OPERATIONS}>")]
    pub parts: Vec<Part>,
    /// The same by Redis node, if the plan asks for it: all that are known, in no order. Empty with `parts`.
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

    /// True if nothing happened in it.
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

    /// About how many bytes it takes as JSON, at most.
    pub fn weight(&self) -> usize {
        let part = |part: &Part| 200 + part.response.weight() + part.service.weight() + part.error_replies.weight();
        let node = |node: &NodePart| 100 + node.address.len() + node.service.weight();
        300 + self.parts.iter().map(part).sum::<usize>() + self.nodes.iter().map(node).sum::<usize>()
    }
}

/// A shard's seconds from the requested one on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The first second that was asked for.
    pub from: u32,
    /// Seconds before this one are complete: nothing is added to them any more. What lies beyond is as it was when the
    /// snapshot was taken.
    pub complete: u32,
    /// There are more, from `complete` on: they did not fit into this answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// In order, without those in which nothing happened.
    #[serde(default, deserialize_with = "bounded::list::<_, _, {limits::SPANS}>")]
    pub spans: Vec<Span>,
}

impl Timeline {
    /// Leaves out the last spans beyond so many bytes of JSON, but never the first.
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

/// A span while it is added to.
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

/// The address that nodes beyond the bound share.
const OTHER_NODES: &str = "Other";

impl Sum {
    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Adds a span.
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

    /// Lists the nodes of `other`, too, even if they have no request here.
    pub fn know_nodes(&mut self, other: &Self) {
        other.nodes.keys().for_each(|address| _ = self.node(address));
    }

    fn node(&mut self, address: &str) -> &mut NodeSum {
        // Each shard names its nodes itself, and each has a histogram.
        let full = self.nodes.len() >= limits::NODES - 1 && !self.nodes.contains_key(address);
        let address = if full { OTHER_NODES } else { address };
        self.nodes.entry(address.to_owned()).or_default()
    }

    /// All that was added, as a span.
    pub fn span(&self, second: u32, seconds: u32) -> Span {
        let parts = self.parts.iter().map(|sum| Part {
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

    /// The same, and empties it.
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

/// Adds up spans of the same seconds. Where one has a longer span than others, theirs become part of it.
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

/// The spans of a trial in bounded memory: the last by the second, those before by the minute, and then by the hour.
#[derive(Clone, Debug, Default)]
pub struct History {
    levels: [Level; SPAN_SECONDS.len()],
    /// The first second that has not been added.
    complete: u32,
}

#[derive(Clone, Debug, Default)]
struct Level {
    spans: VecDeque<Span>,
    /// The first second that its spans are of: those before are told by longer ones.
    from: u32,
    /// The spans that are not yet as long as those of the next level, added up.
    open: Sum,
}

impl History {
    /// Adds the seconds before `complete`, of which `span` is the last with anything in it. Keeps at most `kept` spans of
    /// each length, and the rest of a longer one.
    pub fn push(&mut self, span: Span, kept: usize) {
        let end = span.end();
        self.complete_until(span.second, kept);
        self.add(0, span, kept);
        self.complete_until(end, kept);
    }

    /// Nothing more comes before `second`.
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

    /// The span of `level` that ends at `end` is complete.
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

    /// Drops what longer spans tell too, as far as there are more than `kept`.
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

    /// The first second that may still come.
    pub fn complete(&self) -> u32 {
        self.complete
    }

    /// The seconds from `from` on, in order, each once.
    pub fn since(&self, from: u32) -> impl Iterator<Item = &Span> {
        let [seconds, minutes, hours] = &self.levels;
        let (until_minutes, until_seconds) = (minutes.from, seconds.from);
        let hours = hours.spans.iter().filter(move |span| span.second < until_minutes);
        let minutes = minutes.spans.iter().filter(move |span| span.second < until_seconds);
        hours.chain(minutes).chain(&seconds.spans).filter(move |span| span.end() > from)
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;

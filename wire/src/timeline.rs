//! What a trial did in every second since the start instant: counts, and coarse histograms of its latencies.
//!
//! A request belongs to the second of its outcome, and counts as scheduled in the second in which a worker took it up.
//! The sum over all spans is the trial's total.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::histogram::HIGHEST_NANOSECONDS;
use crate::limits::LARGEST_COUNT;
use crate::snapshot::Tally;
use crate::{bounded, limits};

/// log2 of the lowest value told apart from zero: 64 ns.
const UNIT_BITS: u32 = 6;

/// log2 of the linear steps in each power of two: a bucket is at most 1/32 wide, from 2 µs on.
const STEP_BITS: u32 = 5;

/// Buckets of a coarse histogram.
pub const BUCKETS: usize = bucket(HIGHEST_NANOSECONDS) + 1;

/// The most bytes of a sparse histogram: each bucket has a gap of two bytes at most, and a count of ten.
const SPARSE_BYTES: usize = BUCKETS * 12;

/// The lengths of spans, in seconds: the last hour is kept by the second, what is older by the minute, then by the hour.
pub const SPAN_SECONDS: [u32; 3] = [1, 60, 3600];

/// The most spans of one length that are kept, in a mix of few operations.
const SPANS: usize = 3600;

/// The fewest.
const FEWEST_SPANS: usize = 240;

/// How many parts all kept spans of one length may have.
const PARTS: usize = 4 * SPANS;

/// The most spans of one length that a mix of this many operations keeps before it goes on with longer ones.
pub fn kept_spans(operations: usize) -> usize {
    (PARTS / operations.max(1)).clamp(FEWEST_SPANS, SPANS)
}

/// The bucket of a latency of at most [`HIGHEST_NANOSECONDS`].
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "there are less than a thousand buckets")]
pub const fn bucket(nanoseconds: u64) -> usize {
    let first_range = (2 << (STEP_BITS + UNIT_BITS)) - 1;
    let power = (nanoseconds | first_range).ilog2() - STEP_BITS - UNIT_BITS;
    (((power as u64) << STEP_BITS) + (nanoseconds >> (power + UNIT_BITS))) as usize
}

/// The shortest latency that a bucket holds, in nanoseconds.
pub const fn lowest_in(bucket: usize) -> u64 {
    match bucket.checked_sub(1) {
        None => 0,
        Some(before) => highest_in(before) + 1,
    }
}

/// The longest latency that a bucket holds, in nanoseconds.
pub const fn highest_in(bucket: usize) -> u64 {
    let (next, steps) = (bucket as u64 + 1, 1 << STEP_BITS);
    let first_of_next = match next >> STEP_BITS {
        0 => next << UNIT_BITS,
        power => (next % steps + steps) << (power - 1 + UNIT_BITS as u64),
    };
    first_of_next - 1
}

/// A coarse histogram while it is added to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coarse(Box<[u64; BUCKETS]>);

impl Default for Coarse {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

impl Coarse {
    /// Counts a latency this many times; one beyond [`HIGHEST_NANOSECONDS`] as that.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64, times: u64) {
        if let Some(count) = self.0.get_mut(bucket(nanoseconds.min(HIGHEST_NANOSECONDS))) {
            *count += times;
        }
    }

    /// Adds what was kept.
    pub fn add(&mut self, buckets: &Buckets) {
        for (bucket, times) in buckets.iter() {
            if let Some(count) = self.0.get_mut(bucket) {
                *count = count.saturating_add(times);
            }
        }
    }

    /// As it is kept and sent.
    pub fn buckets(&self) -> Buckets {
        // Most gaps take a byte, and most counts of a second two at most.
        let mut bytes = Vec::with_capacity(3 * self.0.iter().filter(|count| **count > 0).count());
        let mut next = 0;
        for (bucket, count) in (0_u64..).zip(self.0.iter()).filter(|(_, count)| **count > 0) {
            push(&mut bytes, bucket - next);
            push(&mut bytes, *count);
            next = bucket + 1;
        }
        Buckets(bytes)
    }

    /// The buckets in use, in order.
    pub fn used(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, _)| bucket)
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// A coarse histogram as it is kept and sent: for each bucket in use the number of empty ones before it and its count, as
/// LEB128; in JSON base64 of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets(Vec<u8>);

impl Buckets {
    /// The buckets in use, in order, and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut rest = self.0.as_slice();
        let mut next = 0_usize;
        std::iter::from_fn(move || {
            let (gap, count) = (pull(&mut rest)?, pull(&mut rest)?);
            let bucket = next.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX));
            next = bucket.saturating_add(1);
            Some((bucket, count))
        })
    }

    /// How many latencies it holds.
    pub fn count(&self) -> u64 {
        self.iter().fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// True if it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads what was sent, which may be anything.
    fn read(text: &str) -> Result<Self, &'static str> {
        if text.len() > SPARSE_BYTES.div_ceil(3) * 4 {
            return Err("longer than its buckets allow");
        }
        let bytes = BASE64.decode(text).map_err(|_| "no base64")?;
        let (mut rest, mut next, mut sum) = (bytes.as_slice(), 0_u64, 0_u64);
        while !rest.is_empty() {
            let (gap, count) = pull(&mut rest).zip(pull(&mut rest)).ok_or("ends within a number")?;
            let bucket = next.checked_add(gap).filter(|bucket| *bucket < BUCKETS as u64).ok_or("too many buckets")?;
            sum = sum.checked_add(count).filter(|sum| count > 0 && *sum <= LARGEST_COUNT).ok_or("an absurd count")?;
            next = bucket + 1;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Buckets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Buckets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: String| Self::read(&text);
        read(String::deserialize(deserializer)?)
            .map_err(|why| D::Error::custom(format_args!("a coarse histogram that cannot be: {why}")))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The first number, of which the rest is what follows; none if there is none, or it is longer than 64 bits.
fn pull(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (at, byte) in rest.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return None;
        }
        number |= bits << (7 * at);
        if byte & 0x80 == 0 {
            *rest = &rest[at + 1..];
            return Some(number);
        }
    }
    None
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
        let part =
            |part: &Part| 200 + (part.response.0.len() + part.service.0.len() + part.error_replies.0.len()) * 3 / 2;
        300 + self.parts.iter().map(part).sum::<usize>()
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
}

#[derive(Clone, Debug, Default)]
struct PartSum {
    counts: Outcomes,
    response: Coarse,
    service: Coarse,
    error_replies: Coarse,
}

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
    }

    /// All that was added, as a span.
    pub fn span(&self, second: u32, seconds: u32) -> Span {
        let parts = self.parts.iter().map(|sum| Part {
            counts: sum.counts,
            response: sum.response.buckets(),
            service: sum.service.buckets(),
            error_replies: sum.error_replies.buckets(),
        });
        let (sent_bytes, received_bytes) = self.bytes;
        Span { second, seconds, warmup: self.warmup, sent_bytes, received_bytes, parts: parts.collect() }
    }

    /// The same, and empties it.
    pub fn take(&mut self, second: u32, seconds: u32) -> Span {
        let span = self.span(second, seconds);
        (self.any, self.warmup, self.bytes) = (false, Outcomes::default(), (0, 0));
        for part in &mut self.parts {
            part.counts = Outcomes::default();
            [&mut part.response, &mut part.service, &mut part.error_replies].into_iter().for_each(Coarse::clear);
        }
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

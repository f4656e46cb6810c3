//! A live summary that is made in slices, so that no request waits for all of it.
//!
//! Counts continue between two slices, so whatever must agree is copied in one: an operation's counts with its histograms and its part of
//! the current second. A sum is never older than its parts. The end of a second begins the summary again.

use redisbench_wire::timeline::{BUCKETS, NodePart, Span, SpanPart};

use super::{OperationRecord, Recording};

/// The most that a slice copies before it ends, in buckets: some 30 µs. One operation with many latencies may exceed it.
const SLICE: usize = 1 << 14;

/// Cost of copying an operation's or a node's part of a second, in buckets.
const PART: usize = 200;

/// A coarse bucket spans this many buckets at most.
const FINE: usize = 32;

/// A live summary in the making, with seconds.
#[derive(Debug)]
pub struct Draft {
    /// The first second to report.
    from: u32,
    /// The number of times that it was begun again.
    restarts: u32,
    /// The second in which it was begun.
    second: u32,
    /// All operations together, once the draft is whole.
    summary: Recording,
    spans: Vec<Span>,
    /// The seconds that have ended are copied.
    has_past: bool,
    /// Nodes that were looked at.
    nodes: usize,
    node_parts: Vec<NodePart>,
    parts: Vec<SpanPart>,
    /// The first incomplete second, once the draft is whole.
    complete: Option<u32>,
}

impl Draft {
    /// Returns whether nothing is missing.
    pub fn is_whole(&self) -> bool {
        self.complete.is_some()
    }

    /// The summary of `recording`, its seconds, and the first incomplete one. What was scheduled is as of now, like the requests that are due
    /// and not yet drawn: those drawn since an operation was copied would be missing from both.
    pub fn finish(mut self, recording: &Recording) -> (Recording, (Vec<Span>, u32)) {
        if let [whole] = &mut self.summary.operations[..] {
            whole.tally.scheduled = recording.operations.iter().map(|operation| operation.tally.scheduled).sum();
        }
        self.summary.warmup.scheduled = recording.warmup.scheduled;
        (self.summary, (self.spans, self.complete.unwrap_or_default()))
    }
}

impl Recording {
    /// Begins a live summary, with the seconds from `from` on.
    pub fn draft(&self, from: u32) -> Draft {
        let summary = Self {
            operations: vec![OperationRecord::new(self.lateness.is_some())],
            node_seconds: self.node_seconds,
            // The kinds are parts of all errors, which are copied later.
            errors: self.errors.clone(),
            ..Self::default()
        };
        Draft {
            from,
            restarts: 0,
            second: self.seconds.second,
            summary,
            spans: Vec::new(),
            has_past: false,
            nodes: 0,
            node_parts: Vec::new(),
            parts: Vec::new(),
            complete: None,
        }
    }

    /// Adds a slice to `draft`. Seconds that end while it is made begin it again; after the second time it is made at once.
    pub fn sketch(&self, draft: &mut Draft) {
        if draft.second != self.seconds.second && !draft.is_whole() {
            *draft = Draft { restarts: draft.restarts + 1, ..self.draft(draft.from) };
        }
        let mut left = if draft.restarts > 1 { usize::MAX } else { SLICE };
        while left > 0 && !draft.is_whole() {
            left = left.saturating_sub(self.copy_next(draft, left));
        }
    }

    /// Copies seconds that have ended, until they cost at least `left`. Returns what they cost, in buckets.
    fn copy_past(&self, draft: &mut Draft, left: usize) -> usize {
        let mut cost = 0;
        for span in self.seconds.history.since(draft.from).skip(draft.spans.len()) {
            if cost >= left {
                return cost;
            }
            cost += PART * (1 + span.parts.len() + span.nodes.len());
            draft.spans.push(span.clone());
        }
        draft.has_past = true;
        cost
    }

    /// Copies the next part; of several small ones as many as cost `left`. Returns what it cost, in buckets.
    fn copy_next(&self, draft: &mut Draft, left: usize) -> usize {
        if !draft.has_past {
            return self.copy_past(draft, left);
        }
        // Before the operations, because a node's requests are part of theirs.
        if let Some(node) = self.nodes.as_ref().and_then(|nodes| nodes.get(draft.nodes)) {
            draft.nodes += 1;
            let part = node.present_part();
            let cost = if part.is_some() { PART + 2 * BUCKETS } else { 1 };
            draft.node_parts.extend(part);
            return cost;
        }
        if let Some((operation, before)) = self.operation_before(draft.parts.len()) {
            draft.parts.push(self.present_part(operation, before));
            let ranges = draft.summary.operations.iter_mut().map(|whole| whole.absorb_used(operation)).sum::<usize>();
            return PART + 6 * BUCKETS + 2 * FINE * ranges;
        }
        // After the operations, because their bytes are part of these.
        let (parts, nodes) = (std::mem::take(&mut draft.parts), std::mem::take(&mut draft.node_parts));
        let present = self.span_of(parts, nodes);
        if present.end() > draft.from && !present.is_empty() {
            draft.spans.push(present);
        }
        draft.summary.warmup = self.warmup;
        (draft.summary.sent_bytes, draft.summary.received_bytes) = (self.sent_bytes, self.received_bytes);
        draft.complete = Some(self.seconds.history.complete());
        PART
    }
}

//! A worker's counts per second.
//!
//! Only latencies are recorded twice. Counts are differences of the totals between the end of a second and that of the second before.

use redisbench_wire::timeline::{Buckets, NodePart, Outcomes, Span, SpanPart};

use super::seconds::SECOND;
use super::{NodeRecord, NodeSecond, OperationRecord, Recording};

impl Recording {
    /// Sets the start instant, at which the first second begins.
    pub fn begin(&mut self, start: u64) {
        self.series.begin(start);
        self.seconds.start = start;
        self.seconds.ends = start.saturating_add(SECOND);
    }

    /// Advances to `now`. Everything recorded until the next call belongs to the second of that instant.
    #[inline]
    pub fn come_to(&mut self, now: u64) {
        if now >= self.seconds.ends {
            self.end_second(now);
        }
    }

    #[cold]
    fn end_second(&mut self, now: u64) {
        let span = self.present_span();
        let counts = self.operations.iter().map(|operation| Outcomes::of(&self.tally_of(operation))).collect();
        let seconds = &mut self.seconds;
        let before = &mut seconds.before;
        before.operations = counts;
        self.operations.iter_mut().for_each(|operation| operation.second.clear());
        self.nodes.iter_mut().flatten().for_each(NodeRecord::end_second);
        before.warmup = Outcomes::of(&self.warmup);
        (before.sent_bytes, before.received_bytes) = (self.sent_bytes, self.received_bytes);
        if !span.is_empty() {
            seconds.history.push(span, seconds.kept);
        }
        seconds.second = seconds.second_of(now);
        seconds.ends = seconds.start.saturating_add((u64::from(seconds.second) + 1).saturating_mul(SECOND));
        seconds.history.complete_until(seconds.second, seconds.kept);
    }

    /// The counts since the current second began.
    fn present_span(&self) -> Span {
        let parts = (0..).map_while(|index| self.operation_before(index));
        let parts = parts.map(|(operation, before)| self.present_part(operation, before)).collect();
        let nodes = self.nodes.iter().flatten().filter_map(NodeRecord::present_part).collect();
        self.span_of(parts, nodes)
    }

    /// The operation at `index`, and its counts when the current second began.
    pub(super) fn operation_before(&self, index: usize) -> Option<(&OperationRecord, &Outcomes)> {
        self.operations.get(index).zip(self.seconds.before.operations.get(index))
    }

    /// An operation's part of the current second.
    pub(super) fn present_part(&self, operation: &OperationRecord, before: &Outcomes) -> SpanPart {
        SpanPart {
            counts: Outcomes::of(&self.tally_of(operation)).since(before),
            response: operation.second.response.buckets(),
            service: operation.second.service.buckets(),
            error_replies: operation.second.error_replies.buckets(),
        }
    }

    /// The current second with these parts.
    pub(super) fn span_of(&self, mut parts: Vec<SpanPart>, mut nodes: Vec<NodePart>) -> Span {
        let before = &self.seconds.before;
        // Seconds of the warm-up have no parts.
        if parts.iter().all(|part| part.counts == Outcomes::default()) {
            parts.clear();
            nodes.clear();
        }
        Span {
            second: self.seconds.second,
            seconds: 1,
            warmup: Outcomes::of(&self.warmup).since(&before.warmup),
            sent_bytes: self.sent_bytes - before.sent_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
            parts,
            nodes,
        }
    }

    /// The seconds from `from` on, including the current one, and the first incomplete one.
    pub fn seconds_since(&self, from: u32) -> (Vec<Span>, u32) {
        let complete = self.seconds.history.complete();
        let mut spans: Vec<Span> = self.seconds.history.since(from).cloned().collect();
        let present = self.present_span();
        if present.end() > from && !present.is_empty() {
            spans.push(present);
        }
        (spans, complete)
    }
}

impl NodeRecord {
    /// Its part of the current second, if nodes are counted by the second. A node without requests has one too, because zero is a
    /// measurement.
    pub(super) fn present_part(&self) -> Option<NodePart> {
        let NodeSecond { service, before: (requests, errors) } = self.second.as_ref()?;
        let requests = self.requests - requests;
        Some(NodePart {
            address: self.label.clone(),
            requests,
            errors: self.errors - errors,
            service: if requests == 0 { Buckets::default() } else { service.buckets() },
        })
    }

    fn end_second(&mut self) {
        let Some(second) = &mut self.second else { return };
        // Idle nodes cost nothing.
        if self.requests > second.before.0 {
            second.service.clear();
            second.before = (self.requests, self.errors);
        }
    }
}

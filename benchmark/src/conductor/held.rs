//! The seconds of one shard that not all shards have completed. No IO.

use std::collections::VecDeque;
use std::ops::Range;

use redisbench_wire::timeline::{Span, Timeline};

/// Live rates and latencies cover this many whole seconds, the last ones that all shards have completed.
pub const RECENT_SECONDS: u32 = 5;

/// The most merged seconds whose count is kept per shard: those after the load may push out the last ones of it.
const COUNTED: usize = 2 * RECENT_SECONDS as usize;

#[derive(Debug, Default)]
pub struct Held {
    /// The first second that is not complete.
    next: u32,
    /// Complete seconds that other shards have not completed.
    waiting: VecDeque<Span>,
    /// Incomplete seconds, as of the last snapshot.
    present: Vec<Span>,
    /// The last answer did not contain all seconds.
    more: bool,
    /// The last merged seconds, and their successful requests.
    counted: VecDeque<(u32, u64)>,
}

impl Held {
    /// The first second to request.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// True if more seconds can be fetched at once.
    pub fn more(&self) -> bool {
        self.more
    }

    /// Takes the seconds of an accepted snapshot. Ignores an answer to any but the last request.
    pub fn take(&mut self, timeline: Timeline) {
        if timeline.from != self.next {
            return;
        }
        let (before, complete) = (self.next, timeline.complete.max(self.next));
        self.present.clear();
        for span in timeline.spans.into_iter().filter(|span| span.second >= before) {
            if span.end() <= complete {
                self.waiting.push_back(span);
            } else {
                self.present.push(span);
            }
        }
        self.next = complete;
        self.more = timeline.more;
    }

    /// Successful requests of the warm-up and measured ones in `seconds`, which must be among the last merged ones.
    pub fn succeeded(&self, seconds: &Range<u32>) -> u64 {
        let within = self.counted.iter().filter(|(second, _)| seconds.contains(second));
        within.fold(0, |sum, (_, succeeded)| sum.saturating_add(*succeeded))
    }

    /// Takes out the seconds up to `end`, and counts them.
    pub fn until(&mut self, end: u32) -> impl Iterator<Item = Span> {
        let complete = self.waiting.partition_point(|span| span.end() <= end);
        for span in self.waiting.range(..complete) {
            if self.counted.len() == COUNTED {
                self.counted.pop_front();
            }
            self.counted.push_back((span.second, succeeded(span)));
        }
        self.waiting.drain(..complete)
    }

    /// Seconds that were not merged, incomplete ones included.
    pub fn into_rest(self) -> impl Iterator<Item = Span> {
        self.waiting.into_iter().chain(self.present)
    }
}

/// Successful requests of the warm-up and measured ones.
pub fn succeeded(span: &Span) -> u64 {
    span.counts().succeeded.saturating_add(span.warmup.succeeded)
}

//! The state of a worker's counts per second: latencies of the current second, and the totals when it began.

use redisbench_wire::timeline::{BUCKETS, Coarse, History, Outcomes, highest_in, kept_spans, lowest_in};

pub(super) const SECOND: u64 = 1_000_000_000;

/// Latencies of one operation in the current second.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    pub(super) response: Coarse,
    pub(super) service: Coarse,
    pub(super) error_replies: Coarse,
    /// Per bucket, whether an earlier second has a latency in it.
    former: Box<[bool; BUCKETS]>,
}

impl Default for Latencies {
    fn default() -> Self {
        let [response, service, error_replies] = std::array::from_fn(|_| Coarse::default());
        Self { response, service, error_replies, former: Box::new([false; BUCKETS]) }
    }
}

impl Latencies {
    pub(super) fn clear(&mut self) {
        let Self { response, service, error_replies, former } = self;
        for latencies in [response, service, error_replies] {
            latencies.used().for_each(|bucket| former[bucket] = true);
            latencies.clear();
        }
    }

    /// The buckets with any latency of the attempt, as lowest and highest value.
    pub(super) fn used(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut used = self.former.clone();
        for latencies in [&self.response, &self.service, &self.error_replies] {
            latencies.used().for_each(|bucket| used[bucket] = true);
        }
        let used = (0..BUCKETS).filter(move |bucket| used[*bucket]);
        used.map(|bucket| (lowest_in(bucket), highest_in(bucket)))
    }
}

/// The seconds of one attempt.
#[derive(Clone, Debug)]
pub(super) struct Seconds {
    pub(super) start: u64,
    /// The end of the current second; `u64::MAX` until the start is known.
    pub(super) ends: u64,
    /// The current second.
    pub(super) second: u32,
    /// The totals when it began.
    pub(super) before: Totals,
    /// The number of spans of one length that are kept.
    pub(super) kept: usize,
    pub(super) history: History,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) operations: Vec<Outcomes>,
    pub(super) warmup: Outcomes,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
}

/// For a copy to be merged: its seconds are reported separately.
impl Default for Seconds {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Seconds {
    pub(super) fn new(operations: usize) -> Self {
        let before = Totals { operations: vec![Outcomes::default(); operations], ..Totals::default() };
        let kept = kept_spans(operations);
        Self { start: 0, ends: u64::MAX, second: 0, before, kept, history: History::default() }
    }

    /// Sets the number of parts per second.
    pub(super) fn keep(&mut self, parts: usize) {
        self.kept = kept_spans(parts);
    }

    pub(super) fn second_of(&self, now: u64) -> u32 {
        u32::try_from(now.saturating_sub(self.start) / SECOND).unwrap_or(u32::MAX)
    }
}

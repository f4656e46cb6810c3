//! The requests of a recording that belong to one worker.

use std::sync::Arc;

/// A worker's requests in a recording, in its order, and its position in them.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Its commands of the recording, ascending.
    own: Arc<[u64]>,
    /// Commands of all workers.
    count: u64,
    repeats: bool,
    /// The repetition, from 0.
    round: u64,
    place: usize,
}

impl Replay {
    /// `own` are the numbers of the worker's commands among all `count`, ascending.
    pub fn new(own: Vec<u64>, count: u64, repeats: bool) -> Self {
        Self { own: own.into(), count, repeats, round: 0, place: 0 }
    }

    /// The current request; `None` after the last one.
    #[inline]
    pub fn peek(&self) -> Option<u64> {
        self.own.get(self.place).map(|own| self.round * self.count + own)
    }

    #[inline]
    pub fn advance(&mut self) {
        self.place += 1;
        if self.repeats && self.place >= self.own.len() {
            (self.place, self.round) = (0, self.round + 1);
        }
    }

    pub fn is_over(&self) -> bool {
        self.place >= self.own.len()
    }

    /// Returns whether the worker has no command.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The number of requests of all workers; `None` without end.
    pub(super) fn count(&self) -> Option<u64> {
        (!self.repeats).then_some(self.count)
    }

    /// The number of requests from the current one on that are before request `k`.
    pub(super) fn count_before(&self, k: u64) -> u64 {
        let length = self.own.len() as u64;
        let (rounds, rest) = match (k / self.count.max(1), k % self.count.max(1)) {
            (1.., _) if !self.repeats => (1, 0),
            rounds_and_rest => rounds_and_rest,
        };
        let all = rounds * length + self.own.partition_point(|own| *own < rest) as u64;
        all.saturating_sub(self.round * length + self.place as u64)
    }
}

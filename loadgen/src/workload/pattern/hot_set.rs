//! A hot set of keys gets most of the requests, and the other keys the rest, each uniformly.

use crate::workload::rng::RandomStream;

#[derive(Clone, Debug)]
pub(super) struct HotSet {
    count: u64,
    hot: u64,
    /// A random number below this is a request to the hot set.
    below: u128,
}

impl HotSet {
    /// `percent_millionths` of the requests go to the first `hot` of `count` ranks.
    pub(super) fn new(count: u64, hot: u64, percent_millionths: u32) -> Self {
        Self { count, hot, below: (u128::from(percent_millionths) << 64) / 100_000_000 }
    }

    pub(super) fn draw(&self, own: RandomStream) -> u64 {
        if self.hot == self.count || u128::from(own.at(0)) < self.below {
            own.below(1, self.hot)
        } else {
            self.hot + own.below(1, self.count - self.hot)
        }
    }
}

//! Which operation a request is.

use super::rng::Stream;

#[derive(Debug)]
pub(super) struct Mix {
    stream: Stream,
    /// The sums of the weights up to and with each operation.
    cumulative: Vec<u64>,
}

impl Mix {
    /// None if all weights are 0.
    pub(super) fn new(weights: impl Iterator<Item = u32>, stream: Stream) -> Option<Self> {
        let cumulative: Vec<u64> = weights
            .scan(0, |sum, weight| {
                *sum += u64::from(weight);
                Some(*sum)
            })
            .collect();
        (cumulative.last().copied()? > 0).then_some(Self { stream, cumulative })
    }

    /// Drawn by hash: k mod m would give each shard its own mix.
    #[inline]
    pub(super) fn draw(&self, k: u64) -> u16 {
        let [.., total] = self.cumulative.as_slice() else { return 0 };
        if self.cumulative.len() == 1 {
            return 0;
        }
        let at = self.stream.below(k, *total);
        self.cumulative.partition_point(|sum| *sum <= at) as u16
    }
}

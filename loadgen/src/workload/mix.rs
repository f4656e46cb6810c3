//! The operation of a request.

use super::numbering::Turns;
use super::rng::RandomStream;

#[derive(Clone, Debug)]
pub(super) struct Mix {
    order: Order,
    stream: RandomStream,
    /// The cumulative weights, including each operation's own.
    cumulative: Vec<u64>,
    /// The streams that requests belong to in turns, if there are several.
    streams: Box<[StreamOf]>,
}

/// The source of a stream's operations.
#[derive(Clone, Debug)]
enum StreamOf {
    Mix(Mix),
    Operation(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// There is only one operation.
    Only,
    /// Drawn at random per request.
    Drawn,
    /// A fixed sequence: as many requests of each operation as its weight, one operation after the other.
    InTurns,
    /// The request's stream decides.
    ByStream,
}

impl Mix {
    /// `None` if all weights are 0.
    pub(super) fn new(weights: impl Iterator<Item = u32>, stream: RandomStream) -> Option<Self> {
        let cumulative: Vec<u64> = weights
            .scan(0, |sum, weight| {
                *sum += u64::from(weight);
                Some(*sum)
            })
            .collect();
        let order = if cumulative.len() == 1 { Order::Only } else { Order::Drawn };
        (cumulative.last().copied()? > 0).then_some(Self { order, stream, cumulative, streams: Box::default() })
    }

    /// The `mixes`, and then the single `operations`, each with a stream of its own. `None` if there is neither.
    pub(super) fn by_stream(
        mixes: Vec<Self>,
        operations: impl Iterator<Item = u16>,
        stream: RandomStream,
    ) -> Option<Self> {
        let streams: Box<[_]> =
            mixes.into_iter().map(StreamOf::Mix).chain(operations.map(StreamOf::Operation)).collect();
        let order = Order::ByStream;
        (!streams.is_empty()).then_some(Self { order, stream, cumulative: Vec::new(), streams })
    }

    /// The same mix as a fixed sequence.
    pub(super) fn in_turns(self) -> Self {
        let order = if self.order == Order::Only { Order::Only } else { Order::InTurns };
        Self { order, ..self }
    }

    /// The place of each operation in that sequence.
    pub(super) fn turns(&self) -> Vec<Turns> {
        let period = self.cumulative.last().copied().unwrap_or(1).max(1);
        let firsts = std::iter::once(&0).chain(&self.cumulative);
        let turns = |first: &u64, end: &u64| Turns { period, first: *first, count: end - first, walk: None };
        firsts.zip(&self.cumulative).map(|(first, end)| turns(first, end)).collect()
    }

    /// The only operation.
    #[inline]
    pub(super) fn only(&self) -> Option<u16> {
        (self.order == Order::Only).then_some(0)
    }

    /// Drawn by hash, because k mod m would give each shard its own mix.
    #[inline]
    pub(super) fn draw(&self, k: u64) -> u16 {
        let [.., total] = self.cumulative.as_slice() else { return self.draw_by_stream(k) };
        let at = match self.order {
            Order::Only => return 0,
            Order::Drawn => self.stream.below(k, *total),
            Order::InTurns | Order::ByStream => k % total.max(&1),
        };
        self.cumulative.partition_point(|sum| *sum <= at) as u16
    }

    // Out of line, so that other mixes stay small.
    #[cold]
    #[inline(never)]
    fn draw_by_stream(&self, k: u64) -> u16 {
        let count = self.streams.len() as u64;
        match self.streams.get(k.checked_rem(count).unwrap_or(0) as usize) {
            // By its number in the stream, so that the mix is the same whatever the other streams are.
            Some(StreamOf::Mix(mix)) => mix.draw(k / count),
            Some(StreamOf::Operation(operation)) => *operation,
            None => 0,
        }
    }
}

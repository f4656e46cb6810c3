//! The counts of one histogram during recording: the buckets of `HdrHistogram` without its bookkeeping, because this runs for every
//! request.

use hdrhistogram::Histogram;
use redisbench_wire::histogram::{HIGHEST_NANOSECONDS, Kind, Layout};

/// Counts of requests.
pub(super) type RequestCounts = Counts<{ Kind::Request.layout().unit_bits }, { Kind::Request.layout().half_bits }>;

/// Counts of hops to one node.
pub(super) type NodeCounts = Counts<{ Kind::Node.layout().unit_bits }, { Kind::Node.layout().half_bits }>;

/// Counts per bucket of a [`Kind`]. A value above the highest counts as the highest. The [`Layout`] is constant, because an index is
/// computed for every request.
#[derive(Clone, Debug)]
pub(super) struct Counts<const UNIT_BITS: u32, const HALF_BITS: u32> {
    kind: Kind,
    counts: Box<[u64]>,
}

impl RequestCounts {
    pub(super) fn new() -> Self {
        Self::of(Kind::Request)
    }
}

impl NodeCounts {
    pub(super) fn new() -> Self {
        Self::of(Kind::Node)
    }
}

impl<const UNIT_BITS: u32, const HALF_BITS: u32> Counts<UNIT_BITS, HALF_BITS> {
    const LAYOUT: Layout = Layout { unit_bits: UNIT_BITS, half_bits: HALF_BITS };

    fn of(kind: Kind) -> Self {
        Self { kind, counts: vec![0; Self::LAYOUT.index(HIGHEST_NANOSECONDS) + 1].into() }
    }

    #[inline]
    pub(super) fn record(&mut self, value: u64, times: u64) {
        let index = Self::LAYOUT.index(value.min(HIGHEST_NANOSECONDS));
        if let Some(count) = self.counts.get_mut(index) {
            *count += times;
        }
    }

    /// Adds counts of the same kind.
    pub(super) fn add(&mut self, other: &Self) {
        debug_assert_eq!(self.kind, other.kind);
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, its)| *mine += its);
    }

    /// Adds the counts from `lowest` to `highest` of the same kind. No bucket may straddle either bound.
    pub(super) fn add_range(&mut self, other: &Self, lowest: u64, highest: u64) {
        let range = Self::LAYOUT.index(lowest)..Self::LAYOUT.index(highest.min(HIGHEST_NANOSECONDS)) + 1;
        if let (Some(mine), Some(its)) = (self.counts.get_mut(range.clone()), other.counts.get(range)) {
            mine.iter_mut().zip(its).for_each(|(mine, its)| *mine += its);
        }
    }

    /// Converts to a histogram that can be merged and sent.
    pub(super) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = self.kind.empty();
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(Self::LAYOUT.value(index), *count);
        }
        histogram
    }
}

/// Adds the counts of another worker, if there are any.
pub(super) fn add_optional(mine: &mut Option<RequestCounts>, its: Option<&RequestCounts>) {
    match (mine, its) {
        (Some(mine), Some(its)) => mine.add(its),
        (mine @ None, Some(its)) => *mine = Some(its.clone()),
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redisbench_wire::histogram::EncodedHistogram;

    use super::*;

    fn records<const UNIT_BITS: u32, const HALF_BITS: u32>(mut counts: Counts<UNIT_BITS, HALF_BITS>, values: &[u64]) {
        let mut histogram = counts.kind.empty();
        for value in values {
            counts.record(*value, 1);
            histogram.saturating_record((*value).min(HIGHEST_NANOSECONDS));
        }
        // As sent: until then a histogram also knows whether a value of its first bucket was 0, which counts do not keep.
        let [sent, wanted] = [counts.histogram(), histogram].map(|one| EncodedHistogram::encode(&one).unwrap());
        assert_eq!(sent, wanted);
    }

    #[test]
    fn a_single_value_of_the_first_bucket_is_sent_as_the_histogram_would() {
        for value in [0, 1, 63] {
            records(RequestCounts::new(), &[value]);
            records(NodeCounts::new(), &[value]);
        }
    }

    proptest! {
        #[test]
        fn counts_are_what_the_histogram_would_have(
            values in prop::collection::vec(
                prop_oneof![0..5_000_u64, 0..10_000_000_u64, 0..=HIGHEST_NANOSECONDS, any::<u64>()], 0..300,
            ),
        ) {
            records(RequestCounts::new(), &values);
            records(NodeCounts::new(), &values);
        }
    }
}

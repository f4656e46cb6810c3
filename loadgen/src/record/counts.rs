//! The counts of one histogram during recording: the buckets of `HdrHistogram` without its bookkeeping, because this runs for every
//! request.

use hdrhistogram::Histogram;
use redisbench_wire::histogram::{HIGHEST_NANOSECONDS, Kind};

/// Counts of requests.
pub(super) type RequestCounts = Counts<{ Kind::Request.lowest().ilog2() }, { half_bits(Kind::Request) }>;

/// Counts of hops to one node.
pub(super) type NodeCounts = Counts<{ Kind::Node.lowest().ilog2() }, { half_bits(Kind::Node) }>;

/// log2 of the linear steps per power of two: half of the sub-buckets that the number of digits needs.
const fn half_bits(kind: Kind) -> u32 {
    (2 * 10_u64.pow(kind.digits() as u32)).next_power_of_two().ilog2() - 1
}

/// Counts per bucket, with the bounds of a [`Kind`]. A value above the highest counts as the highest.
///
/// The buckets are those of `HdrHistogram`: each power of two has `2^HALF_BITS` linear steps, the first range twice as many, in units of
/// `2^UNIT_BITS`.
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
    fn of(kind: Kind) -> Self {
        Self { kind, counts: vec![0; Self::index(HIGHEST_NANOSECONDS) + 1].into() }
    }

    #[inline]
    fn index(value: u64) -> usize {
        let first_range = (2 << (HALF_BITS + UNIT_BITS)) - 1;
        let power = (value | first_range).ilog2() - HALF_BITS - UNIT_BITS;
        ((u64::from(power) << HALF_BITS) + (value >> (power + UNIT_BITS))) as usize
    }

    /// The lowest value of a bucket.
    fn value(index: usize) -> u64 {
        let (index, half) = (index as u64, 1 << HALF_BITS);
        match index >> HALF_BITS {
            0 => index << UNIT_BITS,
            power => (index % half + half) << (power - 1 + u64::from(UNIT_BITS)),
        }
    }

    #[inline]
    pub(super) fn record(&mut self, value: u64, times: u64) {
        let index = Self::index(value.min(HIGHEST_NANOSECONDS));
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
        let range = Self::index(lowest)..Self::index(highest.min(HIGHEST_NANOSECONDS)) + 1;
        if let (Some(mine), Some(its)) = (self.counts.get_mut(range.clone()), other.counts.get(range)) {
            mine.iter_mut().zip(its).for_each(|(mine, its)| *mine += its);
        }
    }

    /// Converts to a histogram that can be merged and sent.
    pub(super) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = self.kind.empty();
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(Self::value(index), *count);
        }
        histogram
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

    fn edges<const UNIT_BITS: u32, const HALF_BITS: u32>(counts: &Counts<UNIT_BITS, HALF_BITS>) {
        let histogram = counts.kind.empty();
        for index in 0..counts.counts.len() {
            let first = Counts::<UNIT_BITS, HALF_BITS>::value(index);
            let last = histogram.highest_equivalent(first);
            for value in [first, last] {
                assert_eq!(Counts::<UNIT_BITS, HALF_BITS>::index(value), index, "{value}");
            }
        }
    }

    #[test]
    fn the_edges_of_every_bucket_are_in_it() {
        edges(&RequestCounts::new());
        edges(&NodeCounts::new());
    }
}

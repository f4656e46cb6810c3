//! The bounds of every histogram and their form on the wire: HDR V2 with deflate, base64.
//!
//! All histograms of one [`Kind`] have identical bounds, so merging adds counts bucket by bucket and loses nothing.

use std::io::{self, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::bufread::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{DeserializeError, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Selects the bounds of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Request latency: totals and operations.
    Request,
    /// Hops to one Redis node. Coarser, because there may be many nodes.
    Node,
}

/// The highest value of every histogram, in nanoseconds: 600 s. Longer times are counted as overflow.
pub const HIGHEST_NANOSECONDS: u64 = 600_000_000_000;

impl Kind {
    /// The lowest value that is distinguished from zero, in nanoseconds.
    pub const fn lowest(self) -> u64 {
        match self {
            Self::Request => 64,
            Self::Node => 128,
        }
    }

    /// Significant decimal digits.
    pub const fn digits(self) -> u8 {
        match self {
            Self::Request => 3,
            Self::Node => 2,
        }
    }

    /// An empty histogram of nanoseconds with these bounds.
    pub fn empty(self) -> Histogram<u64> {
        // The bounds are constants that `new_with_bounds` accepts; a test checks this.
        Histogram::new_with_bounds(self.lowest(), HIGHEST_NANOSECONDS, self.digits())
            .unwrap_or_else(|_| unreachable!("constant bounds"))
    }

    /// The layout of the buckets.
    pub const fn layout(self) -> Layout {
        // Each power of two holds only the upper half of the steps that the digits need.
        let steps = (2 * 10_u64.pow(self.digits() as u32)).next_power_of_two();
        Layout { unit_bits: self.lowest().ilog2(), half_bits: steps.ilog2() - 1 }
    }

    /// The number of buckets. Those of the highest value's power of two are complete, so the last ones lie beyond that value.
    const fn buckets(self) -> usize {
        let layout = self.layout();
        ((layout.index(HIGHEST_NANOSECONDS) >> layout.half_bits) + 1) << layout.half_bits
    }

    /// The largest inflated V2 form: its header, and at most 9 bytes a bucket.
    const fn largest_inflated(self) -> usize {
        HEADER_BYTES + 9 * self.buckets()
    }
}

/// The buckets of `HdrHistogram`: each power of two has `2^half_bits` linear steps, the first range twice as many, in units of
/// `2^unit_bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// log2 of the width of the narrowest bucket.
    pub unit_bits: u32,
    /// log2 of the linear steps per power of two.
    pub half_bits: u32,
}

impl Layout {
    /// The bucket of `value`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a histogram has less than 2^16 buckets")]
    pub const fn index(self, value: u64) -> usize {
        let first_range = (2_u64 << (self.half_bits + self.unit_bits)) - 1;
        let power = (value | first_range).ilog2() - self.half_bits - self.unit_bits;
        (((power as u64) << self.half_bits) + (value >> (power + self.unit_bits))) as usize
    }

    /// The lowest value of a bucket.
    #[inline]
    pub fn value(self, index: usize) -> u64 {
        let (index, half) = (index as u64, 1_u64 << self.half_bits);
        match index >> self.half_bits {
            0 => index << self.unit_bits,
            power => (index % half + half) << (power - 1 + u64::from(self.unit_bits)),
        }
    }
}

/// A histogram on the wire: HDR V2-deflate in base64. Any HdrHistogram tool reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EncodedHistogram(String);

/// Why a histogram could not be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The writer failed. Not expected with a buffer in memory.
    #[error("failed to encode a histogram")]
    Encode(#[source] hdrhistogram::serialization::V2DeflateSerializeError),
    /// Not base64.
    #[error("failed to decode a histogram's base64")]
    Base64(#[source] base64::DecodeError),
    /// Not a valid histogram of this kind.
    #[error("failed to decode a histogram: {0}")]
    Malformed(&'static str),
    /// The counts could not be read.
    #[error("failed to decode a histogram's counts")]
    Counts(#[source] DeserializeError),
}

/// The header of the V2 form.
const HEADER_BYTES: usize = 40;

const COOKIE_V2: u32 = 0x1c84_9303 | 0x10;
const COOKIE_V2_DEFLATE: u32 = 0x1c84_9304 | 0x10;

impl EncodedHistogram {
    /// Encodes `histogram`.
    ///
    /// # Errors
    /// If the serialiser fails.
    pub fn encode(histogram: &Histogram<u64>) -> Result<Self, HistogramError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(histogram, &mut bytes).map_err(HistogramError::Encode)?;
        Ok(Self(BASE64.encode(bytes)))
    }

    /// The base64 text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Decodes a histogram of `kind`. Safe on hostile input: the kind bounds the memory before anything is inflated or allocated.
    ///
    /// # Errors
    /// If it is not a histogram, or its bounds are not those of `kind`.
    pub fn decode(&self, kind: Kind) -> Result<Histogram<u64>, HistogramError> {
        let inflated = self.inflate(kind)?;
        let mut histogram = kind.empty();
        inflated.add_to(&mut histogram)?;
        Ok(histogram)
    }

    /// The number of values in a histogram of `kind`. Checks it like [`Self::decode`], but allocates no histogram.
    ///
    /// # Errors
    /// Those of [`Self::decode`].
    pub fn count(&self, kind: Kind) -> Result<u64, HistogramError> {
        self.inflate(kind).map(|inflated| inflated.count)
    }

    /// Adds a histogram of `kind` to `sum`, which must have the bounds of `kind`. The sum equals that with the result of [`Self::decode`],
    /// but no histogram is allocated.
    ///
    /// # Errors
    /// Those of [`Self::decode`]. The sum is then unchanged.
    pub fn add_to(&self, sum: &mut Histogram<u64>, kind: Kind) -> Result<(), HistogramError> {
        self.inflate(kind)?.add_to(sum)
    }

    /// Inflates and checks a histogram of `kind`.
    fn inflate(&self, kind: Kind) -> Result<Inflated, HistogramError> {
        let largest = kind.largest_inflated();
        // Deflate adds only a few bytes per block to incompressible data.
        if self.0.len() > (largest + 1024) / 3 * 4 {
            return Err(HistogramError::Malformed("longer than its bounds allow"));
        }
        let deflated = BASE64.decode(&self.0).map_err(HistogramError::Base64)?;
        if word(&deflated, 0) != Some(COOKIE_V2_DEFLATE) {
            return Err(HistogramError::Malformed("not in V2-deflate format"));
        }
        // Enough for most histograms.
        let mut bytes = Vec::with_capacity((4 * deflated.len()).min(largest + 1));
        ZlibDecoder::new(deflated.get(8..).unwrap_or_default())
            .take(largest as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|_| HistogramError::Malformed("failed to inflate it"))?;
        if bytes.len() > largest {
            return Err(HistogramError::Malformed("inflates beyond its bounds"));
        }
        if word(&bytes, 0) != Some(COOKIE_V2)
            || word(&bytes, 12) != Some(u32::from(kind.digits()))
            || long(&bytes, 16) != Some(kind.lowest())
            || long(&bytes, 24) != Some(HIGHEST_NANOSECONDS)
        {
            return Err(HistogramError::Malformed("other bounds than the contract's"));
        }
        let counts = bytes.get(HEADER_BYTES..).unwrap_or_default();
        if word(&bytes, 4).and_then(|length| usize::try_from(length).ok()) != Some(counts.len()) {
            return Err(HistogramError::Malformed("its length differs from its header"));
        }
        let mut buckets = Buckets::of(counts);
        let (mut count, mut last) = (0_u64, 0);
        for (index, times) in buckets.by_ref() {
            (count, last) = (count.saturating_add(times), index);
        }
        if buckets.longest_run > kind.buckets() {
            return Err(HistogramError::Malformed("a run of empty buckets beyond its bounds"));
        }
        check_scale(&bytes).map_err(HistogramError::Counts)?;
        if last >= kind.buckets() {
            return Err(HistogramError::Counts(DeserializeError::EncodedArrayTooLong));
        }
        if !buckets.rest.is_empty() {
            return Err(HistogramError::Counts(truncated()));
        }
        if last > kind.layout().index(HIGHEST_NANOSECONDS) {
            return Err(beyond_bounds());
        }
        Ok(Inflated { kind, bytes, count })
    }
}

/// The V2 form of a histogram that has passed all checks.
struct Inflated {
    kind: Kind,
    bytes: Vec<u8>,
    /// The number of values. Saturates.
    count: u64,
}

impl Inflated {
    fn add_to(&self, sum: &mut Histogram<u64>) -> Result<(), HistogramError> {
        debug_assert_eq!(
            (sum.low(), sum.high(), sum.sigfig()),
            (self.kind.lowest(), HIGHEST_NANOSECONDS, self.kind.digits())
        );
        let layout = self.kind.layout();
        for (index, times) in Buckets::of(self.bytes.get(HEADER_BYTES..).unwrap_or_default()) {
            // A decoded histogram's maximum is the end of its last bucket. Recording 0 would leave it at 0.
            sum.record_n(layout.value(index).max(1), times).map_err(|_| beyond_bounds())?;
        }
        Ok(())
    }
}

/// The buckets of a V2 form that have values, in order: the index and the count of each. Ends before a truncated number.
struct Buckets<'a> {
    rest: &'a [u8],
    /// The index after those that were read.
    end: usize,
    /// The longest run of empty buckets so far.
    longest_run: usize,
}

impl<'a> Buckets<'a> {
    fn of(counts: &'a [u8]) -> Self {
        Self { rest: counts, end: 0, longest_run: 0 }
    }
}

impl Iterator for Buckets<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // ZigZag: an odd number is a run of empty buckets, and an even one is twice a count.
            let number = pull(&mut self.rest)?;
            if number % 2 == 1 {
                let run = usize::try_from(number / 2 + 1).unwrap_or(usize::MAX);
                self.longest_run = self.longest_run.max(run);
                self.end = self.end.saturating_add(run);
                continue;
            }
            let index = self.end;
            self.end = index.saturating_add(1);
            if number > 0 {
                return Some((index, number / 2));
            }
        }
    }
}

/// Removes the first number from `rest`: LEB128 of at most 9 bytes, with 8 bits in the ninth. None if there is none, or it is truncated.
fn pull(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (at, byte) in rest.iter().enumerate().take(9) {
        let is_last = at == 8;
        number |= u64::from(if is_last { *byte } else { byte & 0x7f }) << (7 * at);
        if is_last || byte & 0x80 == 0 {
            *rest = &rest[at + 1..];
            return Some(number);
        }
    }
    None
}

/// Checks that values are neither shifted nor scaled.
fn check_scale(bytes: &[u8]) -> Result<(), DeserializeError> {
    if word(bytes, 8) != Some(0) {
        return Err(DeserializeError::UnsupportedFeature);
    }
    match long(bytes, 32) {
        Some(ratio) if ratio == 1.0_f64.to_bits() => Ok(()),
        Some(_) => Err(DeserializeError::UnsupportedFeature),
        None => Err(truncated()),
    }
}

fn truncated() -> DeserializeError {
    DeserializeError::IoError(io::Error::new(io::ErrorKind::UnexpectedEof, "failed to fill whole buffer"))
}

fn beyond_bounds() -> HistogramError {
    HistogramError::Malformed("counts beyond its bounds")
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_be_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map(u64::from_be_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use hdrhistogram::serialization::{Deserializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;

    const KINDS: [Kind; 2] = [Kind::Request, Kind::Node];

    #[test]
    fn bounds_are_accepted() {
        for kind in KINDS {
            let histogram = kind.empty();
            assert_eq!(
                (histogram.low(), histogram.high(), histogram.sigfig(), histogram.distinct_values()),
                (kind.lowest(), HIGHEST_NANOSECONDS, kind.digits(), kind.buckets())
            );
        }
    }

    #[test]
    fn the_edges_of_every_bucket_are_in_it() {
        for kind in KINDS {
            let (histogram, layout) = (kind.empty(), kind.layout());
            for index in 0..kind.buckets() {
                let lowest = layout.value(index);
                let edges = [lowest, histogram.highest_equivalent(lowest)];
                assert_eq!(histogram.lowest_equivalent(lowest), lowest);
                assert_eq!(edges.map(|value| layout.index(value)), [index; 2], "{edges:?}");
            }
        }
    }

    #[test]
    fn empty_round_trip() {
        for kind in KINDS {
            assert_eq!(EncodedHistogram::encode(&kind.empty()).unwrap().decode(kind).unwrap(), kind.empty());
        }
    }

    #[test]
    fn other_bounds_are_refused() {
        let encoded = EncodedHistogram::encode(&Kind::Node.empty()).unwrap();
        assert!(matches!(encoded.decode(Kind::Request), Err(HistogramError::Malformed(_))));
        let wide = Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, 5).unwrap();
        let encoded = EncodedHistogram::encode(&wide).unwrap();
        assert!(encoded.decode(Kind::Request).is_err());
    }

    #[test]
    fn a_bomb_is_refused() {
        let error = bomb(64 << 20).decode(Kind::Request).unwrap_err();
        assert_eq!(error.to_string(), "failed to decode a histogram: inflates beyond its bounds");
    }

    #[test]
    fn a_header_that_claims_more_than_there_is_is_refused() {
        let mut inflated = Vec::new();
        V2Serializer::new().serialize(&Kind::Node.empty(), &mut inflated).unwrap();
        // Large enough to differ from a valid length, small enough for a test to allocate if it is accepted.
        inflated[4..8].copy_from_slice(&1_000_000_u32.to_be_bytes());
        let error = deflated(&inflated).decode(Kind::Node).unwrap_err();
        assert_eq!(error.to_string(), "failed to decode a histogram: its length differs from its header");
    }

    /// Decodes with `hdrhistogram`, after checks that bound its memory.
    fn reference(encoded: &EncodedHistogram, kind: Kind) -> Result<Histogram<u64>, HistogramError> {
        let buckets = kind.empty().distinct_values() as u64;
        let largest = HEADER_BYTES as u64 + 9 * buckets;
        if encoded.0.len() as u64 > (largest + 1024) / 3 * 4 {
            return Err(HistogramError::Malformed("longer than its bounds allow"));
        }
        let bytes = BASE64.decode(&encoded.0).map_err(HistogramError::Base64)?;
        if word(&bytes, 0) != Some(COOKIE_V2_DEFLATE) {
            return Err(HistogramError::Malformed("not in V2-deflate format"));
        }
        let mut inflated = Vec::new();
        flate2::read::ZlibDecoder::new(bytes.get(8..).unwrap_or_default())
            .take(largest + 1)
            .read_to_end(&mut inflated)
            .map_err(|_| HistogramError::Malformed("failed to inflate it"))?;
        if inflated.len() as u64 > largest {
            return Err(HistogramError::Malformed("inflates beyond its bounds"));
        }
        if word(&inflated, 0) != Some(COOKIE_V2)
            || word(&inflated, 12) != Some(u32::from(kind.digits()))
            || long(&inflated, 16) != Some(kind.lowest())
            || long(&inflated, 24) != Some(HIGHEST_NANOSECONDS)
        {
            return Err(HistogramError::Malformed("other bounds than the contract's"));
        }
        let counts = inflated.len().saturating_sub(HEADER_BYTES);
        if word(&inflated, 4).and_then(|length| usize::try_from(length).ok()) != Some(counts) {
            return Err(HistogramError::Malformed("its length differs from its header"));
        }
        if !runs_are_bounded(inflated.get(HEADER_BYTES..).unwrap_or_default(), buckets) {
            return Err(HistogramError::Malformed("a run of empty buckets beyond its bounds"));
        }
        let histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut inflated.as_slice()).map_err(HistogramError::Counts)?;
        let mut fresh = kind.empty();
        if histogram.max() > fresh.highest_equivalent(HIGHEST_NANOSECONDS) {
            return Err(HistogramError::Malformed("counts beyond its bounds"));
        }
        fresh.add(&histogram).map_err(|_| HistogramError::Malformed("counts beyond its bounds"))?;
        Ok(fresh)
    }

    /// Checks that no run of empty buckets exceeds the number of buckets: the negation of the longest one overflows in `hdrhistogram`.
    fn runs_are_bounded(counts: &[u8], buckets: u64) -> bool {
        let (mut number, mut bytes) = (0_u64, 0_u32);
        for byte in counts {
            let last = bytes == 8;
            number |= u64::from(if last { *byte } else { byte & 0x7f }) << (7 * bytes);
            bytes += 1;
            if last || byte & 0x80 == 0 {
                if number % 2 == 1 && number / 2 >= buckets {
                    return false;
                }
                (number, bytes) = (0, 0);
            }
        }
        true
    }

    /// Asserts that every way to read `encoded` returns the result of [`reference`].
    pub(crate) fn assert_matches_reference(encoded: &EncodedHistogram, kind: Kind) {
        let filled = recorded(kind, &[(0, 2), (kind.lowest(), 3), (1_000_000, 5)]);
        let zeros = recorded(kind, &[(0, 1)]);
        match reference(encoded, kind) {
            Ok(expected) => {
                assert_eq!(encoded.count(kind).unwrap(), expected.len());
                assert_same(&encoded.decode(kind).unwrap(), &expected);
                for sum in [filled, zeros] {
                    let (mut found, mut wanted) = (sum.clone(), sum);
                    encoded.add_to(&mut found, kind).unwrap();
                    wanted.add(&expected).unwrap();
                    assert_same(&found, &wanted);
                }
            }
            Err(expected) => {
                let expected = chain(&expected);
                assert_eq!(chain(&encoded.count(kind).unwrap_err()), expected);
                assert_eq!(chain(&encoded.decode(kind).unwrap_err()), expected);
                let mut sum = filled.clone();
                assert_eq!(chain(&encoded.add_to(&mut sum, kind).unwrap_err()), expected);
                assert_same(&sum, &filled);
            }
        }
    }

    fn recorded(kind: Kind, values: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = kind.empty();
        for (value, times) in values {
            histogram.record_n(*value, *times).unwrap();
        }
        histogram
    }

    fn assert_same(found: &Histogram<u64>, expected: &Histogram<u64>) {
        assert!(found == expected, "{found:?} instead of {expected:?}");
        let ends = |histogram: &Histogram<u64>| (histogram.min(), histogram.min_nz(), histogram.max());
        assert_eq!(ends(found), ends(expected));
    }

    /// The messages of an error and of its sources.
    fn chain(error: &HistogramError) -> Vec<String> {
        let mut messages = vec![error.to_string()];
        let mut source = std::error::Error::source(error);
        while let Some(error) = source {
            messages.push(error.to_string());
            source = error.source();
        }
        messages
    }

    /// The inflated V2 form.
    fn inflated(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).unwrap();
        bytes
    }

    /// Appends a number of the counts.
    fn push(bytes: &mut Vec<u8>, mut number: u64) {
        for _ in 0..8 {
            let low = number.to_le_bytes()[0];
            if number < 0x80 {
                bytes.push(low);
                return;
            }
            bytes.push(low | 0x80);
            number >>= 7;
        }
        bytes.push(number.to_le_bytes()[0]);
    }

    /// Encodes counts: odd numbers are runs of empty buckets, even ones twice a count.
    fn numbers(numbers: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in numbers {
            push(&mut bytes, *number);
        }
        bytes
    }

    /// The number of a run of empty buckets.
    fn run(buckets: usize) -> u64 {
        2 * buckets as u64 - 1
    }

    #[test]
    fn invalid_counts_match_the_reference() {
        for kind in KINDS {
            let (all, highest) = (kind.buckets(), kind.layout().index(HIGHEST_NANOSECONDS));
            let message = |counts: &[u8]| {
                let encoded = with_counts(kind, counts);
                assert_matches_reference(&encoded, kind);
                encoded.count(kind).map_err(|error| chain(&error).join(": "))
            };
            let refused = |counts: &[u8], why: &str| {
                assert_eq!(message(counts).unwrap_err(), format!("failed to decode a histogram{why}"));
            };
            let (too_long, ended) = (
                "'s counts: The encoded array is longer than it should be for the histogram's value range",
                "'s counts: An i/o operation failed: failed to fill whole buffer: failed to fill whole buffer",
            );
            assert_eq!(message(&[]), Ok(0));
            assert_eq!(message(&numbers(&[0, 0, run(7), 0, 6])), Ok(3));
            assert_eq!(message(&numbers(&[run(highest), 4])), Ok(2));
            refused(&numbers(&[run(highest + 1), 4]), ": counts beyond its bounds");
            refused(&numbers(&[run(all - 1), 4]), ": counts beyond its bounds");
            refused(&numbers(&[run(all), 4]), too_long);
            // Empty buckets may follow the last one.
            assert_eq!(message(&numbers(&[2, run(all), run(all), 0])), Ok(1));
            refused(&numbers(&[2, run(all + 1)]), ": a run of empty buckets beyond its bounds");
            refused(&numbers(&[run(all), 4, run(all + 1)]), ": a run of empty buckets beyond its bounds");
            refused(&[0x80], ended);
            refused(&[0xff; 8], ended);
            refused(&[numbers(&[run(all), 4]), vec![0x80]].concat(), too_long);
            refused(&[numbers(&[run(all - 1), 4]), vec![0x80]].concat(), ended);
            // The sum of counts saturates.
            assert_eq!(message(&numbers(&[u64::MAX - 1; 3])), Ok(u64::MAX));
        }
    }

    #[test]
    fn invalid_headers_match_the_reference() {
        for kind in KINDS {
            let valid = inflated(&recorded(kind, &[(1_000, 3), (1_000_000, 1)]));
            for length in 0..valid.len() {
                let mut cut = valid[..length].to_vec();
                assert_matches_reference(&deflated(&cut), kind);
                // With the right length.
                if let Some(field) = cut.get_mut(4..8) {
                    let counts = u32::try_from(length.saturating_sub(HEADER_BYTES)).unwrap();
                    field.copy_from_slice(&counts.to_be_bytes());
                    assert_matches_reference(&deflated(&cut), kind);
                }
            }
            for at in 0..HEADER_BYTES {
                let mut changed = valid.clone();
                changed[at] ^= 1;
                assert!(deflated(&changed).count(kind).is_err(), "byte {at}");
                assert_matches_reference(&deflated(&changed), kind);
                changed.truncate(HEADER_BYTES - 1);
                changed[4..8].fill(0);
                assert_matches_reference(&deflated(&changed), kind);
            }
        }
    }

    /// The wire form of this inflated V2 form.
    pub(crate) fn deflated(inflated: &[u8]) -> EncodedHistogram {
        deflated_at(Compression::fast(), inflated)
    }

    /// As short as it can be for what inflates to so many zeros.
    pub(crate) fn bomb(bytes: usize) -> EncodedHistogram {
        deflated_at(Compression::best(), &vec![0; bytes])
    }

    fn deflated_at(level: Compression, inflated: &[u8]) -> EncodedHistogram {
        let mut deflated = ZlibEncoder::new(Vec::new(), level);
        deflated.write_all(inflated).unwrap();
        let mut bytes = COOKIE_V2_DEFLATE.to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(deflated.finish().unwrap());
        EncodedHistogram(BASE64.encode(bytes))
    }

    /// A histogram with the header of `kind` and these counts.
    pub(crate) fn with_counts(kind: Kind, counts: &[u8]) -> EncodedHistogram {
        let mut inflated = Vec::new();
        V2Serializer::new().serialize(&kind.empty(), &mut inflated).unwrap();
        inflated.truncate(HEADER_BYTES);
        inflated[4..8].copy_from_slice(&u32::try_from(counts.len()).unwrap().to_be_bytes());
        inflated.extend(counts);
        deflated(&inflated)
    }

    #[test]
    fn the_longest_run_of_empty_buckets_is_refused() {
        let error = with_counts(Kind::Node, &[0xff; 9]).decode(Kind::Node).unwrap_err();
        assert_eq!(error.to_string(), "failed to decode a histogram: a run of empty buckets beyond its bounds");
        assert_eq!(with_counts(Kind::Node, &[1, 2]).decode(Kind::Node).unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn round_trip(values in prop::collection::vec(0..=HIGHEST_NANOSECONDS, 0..200)) {
            let mut histogram = Kind::Request.empty();
            for value in values {
                histogram.record(value).unwrap();
            }
            prop_assert_eq!(EncodedHistogram::encode(&histogram).unwrap().decode(Kind::Request).unwrap(), histogram);
        }

        #[test]
        fn valid_histograms_match_the_reference(
            values in prop::collection::vec((0..=HIGHEST_NANOSECONDS, 0..40_u32, 0..1_u64 << 40), 0..200),
        ) {
            // The shift makes short times as likely as long ones.
            let values: Vec<_> = values.into_iter().map(|(value, shift, times)| (value >> shift, times)).collect();
            for kind in KINDS {
                assert_matches_reference(&EncodedHistogram::encode(&recorded(kind, &values)).unwrap(), kind);
            }
        }

        #[test]
        fn hostile_counts_match_the_reference(
            all in prop::collection::vec(
                prop_oneof![
                    4 => (0..500_u64).prop_map(|count| 2 * count),
                    4 => (1..2_000_usize).prop_map(run),
                    1 => (1..30_000_usize).prop_map(run),
                    1 => any::<u64>().prop_map(|count| count & !1),
                ],
                0..60,
            ),
            huge_run in prop::option::weighted(0.1, any::<u64>()),
            cut in 0..12_usize,
            garbage in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let mut counts = numbers(&all);
            if let Some(run) = huge_run {
                push(&mut counts, run | 1);
            }
            for kind in KINDS {
                assert_matches_reference(&with_counts(kind, &counts), kind);
            }
            counts.truncate(counts.len().saturating_sub(cut));
            counts.extend(garbage);
            for kind in KINDS {
                assert_matches_reference(&with_counts(kind, &counts), kind);
            }
        }

        #[test]
        fn damaged_streams_match_the_reference(
            values in prop::collection::vec((0..=HIGHEST_NANOSECONDS, 1..1_000_u64), 0..50),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            length in any::<prop::sample::Index>(),
            cut: bool,
        ) {
            let encoded = EncodedHistogram::encode(&recorded(Kind::Request, &values)).unwrap();
            let mut bytes = BASE64.decode(encoded.as_str()).unwrap();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if cut {
                bytes.truncate(length.index(bytes.len()));
            }
            for kind in KINDS {
                assert_matches_reference(&EncodedHistogram(BASE64.encode(&bytes)), kind);
            }
        }

        #[test]
        fn garbage_is_refused_or_a_histogram_like_any_other(bytes in prop::collection::vec(any::<u8>(), 0..300), cookie: bool) {
            let mut bytes = bytes;
            if cookie {
                bytes.splice(0..0, COOKIE_V2_DEFLATE.to_be_bytes());
            }
            let encoded = EncodedHistogram(BASE64.encode(bytes));
            assert_matches_reference(&encoded, Kind::Request);
            if let Ok(histogram) = encoded.decode(Kind::Request) {
                prop_assert_eq!(EncodedHistogram::encode(&histogram).unwrap().decode(Kind::Request).unwrap(), histogram);
            }
        }
    }
}

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
        let mut buckets = CountedBuckets::of(counts);
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
        for (index, times) in CountedBuckets::of(self.bytes.get(HEADER_BYTES..).unwrap_or_default()) {
            // A decoded histogram's maximum is the end of its last bucket. Recording 0 would leave it at 0.
            sum.record_n(layout.value(index).max(1), times).map_err(|_| beyond_bounds())?;
        }
        Ok(())
    }
}

/// The buckets of a V2 form that have values, in order: the index and the count of each. Ends before a truncated number.
struct CountedBuckets<'a> {
    rest: &'a [u8],
    /// The index after those that were read.
    end: usize,
    /// The longest run of empty buckets so far.
    longest_run: usize,
}

impl<'a> CountedBuckets<'a> {
    fn of(counts: &'a [u8]) -> Self {
        Self { rest: counts, end: 0, longest_run: 0 }
    }
}

impl Iterator for CountedBuckets<'_> {
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
pub(crate) mod tests;

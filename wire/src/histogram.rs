//! The bounds of every histogram and their form on the wire: HDR V2 with deflate, base64.
//!
//! All histograms of one [`Kind`] have identical bounds, so merging adds counts bucket by bucket and loses nothing.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
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

    /// The largest inflated V2 form: its header, and at most 9 bytes a bucket.
    fn largest_inflated(self) -> u64 {
        HEADER_BYTES as u64 + 9 * self.empty().distinct_values() as u64
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
    Counts(#[source] hdrhistogram::serialization::DeserializeError),
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
        let largest = kind.largest_inflated();
        // Deflate adds only a few bytes per block to incompressible data.
        if self.0.len() as u64 > (largest + 1024) / 3 * 4 {
            return Err(HistogramError::Malformed("longer than its bounds allow"));
        }
        let bytes = BASE64.decode(&self.0).map_err(HistogramError::Base64)?;
        let word =
            |at: usize, from: &[u8]| from.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
        if word(0, &bytes) != Some(COOKIE_V2_DEFLATE) {
            return Err(HistogramError::Malformed("not in V2-deflate format"));
        }
        let mut inflated = Vec::new();
        ZlibDecoder::new(bytes.get(8..).unwrap_or_default())
            .take(largest + 1)
            .read_to_end(&mut inflated)
            .map_err(|_| HistogramError::Malformed("failed to inflate it"))?;
        if inflated.len() as u64 > largest {
            return Err(HistogramError::Malformed("inflates beyond its bounds"));
        }
        // Checked first, because the header determines how much memory the deserialiser allocates.
        let long = |at: usize| inflated.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes);
        if word(0, &inflated) != Some(COOKIE_V2)
            || word(12, &inflated) != Some(u32::from(kind.digits()))
            || long(16) != Some(kind.lowest())
            || long(24) != Some(HIGHEST_NANOSECONDS)
        {
            return Err(HistogramError::Malformed("other bounds than the contract's"));
        }
        // The deserialiser allocates for the length of the counts before it reads them.
        let counts = inflated.len().saturating_sub(HEADER_BYTES);
        if word(4, &inflated).and_then(|length| usize::try_from(length).ok()) != Some(counts) {
            return Err(HistogramError::Malformed("its length differs from its header"));
        }
        if !runs_are_bounded(inflated.get(HEADER_BYTES..).unwrap_or_default(), kind.empty().distinct_values() as u64) {
            return Err(HistogramError::Malformed("a run of empty buckets beyond its bounds"));
        }
        let histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut inflated.as_slice()).map_err(HistogramError::Counts)?;
        let mut fresh = kind.empty();
        // The last buckets extend beyond the highest value, because their number is rounded up to a power of two.
        if histogram.max() > fresh.highest_equivalent(HIGHEST_NANOSECONDS) {
            return Err(HistogramError::Malformed("counts beyond its bounds"));
        }
        fresh.add(&histogram).map_err(|_| HistogramError::Malformed("counts beyond its bounds"))?;
        Ok(fresh)
    }
}

/// Checks that no run of empty buckets in `counts` exceeds the number of buckets. The deserialiser negates the length of a run, which
/// overflows for the longest run that can be encoded.
fn runs_are_bounded(counts: &[u8], buckets: u64) -> bool {
    // LEB128 of at most 9 bytes, with 8 bits in the ninth; then zigzag, where odd numbers are runs.
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

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_accepted() {
        for kind in [Kind::Request, Kind::Node] {
            let histogram = kind.empty();
            assert_eq!(
                (histogram.low(), histogram.high(), histogram.sigfig()),
                (kind.lowest(), HIGHEST_NANOSECONDS, kind.digits())
            );
        }
    }

    #[test]
    fn empty_round_trip() {
        for kind in [Kind::Request, Kind::Node] {
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
        hdrhistogram::serialization::V2Serializer::new().serialize(&Kind::Node.empty(), &mut inflated).unwrap();
        // Large enough to differ from a valid length, small enough for a test to allocate if it is accepted.
        inflated[4..8].copy_from_slice(&1_000_000_u32.to_be_bytes());
        let error = deflated(&inflated).decode(Kind::Node).unwrap_err();
        assert_eq!(error.to_string(), "failed to decode a histogram: its length differs from its header");
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
        hdrhistogram::serialization::V2Serializer::new().serialize(&kind.empty(), &mut inflated).unwrap();
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
        fn garbage_is_refused_or_a_histogram_like_any_other(bytes in prop::collection::vec(any::<u8>(), 0..300), cookie: bool) {
            let mut bytes = bytes;
            if cookie {
                bytes.splice(0..0, COOKIE_V2_DEFLATE.to_be_bytes());
            }
            if let Ok(histogram) = EncodedHistogram(BASE64.encode(bytes)).decode(Kind::Request) {
                prop_assert_eq!(EncodedHistogram::encode(&histogram).unwrap().decode(Kind::Request).unwrap(), histogram);
            }
        }
    }
}

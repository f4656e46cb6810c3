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

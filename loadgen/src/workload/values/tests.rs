use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use redisbench_wire::plan::WeightedSize;

use super::*;

fn values(size: ValueSize, content: ValueContent) -> Values {
    Values::new(&plan::Values { size, content, lines: None }, 42).unwrap()
}

fn random(compressibility_percent: u32) -> ValueContent {
    ValueContent::Random { compressibility_percent }
}

fn deflated(value: &[u8]) -> usize {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(value).unwrap();
    encoder.finish().unwrap().len()
}

#[test]
fn a_compressor_takes_away_as_much_as_was_asked_for() {
    for (bytes, slack) in [(1000, 90), (4096, 150), (100_000, 3000)] {
        for percent in [0, 10, 25, 50, 75, 90] {
            let values = values(ValueSize::Fixed { bytes }, random(percent));
            for k in 0..if bytes > 4096 { 2 } else { 20 } {
                let left = i64::try_from(deflated(values.of(k))).unwrap();
                // Random bytes cannot be compressed. The rest is the compressor's own overhead.
                let random = i64::from(bytes) * i64::from(100 - percent) / 100;
                assert!((random - 50..random + slack).contains(&left), "{percent} % of {bytes}: {left} are left");
            }
        }
    }
    assert!(deflated(values(ValueSize::Fixed { bytes: 10_000 }, random(100)).of(1)) < 40);
    assert!(deflated(values(ValueSize::Fixed { bytes: 10_000 }, ValueContent::Zero).of(1)) < 40);
}

#[test]
fn each_value_has_its_share_of_zeros() {
    // One random byte in 256 is a zero, too.
    for (bytes, percent, expected) in [(100, 30, 30), (10, 50, 5), (3, 33, 1), (5000, 20, 1000)] {
        let values = values(ValueSize::Fixed { bytes }, random(percent));
        for k in 0..500 {
            let zeros: usize = values.of(k).iter().map(|byte| usize::from(*byte == 0)).sum();
            let most = expected + 4 + (bytes as usize - expected) / 100;
            assert!((expected..=most).contains(&zeros), "{percent} % of {bytes}: {zeros}");
        }
    }
}

#[test]
fn lengths_of_a_range_are_evenly_many() {
    let values = values(ValueSize::Range { least_bytes: 5, most_bytes: 24 }, random(0));
    let mut counts = [0_u32; 20];
    for k in 0..100_000 {
        counts[values.length_of(k) - 5] += 1;
        assert_eq!(values.any_of(k).len(), values.length_of(k));
    }
    let chi_square: f64 = counts.iter().map(|count| (f64::from(*count) - 5000.0).powi(2) / 5000.0).sum();
    // The 99.9 % quantile with 19 degrees of freedom.
    assert!(chi_square < 43.8, "{counts:?}");
    assert_eq!((values.longest(), values.fixed_length()), (24, None));
}

#[test]
fn weighted_lengths_have_their_weights() {
    let sizes = [(10, 70), (1000, 25), (50_000, 5)].map(|(bytes, weight)| WeightedSize { bytes, weight });
    let values = values(ValueSize::Weighted(sizes.to_vec()), random(0));
    let mut counts = [0_u32; 3];
    for k in 0..100_000 {
        let length = values.length_of(k);
        counts[sizes.iter().position(|size| size.bytes as usize == length).unwrap()] += 1;
    }
    let expected = [70_000.0, 25_000.0, 5000.0];
    let chi_square: f64 =
        counts.iter().zip(expected).map(|(count, expected)| (f64::from(*count) - expected).powi(2) / expected).sum();
    // The 99.9 % quantile with 2 degrees of freedom.
    assert!(chi_square < 13.8, "{counts:?}");
    assert_eq!(values.any_of(7), values.any_of(7));
    assert_eq!(values.longest(), 50_000);
}

#[test]
fn sizes_that_are_none_are_refused() {
    for size in [ValueSize::Range { least_bytes: 2, most_bytes: 1 }, ValueSize::Weighted(Vec::new())] {
        assert!(Values::new(&plan::Values { size, content: ValueContent::Zero, lines: None }, 1).is_err());
    }
}

#[test]
fn lines_are_values_in_turns() {
    let mut plan = plan::Values { content: ValueContent::Lines, ..plan::Values::fixed(100) };
    assert_eq!(Values::new(&plan, 1).unwrap_err(), WorkloadError::Lines);
    plan.lines = Lines::of(b"one\nthree\n".to_vec());
    let values = Values::new(&plan, 1).unwrap();
    assert_eq!((0..3).map(|k| values.any_of(k)).collect::<Vec<_>>(), [&b"one"[..], b"three", b"one"]);
    assert_eq!([0, 1].map(|k| values.length_of(k)), [3, 5]);
    assert_eq!((values.longest(), values.fixed_length()), (5, None));
}

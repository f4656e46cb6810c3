use super::*;
use crate::noise::Noise;

/// As the verdict has it.
const RULE: Rule = Rule { trend: 31, tolerance: 0.1 };

/// Ten parts of a throughput, by what it is without noise.
fn parts(deviation: f64, alike: f64, seed: u64, level: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut noise = Noise::new(seed, alike);
    (0..10).map(|part| 50_000.0 * level((f64::from(part) + 0.5) / 10.0) * (1.0 + deviation * noise.next())).collect()
}

/// The share of 2000 series that have drifted.
fn share(deviation: f64, alike: f64, level: impl Fn(f64) -> f64 + Copy) -> f64 {
    let found = (0..2_000).filter(|&seed| drift(&parts(deviation, alike, seed, level), &RULE).is_some());
    found.count() as f64 / 2_000.0
}

#[test]
fn what_is_steady_is_rarely_called_otherwise() {
    for (alike, most) in [(0.0, 0.005), (0.5, 0.05)] {
        for deviation in [0.01, 0.03, 0.1, 0.3] {
            let found = share(deviation, alike, |_| 1.0);
            println!("deviation {deviation}, correlation {alike}: {found}");
            assert!(found <= most, "deviation {deviation}, correlation {alike}: {found}");
        }
    }
}

#[test]
fn what_drifts_is_called_so() {
    // A fall of a fifth; a fill that slows down; a warm-up that takes the first third.
    let falling = |time: f64| 1.1 - 0.2 * time;
    let slowing = |time: f64| 0.7 + 0.3 * (1.0 - (-3.0 * time).exp());
    let warming = |time: f64| if time < 0.33 { 0.7 + 0.9 * time } else { 1.0 };
    for alike in [0.0, 0.5] {
        let found = [share(0.02, alike, falling), share(0.02, alike, slowing), share(0.02, alike, warming)];
        println!("fall, fill and warm-up, correlation {alike}: {found:?}");
        assert!(found[..2].iter().all(|&found| found >= 0.95), "correlation {alike}: {found:?}");
    }
}

#[test]
fn a_small_drift_is_steady_however_certain() {
    assert_eq!(drift(&parts(0.0001, 0.0, 1, |time| 1.0 + 0.08 * time), &RULE), None);
}

/// Wherever it is, and however deep.
#[test]
fn one_part_that_is_off_is_no_drift() {
    for (off, depth) in (0..10).flat_map(|off| [(off, 0.0), (off, 0.5), (off, 3.0)]) {
        let mut parts = parts(0.005, 0.0, 3, |_| 1.0);
        parts[off] *= depth;
        assert_eq!(drift(&parts, &RULE), None, "part {off} at {depth}");
    }
}

#[test]
fn the_size_is_that_of_the_line() {
    let rising: Vec<f64> = (0..10).map(|part| 1_000.0 + 30.0 * f64::from(part)).collect();
    let found = drift(&rising, &RULE).unwrap();
    assert!((found - 270.0 / 1_135.0).abs() < 1e-12, "{found}");
    let falling: Vec<f64> = rising.iter().rev().copied().collect();
    assert!((drift(&falling, &RULE).unwrap() + found).abs() < 1e-12);
}

#[test]
fn nothing_says_nothing() {
    for parts in [&[][..], &[1.0], &[0.0; 10]] {
        assert_eq!(drift(parts, &RULE), None);
    }
}

#![allow(clippy::float_cmp, reason = "what is the same computation is the same number")]

use super::*;
use crate::noise::Noise;

const RULE: Rule = Rule::USUAL;

/// A throughput over windows, by what it is without noise.
fn series(count: usize, deviation: f64, alike: f64, seed: u64, level: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut noise = Noise::new(seed, alike);
    (0..count)
        .map(|index| 50_000.0 * level((index as f64 + 0.5) / count as f64) * (1.0 + deviation * noise.next()))
        .collect()
}

fn not_settled(windows: &[f64]) -> bool {
    matches!(steadiness(windows, &RULE), Steadiness::NotSettled(_))
}

/// The share of 2000 series that are called not settled.
fn share(count: usize, deviation: f64, alike: f64, level: impl Fn(f64) -> f64 + Copy) -> f64 {
    let found = (0..2_000).filter(|&seed| not_settled(&series(count, deviation, alike, seed, level)));
    found.count() as f64 / 2_000.0
}

#[test]
fn what_is_steady_is_rarely_called_otherwise() {
    for (alike, most) in [(0.0, 0.005), (0.5, 0.04)] {
        for deviation in [0.01, 0.03, 0.1, 0.3] {
            let found = [10, 20, 30].map(|count| share(count, deviation, alike, |_| 1.0));
            println!("deviation {deviation}, correlation {alike}: {found:?} of 10, 20, 30 windows");
            assert!(found.iter().all(|&found| found <= most), "deviation {deviation}, correlation {alike}: {found:?}");
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
        for (name, found) in [
            ("fall", [10, 20, 30].map(|count| share(count, 0.02, alike, falling))),
            ("fill", [10, 20, 30].map(|count| share(count, 0.02, alike, slowing))),
            ("warm-up", [10, 20, 30].map(|count| share(count, 0.02, alike, warming))),
        ] {
            println!("{name}, correlation {alike}: {found:?} of 10, 20, 30 windows");
            let least = if alike == 0.0 { 0.85 } else { 0.65 };
            assert!(found.iter().all(|&found| found >= least), "{name}, correlation {alike}: {found:?}");
        }
    }
}

#[test]
fn a_small_drift_is_steady_however_certain() {
    let windows = series(30, 0.0001, 0.0, 1, |time| 1.0 + 0.08 * time);
    let Steadiness::Settled(trend) = steadiness(&windows, &RULE) else { panic!("not settled") };
    assert!((trend.drift - 0.08 / 1.04).abs() < 0.001 && trend.p_value < 1e-9, "{trend:?}");
}

/// Wherever it is, and however deep.
#[test]
fn one_window_that_is_off_is_no_drift() {
    for count in [10, 20, 30] {
        for (off, depth) in (0..count).flat_map(|off| [(off, 0.0), (off, 0.5), (off, 3.0)]) {
            let mut windows = series(count, 0.005, 0.0, 3, |_| 1.0);
            windows[off] *= depth;
            assert!(!not_settled(&windows), "window {off} of {count} at {depth}");
        }
    }
}

#[test]
fn the_line_is_that_of_least_squares() {
    let straight: Vec<f64> = (0..10).map(|index| 100.0 + f64::from(index)).collect();
    let trend = trend(&straight).unwrap();
    assert!((trend.drift - 10.0 / 104.5).abs() < 1e-12, "{trend:?}");
    assert_eq!(trend.p_value, 0.0);
    assert_eq!(super::trend(&[5.0; 10]).map(|trend| (trend.drift, trend.p_value)), Some((0.0, 1.0)));
}

#[test]
fn too_little_is_unknown() {
    assert_eq!(steadiness(&[1.0; 9], &RULE), Steadiness::Unknown);
    assert_eq!(steadiness(&[0.0; 20], &RULE), Steadiness::Unknown);
    assert_eq!(steadiness(&[], &RULE), Steadiness::Unknown);
    assert_eq!(settles_at(&[1.0; 9], &RULE), None);
    assert!(!has_settled(&[1.0; 9], &RULE));
}

#[test]
fn a_warm_up_ends_when_its_end_is_even() {
    let cold = |seconds: usize| series(seconds, 0.005, 0.0, 5, |time| 1.0 - 0.8 * (-time * seconds as f64 / 8.0).exp());
    assert!(!has_settled(&cold(12), &RULE));
    assert!(has_settled(&cold(40), &RULE));
    assert!(not_settled(&cold(30)));
    let from = settles_at(&cold(30), &RULE).unwrap();
    assert!((8..=20).contains(&from), "{from}");
    assert_eq!(settles_at(&[7.0; 20], &RULE), Some(0));
}

#[test]
fn windows_are_of_a_second_or_more_and_not_too_many() {
    let tenth = Duration::from_millis(100);
    assert_eq!(windows(tenth, &[5; 100]), vec![50.0; 10]);
    assert_eq!(windows(tenth, &[5; 109]), vec![50.0; 10]);
    assert_eq!(windows(tenth, &[5; 600]), vec![100.0; 30]);
    assert_eq!(windows(Duration::from_secs(1), &[5; 20]), vec![5.0; 20]);
    assert_eq!(windows(tenth, &[]), Vec::<f64>::new());
    assert_eq!(windows(Duration::ZERO, &[5; 100]), Vec::<f64>::new());
}

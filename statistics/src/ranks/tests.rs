use super::*;

const KNOWN: [(u64, u32, u64, u64); 8] = [
    (20, 500_000, 6, 15),
    (100, 500_000, 40, 61),
    (100, 900_000, 84, 96),
    (200, 950_000, 184, 197),
    (1_000, 990_000, 983, 997),
    (1_000, 500_000, 469, 532),
    (2_500, 990_000, 2_465, 2_485),
    (1_500, 900_000, 1_327, 1_373),
];

/// From exact integer arithmetic in Python.
#[test]
fn exact_intervals_are_those_of_whole_numbers() {
    for (count, millionths, low, high) in KNOWN {
        assert_eq!(interval(count, millionths), Some((low, high)), "{count} values, {millionths}");
    }
}

#[test]
fn a_quantile_and_its_mirror_image_have_mirrored_ranks() {
    for (count, millionths) in [(1_000, 900_000), (12_345, 990_000), (1_000_000, 750_000), (10_000_000, 999_900)] {
        let (low, high) = interval(count, millionths).unwrap();
        assert_eq!(interval(count, 1_000_000 - millionths), Some((count + 1 - high, count + 1 - low)));
    }
}

/// ln n!, by Stirling's series where it is exact to twelve digits.
fn ln_factorial(n: u64) -> f64 {
    if n < 32 {
        return (1..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64;
    x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

/// The probability that the source's quantile lies within the interval.
fn coverage(count: u64, millionths: u32) -> f64 {
    let (low, high) = interval(count, millionths).unwrap();
    let share = f64::from(millionths) / WHOLE;
    let probability = |k: u64| {
        let ways = ln_factorial(count) - ln_factorial(k) - ln_factorial(count - k);
        (ways + k as f64 * share.ln() + (count - k) as f64 * (1.0 - share).ln()).exp()
    };
    (low..high).map(probability).sum()
}

#[test]
fn intervals_hold_what_they_promise_and_are_no_wider_than_need_be() {
    for millionths in [500_000, 900_000, 950_000, 990_000, 999_000, 999_900] {
        // From the fewest requests for which a quantile is reported, across both ways to compute it.
        for beyond in [10, 13, 30, 100, 499, 501, 1_000, 20_000] {
            let count = beyond * 1_000_000 / u64::from(1_000_000 - millionths);
            let found = coverage(count, millionths);
            assert!((0.95..0.98).contains(&found), "{count} values, {millionths}: {found}");
        }
    }
}

#[test]
fn too_few_values_have_no_interval() {
    assert_eq!(interval(0, 500_000), None);
    assert_eq!(interval(5, 500_000), None);
    assert_eq!(interval(6, 500_000), Some((1, 6)));
    assert_eq!(interval(300, 990_000), None);
    assert_eq!(interval(1_000, 1_000_000), None);
    assert_eq!(interval(1_000, 0), None);
    let (low, high) = interval(u64::MAX, 999_900).unwrap();
    assert!(low < high);
}

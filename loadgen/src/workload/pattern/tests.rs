use redisbench_wire::plan::{HotKeys, HotTags, KeyPattern, Keys, Tags};

use super::*;
use crate::schedule::Seat;
use crate::workload::keys::KeySpace;
use crate::workload::rng::KEYS;

const GAUSSIAN: KeyPattern = KeyPattern::Gaussian { mean: 500, standard_deviation: 167 };

fn zipf(exponent: f64, hot_keys: HotKeys) -> KeyPattern {
    KeyPattern::Zipf { exponent_millionths: (exponent * 1e6).round() as u32, hot_keys }
}

fn hot_set(keys: u64, percent: u32, hot_keys: HotKeys) -> KeyPattern {
    KeyPattern::HotSet { keys, percent_millionths: percent * 1_000_000, hot_keys }
}

fn space(count: u64, pattern: KeyPattern, seed: u64) -> KeySpace {
    let keys = Keys { prefix: String::new(), start: 0, count, width: 0, pattern, tags: None };
    let stream = RandomStream::new(seed, KEYS);
    KeySpace::new(&keys, Pattern::of(&keys, 1, 1, seed).unwrap(), 1, stream).unwrap()
}

/// The requests of 3 shards with 2 workers each, some of which progress much further than others.
fn requests_of_all() -> impl Iterator<Item = u64> {
    let seats = (0..6).map(|seat| Seat { shard: seat % 3, shards: 3, worker: seat / 3, workers: 2 });
    seats.flat_map(|seat| {
        let rounds = 20_000 * (u64::from(seat.shard) + 1) * (u64::from(seat.worker) + 1);
        (0..rounds).map(move |round| seat.first() + round * seat.step())
    })
}

/// Compares the drawn keys with their probabilities: for the first requests, for later ones, and for all requests of a distributed
/// benchmark.
fn follows(count: u64, pattern: KeyPattern, probability: impl Fn(u64) -> f64) {
    let keys = space(count, pattern, 7);
    let weights: Vec<f64> = (0..count).map(probability).collect();
    let whole: f64 = weights.iter().sum();
    let runs: [Box<dyn Iterator<Item = u64>>; 3] =
        [Box::new(0..400_000), Box::new(1 << 50..(1 << 50) + 400_000), Box::new(requests_of_all())];
    for requests in runs {
        let mut counts = vec![0_u64; count as usize];
        let mut drawn = 0_u64;
        for k in requests {
            counts[keys.draw(k) as usize] += 1;
            drawn += 1;
        }
        // Keys with too few expected draws are merged with the next, because the test needs at least 5.
        let (mut chi_square, mut bins) = (0.0, 0);
        let (mut expected, mut found) = (0.0, 0);
        let mut left = drawn as f64;
        for (weight, count) in weights.iter().zip(&counts) {
            expected += weight / whole * drawn as f64;
            found += count;
            if expected >= 20.0 && left - expected >= 20.0 {
                chi_square += (found as f64 - expected).powi(2) / expected;
                (left, bins) = (left - expected, bins + 1);
                (expected, found) = (0.0, 0);
            }
        }
        if expected > 0.0 {
            chi_square += (found as f64 - expected).powi(2) / expected;
            bins += 1;
        }
        // The quantile 1 - 10^-5, by Wilson and Hilferty's approximation.
        let freedom = f64::from(bins - 1);
        let spread = 2.0 / (9.0 * freedom);
        let limit = freedom * (1.0 - spread + 4.265 * spread.sqrt()).powi(3);
        assert!(bins > 1 && chi_square < limit, "{pattern:?}: {chi_square} in {bins} bins, beyond {limit}");
    }
}

#[test]
fn uniform_follows_its_theory() {
    follows(300, KeyPattern::Uniform, |_| 1.0);
}

#[test]
fn zipf_follows_its_theory() {
    for exponent in [0.1, 0.5, 0.99, 1.0, 1.000_001, 1.2, 2.0, 5.0] {
        follows(2000, zipf(exponent, HotKeys::First), |key| ((key + 1) as f64).powf(-exponent));
    }
    follows(50_000, zipf(0.99, HotKeys::First), |key| ((key + 1) as f64).powf(-0.99));
    follows(3, zipf(1.0, HotKeys::First), |key| 1.0 / (key + 1) as f64);
}

#[test]
fn scattered_ranks_are_drawn_as_often() {
    let pattern = zipf(1.1, HotKeys::Scattered);
    let scatter = Scatter::new(1000, RandomStream::new(7, KEYS));
    let mut ranks = vec![0; 1000];
    (0..1000).for_each(|rank| ranks[scatter.index(rank) as usize] = rank);
    follows(1000, pattern, |key| ((ranks[key as usize] + 1) as f64).powf(-1.1));
    assert_ne!(space(1000, pattern, 7).draw(3), space(1000, zipf(1.1, HotKeys::First), 7).draw(3));
}

#[test]
fn hot_sets_follow_their_theory() {
    follows(1000, hot_set(200, 80, HotKeys::First), |key| if key < 200 { 0.8 / 200.0 } else { 0.2 / 800.0 });
    follows(1000, hot_set(1, 50, HotKeys::First), |key| if key == 0 { 0.5 } else { 0.5 / 999.0 });
    follows(500, hot_set(500, 10, HotKeys::First), |_| 1.0);
}

/// The cumulative standard normal distribution up to z, by Simpson's rule from far below.
fn normal(z: f64) -> f64 {
    let steps = 2000;
    let width = (z + 10.0) / f64::from(steps);
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let factor = |step| {
        if step == 0 || step == steps {
            1.0
        } else if step % 2 == 1 {
            4.0
        } else {
            2.0
        }
    };
    (0..=steps).map(|step| factor(step) * density(-10.0 + f64::from(step) * width)).sum::<f64>() * width / 3.0
}

#[test]
fn gaussian_follows_its_theory() {
    for (count, mean, standard_deviation) in [(1000, 500, 167), (100, 0, 100), (50, 49, 3), (200, 150, 60)] {
        let bound = |key: u64| normal((key as f64 - mean as f64 - 0.5) / standard_deviation as f64);
        follows(count, KeyPattern::Gaussian { mean, standard_deviation }, |key| bound(key + 1) - bound(key));
    }
}

#[test]
fn every_bound_is_held() {
    let counts = [1, 2, 3, 1000, 1 << 20, 1_000_000_000_000, u64::MAX];
    for count in counts {
        let exponents = [1, 10, 500_000, 999_999, 1_000_000, 1_000_001, 3_000_000, 99_999_999];
        let mut patterns: Vec<KeyPattern> = exponents
            .iter()
            .map(|millionths| KeyPattern::Zipf { exponent_millionths: *millionths, hot_keys: HotKeys::First })
            .collect();
        patterns.push(KeyPattern::Gaussian { mean: count - 1, standard_deviation: count });
        patterns.push(KeyPattern::Gaussian { mean: count / 2, standard_deviation: 1 });
        patterns.push(hot_set(count.div_ceil(3), 0, HotKeys::Scattered));
        patterns.push(hot_set(count.div_ceil(3), 100, HotKeys::Scattered));
        for pattern in patterns {
            let keys = space(count, pattern, 1);
            let mut ends = [u64::MAX, 0];
            for k in (0..2000).chain(u64::MAX - 10..u64::MAX) {
                let key = keys.draw(k);
                assert!(key < count, "{pattern:?} of {count} gives {key}");
                assert_eq!(key, keys.draw(k));
                ends = [ends[0].min(key), ends[1].max(key)];
            }
            // A pattern that gave the same key to all would also stay within the bounds.
            let steep = matches!(pattern, KeyPattern::Zipf { exponent_millionths: 3_000_001.., .. });
            let distinct = (4..=1_000_000_000_000).contains(&count);
            assert!(!distinct || steep || ends[0] < ends[1], "{pattern:?} of {count}: {ends:?}");
        }
    }
}

#[test]
fn hot_keys_lie_on_all_nodes_of_a_cluster() {
    for hot_keys in [HotKeys::Scattered, HotKeys::First] {
        let pattern = hot_set(1000, 90, hot_keys);
        let keys = Keys { prefix: "rb:".into(), start: 0, count: 1_000_000, width: 0, pattern, tags: None };
        let stream = RandomStream::new(1, KEYS);
        let space = KeySpace::new(&keys, Pattern::of(&keys, 1, 1, 1).unwrap(), 1, stream).unwrap();
        let mut nodes = [0_u32; 3];
        for k in 0..30_000 {
            let slot = usize::from(crate::cluster::slot_of(&space.key(space.draw(k))));
            nodes[slot * 3 / 16_384] += 1;
        }
        assert!(nodes.iter().all(|requests| (9_000..11_000).contains(requests)), "{hot_keys:?}: {nodes:?}");
    }
}

#[test]
fn impossible_patterns_are_refused() {
    let refused = [
        KeyPattern::Gaussian { mean: 100, standard_deviation: 1 },
        KeyPattern::Gaussian { mean: 1, standard_deviation: 0 },
        KeyPattern::Gaussian { mean: 1, standard_deviation: 101 },
        KeyPattern::Zipf { exponent_millionths: 0, hot_keys: HotKeys::First },
        KeyPattern::Zipf { exponent_millionths: 100_000_000, hot_keys: HotKeys::First },
        hot_set(0, 1, HotKeys::First),
        hot_set(101, 1, HotKeys::First),
        hot_set(1, 101, HotKeys::First),
    ];
    for pattern in refused {
        let keys = Keys { prefix: String::new(), start: 0, count: 100, width: 0, pattern, tags: None };
        let made = Pattern::of(&keys, 1, 1, 1);
        assert!(matches!(made, Err(WorkloadError::Pattern(_))), "{pattern:?}");
    }
    assert!(matches!(space(1000, GAUSSIAN, 1).draw(0), 0..1000));
}

#[test]
fn impossible_tags_are_refused() {
    let made = |count: u32, hot: Option<(u32, u32)>, pattern| {
        let hot = hot.map(|(count, percent)| HotTags { count, percent_millionths: percent * 1_000_000 });
        let tags = Some(Tags { count, hot });
        let keys = Keys { prefix: String::new(), start: 0, count: 100, width: 0, pattern, tags };
        Pattern::of(&keys, 1, 1, 1).map(drop)
    };
    let all = KeyPattern::Uniform;
    assert_eq!(made(20, Some((19, 100)), all), Ok(()));
    for (count, hot, pattern) in [
        (0, None, all),
        (3, None, all),
        (200, None, all),
        (20, Some((0, 50)), all),
        (20, Some((20, 50)), all),
        (20, Some((1, 101)), all),
        (20, None, KeyPattern::Partitioned),
        (20, None, KeyPattern::PerConnection { partitioned: false }),
        (20, None, hot_set(101, 1, HotKeys::First)),
    ] {
        let made = made(count, hot, pattern);
        assert!(matches!(made, Err(WorkloadError::Pattern(_))), "{count} {hot:?} {pattern:?}: {made:?}");
    }
}

#[test]
fn the_same_on_every_machine() {
    // To the last bit, in every version: every machine draws the same keys.
    let drawn = |pattern| (0..6).map(|k| space(1_000_000, pattern, 1).draw(k)).collect::<Vec<_>>();
    let patterns = [
        zipf(0.99, HotKeys::First),
        zipf(1.0, HotKeys::Scattered),
        KeyPattern::Gaussian { mean: 500_000, standard_deviation: 100_000 },
        hot_set(1000, 90, HotKeys::First),
    ];
    let expected = [
        [4, 159_317, 0, 109, 26, 5],
        [610_627, 727_704, 610_627, 761_465, 589_320, 82_759],
        [605_523, 389_978, 661_606, 538_234, 565_520, 601_536],
        [950, 20, 49_007, 972, 916, 314],
    ];
    assert_eq!(patterns.map(drawn).map(|keys| <[u64; 6]>::try_from(keys).unwrap()), expected);
}

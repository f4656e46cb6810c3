#![allow(clippy::float_cmp, reason = "what is the same computation is the same number")]

use super::*;
use crate::noise::Noise;
use crate::share;

/// The default question: throughput, plus `metrics`.
fn question(metrics: &[Direction]) -> Question<'_> {
    Question { metrics, primary: 0, confidence: Confidence::USUAL, minimum_effect: 0.02, seed: 0 }
}

const THROUGHPUT: [Direction; 1] = [Direction::HigherIsBetter];

/// Differences between trials, in logarithms: shares, as long as they are small.
#[derive(Clone, Copy)]
struct World {
    /// The standard deviation from trial to trial.
    deviation: f64,
    /// The correlation of neighbouring trials.
    alike: f64,
    /// The gain of each trial over the previous one.
    drift: f64,
    /// The loss of the first trial.
    cold: f64,
    /// The gain of every other subject over the baseline.
    effect: f64,
}

const PLAIN: World = World { deviation: 0.02, alike: 0.0, drift: 0.0, cold: 0.0, effect: 0.0 };

fn experiment(world: &World, subjects: usize, pairs: usize, seed: u64) -> Vec<Trial> {
    let mut noise = Noise::new(seed, world.alike);
    let places = order(subjects, pairs).into_iter().enumerate();
    places
        .map(|(step, place)| {
            let cold = if step == 0 { world.cold } else { 0.0 };
            let effect = if place.subject == 0 { 0.0 } else { world.effect };
            let log = world.deviation * noise.next() + world.drift * step as f64 - cold + effect;
            Trial { place, values: vec![Some(100_000.0 * log.exp())] }
        })
        .collect()
}

/// The share of experiments in which `is` holds for the last subject's outcome.
fn share(experiments: u32, world: &World, subjects: usize, pairs: usize, is: impl Fn(&Outcome) -> bool) -> f64 {
    let found = (0..experiments).filter(|&seed| {
        let trials = experiment(world, subjects, pairs, u64::from(seed));
        let comparisons = compare(&question(&THROUGHPUT), 0, &trials);
        is(&comparisons.last().unwrap().metrics[0].outcome)
    });
    found.count() as f64 / f64::from(experiments)
}

fn is_finding(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Faster | Outcome::Slower)
}

/// Disturbances of a machine, alone and combined.
const WORLDS: [(&str, World); 8] = [
    ("plain", PLAIN),
    ("alike", World { alike: 0.5, ..PLAIN }),
    ("drifting", World { drift: 0.01, ..PLAIN }),
    ("drifting slowly", World { drift: 0.003, ..PLAIN }),
    ("cold", World { cold: 0.1, ..PLAIN }),
    ("a little cold", World { cold: 0.03, ..PLAIN }),
    ("all", World { alike: 0.5, drift: 0.01, cold: 0.1, ..PLAIN }),
    ("all a little", World { alike: 0.5, drift: 0.003, cold: 0.03, ..PLAIN }),
];

/// With this number of experiments the remaining chance is a third of a per cent.
#[test]
fn a_subject_against_itself_is_rarely_a_finding() {
    for (name, world) in WORLDS {
        for (subjects, pairs) in [(2, 5), (2, 6), (2, 9), (3, 5), (4, 5)] {
            let found = share(5_000, &world, subjects, pairs, is_finding);
            println!("{name}, {subjects} subjects, {pairs} pairs: {found}");
            assert!(found <= 0.065, "{name}, {subjects} subjects, {pairs} pairs: {found}");
        }
    }
}

/// With a twentieth of the resamples: enough for an error of 5 %, and fast.
#[test]
fn nor_is_it_by_the_bootstrap() {
    let experiments = 8_000;
    for (name, world) in [WORLDS[0], WORLDS[1], WORLDS[5], WORLDS[7]] {
        for pairs in [BOOTSTRAP_FROM, 2 * BOOTSTRAP_FROM] {
            let found = (0..experiments).filter(|&seed| {
                let trials = experiment(&world, 2, pairs, seed);
                let ratio = |(one, other): (&Trial, &Trial)| log_ratio(one.values[0], other.values[0]).unwrap();
                let differences: Vec<_> = super::pairs(&trials, 0, 1).into_iter().map(ratio).collect();
                let evidence = Evidence::resampled(&differences, seed, 499).unwrap();
                !evidence.interval(Confidence::USUAL).contains(0.0)
            });
            let found = found.count() as f64 / experiments as f64;
            println!("{name}, {pairs} pairs: {found}");
            assert!(found <= 0.065, "{name}, {pairs} pairs: {found}");
        }
    }
}

/// The reason for mirrored blocks: without them, plain t errs more often than promised under lasting noise.
#[test]
fn blocks_that_are_all_alike_find_too_much() {
    let world = World { alike: 0.5, ..PLAIN };
    let experiments = 10_000;
    let found = (0..experiments).filter(|&seed| {
        let mut noise = Noise::new(seed, world.alike);
        let trials: Vec<_> = [0, 1, 1, 0, 0, 1, 1, 0, 0, 1]
            .into_iter()
            .enumerate()
            .map(|(step, subject)| {
                let values = vec![Some((world.deviation * noise.next()).exp())];
                Trial { place: Place { pass: step / 2, subject }, values }
            })
            .collect();
        is_finding(&compare(&question(&THROUGHPUT), 0, &trials)[0].metrics[0].outcome)
    });
    let found = found.count() as f64 / experiments as f64;
    println!("{found}");
    assert!(found > 0.062, "{found}");
}

#[test]
fn a_true_difference_is_found() {
    let world = World { effect: 0.05_f64.ln_1p(), ..PLAIN };
    let found = share(2_000, &world, 2, 5, |outcome| *outcome == Outcome::Faster);
    println!("{found}");
    assert!(found >= 0.78, "{found}");
    let world = World { effect: -0.05_f64.ln_1p(), ..PLAIN };
    let found = share(2_000, &world, 2, 5, |outcome| *outcome == Outcome::Slower);
    assert!(found >= 0.78, "{found}");
}

#[test]
fn no_difference_is_said_where_trials_repeat_well() {
    let world = World { deviation: 0.005, ..PLAIN };
    let found = share(2_000, &world, 2, 5, |outcome| *outcome == Outcome::NoDifference);
    println!("{found}");
    assert!(found >= 0.80, "{found}");
}

/// And rarely when the difference is twice the minimum effect.
#[test]
fn no_difference_is_not_said_of_one() {
    let world = World { deviation: 0.005, effect: 0.04_f64.ln_1p(), ..PLAIN };
    let wrong = share(2_000, &world, 2, 5, |outcome| *outcome == Outcome::NoDifference);
    assert!(wrong <= 0.001, "{wrong}");
}

/// A true effect of the detectable size is found in four of five experiments.
#[test]
fn what_could_have_been_shown_could() {
    let quiet = (0..2_000).filter_map(|seed| {
        let trials = experiment(&PLAIN, 2, 5, seed);
        match compare(&question(&THROUGHPUT), 0, &trials)[0].metrics[0].outcome {
            Outcome::Inconclusive { detectable } => detectable,
            _ => None,
        }
    });
    let mut named: Vec<f64> = quiet.collect();
    named.sort_unstable_by(f64::total_cmp);
    let typical = named[named.len() / 2];
    let world = World { effect: typical.ln_1p(), ..PLAIN };
    let found = share(2_000, &world, 2, 5, |outcome| *outcome == Outcome::Faster);
    println!("{typical}: {found}");
    assert!((0.7..0.9).contains(&found), "{typical}: {found}");
}

/// Ten metrics of a subject against itself: counts findings among the other nine.
#[test]
fn many_metrics_find_no_more_than_one() {
    let metrics = [Direction::LowerIsBetter; 10];
    let wrong = (0..2_000).filter(|&seed| {
        let mut noise = Noise::new(seed, 0.0);
        let value = |_: usize, noise: &mut Noise| Some((0.02 * noise.next()).exp());
        let trials: Vec<_> = order(2, 5)
            .into_iter()
            .map(|place| Trial { place, values: (0..10).map(|metric| value(metric, &mut noise)).collect() })
            .collect();
        let metrics = &compare(&question(&metrics), 0, &trials)[0].metrics;
        metrics[1..].iter().any(|metric| is_finding(&metric.outcome))
    });
    let wrong = wrong.count() as f64 / 2_000.0;
    println!("{wrong}");
    assert!(wrong <= 0.065, "{wrong}");
}

/// Of throughput, latencies and processor time: how much more each varies than the throughput.
const SPREADS: [f64; 6] = [1.0, 1.0, 1.0, 3.0, 5.0, 1.0];

/// Trials of a client against itself. A disturbance of a trial is in all of its metrics, and lasts into the next trials as `world` says.
fn client_against_itself(world: &World, seed: u64) -> Vec<Trial> {
    let mut shared = Noise::new(seed, world.alike);
    let mut own: Vec<_> = (1..=6).map(|metric| Noise::new(seed + (metric << 32), world.alike)).collect();
    let places = order(2, 5).into_iter().enumerate();
    places
        .map(|(step, place)| {
            let cold = if step == 0 { world.cold } else { 0.0 };
            let (disturbance, change) = (shared.next(), world.drift * step as f64 - cold);
            let value = |(own, spread): (&mut Noise, f64)| {
                // Each with a variance of 1 in all.
                let log = world.deviation * spread * (0.8 * disturbance + 0.6 * own.next()) + change;
                Some(100_000.0 * log.exp())
            };
            Trial { place, values: own.iter_mut().zip(SPREADS).map(value).collect() }
        })
        .collect()
}

/// The requested metric, and the others together. By the same exact interval as the comparisons of `make bench-aa`, only wider.
#[test]
fn the_metrics_of_a_client_against_itself_are_called_different_no_more_often_than_promised() {
    let metrics = [Direction::LowerIsBetter; 6];
    let experiments = 2_000;
    let most = share::most(experiments, 0.05, Confidence::of_basis_points(9_990).unwrap());
    for (name, world) in [WORLDS[0], WORLDS[1], WORLDS[7]] {
        let mut wrong = [0, 0];
        for seed in 0..experiments {
            let found = compare(&question(&metrics), 0, &client_against_itself(&world, seed)).remove(0).metrics;
            wrong[0] += u64::from(is_finding(&found[0].outcome));
            wrong[1] += u64::from(found[1..].iter().any(|metric| is_finding(&metric.outcome)));
        }
        println!("{name}: {wrong:?} of {experiments}");
        assert!(wrong.iter().all(|&wrong| wrong <= most), "{name}: {wrong:?} of {experiments}, at most {most}");
    }
}

fn trial(pass: usize, subject: usize, values: &[Option<f64>]) -> Trial {
    Trial { place: Place { pass, subject }, values: values.to_vec() }
}

/// Five pairs in which the candidate has these ratios to the baseline.
fn pairs_of(ratios: [f64; 5]) -> Vec<Trial> {
    let pair = |(pass, ratio): (usize, f64)| [trial(pass, 0, &[Some(10.0)]), trial(pass, 1, &[Some(10.0 * ratio)])];
    ratios.into_iter().enumerate().flat_map(pair).collect()
}

#[test]
fn faster_is_by_the_metrics_direction() {
    let more = pairs_of([1.10, 1.11, 1.09, 1.10, 1.12]);
    let less = pairs_of([0.90, 0.91, 0.89, 0.90, 0.92]);
    for (trials, direction, outcome) in [
        (&more, Direction::HigherIsBetter, Outcome::Faster),
        (&more, Direction::LowerIsBetter, Outcome::Slower),
        (&less, Direction::HigherIsBetter, Outcome::Slower),
        (&less, Direction::LowerIsBetter, Outcome::Faster),
    ] {
        assert_eq!(compare(&question(&[direction]), 0, trials)[0].metrics[0].outcome, outcome);
    }
}

#[test]
fn the_cold_block_stands_beside_the_others_and_counts() {
    let estimate = compare(&question(&THROUGHPUT), 0, &pairs_of([0.8, 0.8, 1.0, 1.0, 1.0]))[0].metrics[0];
    let near = |ours: Option<f64>, value: f64| (ours.unwrap() - value).abs() < 1e-12;
    assert!(near(estimate.cold, 0.8) && near(estimate.warm, 1.0), "{estimate:?}");
    assert!(near(estimate.ratio, 0.8_f64.powf(0.4)), "{estimate:?}");
}

#[test]
fn a_value_that_is_missing_is_not_left_out() {
    let mut trials = pairs_of([1.10, 1.11, 1.09, 1.10, 1.12]);
    trials[5].values[0] = None;
    let comparison = &compare(&question(&THROUGHPUT), 0, &trials)[0];
    let estimate = comparison.metrics[0];
    assert_eq!((comparison.pairs, estimate.ratio, estimate.interval), (5, None, None));
    assert_eq!(estimate.outcome, Outcome::Inconclusive { detectable: None });
    // Without one of its trials, the pair does not count.
    trials.remove(5);
    let comparison = &compare(&question(&THROUGHPUT), 0, &trials)[0];
    assert_eq!((comparison.pairs, comparison.metrics[0].outcome), (4, Outcome::Faster));
}

#[test]
fn nothing_can_be_said_of_one_pair_or_of_zeros() {
    let outcome = |trials: &[Trial]| compare(&question(&THROUGHPUT), 0, trials)[0].metrics[0].outcome;
    let unknown = Outcome::Inconclusive { detectable: None };
    assert_eq!(outcome(&pairs_of([1.5; 5])[..2]), unknown);
    let zero = |baseline: f64, candidate: f64| -> Vec<Trial> {
        (0..5).flat_map(|pass| [trial(pass, 0, &[Some(baseline)]), trial(pass, 1, &[Some(candidate)])]).collect()
    };
    assert_eq!(outcome(&zero(0.0, 0.0)), Outcome::NoDifference);
    assert_eq!(outcome(&zero(0.0, 1.0)), unknown);
    assert_eq!(outcome(&zero(1.0, 0.0)), unknown);
    assert_eq!(outcome(&zero(f64::INFINITY, 1.0)), unknown);
    assert_eq!(compare(&question(&THROUGHPUT), 0, &[]), vec![]);
}

#[test]
fn every_candidate_is_compared_with_the_baseline_that_is_named() {
    let trials: Vec<_> = order(3, 6)
        .into_iter()
        .map(|place| trial(place.pass, place.subject, &[Some([2.0, 1.0, 4.0][place.subject])]))
        .collect();
    let ratios = |baseline| -> Vec<_> {
        let comparisons = compare(&question(&THROUGHPUT), baseline, &trials);
        comparisons.iter().map(|one| (one.subject, one.metrics[0].ratio.unwrap().round())).collect()
    };
    assert_eq!(ratios(1), [(0, 2.0), (2, 4.0)]);
    assert_eq!(compare(&question(&THROUGHPUT), 0, &trials)[0].metrics[0].outcome, Outcome::Slower);
}

#[test]
fn trials_of_another_day_are_compared_without_pairs() {
    let day = |values: &[f64]| -> Vec<Vec<Option<f64>>> { values.iter().map(|&value| vec![Some(value)]).collect() };
    let before = day(&[100.0, 101.0, 99.0, 100.5]);
    let estimate = compare_apart(&question(&THROUGHPUT), &before, &day(&[120.0, 122.0, 119.0]))[0];
    assert_eq!((estimate.outcome, estimate.cold, estimate.warm), (Outcome::Faster, None, None));
    assert!((estimate.ratio.unwrap() - 1.2014).abs() < 1e-3, "{estimate:?}");
    let unknown = Outcome::Inconclusive { detectable: None };
    assert_eq!(compare_apart(&question(&THROUGHPUT), &before, &day(&[120.0]))[0].outcome, unknown);
    assert_eq!(compare_apart(&question(&THROUGHPUT), &before, &[])[0].outcome, unknown);
}

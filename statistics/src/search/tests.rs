#![allow(clippy::float_cmp, reason = "what is the same computation is the same number")]

use super::judge::tests::good;
use super::*;
use crate::noise::Noise;

const LIMITS: Limits = Limits { min: 1_000, max: 1_000_000, tolerance: 0.02, steps: MOST_STEPS };

/// Runs a search with these outcomes, and checks that it can be resumed at every step.
fn resumed<W>(limits: &Limits, mut judge: impl FnMut(u64) -> Judgement<W, W>) -> (Answer<W>, Vec<Step<W>>)
where
    W: Clone + PartialEq,
{
    let mut steps = Vec::new();
    loop {
        let rate = match next(limits, &steps) {
            Next::Done(answer) => return (answer, steps),
            Next::Step { rate } | Next::Confirm { rate, .. } => rate,
        };
        assert!((limits.min..=limits.max).contains(&rate), "{rate}");
        steps.push(Step { rate, judgement: judge(rate) });
    }
}

/// Runs a search against a target defined by `holds`.
fn search(limits: &Limits, mut holds: impl FnMut(u64) -> bool) -> (Answer<&'static str>, Vec<Step<&'static str>>) {
    resumed(limits, |rate| if holds(rate) { Judgement::Passed } else { Judgement::Failed("slow") })
}

#[test]
fn it_climbs_halves_confirms_and_doubts() {
    let (answer, steps) = search(&LIMITS, |rate| rate <= 10_000);
    let rates: Vec<_> = steps.iter().map(|step| step.rate).collect();
    assert_eq!(rates[..5], [1_000, 2_000, 4_000, 8_000, 16_000]);
    let good = answer.last_good.unwrap();
    let bad = answer.first_bad.unwrap();
    assert_eq!(rates[rates.len() - 4..], [good, good, good, bad.rate]);
    assert!(good <= 10_000 && 10_000 < bad.rate && (bad.rate as f64) <= good as f64 * 1.01, "{good} {}", bad.rate);
    assert_eq!((answer.ending, bad.times, bad.why, answer.contradicted), (Ending::Found, 2, "slow", 0));
    assert!(steps.len() <= 16, "{}", steps.len());
}

#[test]
fn the_bracket_closes_step_by_step() {
    let (answer, steps) = search(&LIMITS, |rate| rate <= 10_000);
    let bracket = |count: usize| {
        let (good, bad) = bracket(&LIMITS, &steps[..count]);
        (good, bad.map(|bad| bad.rate))
    };
    assert_eq!(bracket(0), (None, None));
    assert_eq!(bracket(3), (Some(4_000), None));
    assert_eq!(bracket(5), (Some(8_000), Some(16_000)));
    assert_eq!(bracket(steps.len()), (answer.last_good, answer.first_bad.map(|bad| bad.rate)));
    let widths: Vec<_> = (5..=steps.len()).map(bracket).map(|(good, bad)| bad.unwrap() - good.unwrap()).collect();
    assert!(widths.is_sorted_by(|before, after| before >= after), "{widths:?}");
}

#[test]
fn the_ends_of_the_limits_are_answers_too() {
    let (answer, steps) = search(&LIMITS, |_| true);
    assert_eq!((answer.ending, answer.last_good, answer.first_bad), (Ending::MaxPassed, Some(LIMITS.max), None));
    assert_eq!(steps.len(), 11 + 3);

    let (answer, steps) = search(&LIMITS, |_| false);
    assert_eq!((answer.ending, answer.last_good), (Ending::MinFailed, None));
    assert_eq!((answer.first_bad.unwrap().rate, steps.len()), (LIMITS.min, 2));

    let one = Limits { min: 7, max: 7, ..LIMITS };
    assert_eq!(search(&one, |_| true).0.ending, Ending::MaxPassed);
    assert_eq!(search(&one, |_| false).0.ending, Ending::MinFailed);
}

#[test]
fn small_rates_end_at_neighbours() {
    for capacity in 1..=40 {
        let limits = Limits { min: 1, max: 64, tolerance: 0.0001, steps: MOST_STEPS };
        let (answer, _) = search(&limits, |rate| rate <= capacity);
        assert_eq!((answer.ending, answer.last_good), (Ending::Found, Some(capacity)));
        assert_eq!(answer.first_bad.unwrap().rate, capacity + 1);
    }
}

#[test]
fn the_first_step_may_be_cold() {
    let mut count = 0;
    let (answer, _) = search(&LIMITS, |rate| {
        count += 1;
        count > 1 && rate <= 10_000
    });
    assert_eq!((answer.ending, answer.contradicted), (Ending::Found, 1));
    assert!((9_800..=10_000).contains(&answer.last_good.unwrap()));
}

/// Whichever step a neighbour disturbs, the answer stays within the tolerance.
#[test]
fn one_failure_by_chance_does_not_hide_the_capacity() {
    for spoiled in 0..20 {
        let mut count = 0;
        let (answer, _) = search(&LIMITS, |rate| {
            count += 1;
            count != spoiled + 1 && rate <= 100_000
        });
        let good = answer.last_good.unwrap();
        assert!(answer.ending == Ending::Found && (98_000..=100_000).contains(&good), "{spoiled}: {answer:?}");
    }
}

#[test]
fn a_candidate_that_is_not_confirmed_gives_way_to_lower_ones() {
    // Passes once at any rate below 10000, and in confirmations only below 9700.
    let mut confirming = false;
    let (answer, steps) = search(&LIMITS, |rate| {
        confirming |= rate < 10_000 && rate > 9_900;
        if confirming { rate < 9_700 } else { rate < 10_000 }
    });
    assert_eq!(answer.ending, Ending::Found, "{steps:?}");
    let good = answer.last_good.unwrap();
    assert!((9_600..9_700).contains(&good), "{good}");
    assert!(answer.first_bad.unwrap().rate > good);
}

#[test]
fn it_goes_down_five_times_at_most() {
    let mut seen = 0;
    let (answer, steps) = search(&LIMITS, |rate| {
        seen = seen.max(rate);
        // No confirmation passes after the climb.
        seen < 16_000
    });
    assert_eq!(answer.ending, Ending::NotConfirmed, "{steps:?}");
    let down = steps.iter().rev().take_while(|step| step.judgement == Judgement::Failed("slow")).count();
    assert!(down > MOST_DOWN as usize, "{steps:?}");
    // The last good rate is below all failures, and passed once.
    assert!(answer.last_good.is_some_and(|good| good < answer.first_bad.unwrap().rate));
}

#[test]
fn a_step_that_says_nothing_is_repeated_three_times() {
    let unusable = |rate| Step { rate, judgement: Judgement::Unusable("short") };
    let mut steps = vec![];
    for _ in 0..3 {
        steps.push(unusable(1_000));
        assert_eq!(next(&LIMITS, &steps), Next::Step { rate: 1_000 });
    }
    steps.push(unusable(1_000));
    let Next::Done(answer) = next(&LIMITS, &steps) else { panic!("goes on") };
    assert_eq!((answer.ending, answer.last_good), (Ending::Unusable("short"), None));
}

#[test]
fn another_searchs_record_is_refused() {
    let steps = [Step { rate: 1_234, judgement: Judgement::<(), ()>::Passed }];
    let Next::Done(answer) = next(&LIMITS, &steps) else { panic!("goes on") };
    assert_eq!(answer.ending, Ending::OtherSearch);
}

/// No target keeps a search beyond its bound, and the longest realistic search stays far below it.
#[test]
fn every_search_ends() {
    for seed in 0..3_000 {
        let mut noise = Noise::new(seed, 0.0);
        let share = noise.even();
        let limits = Limits { min: 1, max: u64::from(u32::MAX), tolerance: 0.001, steps: MOST_STEPS };
        let (answer, steps) = search(&limits, |_| noise.even() < share);
        assert!(steps.len() <= MOST_STEPS, "{answer:?}");
        if let (Some(good), Some(bad)) = (answer.last_good, &answer.first_bad) {
            assert!(good < bad.rate, "{answer:?}");
        }
    }
}

/// The behavior of a simulated target.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// Its capacity varies normally from trial to trial with this deviation; neighbouring trials correlate.
    Varies(f64, f64),
    /// One trial in this many fails at any rate.
    Spoiled(f64),
    /// p99 is S / (1 - rate / saturation), which reaches its limit of 20 S at the capacity; measured with this noise.
    Queue(f64),
    /// The first trials have less capacity.
    Cold(f64),
}

impl Target {
    fn holds(self, rate: u64, capacity: f64, trial: usize, noise: &mut Noise) -> bool {
        let load = rate as f64 / capacity;
        match self {
            Self::Varies(deviation, _) => load <= (deviation * noise.next()).exp(),
            Self::Spoiled(share) => noise.even() >= share && load <= (0.003 * noise.next()).exp(),
            Self::Queue(deviation) => {
                let free = 1.0 - 0.95 * load;
                free > 0.0 && (deviation * noise.next()).exp() / free <= 20.0
            }
            Self::Cold(lack) => {
                load <= (0.003 * noise.next()).exp() - lack * 0.5_f64.powi(i32::try_from(trial).unwrap())
            }
        }
    }
}

const TARGETS: [Target; 9] = [
    Target::Varies(0.0, 0.0),
    Target::Varies(0.002, 0.0),
    Target::Varies(0.005, 0.0),
    Target::Varies(0.005, 0.5),
    Target::Varies(0.0075, 0.0),
    Target::Spoiled(0.03),
    Target::Queue(0.05),
    Target::Queue(0.1),
    Target::Cold(0.3),
];

/// The errors of `searches` answers, as shares of the capacity. None where there was no answer.
fn errors(target: Target, searches: u64, limits: &Limits) -> (Vec<Option<f64>>, f64) {
    let mut steps_taken = 0;
    let errors = (0..searches)
        .map(|seed| {
            let correlation = if let Target::Varies(_, alike) = target { alike } else { 0.0 };
            let mut noise = Noise::new(seed, correlation);
            // Capacities are spread between the strides of the climb.
            let capacity = 20_000.0 * (1.0 + 7.0 * noise.even());
            let mut trial = 0;
            let (answer, steps) = search(limits, |rate| {
                trial += 1;
                target.holds(rate, capacity, trial - 1, &mut noise)
            });
            steps_taken += steps.len();
            let rate = answer.last_good.filter(|_| answer.ending == Ending::Found)?;
            Some(rate as f64 / capacity - 1.0)
        })
        .collect();
    (errors, steps_taken as f64 / searches as f64)
}

fn within(errors: &[Option<f64>], tolerance: f64) -> usize {
    errors.iter().filter(|error| error.is_some_and(|error| error.abs() <= tolerance)).count()
}

fn median(errors: &[Option<f64>]) -> f64 {
    crate::summary::median(&errors.iter().copied().flatten().collect::<Vec<_>>())
}

#[test]
fn of_twenty_searches_nineteen_end_within_the_tolerance() {
    for target in TARGETS {
        let searches = 2_000;
        let (errors, steps) = errors(target, searches, &LIMITS);
        let within = within(&errors, LIMITS.tolerance) as f64 / searches as f64;
        let median = median(&errors);
        println!("{target:?}: {:.1} % within, median {:.2} %, {steps:.1} steps", 100.0 * within, 100.0 * median);
        assert!(within >= 0.95, "{target:?}: {within}");
        assert!(median.abs() < LIMITS.tolerance / 2.0, "{target:?}: {median}");
    }
}

/// With random arrivals, the number of requests due in a step is a Poisson variable.
#[test]
fn random_arrivals_leave_enough_requests_for_the_quantile() {
    for (quantile, needed) in [(0.95, 2_000.0), (0.99, 10_000.0), (0.999, 100_000.0)] {
        let objective = Objective::Quantile { quantile, max_nanoseconds: 1_000_000 };
        let limits = Limits { min: 10, max: 1_000, tolerance: 0.02, steps: MOST_STEPS };
        let ended = |seed| {
            let mut noise = Noise::new(seed, 0.0);
            let (answer, _) = resumed(&limits, |rate| {
                let measured = shortest(rate, true, &objective);
                let mean = rate as f64 * measured.as_secs_f64();
                assert!(mean < needed * 1.1 || measured == SHORTEST, "{mean} for {needed}");
                let step = StepMeasurement {
                    measured,
                    scheduled: count(mean + mean.sqrt() * noise.normal()),
                    scheduled_per_second: rate as f64,
                    achieved_per_second: rate as f64,
                    poisson: true,
                    quantile: Some(Observed::Nanoseconds(if rate > 100 { 2_000_000 } else { 500_000 })),
                    ..good()
                };
                match judge(rate, &objective, &step) {
                    Judgement::Passed => Judgement::Passed,
                    Judgement::Failed(_) => Judgement::Failed(()),
                    Judgement::Unusable(_) => Judgement::Unusable(()),
                }
            });
            answer.ending
        };
        let found = (0..1_000).filter(|seed| ended(*seed) == Ending::Found).count();
        println!("p{}: {found} of 1000 searches", 100.0 * quantile);
        assert!(found >= 999, "{found}");
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of requests")]
fn count(requests: f64) -> u64 {
    requests.round() as u64
}

#[test]
fn a_search_whose_steps_are_no_chance_takes_the_usual_number_at_most() {
    for (max, tolerance) in [(1_000, 0.02), (64_000, 0.02), (1_000_000, 0.05), (u64::from(u32::MAX), 0.2)] {
        let limits = Limits { min: 1_000, max, tolerance, steps: MOST_STEPS };
        for capacity in (1_000..max.min(200_000)).step_by(997) {
            let mut steps: Vec<Step<()>> = Vec::new();
            while let Next::Step { rate } | Next::Confirm { rate, .. } = next(&limits, &steps) {
                let judgement = if rate <= capacity { Judgement::Passed } else { Judgement::Failed(()) };
                steps.push(Step { rate, judgement });
            }
            assert!(steps.len() <= limits.usual_steps(), "{limits:?}, {capacity}: {} steps", steps.len());
        }
    }
}

#[test]
fn a_search_ends_without_an_answer_after_the_most_steps() {
    let limits = Limits { steps: 3, ..LIMITS };
    let passed = |rate| Step { rate, judgement: Judgement::<(), ()>::Passed };
    let steps = [passed(1_000), passed(2_000), passed(4_000)];
    assert_eq!(next(&limits, &steps[..2]), Next::Step { rate: 4_000 });
    let Next::Done(answer) = next(&limits, &steps) else { panic!("it goes on") };
    assert_eq!((answer.ending, answer.last_good), (Ending::TooLong, Some(4_000)));
}

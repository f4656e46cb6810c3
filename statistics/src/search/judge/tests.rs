#![allow(clippy::float_cmp, reason = "what is the same computation is the same number")]

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const RATE: u64 = 10_000;
const P99: Objective = Objective::Quantile { quantile: 0.99, max_nanoseconds: 2_000_000 };
const ERRORS: Objective = Objective::ErrorRate { max: 0.02 };

pub(crate) fn good() -> StepMeasurement {
    StepMeasurement {
        in_flight_before: 0,
        discarded: 2 * SECOND,
        measured: 10 * SECOND,
        scheduled: 100_000,
        failed: 0,
        scheduled_per_second: 10_000.0,
        achieved_per_second: 10_000.0,
        quantile: Some(Observed::Nanoseconds(2_000_000)),
        poisson: false,
        backlog_growth: None,
    }
}

fn judged(objective: &Objective, change: impl Fn(&mut StepMeasurement)) -> Judgement {
    let mut step = good();
    change(&mut step);
    judge(RATE, objective, &step)
}

#[test]
fn what_holds_passes() {
    for objective in [P99, ERRORS, Objective::Achieved { min: 0.999 }] {
        assert_eq!(judged(&objective, |_| ()), Judgement::Passed);
    }
}

#[test]
fn the_objective_is_what_it_says() {
    let latency = |observed| Judgement::Failed(Failure::Latency { observed, max_nanoseconds: 2_000_000 });
    let slow = Observed::Nanoseconds(2_000_001);
    assert_eq!(judged(&P99, |step| step.quantile = Some(slow)), latency(slow));
    assert_eq!(judged(&P99, |step| step.quantile = Some(Observed::Beyond)), latency(Observed::Beyond));
    assert_eq!(judged(&ERRORS, |step| step.failed = 2_000), Judgement::Passed);
    let failed = Judgement::Failed(Failure::Errors { share: 0.020_01, max: 0.02 });
    assert_eq!(judged(&ERRORS, |step| step.failed = 2_001), failed);
}

#[test]
fn a_rate_must_be_achieved_whatever_the_objective() {
    let behind = |achieved, min| Judgement::Failed(Failure::Behind { achieved, min });
    assert_eq!(judged(&P99, |step| step.achieved_per_second = 9_900.0), Judgement::Passed);
    assert_eq!(judged(&P99, |step| step.achieved_per_second = 9_890.0), behind(0.989, 0.99));
    let strict = Objective::Achieved { min: 0.999 };
    assert_eq!(judged(&strict, |step| step.achieved_per_second = 9_980.0), behind(0.998, 0.999));
    let loose = Objective::Achieved { min: 0.5 };
    assert_eq!(judged(&loose, |step| step.achieved_per_second = 9_890.0), behind(0.989, 0.99));
    // Allowed errors do not count as achieved, but everything else must. The target misses the rate here, not the error limit.
    let with_errors = |achieved: f64, failed: u64| {
        judged(&ERRORS, |step| (step.achieved_per_second, step.failed) = (achieved, failed))
    };
    assert_eq!(with_errors(9_810.0, 1_900), Judgement::Passed);
    assert_eq!(with_errors(9_810.0, 0), behind(0.981, 0.99));
    let nothing = |step: &mut StepMeasurement| (step.scheduled_per_second, step.achieved_per_second) = (0.0, 0.0);
    assert!(matches!(judged(&P99, nothing), Judgement::Failed(Failure::Behind { .. })));
}

#[test]
fn a_backlog_must_not_grow() {
    let grows = judged(&P99, |step| step.backlog_growth = Some(50.0));
    assert_eq!(grows, Judgement::Failed(Failure::Backlog { per_second: 50.0 }));
}

#[test]
fn what_was_not_measured_as_it_must_is_not_judged() {
    let unusable = |change: fn(&mut StepMeasurement)| match judged(&P99, change) {
        Judgement::Unusable(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(unusable(|step| step.in_flight_before = 3), Unusable::NotDrained(3));
    assert_eq!(unusable(|step| step.discarded = SECOND), Unusable::DiscardedTooShort(SECOND));
    assert_eq!(unusable(|step| step.measured = 9 * SECOND), Unusable::TooShort(10 * SECOND));
    assert_eq!(unusable(|step| step.scheduled = 9_000), Unusable::TooFew(9_000));
    assert_eq!(unusable(|step| step.quantile = None), Unusable::NoQuantile);
    // A common window is a little shorter than the measurement.
    assert_eq!(judged(&P99, |step| step.measured = Duration::from_millis(9_950)), Judgement::Passed);
}

fn even(rate: u64, objective: &Objective) -> Duration {
    shortest(rate, false, objective)
}

#[test]
fn a_far_quantile_and_a_low_rate_take_longer() {
    let quantile = |quantile| Objective::Quantile { quantile, max_nanoseconds: 1 };
    assert_eq!(even(1_000_000, &quantile(0.99)), 10 * SECOND);
    assert_eq!(even(1_000, &quantile(0.99)), 10 * SECOND);
    assert_eq!(even(100, &quantile(0.99)), 100 * SECOND);
    assert_eq!(even(10_000, &quantile(0.9999)), 100 * SECOND);
    assert_eq!(even(1, &ERRORS), 10 * SECOND);
    assert_eq!(even(0, &quantile(1.0)), Duration::MAX);
    // 10,408 on the mean: four standard deviations below it are 10,000.
    let poisson = shortest(100, true, &quantile(0.99)).as_secs_f64();
    assert!((poisson - 104.08).abs() < 0.01, "{poisson}");
    assert_eq!(shortest(1, true, &ERRORS), 10 * SECOND);
    assert_eq!(shortest(1, true, &quantile(1.0)), Duration::MAX);
    let never = judge(1, &quantile(1.0), &good());
    assert_eq!(never, Judgement::Unusable(Unusable::TooShort(Duration::MAX)));
}

#![allow(clippy::float_cmp, reason = "what is the same computation is the same number")]

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const RATE: u64 = 10_000;
const P99: Objective = Objective::Quantile { quantile: 0.99, max_nanoseconds: 2_000_000 };
const ERRORS: Objective = Objective::ErrorRate { max: 0.02 };

fn good() -> Measured {
    Measured {
        in_flight_before: 0,
        discarded: 2 * SECOND,
        measured: 10 * SECOND,
        scheduled: 100_000,
        failed: 0,
        scheduled_per_second: 10_000.0,
        achieved_per_second: 10_000.0,
        quantile: Some(Observed::Nanoseconds(2_000_000)),
        backlog: vec![3.0; 10],
    }
}

fn judged(objective: &Objective, change: impl Fn(&mut Measured)) -> Judgement {
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
    // Errors that are allowed are not among the achieved. What did not fail must be: it is the rate that is missed, not the
    // errors that there may be.
    let with_errors = |achieved: f64, failed: u64| {
        judged(&ERRORS, |step| (step.achieved_per_second, step.failed) = (achieved, failed))
    };
    assert_eq!(with_errors(9_810.0, 1_900), Judgement::Passed);
    assert_eq!(with_errors(9_810.0, 0), behind(0.981, 0.99));
    let nothing = |step: &mut Measured| (step.scheduled_per_second, step.achieved_per_second) = (0.0, 0.0);
    assert!(matches!(judged(&P99, nothing), Judgement::Failed(Failure::Behind { .. })));
}

#[test]
fn a_backlog_must_not_grow() {
    let completed = |per_second: u64| vec![per_second; 10];
    let grows = |per_second| judged(&P99, |step| step.backlog = backlog(10_000.0, SECOND, &completed(per_second)));
    assert_eq!(grows(10_000), Judgement::Passed);
    assert_eq!(grows(9_960), Judgement::Passed);
    let Judgement::Failed(Failure::Backlog { per_second }) = grows(9_930) else { panic!("{:?}", grows(9_930)) };
    assert!((per_second - 70.0).abs() < 10.0, "{per_second}");
    // High, but not growing; and shrinking.
    assert_eq!(judged(&P99, |step| step.backlog = vec![5_000.0; 10]), Judgement::Passed);
    assert_eq!(grows(10_400), Judgement::Passed);
    // What a queue does by itself at a low rate.
    let few = |step: &mut Measured| step.backlog = vec![0.0, 0.0, 0.0, 0.0, 9.0, 20.0, 30.0, 31.0];
    assert_eq!(judged(&P99, few), Judgement::Passed);
    assert_eq!(judged(&P99, |step| step.backlog = vec![0.0, 1e9]), Judgement::Passed);
}

#[test]
fn what_was_not_measured_as_it_must_is_not_judged() {
    let unusable = |change: fn(&mut Measured)| match judged(&P99, change) {
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

#[test]
fn a_far_quantile_and_a_low_rate_take_longer() {
    let quantile = |quantile| Objective::Quantile { quantile, max_nanoseconds: 1 };
    assert_eq!(shortest(1_000_000, &quantile(0.99)), 10 * SECOND);
    assert_eq!(shortest(1_000, &quantile(0.99)), 10 * SECOND);
    assert_eq!(shortest(100, &quantile(0.99)), 100 * SECOND);
    assert_eq!(shortest(10_000, &quantile(0.9999)), 100 * SECOND);
    assert_eq!(shortest(1, &ERRORS), 10 * SECOND);
    assert_eq!(shortest(0, &quantile(1.0)), Duration::MAX);
    let never = judge(1, &quantile(1.0), &good());
    assert_eq!(never, Judgement::Unusable(Unusable::TooShort(Duration::MAX)));
}

use proptest::prelude::*;

use super::*;
use crate::limits::{OPEN_LOOP_NANOSECONDS, RATE_PER_SECOND};
use crate::plan::{Arrival, Operation, OperationRate};

const SECOND: u64 = 1_000_000_000;

fn stage(nanoseconds: u64, from_per_second: u64, to_per_second: u64) -> RateStage {
    RateStage { nanoseconds, from_per_second, to_per_second }
}

#[test]
fn a_constant_rate_divides() {
    let rate = CumulativeRate::new(3, 5 * SECOND, &[]);
    assert_eq!(rate.constant(), Some(3));
    assert_eq!(rate.due(0), 0);
    assert_eq!(rate.due(1), SECOND / 3);
    assert_eq!(rate.due(3_000_000), 1_000_000 * SECOND);
    assert_eq!(rate.count_before(SECOND), 3);
    assert_eq!(rate.count_before(SECOND + 1), 4);
    assert_eq!(rate.mean_per_second(7, 7 + SECOND), 3);
}

#[test]
fn a_ramp_is_a_parabola() {
    // 10 s from 100/s to 300/s after 1 s of warm-up: 100 requests, then 100 t + 10 t^2 after t seconds of the ramp.
    let rate = CumulativeRate::new(100, SECOND, &[stage(10 * SECOND, 100, 300)]);
    assert_eq!(rate.constant(), None);
    assert_eq!(rate.due(100), SECOND);
    assert_eq!(rate.due(100 + 110), 2 * SECOND);
    assert_eq!(rate.due(100 + 750), 6 * SECOND);
    assert_eq!(rate.due(100 + 2000), 11 * SECOND);
    // The last rate continues without end.
    assert_eq!(rate.due(100 + 2000 + 300), 12 * SECOND);
    assert_eq!(rate.count_before(11 * SECOND), 2100);
    assert_eq!(rate.mean_per_second(SECOND, 11 * SECOND), 200);
    assert_eq!(rate.mean_per_second(0, SECOND), 100);
    assert_eq!(rate.mean_per_second(6 * SECOND, 11 * SECOND), 250);
}

#[test]
fn down_to_almost_nothing_and_over_the_whole_of_what_is_allowed() {
    let down = CumulativeRate::new(1, 0, &[stage(OPEN_LOOP_NANOSECONDS, RATE_PER_SECOND, 1)]);
    let up = CumulativeRate::new(1, 0, &[stage(OPEN_LOOP_NANOSECONDS, 1, RATE_PER_SECOND)]);
    for rate in [down, up] {
        let all = rate.count_before(OPEN_LOOP_NANOSECONDS);
        assert_eq!(all, (RATE_PER_SECOND + 1) * (OPEN_LOOP_NANOSECONDS / SECOND) / 2);
        assert!(rate.due(all - 1) < OPEN_LOOP_NANOSECONDS && rate.due(all) >= OPEN_LOOP_NANOSECONDS);
        for k in [0, 1, all / 3, all / 2, all - 2] {
            assert_eq!(rate.count_before(rate.due(k) + 1).max(k + 1), rate.count_before(rate.due(k) + 1));
            assert!(rate.count_before(rate.due(k)) <= k);
        }
    }
}

#[test]
fn rates_of_operations_come_on_top_of_the_mix() {
    let mut plan = TrialPlan::basic("redis:6379");
    assert_eq!((CumulativeRate::of(&plan), CumulativeRate::each(&plan)), (None, Vec::new()), "a closed loop");
    let load = |rate_per_second, stages| Load::OpenLoop {
        rate_per_second,
        stages,
        arrival: Arrival::Constant,
        pacing_grid_nanoseconds: 0,
        unsent_after_nanoseconds: 1,
    };
    plan.warmup_nanoseconds = SECOND;
    plan.load = load(100, vec![stage(10 * SECOND, 100, 300)]);
    let mix = CumulativeRate::of(&plan).unwrap();
    assert_eq!((CumulativeRate::each(&plan), plan.streams()), (vec![mix.clone()], 1));
    plan.workload_mut().operations.push(Operation::of("scan", 1, "SCAN 0"));
    plan.workload_mut().options.rates = vec![OperationRate { operation: 1, per_second: 50 }];
    plan.workload_mut().options.mixes = vec![vec![1, 0]];
    let all = CumulativeRate::of(&plan).unwrap();
    assert_eq!((all.mean_per_second(0, SECOND), all.mean_per_second(SECOND, 11 * SECOND)), (150, 250));
    let constant = CumulativeRate::new(50, 0, &[]);
    assert_eq!(CumulativeRate::each(&plan), [mix, constant.clone()], "the mix keeps its due times");
    assert_eq!((plan.streams(), plan.mix_streams(), plan.workload.weights()), (2, 1, vec![1, 0]));
    // Without a mix.
    plan.workload_mut().operations.remove(0);
    plan.workload_mut().options.rates[0].operation = 0;
    plan.workload_mut().options.mixes.clear();
    plan.load = load(0, Vec::new());
    assert_eq!((CumulativeRate::of_mix(&plan), CumulativeRate::each(&plan)), (None, vec![constant]));
    assert_eq!((plan.streams(), plan.mix_streams(), CumulativeRate::of(&plan).unwrap().constant()), (1, 0, Some(50)));
}

#[test]
fn what_no_plan_may_ask_for_does_not_panic() {
    let beyond = stage(u64::MAX, u64::MAX, 1);
    let rate = CumulativeRate::new(u64::MAX, u64::MAX, &[beyond, stage(0, 0, 0), beyond]);
    for number in [0, 1, 1 << 40, u64::MAX] {
        let _ = (rate.due(number), rate.count_before(number), rate.mean_per_second(number, u64::MAX));
    }
}

fn any_rate() -> impl Strategy<Value = u64> {
    prop_oneof![1_u64..100, 1_u64..5_000_000, Just(1), Just(RATE_PER_SECOND)]
}

prop_compose! {
    fn any_stages()(
        stages in prop::collection::vec((1_u64..100 * SECOND, any_rate(), any_rate()), 1..5),
    ) -> Vec<RateStage> {
        stages.into_iter().map(|(length, from, to)| stage(length, from, to)).collect()
    }
}

proptest! {
    // A due time t of k is right if and only if k parts are at least L(t) and fewer than L(t + 1). This evaluates the formula directly,
    // without its inverse.
    #[test]
    fn the_inverse_is_exact(
        first in any_rate(), warmup in 0_u64..10 * SECOND, stages in any_stages(), part in 0_u64..=1000,
    ) {
        let rate = CumulativeRate::new(first, warmup, &stages);
        let end = warmup + stages.iter().map(|stage| stage.nanoseconds).sum::<u64>();
        let k = u64::try_from(u128::from(rate.count_before(end + SECOND)) * u128::from(part) / 1000).unwrap();
        let due = rate.due(k);
        prop_assert!(rate.count_before(due) <= k, "{k} is due at {due}, not before");
        prop_assert!(rate.count_before(due + 1) > k, "{k} is due at {due}, not after");
        prop_assert!(rate.due(k + 1) >= due);
    }

    #[test]
    fn the_counts_are_those_of_the_definition(warmup in 0_u64..SECOND, from in 1_u64..900, to in 1_u64..900) {
        let length = 3 * SECOND;
        let rate = CumulativeRate::new(from, warmup, &[stage(length, from, to)]);
        let sum = |end: u64| {
            let (warm, ramp) = (end.min(warmup) as f64 / 1e9, end.saturating_sub(warmup) as f64 / 1e9);
            from as f64 * (warm + ramp) + (to as f64 - from as f64) * ramp * ramp / 6.0
        };
        for end in [warmup / 2, warmup, warmup + length / 3, warmup + length] {
            let (count, wanted) = (rate.count_before(end) as f64, sum(end));
            prop_assert!((wanted - 0.001..wanted + 1.001).contains(&count), "{count}, not {wanted}");
        }
    }

    #[test]
    fn a_level_stage_is_a_constant_rate(per_second in any_rate(), warmup in 0_u64..SECOND, k in 0_u64..1 << 40) {
        let stages = [stage(SECOND, per_second, per_second); 2];
        let (level, constant) =
            (CumulativeRate::new(per_second, warmup, &stages), CumulativeRate::new(per_second, 0, &[]));
        prop_assert_eq!(level.due(k), constant.due(k));
        prop_assert_eq!(level.count_before(k), constant.count_before(k));
    }

    #[test]
    fn between_two_requests_is_between_their_times(stages in any_stages(), k in 0_u64..1_000_000, fraction in 0_u64..1 << 40) {
        let rate = CumulativeRate::new(7, 0, &stages);
        let between = rate.inverse((u128::from(k) << FRACTION_BITS) + u128::from(fraction));
        prop_assert!((rate.due(k)..=rate.due(k + 1)).contains(&between));
    }
}

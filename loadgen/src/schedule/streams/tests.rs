use proptest::prelude::*;
use redisbench_wire::plan::{Operation, OperationRate, RateStage};

use super::*;
use crate::open_loop::OpenLoop;
use crate::schedule::{Schedule, Seat};
use crate::workload::Workload;

const SECOND: u64 = 1_000_000_000;

const ALONE: Seat = Seat { shard: 0, shards: 1, worker: 0, workers: 1 };

fn stage(milliseconds: u64, from_per_second: u64, to_per_second: u64) -> RateStage {
    RateStage { nanoseconds: milliseconds * 1_000_000, from_per_second, to_per_second }
}

/// As many operations as `rates` has entries, those with a rate beside the mix.
fn plan(rates: &[Option<u64>], load: Load) -> TrialPlan {
    let mut plan = TrialPlan { load, warmup_nanoseconds: SECOND, ..TrialPlan::basic("redis:6379") };
    let operation = |index: usize| Operation::of(&format!("o{index}"), 1, "GET __key__");
    plan.workload_mut().operations = (0..rates.len()).map(operation).collect();
    let own = (0..).zip(rates).filter_map(|(operation, rate)| Some(OperationRate { operation, per_second: (*rate)? }));
    plan.workload_mut().options.rates = own.collect();
    plan
}

fn seats(shards: u32, workers: u32) -> impl Iterator<Item = Seat> {
    (0..shards).flat_map(move |shard| (0..workers).map(move |worker| Seat { shard, shards, worker, workers }))
}

/// The slots of a seat that are due before `end`, in their order.
fn slots(plan: &TrialPlan, seat: Seat, end: u64) -> Vec<Slot> {
    let mut schedule = Schedule::of(plan, seat, 0).unwrap();
    assert_eq!(schedule.due_before(0), 0);
    let expected = schedule.due_before(end);
    let mut slots = Vec::new();
    while schedule.peek().due < end {
        slots.push(schedule.peek());
        schedule.advance();
    }
    assert_eq!(slots.len() as u64, expected, "counting is walking");
    assert!(slots.is_sorted_by_key(|slot| slot.due));
    slots
}

/// Requests of each operation in each second until `seconds`, over `shards` shards of two workers.
fn counts(plan: &TrialPlan, shards: u32, seconds: u64) -> Vec<Vec<u64>> {
    let workload = Workload::of_trial(plan).unwrap();
    let mut counts = vec![vec![0; plan.workload.operations.len()]; usize::try_from(seconds).unwrap()];
    for Slot { k, due } in seats(shards, 2).flat_map(|seat| slots(plan, seat, seconds * SECOND)) {
        counts[usize::try_from(due / SECOND).unwrap()][usize::from(workload.operation(k))] += 1;
    }
    counts
}

#[test]
fn each_operation_has_its_exact_rate_beneath_a_ramp() {
    let stages = vec![stage(2_000, 100, 300), stage(1_000, 300, 300)];
    let plan = plan(&[Some(10_000), None, Some(1)], OpenLoop { stages, ..OpenLoop::at(100) }.load());
    let expected = [[10_000, 100, 1], [10_000, 150, 1], [10_000, 250, 1], [10_000, 300, 1]];
    assert_eq!(counts(&plan, 1, 4), expected);
    assert_eq!(counts(&plan, 3, 4), expected, "over any number of shards");
}

#[test]
fn tenants_without_a_mix_have_their_rates() {
    let plan = plan(&[Some(10_000), Some(500)], OpenLoop::at(0).load());
    assert_eq!(counts(&plan, 4, 2), [[10_000, 500]; 2]);
}

#[test]
fn each_phase_has_its_own_mix_until_its_end() {
    let stages = vec![stage(1_000, 2_000, 2_000), stage(1_000, 2_000, 4_000), stage(1_000, 4_000, 4_000)];
    for arrival in [Arrival::Constant, Arrival::Poisson] {
        let load = OpenLoop { stages: stages.clone(), arrival, ..OpenLoop::at(2_000) }.load();
        let mut plan = plan(&[None, None, Some(10)], load);
        plan.workload_mut().options.mixes = vec![vec![0, 1, 0], vec![19, 1, 0], vec![1, 0, 0]];
        let found = counts(&plan, 3, 5);
        for (second, of_mix) in [(0, [false, true]), (1, [false, true]), (2, [true, true]), (3, [true, false])] {
            let some = [found[second][0] > 0, found[second][1] > 0];
            assert_eq!(some, of_mix, "{arrival:?}, second {second}: {found:?}");
        }
        assert_eq!((found[4][0] > 0, found[4][1]), (true, 0), "the last phase goes on: {found:?}");
        // 5 % of 3,000 requests, within 6 standard deviations.
        assert!((78..222).contains(&found[2][1]), "{arrival:?}: {found:?}");
        if arrival == Arrival::Constant {
            assert_eq!((found[0][1], found[2][0] + found[2][1], found[3][0], found[3][2]), (2_000, 3_000, 4_000, 10));
        }
    }
}

#[test]
fn rates_change_neither_times_nor_operations_of_the_mix() {
    for arrival in [Arrival::Constant, Arrival::Poisson] {
        let load = || OpenLoop { arrival, ..OpenLoop::at(1_000) }.load();
        let (alone, more) = (plan(&[None, None], load()), plan(&[None, None, Some(700), Some(900)], load()));
        let of = |plan: &TrialPlan, is_mix: fn(u16) -> bool| {
            let workload = Workload::of_trial(plan).unwrap();
            let all = slots(plan, ALONE, 3 * SECOND).into_iter();
            let drawn = all.map(|slot| (slot.due, workload.operation(slot.k)));
            drawn.filter(|(_, operation)| is_mix(*operation)).collect::<Vec<_>>()
        };
        assert_eq!(of(&more, |operation| operation < 2), of(&alone, |_| true), "{arrival:?}");
    }
}

#[test]
fn each_operation_has_random_gaps_of_its_own() {
    let plan = plan(&[Some(1_000), Some(1_000)], OpenLoop { arrival: Arrival::Poisson, ..OpenLoop::at(0) }.load());
    let times = |stream: u64| {
        let all = slots(&plan, ALONE, SECOND).into_iter();
        all.filter(|slot| slot.k % 2 == stream).map(|slot| slot.due).collect::<Vec<_>>()
    };
    let (one, other) = (times(0), times(1));
    let common = one.iter().filter(|due| other.contains(due)).count();
    assert!(common < 5, "{common} of 1,000 at the same time");
}

proptest! {
    #[test]
    fn shards_and_workers_together_are_one(
        rates in prop::collection::vec(prop::option::of(1_u64..600), 1..5), rate in 1_u64..600, shards in 1_u32..5,
        workers in 1_u32..4, phases in any::<bool>(), milliseconds in 1_u64..200,
    ) {
        let stages = if phases { vec![stage(milliseconds, rate, 900), stage(200, 900, rate)] } else { Vec::new() };
        let mixed = rates.contains(&None);
        let load = OpenLoop { stages, ..OpenLoop::at(if mixed { rate } else { 0 }) }.load();
        let mut plan = plan(&rates, load);
        plan.warmup_nanoseconds = SECOND / 10;
        if phases && mixed {
            plan.workload_mut().options.mixes = vec![plan.workload.weights(); 2];
        }
        let mut together: Vec<Slot> = seats(shards, workers).flat_map(|seat| slots(&plan, seat, SECOND / 2)).collect();
        let mut alone = slots(&plan, ALONE, SECOND / 2);
        together.sort_by_key(|slot| slot.k);
        alone.sort_by_key(|slot| slot.k);
        prop_assert!(alone.windows(2).all(|two| two[0].k < two[1].k), "each request once");
        prop_assert_eq!(together, alone);
    }
}

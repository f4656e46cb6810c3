use proptest::prelude::*;
use redisbench_wire::plan::RateStage;
use redisbench_wire::rate::FRACTION_BITS;

use super::*;

const SECOND: u64 = 1_000_000_000;

const ALONE: Seat = Seat { shard: 0, shards: 1, worker: 0, workers: 1 };

fn constant(seat: Seat, rate: u64, grid: u64, start: u64) -> Schedule {
    Schedule::new(seat, CumulativeRate::new(rate, 0, &[]), Arrival::Constant, 0, grid, start)
}

fn poisson(seat: Seat, rate: &CumulativeRate, seed: u64) -> Schedule {
    Schedule::new(seat, rate.clone(), Arrival::Poisson, seed, 0, 0)
}

fn seats(shards: u32, workers: u32) -> impl Iterator<Item = Seat> {
    (0..shards).flat_map(move |shard| (0..workers).map(move |worker| Seat { shard, shards, worker, workers }))
}

fn slots(mut schedule: Schedule, end: u64) -> Vec<Slot> {
    let mut slots = Vec::new();
    while schedule.peek().due < end {
        slots.push(schedule.peek());
        schedule.advance();
    }
    slots
}

/// A warm-up of one second at 500/s, up to 40,000/s in 3 s, half a second at that rate, and down again in 1 s.
fn ramps() -> CumulativeRate {
    let stage = |milliseconds: u64, from_per_second, to_per_second| RateStage {
        nanoseconds: milliseconds * 1_000_000,
        from_per_second,
        to_per_second,
    };
    CumulativeRate::new(500, SECOND, &[stage(3000, 500, 40_000), stage(500, 40_000, 40_000), stage(1000, 40_000, 100)])
}

#[test]
fn a_million_seconds_later_it_is_still_exact() {
    let mut schedule = constant(ALONE, 3, 0, 0);
    (0..3_000_000).for_each(|_| schedule.advance());
    assert_eq!(schedule.peek(), Slot { k: 3_000_000, due: 1_000_000 * SECOND });
}

#[test]
fn the_seed_is_the_schedule() {
    let of = |seed, seat| slots(poisson(seat, &ramps(), seed), 2 * SECOND);
    assert_eq!(of(1, ALONE), of(1, ALONE));
    assert_ne!(of(1, ALONE), of(2, ALONE));
    let [first, second] = [0, 1].map(|worker| Seat { workers: 2, worker, ..ALONE });
    assert_ne!(
        of(1, first).iter().map(|slot| slot.due).collect::<Vec<_>>(),
        of(1, second).iter().map(|slot| slot.due).collect::<Vec<_>>()
    );
}

/// The Kolmogorov-Smirnov statistic of `gaps` against the exponential distribution of mean 1, times the square root of their number.
fn distance_from_exponential(mut gaps: Vec<f64>) -> f64 {
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let distances = gaps.iter().enumerate().map(|(index, gap)| {
        let expected = 1.0 - (-gap).exp();
        (expected - index as f64 / count).abs().max(((index + 1) as f64 / count - expected).abs())
    });
    distances.fold(0.0, f64::max) * count.sqrt()
}

/// True exponentials exceed it with a probability of 1e-6 (2 exp(-2 x^2), the limit for many gaps).
const ALPHA_1E6: f64 = 2.6935;

/// The gaps of all `seats` together in L's measure, in which their mean is 1 if the rate is right.
fn gaps(rate: &CumulativeRate, schedules: impl Iterator<Item = Schedule>, end: u64) -> Vec<f64> {
    let mut times: Vec<u64> = schedules.flat_map(|schedule| slots(schedule, end)).map(|slot| slot.due).collect();
    times.sort_unstable();
    let expected = |from: u64, to: u64| {
        // L between two times so close that the rate changes little: its mean there, times their distance.
        let middle = from + (to - from) / 2;
        rate.mean_per_second(middle.saturating_sub(1000), middle + 1000) as f64 * (to - from) as f64 / 1e9
    };
    times.windows(2).map(|pair| expected(pair[0], pair[1])).collect()
}

#[test]
fn gaps_of_one_poisson_worker_are_exponential() {
    let rate = CumulativeRate::new(20_000, 0, &[]);
    for seed in [1, 2, 3] {
        let seat = Seat { shard: 1, shards: 4, worker: 1, workers: 2 };
        // One worker of eight: its gaps are eight times as long.
        let gaps = gaps(&rate, std::iter::once(poisson(seat, &rate, seed)), 40 * SECOND);
        assert!((98_000..102_000).contains(&gaps.len()), "{}", gaps.len());
        let distance = distance_from_exponential(gaps.iter().map(|gap| gap / 8.0).collect());
        assert!(distance < ALPHA_1E6, "seed {seed}: {distance}");
    }
}

#[test]
fn the_gaps_of_all_poisson_workers_together_are_exponential() {
    let rate = CumulativeRate::new(20_000, 0, &[]);
    for seed in [1, 2, 3] {
        let gaps = gaps(&rate, seats(4, 2).map(|seat| poisson(seat, &rate, seed)), 5 * SECOND);
        assert!((98_000..102_000).contains(&gaps.len()), "{}", gaps.len());
        let distance = distance_from_exponential(gaps);
        assert!(distance < ALPHA_1E6, "seed {seed}: {distance}");
    }
}

#[test]
fn gaps_on_a_ramp_are_exponential_in_its_own_time() {
    let rate = ramps();
    let all = gaps(&rate, seats(4, 2).map(|seat| poisson(seat, &rate, 4)), 5 * SECOND);
    let expected = rate.count_before(5 * SECOND) as f64;
    assert!((all.len() as f64 - expected).abs() < 5.0 * expected.sqrt(), "{}, not {expected}", all.len());
    let distance = distance_from_exponential(all);
    assert!(distance < ALPHA_1E6, "{distance}");
}

/// The tests above reject other arrivals.
#[test]
fn other_arrivals_are_not_taken_for_poisson() {
    let rate = CumulativeRate::new(20_000, 0, &[]);
    let even = gaps(&rate, std::iter::once(constant(ALONE, 20_000, 0, 0)), 5 * SECOND);
    assert!(distance_from_exponential(even) > 10.0 * ALPHA_1E6);
    let slow = CumulativeRate::new(19_500, 0, &[]);
    let slow = gaps(&rate, seats(4, 2).map(|seat| poisson(seat, &slow, 1)), 5 * SECOND);
    assert!(distance_from_exponential(slow) > ALPHA_1E6);
    let ramp = gaps(&rate, std::iter::once(poisson(ALONE, &ramps(), 4)), 5 * SECOND);
    assert!(distance_from_exponential(ramp) > 10.0 * ALPHA_1E6);
}

#[test]
fn a_poisson_process_keeps_its_rate() {
    let rate = CumulativeRate::new(1_000_000, 0, &[]);
    let mut schedule = poisson(Seat { shard: 1999, shards: 2000, worker: 3, workers: 4 }, &rate, 9);
    (0..100_000).for_each(|_| schedule.advance());
    // 100,001 gaps of 8 ms: within 5 standard deviations.
    let expected = 100_001.0 * 8e6;
    assert!((schedule.peek().due as f64 - expected).abs() < 5.0 * 8e6 * 100_001_f64.sqrt());
    assert_eq!(schedule.peek().k, 8000 * 100_000 + 3 * 2000 + 1999);
}

fn any_rate() -> impl Strategy<Value = CumulativeRate> {
    let rate = || prop_oneof![1_u64..100, 1_u64..3_000_000];
    let stage = (1_u64..2_000_000, rate(), rate()).prop_map(|(nanoseconds, from_per_second, to_per_second)| {
        RateStage { nanoseconds, from_per_second, to_per_second }
    });
    (rate(), 0_u64..2_000_000, prop::collection::vec(stage, 0..4))
        .prop_map(|(rate, warmup, stages)| CumulativeRate::new(rate, warmup, &stages))
}

proptest! {
    #[test]
    fn shares_are_of_consecutive_requests(first in 0u64..100, count in 0u64..300, workers in 1u32..9) {
        for worker in 0..workers {
            let seat = Seat { shard: 0, shards: 1, worker, workers };
            let own = (first..first + count).filter(|j| j % u64::from(workers) == u64::from(worker));
            prop_assert_eq!(seat.share(first, count), own.count() as u64);
        }
    }

    #[test]
    fn shards_and_workers_together_are_one(
        rate in any_rate(), requests in 0_u64..400, shards in 1u32..5, workers in 1u32..5, start in 0u64..1 << 50,
    ) {
        let end = start + rate.due(requests);
        let of = |seat| Schedule::new(seat, rate.clone(), Arrival::Constant, 0, 0, start);
        let mut together: Vec<Slot> = seats(shards, workers).flat_map(|seat| slots(of(seat), end)).collect();
        together.sort_by_key(|slot| slot.k);
        let alone = of(ALONE);
        prop_assert_eq!(together, slots(alone.clone(), end));
        prop_assert_eq!(alone.peek().due, start);
        for slot in slots(alone, end) {
            prop_assert_eq!(slot.due - start, rate.due(slot.k));
        }
    }

    #[test]
    fn counting_is_walking(
        rate in any_rate(), poisson in any::<bool>(), grid in prop_oneof![Just(0u64), 1u64..2_000_000], shard in 0u32..3,
        worker in 0u32..3, ahead in prop::collection::vec((0u64..900, 0u64..1000, 0usize..20), 1..5), seed: u64,
    ) {
        let seat = Seat { shard, shards: 3, worker, workers: 3 };
        let arrival = if poisson { Arrival::Poisson } else { Arrival::Constant };
        let mut schedule = Schedule::new(seat, rate.clone(), arrival, seed, grid, 1000);
        // Before and after the point of the previous count.
        for (slots_ahead, nudge, skipped) in ahead {
            let end = 1000 + rate.due(slots_ahead) + nudge;
            prop_assert_eq!(schedule.due_before(end), slots(schedule.clone(), end).len() as u64);
            (0..skipped).for_each(|_| schedule.advance());
            prop_assert_eq!(schedule.due_before(end), slots(schedule.clone(), end).len() as u64);
        }
    }

    #[test]
    fn the_grid_rounds_up_and_by_less_than_its_width(
        rate in any_rate(), grid in 1u64..2_000_000, poisson in any::<bool>(), worker in 0u32..4, steps in 0usize..100,
    ) {
        let seat = Seat { shard: 1, shards: 2, worker, workers: 4 };
        let arrival = if poisson { Arrival::Poisson } else { Arrival::Constant };
        let [mut exact, mut paced] = [0, grid].map(|grid| Schedule::new(seat, rate.clone(), arrival, 5, grid, 0));
        for _ in 0..steps {
            exact.advance();
            paced.advance();
        }
        let late = paced.peek().due - exact.peek().due;
        prop_assert!(late < grid);
        prop_assert_eq!(paced.peek().due % grid, paced.grid.offset);
    }
}

#[test]
fn a_gap_is_a_fraction_of_a_request() {
    // The first gap of a single worker: its exponential variate, in requests of the rate.
    let rate = CumulativeRate::new(1, 0, &[]);
    let gap =
        exponential::exponential(crate::workload::rng::RandomStream::new(7, crate::workload::rng::ARRIVALS).at(0));
    let nanoseconds = (u128::from(gap) * u128::from(SECOND)) >> FRACTION_BITS;
    assert_eq!(u128::from(poisson(ALONE, &rate, 7).peek().due), nanoseconds);
}

/// The due times of a recording's requests at another speed, computed one by one.
fn replayed(times: &[u64], pace: u32, k: u64) -> u64 {
    let (count, span) = (times.len() as u64, times[times.len() - 1] - times[0]);
    let period = if span == 0 { SECOND } else { 1_000 * span + (1_000 * span).div_ceil(count - 1) };
    let time = k / count * period + 1_000 * (times[(k % count) as usize] - times[0]);
    (u128::from(time) * 1_000_000 / u128::from(pace)) as u64
}

proptest! {
    #[test]
    fn recorded_requests_are_due_at_their_times(
        gaps in prop::collection::vec(0_u64..5_000, 1..40),
        pace in 1_u32..5_000_000,
        every in 1_u64..4,
        repeats in any::<bool>(),
        taken in 0_usize..100,
        end in 0_u64..4_000_000,
    ) {
        const START: u64 = 77;
        let times: Vec<u64> = gaps.iter().scan(0, |sum, gap| { *sum += gap; Some(*sum) }).collect();
        let keys: Vec<_> = times.iter().map(|time| (*time, "key".to_owned())).collect();
        let mut plan = crate::sample::replay(&keys, repeats);
        plan.load = Load::Recorded { pace_millionths: pace, pacing_grid_nanoseconds: 0, unsent_after_nanoseconds: 1 };
        let count = times.len() as u64;
        let replay = Replay::new((0..count).filter(|number| number % every == 0).collect(), count, repeats);
        let mut schedule = Schedule::of_replay(&plan, &replay, ALONE, START).unwrap();
        prop_assert_eq!(schedule.end(), (!repeats).then(|| START + replayed(&times, pace, count)));
        for _ in 0..taken {
            if schedule.is_over() {
                break;
            }
            let Slot { k, due } = schedule.peek();
            prop_assert_eq!((k % count % every, due), (0, START + replayed(&times, pace, k)));
            schedule.advance();
        }
        prop_assert_eq!(schedule.due_before(START + end), slots(schedule.clone(), START + end).len() as u64);
    }
}

#[test]
fn a_recording_ends_after_its_last_command_on_every_grid() {
    const WIDTH: u64 = SECOND / 10;
    let mut plan = crate::sample::replay(&[(0, "a".to_owned()), (5, "b".to_owned())], false);
    plan.load =
        Load::Recorded { pace_millionths: 1_000_000, pacing_grid_nanoseconds: WIDTH, unsent_after_nanoseconds: 1 };
    for worker in 0..3 {
        let seat = Seat { shard: 0, shards: 1, worker, workers: 3 };
        let schedule = Schedule::of_replay(&plan, &Replay::new(vec![0, 1], 2, false), seat, 77).unwrap();
        let end = schedule.end().unwrap();
        assert_eq!(end, 77 + 10_000 + WIDTH, "the same for all workers");
        let dues: Vec<u64> = slots(schedule, u64::MAX).into_iter().map(|slot| slot.due).collect();
        assert!(dues.len() == 2 && dues.iter().all(|due| *due < end), "{dues:?}");
    }
}

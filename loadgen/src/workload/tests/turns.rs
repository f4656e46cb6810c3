//! Mixes in turns, and walks of operations and seats.

use super::*;
use crate::open_loop::open_loop;

#[test]
fn a_mix_in_turns_is_an_exact_sequence_with_cursors_of_their_own() {
    let operations = vec![Operation { weight: 2, ..get() }, Operation { weight: 3, ..get() }];
    let mut plan = plan(operations, keys("p:", 0, 4, KeyPattern::Sequential));
    plan.workload_mut().options.in_turns = true;
    let workload = Workload::of_trial(&plan).unwrap();
    let drawn: Vec<(u16, u64)> = (0..10).map(|k| workload.draw(k)).map(|draw| (draw.operation, draw.key)).collect();
    assert_eq!(drawn, [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3), (1, 0), (1, 1)]);
}

#[test]
fn operations_with_rates_walk_keys_and_lines_by_themselves() {
    let set = Operation::of("set", 1, "SET __key__ __data__");
    let operations = vec![Operation { weight: 2, ..get() }, set.clone(), set];
    let mut plan = plan(operations, keys("p:", 0, 4, KeyPattern::Sequential));
    plan.load = open_loop(1);
    plan.workload_mut().options.rates = vec![plan::OperationRate { operation: 2, per_second: 5 }];
    let lines = plan::Lines::of(b"first\nsecond\nthird".to_vec());
    plan.workload_mut().values = plan::Values { content: plan::ValueContent::Lines, lines, ..plan::Values::fixed(5) };
    let drawn = |plan: &TrialPlan, stream: u64| {
        let workload = Workload::of_trial(plan).unwrap();
        let draws = (0..6).map(|number| workload.draw(2 * number + stream));
        draws.map(|draw| (draw.operation, draw.key)).collect::<Vec<_>>()
    };
    let own = [(2, 0), (2, 1), (2, 2), (2, 3), (2, 0), (2, 1)];
    assert_eq!(drawn(&plan, 1), own);
    let keys: Vec<u64> = drawn(&plan, 0).into_iter().map(|(_, key)| key).collect();
    assert_eq!(keys, [0, 1, 2, 3, 0, 1], "key k of the mix");
    let workload = Workload::of_trial(&plan).unwrap();
    let values = [1, 3, 5, 7].map(|k| arguments(&encoded(&workload, k)).remove(2));
    assert_eq!(values, ["first", "second", "third", "first"]);
    // The preload writes line k to key k.
    let preload = workload.preload(&plan).unwrap().unwrap();
    assert_eq!([0, 1, 2].map(|k| arguments(&encoded(&preload, k)).remove(2)), ["first", "second", "third"]);
    // A mix in turns stays one, and each of its operations walks by itself.
    plan.workload_mut().options.in_turns = true;
    assert_eq!(drawn(&plan, 0), [(0, 0), (0, 1), (1, 0), (0, 2), (0, 3), (1, 1)]);
    assert_eq!(drawn(&plan, 1), own);
}

/// Each worker of a closed loop walks the whole sequence. If the number of keys is a power of two and the distance between the workers a
/// multiple of it, all of them would take the same keys in step.
#[test]
fn seats_of_a_closed_loop_walk_different_keys_in_turns() {
    for (count, weights) in [(65_536, [1, 1]), (100_000, [1, 1]), (65_536, [1, 10])] {
        let operations = weights.map(|weight| Operation { weight, ..get() });
        let mut plan = plan(operations.to_vec(), keys("p:", 0, count, KeyPattern::Sequential));
        (plan.workload_mut().options.in_turns, plan.load) = (true, Load::ClosedLoop);
        let workload = Workload::of_trial(&plan).unwrap();
        let period = weights.iter().map(|weight| u64::from(*weight)).sum();
        for operation in 0..2 {
            let mut taken = std::collections::BTreeSet::new();
            for seat in 0..4 {
                let first = begin_apart(seat, period);
                assert_eq!(workload.draw(first).operation, 0, "each begins with the sequence");
                let drawn = (first..).map(|k| workload.draw(k)).filter(|draw| draw.operation == operation);
                taken.extend(drawn.take(5_000).map(|draw| draw.key));
            }
            assert_eq!(taken.len(), 20_000, "{count} keys, {weights:?}, operation {operation}");
        }
    }
}

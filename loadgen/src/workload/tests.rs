use std::collections::HashSet;

use proptest::prelude::*;
use redisbench_wire::plan::{self, KeyPattern, Topology, Workload as PlanWorkload};

use super::*;
use crate::cluster::slot_of;
use crate::resp::{Output, append_command};

mod tags;
mod turns;

fn plan(operations: Vec<Operation>, keys: Keys) -> TrialPlan {
    let mut plan = TrialPlan { preload: Preload::FillMissing, ..TrialPlan::basic("redis:6379") };
    plan.target.topology = Topology::Cluster;
    let values = plan::Values::fixed(5);
    let options = WorkloadOptions::default();
    plan.workload = Arc::new(PlanWorkload { operations, keys, key_file: None, values, seed: 42, options });
    plan
}

fn keys(prefix: &str, start: u64, count: u64, pattern: KeyPattern) -> Keys {
    Keys { prefix: prefix.into(), start, count, width: 0, pattern, tags: None }
}

fn operation(weight: u32, arguments: Vec<Vec<Part>>) -> Operation {
    Operation { name: "operation".into(), weight, arguments, keys: None }
}

fn literal(text: &str) -> Part {
    Part::Literal(text.into())
}

fn get() -> Operation {
    Operation::of("get", 1, "GET __key__")
}

fn encoded(workload: &Workload, k: u64) -> Vec<u8> {
    let mut room = vec![b'x'; 2 * workload.longest() + Workload::SLACK];
    let length = workload.encode([k], workload.operation(k), &mut room);
    let one = room[..length].to_vec();
    let others = (k + 1..k + 20).find(|other| workload.operation(*other) == workload.operation(k));
    if let Some(other) = others {
        let both = workload.encode([k, other], workload.operation(k), &mut room);
        assert_eq!(room[..both], [one.clone(), workload.command(other, workload.operation(other))].concat());
    }
    one
}

/// The arguments of an encoded command. None of them may contain a line end.
fn arguments(command: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(command);
    text.split("\r\n").skip(2).step_by(2).map(str::to_owned).collect()
}

#[test]
fn commands_are_patched_in_place() {
    let set = operation(1, vec![vec![literal("SET")], vec![Part::Key], vec![literal("a"), Part::Data, literal("b")]]);
    let workload = Workload::of_trial(&plan(vec![set], keys("p:", 95, 10, KeyPattern::Sequential))).unwrap();
    for (k, key) in [(0, "p:095"), (4, "p:099"), (9, "p:104"), (10, "p:095")] {
        let value = [b"a", workload.values.of(k), b"b"].concat();
        let mut expected = Vec::new();
        append_command(&mut expected, &[b"SET", key.as_bytes(), &value]);
        assert_eq!(encoded(&workload, k), expected);
        assert_eq!(workload.longest(), expected.len());
    }
    assert_ne!(workload.values.of(1), workload.values.of(2));
}

/// The arguments of a single command in the first requests.
fn drawn(command: Vec<Vec<Part>>, keys: Keys, requests: u64) -> Vec<Vec<String>> {
    let workload = Workload::of_trial(&plan(vec![operation(1, command)], keys)).unwrap();
    let mut all = Vec::new();
    for k in 0..requests {
        let command = encoded(&workload, k);
        assert!(command.len() <= workload.longest());
        let arguments = arguments(&command);
        // The headers state the right lengths.
        let mut again = Vec::new();
        append_command(&mut again, &arguments.iter().map(String::as_bytes).collect::<Vec<_>>());
        assert_eq!(String::from_utf8_lossy(&command), String::from_utf8_lossy(&again));
        all.push(arguments);
    }
    all
}

#[test]
fn numbers_are_drawn_where_they_stand() {
    let integer = |least, most| Part::Integer { least, most, width: 0 };
    let command = vec![
        vec![literal("X")],
        vec![integer(-5, 5)],
        vec![literal("a"), integer(0, 999), literal(":"), integer(0, 999)],
        vec![Part::Score],
        vec![literal("n"), Part::Sequence],
        vec![integer(i64::MIN + 1, i64::MAX)],
        vec![integer(7, 7)],
        vec![literal("e:"), Part::Integer { least: 0, most: 999_999, width: 12 }],
    ];
    let mut first = [0_u32; 11];
    let mut alike = 0;
    let mut sum = 0.0;
    for (k, arguments) in drawn(command, keys("", 0, 1, KeyPattern::Uniform), 22_000).iter().enumerate() {
        first[usize::try_from(arguments[1].parse::<i64>().unwrap() + 5).unwrap()] += 1;
        let (a, b) = arguments[2].strip_prefix('a').unwrap().split_once(':').unwrap();
        let [a, b] = [a, b].map(|number| number.parse::<u32>().unwrap());
        assert!(a < 1000 && b < 1000);
        alike += u32::from(a == b);
        let score: f64 = arguments[3].parse().unwrap();
        assert!((0.0..1.0).contains(&score) && arguments[3].len() == 11);
        sum += score;
        assert_eq!(arguments[4], format!("n{k}"));
        arguments[5].parse::<i64>().unwrap();
        assert_eq!(arguments[6], "7");
        assert!(arguments[7].starts_with("e:000000") && arguments[7].len() == 14, "{}", arguments[7]);
    }
    let chi_square: f64 = first.iter().map(|count| (f64::from(*count) - 2000.0).powi(2) / 2000.0).sum();
    // The 99.9 % quantile with 10 degrees of freedom.
    assert!(chi_square < 29.6, "{first:?}");
    // Neighbouring fields are drawn independently: 22 equal pairs are expected.
    assert!(alike < 60, "{alike}");
    assert!((sum / 22_000.0 - 0.5).abs() < 0.01, "{sum}");
}

#[test]
fn a_command_may_take_several_keys() {
    let command = || {
        vec![
            vec![literal("MSET")],
            vec![Part::Key],
            vec![Part::NthKey(1)],
            vec![Part::NthKey(2)],
            vec![literal("x"), Part::NthKey(3)],
        ]
    };
    let all = drawn(command(), keys("p:", 100, 7, KeyPattern::Sequential), 21);
    let numbers: Vec<u64> = (0..63).map(|at| 100 + at % 7).collect();
    for (k, arguments) in all.iter().enumerate() {
        let expected = &numbers[3 * k..3 * k + 3];
        let key = |nth: usize| format!("p:{}", expected[nth]);
        assert_eq!(arguments[1..], [key(0), key(0), key(1), format!("x{}", key(2))]);
    }
    // Drawn keys are independent of each other.
    let mut pairs = HashSet::new();
    for arguments in drawn(command(), keys("", 0, 10, KeyPattern::Uniform), 2000) {
        pairs.insert((arguments[1].clone(), arguments[3].clone()));
    }
    assert_eq!(pairs.len(), 100);
}

#[test]
fn values_of_different_lengths_have_headers_of_their_own() {
    let size = plan::ValueSize::Range { least_bytes: 8, most_bytes: 12 };
    let command = vec![vec![literal("SET")], vec![Part::Key], vec![literal("v"), Part::Data]];
    let mut plan = plan(vec![operation(1, command)], keys("p:", 0, 10, KeyPattern::Uniform));
    plan.workload_mut().values.size = size;
    let workload = Workload::of_trial(&plan).unwrap();
    let mut lengths = HashSet::new();
    for k in 0..200 {
        let key = format!("p:{}", workload.draw(k).key);
        let value = [b"v", workload.values.any_of(k)].concat();
        let mut expected = Vec::new();
        append_command(&mut expected, &[b"SET", key.as_bytes(), &value]);
        assert_eq!(encoded(&workload, k), expected);
        lengths.insert(value.len());
    }
    assert_eq!(lengths, (9..=13).collect());
    assert_eq!(
        workload.longest(),
        encoded(&workload, (0..1000).find(|k| workload.values.length_of(*k) == 12).unwrap()).len()
    );
}

#[test]
fn a_key_may_stand_several_times() {
    let command = operation(
        1,
        vec![
            vec![literal("MSET")],
            vec![Part::Key],
            vec![literal("x")],
            vec![literal("{"), Part::Key, literal("}2")],
            vec![Part::Data],
        ],
    );
    let workload = Workload::of_trial(&plan(vec![command], keys("", 7, 1, KeyPattern::Uniform))).unwrap();
    assert_eq!(arguments(&encoded(&workload, 0))[..4], ["MSET", "7", "x", "{7}2"]);
}

#[test]
fn an_operation_may_have_keys_of_its_own() {
    let own = |keys| Operation { keys: Some(keys), ..get() };
    let operations = vec![
        get(),
        own(keys("list:", 7, 3, KeyPattern::Uniform)),
        own(Keys { width: 12, ..keys("long-", 0, 2, KeyPattern::Sequential) }),
        own(keys("list:", 7, 3, KeyPattern::Sequential)),
    ];
    let mut plan = plan(operations, keys("p:", 0, 10, KeyPattern::Uniform));
    let workload = Workload::of_trial(&plan).unwrap();
    for k in 0..500 {
        let draw = workload.draw(k);
        let key = arguments(&encoded(&workload, k)).remove(1);
        let expected = match draw.operation {
            0 => format!("p:{}", draw.key),
            2 => format!("long-{:012}", k % 2),
            operation => {
                assert!((7..10).contains(&draw.key) && (operation == 1 || draw.key == 7 + k % 3));
                format!("list:{}", draw.key)
            }
        };
        assert_eq!(key, expected);
        assert_eq!(workload.slot(k, draw.operation), slot_of(key.as_bytes()));
    }
    // Deletion names each key once, however many operations use it.
    let mut names = HashSet::new();
    plan.shards = 2;
    for shard in 0..2 {
        let own = OwnKeys::of(&plan.clone().of_shard(shard)).unwrap();
        own.numbers.clone().for_each(|number| assert!(names.insert(own.key(number))));
    }
    let expected = (0..10).map(|n| format!("p:{n}"));
    let expected = expected.chain((7..10).map(|n| format!("list:{n}"))).chain((0..2).map(|n| format!("long-{n:012}")));
    assert_eq!(names, expected.map(String::into_bytes).collect());
}

#[test]
fn keys_are_the_lines_of_a_file() {
    let names = ["user:1", "{a}:2", "order:{b}:item", "x{}y"];
    let lines = plan::Lines::of(names.join("\n").into_bytes());
    let commands = [
        vec![vec![literal("GET")], vec![Part::Key]],
        vec![vec![literal("MGET")], vec![Part::Key], vec![literal("h{"), Part::NthKey(2), literal("}")]],
        vec![vec![literal("DEL")], vec![literal("pre:"), Part::Key, Part::Sequence]],
    ];
    let walks = KeyPattern::Sequential;
    for pattern in [KeyPattern::Uniform, walks, KeyPattern::PerConnection { partitioned: false }] {
        let operations = commands.iter().map(|arguments| operation(1, arguments.clone())).collect();
        let mut plan = plan(operations, keys("no:", 1, 3, pattern));
        assert_eq!(OwnKeys::of(&plan.clone().of_shard(0)).unwrap().key(0), b"no:1");
        plan.workload_mut().key_file = Some(plan::KeyFile { lines: lines.clone() });
        let workload = Workload::of_trial(&plan).unwrap();
        for k in 0..50 {
            let operation = workload.operation(k);
            let words = arguments(&encoded(&workload, k));
            let name = names[workload.key(k, operation) as usize];
            let key = if words[0] == "DEL" { format!("pre:{name}{k}") } else { name.to_owned() };
            assert_eq!(words[1], key);
            assert_eq!(workload.slot(k, operation), slot_of(key.as_bytes()));
            let mut all = Vec::new();
            workload.each_key(k, operation, &mut Vec::new(), |key| all.push(key.to_vec()));
            assert_eq!(all[0], name.as_bytes());
            if let Some(second) = all.get(1) {
                assert_eq!(words[2], format!("h{{{}}}", String::from_utf8_lossy(second)));
            }
        }
        let own = OwnKeys::of(&plan.clone().of_shard(0)).unwrap();
        assert_eq!((own.numbers.clone(), own.key(2)), (0..3, b"x{}y".to_vec()));
        let preload = workload.preload(&plan).unwrap().unwrap();
        assert_eq!(arguments(&encoded(&preload, 1))[1], names[2]);
        plan.workload_mut().keys.count = 4;
        assert_eq!(Workload::of_trial(&plan).unwrap_err(), WorkloadError::KeyFile { needed: 5 });
    }
}

#[test]
fn preload_writes_the_key_of_its_number() {
    let plan = plan(vec![get()], keys("p:", 10, 100, KeyPattern::Uniform));
    let trial = Workload::of_trial(&plan).unwrap();
    let workload = trial.preload(&plan).unwrap().unwrap();
    let command = encoded(&workload, 99);
    assert!(command.starts_with(b"*4\r\n$3\r\nSET\r\n$5\r\np:109\r\n$5\r\n"), "{command:?}");
    assert!(command.ends_with(b"\r\n$2\r\nNX\r\n"));
    assert!(trial.values.shares_pool(&workload.values), "a large value's pool is there once");
    assert!(trial.preload(&TrialPlan { preload: Preload::None, ..plan }).unwrap().is_none());
}

#[test]
fn slots_are_those_of_the_keys() {
    let tagged = operation(1, vec![vec![literal("GET")], vec![literal("a{"), Part::Key, literal("}b")]]);
    let of = |argument: Vec<Part>| operation(1, vec![vec![literal("GET")], argument]);
    let number = Part::Integer { least: -20, most: 2000, width: 0 };
    let others = [
        ("{tag}:", get()),
        ("half{", get()),
        ("{}", get()),
        ("k", tagged),
        ("k", of(vec![literal("{x}"), Part::Key, Part::Key])),
        ("k", of(vec![Part::Key, literal(":"), Part::Key])),
        ("k", of(vec![literal("{"), Part::NthKey(2), literal("}")])),
        ("k", of(vec![literal("u"), number.clone()])),
        ("k", of(vec![Part::Sequence, literal("{"), number, literal("-"), Part::Score, literal("}"), Part::Key])),
    ];
    for (prefix, operation) in [("key:", get())].into_iter().chain(others) {
        let workload = Workload::of_trial(&plan(vec![operation], keys(prefix, 0, 500, KeyPattern::Uniform))).unwrap();
        for k in 0..200 {
            let key = &arguments(&encoded(&workload, k))[1];
            assert_eq!(workload.slot(k, workload.operation(k)), slot_of(key.as_bytes()), "{key}");
        }
    }
    let fixed = Operation::of("incr", 1, "INCR counter");
    let workload = Workload::of_trial(&plan(vec![fixed], keys("", 0, 1, KeyPattern::Uniform))).unwrap();
    assert_eq!(workload.slot(0, workload.operation(0)), slot_of(b"counter"));
    let ping = Operation::of("ping", 1, "PING");
    let workload = Workload::of_trial(&plan(vec![ping], keys("", 0, 1, KeyPattern::Uniform))).unwrap();
    let slots: HashSet<u16> = (0..1000).map(|k| workload.slot(k, workload.operation(k))).collect();
    assert!(slots.len() > 900);
}

#[test]
fn a_further_draw_of_a_key_has_the_same_operation() {
    let commands = ["GET", "DEL", "TTL"].map(|word| operation(1, vec![vec![literal(word)], vec![Part::Key]]));
    let plan = plan(commands.into(), keys("k:", 0, 1 << 20, KeyPattern::Uniform));
    let drawn = Workload::of_trial(&TrialPlan { nodes_per_shard: Some(1), ..plan.clone() }).unwrap();
    let every = Workload::of_trial(&plan).unwrap();
    for k in 0..200 {
        let operation = drawn.operation(k);
        assert_eq!(operation, every.operation(k), "request {k}");
        let slots: HashSet<u16> = (0..50)
            .map(|draw| {
                let number = k + (draw << DRAW_SHIFT);
                assert_eq!(drawn.operation(number), operation, "draw {draw} of request {k}");
                drawn.slot(number, operation)
            })
            .collect();
        assert!(slots.len() > 40, "request {k} has other keys: {slots:?}");
    }
}

#[test]
fn weights_hold() {
    let weights = [1u32, 0, 20, 79];
    let operations = weights.iter().map(|weight| Operation::of("ping", *weight, "PING")).collect();
    let workload = Workload::of_trial(&plan(operations, keys("", 0, 1, KeyPattern::Uniform))).unwrap();
    for start in [0u64, 1 << 40] {
        let mut counts = [0u64; 4];
        (start..start + 100_000).for_each(|k| counts[usize::from(workload.operation(k))] += 1);
        assert_eq!(counts[1], 0);
        let chi_square: f64 = [0, 2, 3]
            .map(|index| {
                let expected = f64::from(weights[index]) * 1000.0;
                (counts[index] as f64 - expected).powi(2) / expected
            })
            .iter()
            .sum();
        // The 99.9 % quantile with 2 degrees of freedom.
        assert!(chi_square < 13.8, "{counts:?}");
    }
}

#[test]
fn uniform_keys_are_uniform_and_independent_of_the_operation() {
    let workload = Workload::of_trial(&plan(vec![get(), get()], keys("", 0, 20, KeyPattern::Uniform))).unwrap();
    let mut counts = [[0u64; 20]; 2];
    for draw in (0..200_000).map(|k| workload.draw(k)) {
        counts[usize::from(draw.operation)][draw.key as usize] += 1;
    }
    let chi_square: f64 = counts.iter().flatten().map(|count| (*count as f64 - 5000.0).powi(2) / 5000.0).sum();
    // The 99.9 % quantile with 39 degrees of freedom.
    assert!(chi_square < 72.1, "{chi_square}");
}

#[test]
fn impossible_plans_are_refused() {
    let refused = |operations, keys| Workload::of_trial(&plan(operations, keys)).unwrap_err();
    let some = keys("", 0, 1, KeyPattern::Uniform);
    assert_eq!(refused(vec![], some.clone()), WorkloadError::NoOperations);
    assert_eq!(refused(vec![operation(1, vec![])], some.clone()), WorkloadError::EmptyCommand("operation".into()));
    assert_eq!(refused(vec![get()], keys("", 0, 0, KeyPattern::Uniform)), WorkloadError::Keys { start: 0, count: 0 });
    let beyond = keys("", u64::MAX, 2, KeyPattern::Uniform);
    assert_eq!(refused(vec![get()], beyond), WorkloadError::Keys { start: u64::MAX, count: 2 });
    assert_eq!(refused(vec![get()], Keys { width: 33, ..some }), WorkloadError::Width(33));
}

proptest! {
    #[test]
    fn partitions_cover_each_key_once(count in 1u64..500, shards in 1u32..8) {
        let shards = shards.min(count as u32);
        let mut plan = plan(vec![get()], keys("", 3, count, KeyPattern::Partitioned));
        plan.shards = shards;
        let workload = Workload::of_trial(&plan).unwrap();
        let mut seen = Vec::new();
        for shard in 0..shards {
            let part = part_of(count, shard.into(), shards.into());
            let length = part.end - part.start;
            let of = |j: u64| workload.draw(j * u64::from(shards) + u64::from(shard)).key;
            seen.extend((0..length).map(of));
            prop_assert_eq!(of(length), of(0), "and then again");
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (3..3 + count).collect::<Vec<_>>());
    }

    #[test]
    fn parts_are_all_and_none_twice(count: u64, parts in 1u64..300) {
        let mut next = 0;
        for part in 0..parts {
            let range = part_of(count, part, parts);
            prop_assert_eq!(range.start, next);
            next = range.end;
        }
        prop_assert_eq!(next, count);
    }

    #[test]
    fn more_shards_than_keys_stay_inside(count in 1u64..4, shards in 1u32..9, k in 0u64..1000) {
        let mut plan = plan(vec![get()], keys("", 0, count, KeyPattern::Partitioned));
        plan.shards = shards;
        prop_assert!(Workload::of_trial(&plan).unwrap().draw(k).key < count);
    }
}

#[test]
fn a_transaction_is_written_whole() {
    let set = operation(1, vec![vec![literal("SET")], vec![Part::Key], vec![Part::Sequence]]);
    let mut plan = plan(vec![set], keys("p:", 0, 100, KeyPattern::Sequential));
    let written = |plan: &TrialPlan, k: u64| {
        let workload = Workload::of_trial(plan).unwrap();
        let mut room = vec![0; workload.longest() + Workload::SLACK];
        let length = workload.encode([k], 0, &mut room);
        assert!(length <= workload.longest());
        let compound = workload.compound(0).unwrap();
        (room[..length].to_vec(), compound.replies(), workload.slot(k, 0))
    };
    let wait = plan::Wait { replicas: 2, timeout_milliseconds: 70, operations: vec![0] };
    plan.workload_mut().options.wait = Some(wait);
    for (shared_keys, second) in [(false, "p:11"), (true, "p:05")] {
        plan.workload_mut().options.transaction = Some(plan::Transaction { size: 2, shared_keys });
        let first = if shared_keys { "p:05" } else { "p:10" };
        let mut expected = Vec::new();
        append_command(&mut expected, &[b"MULTI"]);
        append_command(&mut expected, &[b"SET", first.as_bytes(), b"10"]);
        append_command(&mut expected, &[b"SET", second.as_bytes(), b"11"]);
        append_command(&mut expected, &[b"EXEC"]);
        append_command(&mut expected, &[b"WAIT", b"2", b"70"]);
        let (bytes, replies, slot) = written(&plan, 5);
        assert_eq!(String::from_utf8(bytes).unwrap(), String::from_utf8(expected).unwrap());
        assert_eq!((replies, slot), (5, slot_of(first.as_bytes())));
    }
}

#[test]
fn commands_are_the_same_around_values_that_are_not_copied() {
    let several = vec![vec![literal("HSET")], vec![Part::Key], vec![literal("a"), Part::Data], vec![Part::Data]];
    let set = vec![vec![literal("SET")], vec![Part::Key], vec![Part::Data]];
    let operations = vec![operation(1, set), operation(1, several), get()];
    let mut plan = plan(operations, keys("p:", 0, 100, KeyPattern::Uniform));
    let large = plan::ValueSize::Range { least_bytes: 1, most_bytes: 200_000 };
    for (size, transaction) in
        [(plan::ValueSize::Fixed { bytes: 65_536 }, None), (large.clone(), None), (large, Some(2))]
    {
        plan.workload_mut().values.size = size;
        let transaction = transaction.map(|size| plan::Transaction { size, shared_keys: false });
        plan.workload_mut().options.transaction = transaction;
        let workload = Workload::of_trial(&plan).unwrap();
        let all = workload.large_values().unwrap();
        let (mut output, mut values) = (Output::default(), Vec::new());
        for k in 0..40 {
            // Two requests in one send.
            let room = output.room(2 * workload.longest_around());
            let mut length = 0;
            for k in [k, k + 1] {
                let room = &mut room[length..];
                let written = workload.encode_around(k, workload.operation(k), room, |after, place| {
                    values.push((after, all.slice(place)));
                });
                assert!(written <= workload.longest_around());
                length += written;
            }
            output.set_length(length);
            output.insert(&mut values);
            let written = output.pieces().collect::<Vec<_>>().concat();
            assert!(written == [encoded(&workload, k), encoded(&workload, k + 1)].concat(), "request {k}");
            assert!(workload.longest_around() < 200, "has room for values");
        }
    }
    plan.workload_mut().values.size = plan::ValueSize::Fixed { bytes: 65_535 };
    assert_eq!(Workload::of_trial(&plan).unwrap().large_values(), None);
}

#[test]
fn a_missed_key_is_written_as_it_was_read() {
    let id = vec![literal("user:"), Part::Integer { least: 1, most: 1_000_000, width: 0 }];
    let mut plan =
        plan(vec![operation(1, vec![vec![literal("GET")], id.clone()])], keys("p:", 0, 100, KeyPattern::Uniform));
    plan.workload_mut().options.fills =
        vec![plan::Fill { operation: 0, arguments: vec![vec![literal("SET")], id, vec![Part::Data]] }];
    let workload = Workload::of_trial(&plan).unwrap();
    let mut room = vec![0; workload.longest() + Workload::SLACK];
    for k in 0..100 {
        let text = |length: usize, room: &[u8]| String::from_utf8_lossy(&room[..length]).into_owned();
        let length = workload.encode([k], 0, &mut room);
        let read = text(length, &room);
        let length = workload.encode_fill(k, 0, &mut room);
        let written = text(length, &room);
        assert_eq!(read.split("\r\n").nth(4), written.split("\r\n").nth(4));
    }
}

#[test]
fn keys_are_where_a_command_declares_them() {
    let of = |words: &[&str]| {
        let arguments = words.iter().map(|word| vec![if *word == "K" { Part::Key } else { literal(word) }]).collect();
        let plan = plan(vec![operation(1, arguments)], keys("p:", 0, 1, KeyPattern::Uniform));
        Workload::of_trial(&plan).unwrap().slot(0, 0)
    };
    assert_eq!(of(&["EVAL", "return 1", "1", "fixed", "K"]), slot_of(b"fixed"));
    assert_eq!(of(&["fcall", "f", "2", "K", "x"]), slot_of(b"p:0"));
    assert_eq!(of(&["BITOP", "AND", "to", "from"]), slot_of(b"to"));
    assert_eq!(of(&["XREAD", "COUNT", "1", "STREAMS", "s", "0"]), slot_of(b"s"));
    assert_eq!(of(&["LPOP", "list"]), slot_of(b"list"));
}

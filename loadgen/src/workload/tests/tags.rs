//! Keys with hash tags.

use redisbench_wire::plan::{HotKeys, HotTags, Tags};

use super::*;

fn tags(count: u32, hot: Option<(u32, u32)>) -> Tags {
    let hot = hot.map(|(count, percent)| HotTags { count, percent_millionths: percent * 1_000_000 });
    Tags { count, hot }
}

/// A key written as `p:{t<tag>}<number>`.
fn tag_and_number(key: &str) -> (u64, u64) {
    let (tag, number) = key.strip_prefix("p:{t").and_then(|rest| rest.split_once('}')).unwrap();
    (tag.parse().unwrap(), number.parse().unwrap())
}

#[test]
fn most_requests_take_one_of_many_tags() {
    let keys = Keys { tags: Some(tags(100, Some((1, 80)))), ..keys("p:", 7, 1000, KeyPattern::Uniform) };
    let mut counts = [0_u32; 100];
    for arguments in drawn(vec![vec![literal("GET")], vec![Part::Key]], keys, 100_000) {
        assert_eq!(arguments[1].len(), "p:{t00}0007".len());
        counts[usize::try_from(tag_and_number(&arguments[1]).0).unwrap()] += 1;
    }
    // Six standard deviations around 80,000 and, for each of the others, 202.
    assert!((79_200..80_800).contains(&counts[0]), "{}", counts[0]);
    assert!(counts[1..].iter().all(|count| (115..290).contains(count)), "{counts:?}");
}

#[test]
fn walked_keys_take_their_tags_in_turns() {
    let keys = Keys { tags: Some(tags(5, None)), ..keys("p:", 3, 20, KeyPattern::Sequential) };
    let one = drawn(vec![vec![literal("GET")], vec![Part::Key]], keys.clone(), 40);
    let numbers: Vec<_> = one.iter().map(|arguments| tag_and_number(&arguments[1]).1).collect();
    assert_eq!(numbers, (0..40).map(|k| 3 + k % 20).collect::<Vec<_>>());
    let two = drawn(vec![vec![literal("MGET")], vec![Part::Key], vec![Part::NthKey(2)]], keys, 10);
    let written: HashSet<_> =
        two.iter().flat_map(|arguments| &arguments[1..]).map(|key| tag_and_number(key).1).collect();
    assert_eq!(written, (3..23).collect());
}

#[test]
fn tagged_keys_have_one_name_in_every_walk() {
    let keys = Keys { tags: Some(tags(4, Some((1, 90)))), ..keys("p:", 10, 12, KeyPattern::Uniform) };
    let mut plan = plan(vec![get()], keys);
    let preload = Workload::of_trial(&plan).unwrap().preload(&plan).unwrap().unwrap();
    let written: Vec<_> = (0..12).map(|k| arguments(&preload.command(k, 0)).remove(1)).collect();
    assert_eq!(written, (10..22).map(|number| format!("p:{{t{}}}{number}", number % 4)).collect::<Vec<_>>());
    plan.shards = 2;
    let deleted = (0..2).flat_map(|shard| {
        let own = OwnKeys::of(&plan.clone().of_shard(shard)).unwrap();
        own.numbers.clone().map(|number| String::from_utf8(own.key(number)).unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(deleted.collect::<Vec<_>>(), written);
}

proptest! {
    #[test]
    fn keys_of_a_request_share_its_tag_and_slot(
        (count, of_tag) in (1u32..20, 1u64..30),
        start in 0u64..100,
        pattern in prop::sample::select(vec![
            KeyPattern::Uniform,
            KeyPattern::Sequential,
            KeyPattern::Gaussian { mean: 0, standard_deviation: 1 },
            KeyPattern::Zipf { exponent_millionths: 990_000, hot_keys: HotKeys::Scattered },
            KeyPattern::HotSet { keys: 1, percent_millionths: 90_000_000, hot_keys: HotKeys::First },
        ]),
        (is_hot, shared_keys) in any::<(bool, bool)>(),
        k in prop_oneof![0u64..1000, 0u64..1 << 40],
    ) {
        let all = u64::from(count) * of_tag;
        let tags = Some(tags(count, (is_hot && count > 1).then_some((count / 2, 80))));
        let command = operation(1, vec![vec![literal("MSET")], vec![Part::Key], vec![literal("x")], vec![Part::NthKey(2)]]);
        let mut plan = plan(vec![command], Keys { tags, ..keys("p:", start, all, pattern) });
        plan.workload_mut().options.transaction = shared_keys.then_some(plan::Transaction { size: 2, shared_keys });
        let workload = Workload::of_trial(&plan).unwrap();
        let command = workload.command(k, 0);
        prop_assert_eq!(&command, &Workload::of_trial(&plan).unwrap().command(k, 0));
        let text = String::from_utf8(command).unwrap();
        let keys: Vec<&str> = text.split("\r\n").filter(|line| line.starts_with("p:")).collect();
        let first = tag_and_number(keys[0]);
        for key in &keys {
            let (tag, number) = tag_and_number(key);
            prop_assert_eq!((tag, number % u64::from(count)), (first.0, tag));
            prop_assert!((start..start + all).contains(&number));
            prop_assert_eq!(workload.slot(k, 0), slot_of(key.as_bytes()));
        }
        let mut each = Vec::new();
        workload.each_key(k, 0, &mut Vec::new(), |key| each.push(String::from_utf8_lossy(key).into_owned()));
        prop_assert_eq!(each, &keys[..2]);
    }
}

//! The keys that a shard owns: it follows their values, and no other shard writes them.

use redisbench_wire::plan::{KeyPattern, Keys, ShardPlan, TrialPlan};

use crate::workload::part_of;

/// Restricts the followed keys of `plan` to this shard's own part, which its requests use with the same pattern. `None` if no values are
/// followed.
///
/// A key belongs to one shard, so only that shard needs to know what was written. A shard sends the requests k with `k mod shards = shard`.
/// Request k stays a function of (seed, k), as with the pattern Partitioned.
pub fn own_workload(plan: &ShardPlan) -> Option<TrialPlan> {
    let followed = plan.followed()?.keys;
    let mut own = TrialPlan::clone(plan);
    let workload = own.workload_mut();
    let operations = workload.operations.iter_mut().filter_map(|operation| operation.keys.as_mut());
    for keys in operations.chain([&mut workload.keys]) {
        if keys.same_names(&followed) {
            restrict(keys, plan.shard, plan.shards);
        }
    }
    Some(own)
}

fn restrict(keys: &mut Keys, shard: u32, shards: u32) {
    let whole = keys.count;
    let part = part_of(whole, shard.into(), shards.into());
    let count = part.end - part.start;
    let scaled = |number: u64| {
        let scaled = u128::from(number) * u128::from(count) / u128::from(whole.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    };
    keys.pattern = match keys.pattern {
        // These advance with k, and a shard sends only every nth request.
        KeyPattern::Sequential | KeyPattern::Partitioned => {
            keys.pattern = KeyPattern::Partitioned;
            return;
        }
        KeyPattern::Gaussian { mean, standard_deviation } => KeyPattern::Gaussian {
            mean: scaled(mean).min(count.saturating_sub(1)),
            standard_deviation: scaled(standard_deviation).max(1),
        },
        KeyPattern::HotSet { keys, percent_millionths, hot_keys } => {
            KeyPattern::HotSet { keys: scaled(keys).max(1), percent_millionths, hot_keys }
        }
        // Never with followed keys, because requests are not sent by the connection that draws them.
        same @ (KeyPattern::Uniform | KeyPattern::Zipf { .. } | KeyPattern::PerConnection { .. }) => same,
    };
    // Keep the key's name independent of the shard.
    let last = keys.start.saturating_add(whole.saturating_sub(1));
    keys.width = keys.width.max(last.checked_ilog10().unwrap_or(0) + 1);
    keys.start += part.start;
    keys.count = count;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plan;
    use crate::workload::{OwnKeys, Workload};
    use redisbench_wire::plan::{HotKeys, Verify};

    /// All requests of all shards use keys of their shard's part, under the names that the preload writes.
    #[test]
    fn each_key_belongs_to_one_shard_whatever_the_pattern() {
        let hot_keys = HotKeys::First;
        for pattern in [
            KeyPattern::Uniform,
            KeyPattern::Sequential,
            KeyPattern::Partitioned,
            KeyPattern::Gaussian { mean: 990, standard_deviation: 100 },
            KeyPattern::Zipf { exponent_millionths: 990_000, hot_keys },
            KeyPattern::HotSet { keys: 10, percent_millionths: 90_000_000, hot_keys },
        ] {
            let mut touched = vec![0; 1001];
            for shard in 0..3 {
                let mut plan = plan();
                plan.verify = Verify::Values;
                let keys = &mut plan.workload_mut().keys;
                (keys.start, keys.count, keys.pattern) = (9, 1001, pattern);
                let plan = plan.of_shard(shard);
                let workload = Workload::of_trial(&own_workload(&plan).unwrap()).unwrap();
                let part = part_of(1001, shard.into(), 3);
                let own = OwnKeys::of(&plan).unwrap();
                for k in (u64::from(shard)..30_000).step_by(3) {
                    let key = workload.draw(k).key - 9;
                    assert!(part.contains(&key), "{pattern:?}: request {k} of shard {shard} takes key {key}");
                    touched[usize::try_from(key).unwrap()] += 1;
                    if k < 30 {
                        let mut room = [0; 256];
                        let length = workload.encode([k], 0, &mut room);
                        let name = own.key(key - part.start);
                        assert!(room[..length].windows(name.len()).any(|window| window == name), "{pattern:?}");
                    }
                }
            }
            if matches!(pattern, KeyPattern::Sequential | KeyPattern::Partitioned) {
                assert!(touched.iter().all(|times| (29..=31).contains(times)), "{touched:?}");
            }
        }
    }

    #[test]
    fn without_followed_values_nothing_changes() {
        for verify in [Verify::None, Verify::Replies] {
            assert_eq!(own_workload(&TrialPlan { verify, ..plan() }.of_shard(1)), None, "GET counts nothing");
        }
    }
}

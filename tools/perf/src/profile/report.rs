//! The profiles as tables.

use std::collections::{BTreeMap, BTreeSet};

use super::recorded::{Pair, Profile};
use crate::bench::Bench;
use crate::machine::Machine;
use crate::markdown;

pub fn document(machine: &Machine, bench: &Bench, pairs: &[Pair]) -> String {
    let sections: String = pairs.iter().map(section).collect();
    format!("{}{HOW}\n{sections}", machine.header(bench, "Profile of the CPU time", "profile"))
}

const HOW: &str = "\
One worker with 50 connections against the null server, so that the client is the limit. Ours is the bare engine
(`tools/perf/src/bin/drive.rs`) with all histograms. The floor (`redisbench-floor`) makes only the system calls.
The shares are from samples of `perf record -e cpu-clock`, 4999 per second. The microseconds are these shares of a request's cost
without perf: user and system time of the whole process, the median of alternating runs. Line tables identify inlined functions.
In a virtual machine without performance counters, samples that fall where the kernel has disabled interrupts are delayed a little,
so single kernel functions would be unreliable; system calls are not affected.

[flame.svg](flame.svg) is the flame graph of ours at P=16, GET; open it in its own window to zoom.
";

type Groups = BTreeMap<&'static str, u64>;

/// One load: its table, and the additional cost of ours, and where.
pub fn section(pair: &Pair) -> String {
    let both = [&pair.ours, &pair.floor];
    let sum = |groups: fn(&Profile) -> &Groups| both.map(|profile| groups(profile).values().sum::<u64>());
    let (user, kernel) = (sum(|profile| &profile.user), sum(|profile| &profile.kernel));
    let mut rows = vec![("**user**", user)];
    rows.extend(groups(both.map(|profile| &profile.user)));
    rows.push(("**kernel**", kernel));
    rows.extend(groups(both.map(|profile| &profile.kernel)));
    rows.push(("**all**", both.map(Profile::count)));
    let cells = |(name, counts): (&str, [u64; 2])| {
        let [ours, floor] = [0, 1].map(|index| match (counts[index], both[index]) {
            (0, _) => [String::new(), String::new()],
            (count, profile) => {
                [format!("{:.4}", profile.part(count)), format!("{:.1} %", 100.0 * profile.part(count) / profile.cost)]
            }
        });
        let [[our_time, our_share], [floor_time, floor_share]] = [ours, floor];
        [name.to_owned(), our_time, our_share, floor_time, floor_share]
    };
    let more = |counts: [u64; 2]| pair.ours.part(counts[0]) - pair.floor.part(counts[1]);
    let heads = ["", "ours, µs per request", "share", "the floor, µs per request", "share"];
    format!(
        "## {}, P={}\n\n{}\nOurs costs {:+.1} % compared with the floor, {:+.4} µs per request: {:+.4} in its own code, {:+.4} \
         in the kernel. {} and {} samples.\n\n",
        pair.load.operation.to_uppercase(),
        pair.load.pipeline,
        markdown::table(heads, rows.into_iter().map(cells)),
        100.0 * (pair.ours.cost / pair.floor.cost - 1.0),
        pair.ours.cost - pair.floor.cost,
        more(user),
        more(kernel),
        pair.ours.count(),
        pair.floor.count(),
    )
}

/// The groups of both, the most expensive of ours first.
fn groups([ours, floor]: [&Groups; 2]) -> Vec<(&'static str, [u64; 2])> {
    let names: BTreeSet<&str> = ours.keys().chain(floor.keys()).copied().collect();
    let counts = |name: &str| [ours, floor].map(|groups| groups.get(name).copied().unwrap_or(0));
    let mut groups: Vec<_> = names.into_iter().map(|name| (name, counts(name))).collect();
    groups.sort_by_key(|(_, counts)| std::cmp::Reverse(*counts));
    groups
}

impl Profile {
    /// The part of the cost that falls on `count` of the samples, in microseconds per request.
    fn part(&self, count: u64) -> f64 {
        self.cost * count as f64 / self.count().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Load;

    #[test]
    fn shares_add_up_to_the_cost() {
        let profile = |user: u64, cost| Profile {
            cost,
            user: BTreeMap::from([("recording", user)]),
            kernel: BTreeMap::from([("recv", 30), ("send: the rest", 60)]),
            stacks: BTreeMap::new(),
        };
        let pair = Pair { load: Load::closed("get", 16, 1), ours: profile(10, 0.5), floor: profile(0, 0.4) };
        let text = section(&pair);
        assert!(text.starts_with("## GET, P=16\n"), "{text}");
        for part in [
            "| **user** | 0.0500 | 10.0 % |  |  |\n| recording | 0.0500 | 10.0 % |  |  |\n",
            "| **kernel** | 0.4500 | 90.0 % | 0.4000 | 100.0 % |\n| send: the rest | 0.3000",
            "| **all** | 0.5000 | 100.0 % | 0.4000 | 100.0 % |",
            "+25.0 % compared with the floor, +0.1000 µs per request: +0.0500 in its own code, +0.0500 in the kernel.",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}

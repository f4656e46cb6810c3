//! The profiles as tables.

use std::collections::{BTreeMap, BTreeSet};

use super::{Pair, Profile};
use crate::clients::Bench;
use crate::machine::Machine;

/// The document.
pub fn document(machine: &Machine, bench: &Bench, pairs: &[Pair]) -> String {
    let length = if (bench.length - 1.0).abs() < f64::EPSILON {
        String::new()
    } else {
        format!(" The runs were shortened by the factor {}.", bench.length)
    };
    let sections: String = pairs.iter().map(section).collect();
    format!(
        "# Profile of the CPU time\n\nMeasured by `make profile` on {}.{length}\n\n{}\n{HOW}\n{sections}",
        machine.date,
        machine.list()
    )
}

const HOW: &str = "\
One worker with 50 connections against the null server, so that the client is the limit. Ours is the bare engine
(`loadgen/src/bin/drive.rs`) with all histograms. The floor (`redisbench-floor`) makes only the system calls.
The shares are from samples of `perf record -e cpu-clock`, 4999 per second. The microseconds are these shares of a request's cost
without perf: user and system time of the whole process, the median of alternating runs. Line tables identify inlined functions.
In a virtual machine without performance counters, samples that fall where the kernel has disabled interrupts are delayed a little,
so single kernel functions would be unreliable; system calls are not affected.

[flame.svg](flame.svg) is the flame graph of ours at P=16, GET; open it in its own window to zoom.
";

/// One load.
pub fn section(pair: &Pair) -> String {
    let name = pair.load.operation.name().to_uppercase();
    let (ours, floor) = (&pair.ours, &pair.floor);
    let user = rows(&ours.user, &floor.user, pair);
    let kernel = rows(&ours.kernel, &floor.kernel, pair);
    let all = |groups: fn(&Profile) -> &BTreeMap<&'static str, u64>| {
        [ours, floor].map(|profile| groups(profile).values().sum::<u64>())
    };
    format!(
        "## {name}, P={}\n\n| | ours, µs per request | share | the floor, µs per request | share |\n\
         | --- | --- | --- | --- | --- |\n{}{user}{}{kernel}{}\n{}\n\n",
        pair.load.pipeline,
        row("**user**", all(|profile| &profile.user), pair),
        row("**kernel**", all(|profile| &profile.kernel), pair),
        row("**all**", [ours.count(), floor.count()], pair),
        summary(pair),
    )
}

/// The additional cost of ours, and where.
fn summary(pair: &Pair) -> String {
    let (ours, floor) = (&pair.ours, &pair.floor);
    let part = |profile: &Profile, groups: &BTreeMap<&'static str, u64>| {
        profile.cost * groups.values().sum::<u64>() as f64 / profile.count().max(1) as f64
    };
    format!(
        "Ours costs {:+.1} % compared with the floor, {:+.4} µs per request: {:+.4} in its own code, {:+.4} in the \
         kernel. {} and {} samples.",
        100.0 * (ours.cost / floor.cost - 1.0),
        ours.cost - floor.cost,
        part(ours, &ours.user) - part(floor, &floor.user),
        part(ours, &ours.kernel) - part(floor, &floor.kernel),
        ours.count(),
        floor.count(),
    )
}

/// The groups of both, the most expensive of ours first.
fn rows(ours: &BTreeMap<&'static str, u64>, floor: &BTreeMap<&'static str, u64>, pair: &Pair) -> String {
    let count = |groups: &BTreeMap<&'static str, u64>, group: &str| groups.get(group).copied().unwrap_or(0);
    let mut groups: Vec<&str> = ours.keys().chain(floor.keys()).copied().collect::<BTreeSet<_>>().into_iter().collect();
    groups.sort_by_key(|group| std::cmp::Reverse((count(ours, group), count(floor, group))));
    groups.iter().map(|group| row(group, [count(ours, group), count(floor, group)], pair)).collect()
}

fn row(name: &str, counts: [u64; 2], pair: &Pair) -> String {
    let cells = [&pair.ours, &pair.floor].into_iter().zip(counts).map(|(profile, count)| {
        let share = count as f64 / profile.count().max(1) as f64;
        if count == 0 { "| | ".to_owned() } else { format!("| {:.4} | {:.1} % ", share * profile.cost, 100.0 * share) }
    });
    format!("| {name} {}|\n", cells.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{Load, Operation};

    #[test]
    fn shares_add_up_to_the_cost() {
        let profile = |user: u64, cost| Profile {
            cost,
            user: BTreeMap::from([("recording", user)]),
            kernel: BTreeMap::from([("recv", 30), ("send: the rest", 60)]),
            stacks: BTreeMap::new(),
        };
        let pair = Pair { load: Load::closed(Operation::Get, 16, 1), ours: profile(10, 0.5), floor: profile(0, 0.4) };
        let text = section(&pair);
        assert!(text.starts_with("## GET, P=16\n"), "{text}");
        assert!(text.contains("| **user** | 0.0500 | 10.0 % | | |\n| recording | 0.0500 | 10.0 % | | |\n"), "{text}");
        assert!(
            text.contains("| **kernel** | 0.4500 | 90.0 % | 0.4000 | 100.0 % |\n| send: the rest | 0.3000"),
            "{text}"
        );
        let summary =
            "+25.0 % compared with the floor, +0.1000 µs per request: +0.0500 in its own code, +0.0500 in the kernel.";
        assert!(text.contains(summary), "{text}");
        assert!(text.contains("| **all** | 0.5000 | 100.0 % | 0.4000 | 100.0 % |"), "{text}");
    }
}

//! Merges many shards' views of the target's topology. A change has the time at which the first shard saw it. Slots were unavailable when
//! at least half of the shards got no answers. Times are relative to the start instant, which all shards have in common. Pure.

mod report;

use std::collections::BTreeMap;

use redisbench_wire::outage::agreed;
use redisbench_wire::plan::{Topology as Kind, TrialPlan};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::topology::{Change, ChangeKind, Outage, SlotRange, ranges};

pub use report::shortened;

/// In nanoseconds. Slots that move between the same two nodes within this time are reported as one change.
const TOGETHER: u64 = 1_000_000_000;

/// Topology as seen by all shards together. Times are nanoseconds since the start instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedTopology {
    /// True if the target has slots.
    pub slotted: bool,
    /// Beginning of the measurement.
    pub measured_from: u64,
    /// Primaries that own slots.
    pub primaries: u32,
    /// Replicas that can serve.
    pub replicas: u32,
    /// In the order of time.
    pub changes: Vec<Change>,
    /// Times in which slots got no answers, in the order of time.
    pub outages: Vec<Outage>,
    /// Changes and outages that shards left out. An event left out by several shards counts several times.
    pub left_out: u64,
}

/// Merges the topologies of `snapshots`.
pub fn merge(plan: &TrialPlan, snapshots: &[&Snapshot]) -> MergedTopology {
    let reports = || snapshots.iter().map(|snapshot| &snapshot.topology);
    let since_start = |snapshot: &Snapshot, at: u64| at.saturating_sub(snapshot.window.start_nanoseconds);
    let outages: Vec<Vec<Outage>> = snapshots
        .iter()
        .map(|snapshot| {
            let relative = |outage: &Outage| Outage {
                from_nanoseconds: since_start(snapshot, outage.from_nanoseconds),
                until_nanoseconds: since_start(snapshot, outage.until_nanoseconds),
                ..outage.clone()
            };
            snapshot.topology.outages.iter().map(relative).collect()
        })
        .collect();
    let lists: Vec<&[Outage]> = outages.iter().map(Vec::as_slice).collect();
    let changes = snapshots.iter().map(|snapshot| {
        let relative =
            |change: &Change| Change { at_nanoseconds: since_start(snapshot, change.at_nanoseconds), ..change.clone() };
        snapshot.topology.changes.iter().map(relative).collect()
    });
    let left_out = reports().map(|report| report.changes_left_out.saturating_add(report.outages_left_out));
    MergedTopology {
        slotted: matches!(plan.target.topology, Kind::Cluster | Kind::Pool),
        measured_from: snapshots
            .iter()
            .filter(|snapshot| snapshot.window.start_nanoseconds > 0)
            .map(|snapshot| since_start(snapshot, snapshot.window.measure_from_nanoseconds))
            .max()
            .unwrap_or(plan.warmup_nanoseconds),
        primaries: reports().map(|report| report.primaries).max().unwrap_or(0),
        replicas: reports().map(|report| report.replicas).max().unwrap_or(0),
        changes: one_timeline(changes),
        outages: agreed(&lists, snapshots.len()),
        left_out: left_out.fold(0, u64::saturating_add),
    }
}

/// Matches the nth change of a kind at a node across shards.
fn one_timeline(lists: impl Iterator<Item = Vec<Change>>) -> Vec<Change> {
    let mut nodes = BTreeMap::<(ChangeKind, String, usize), Change>::new();
    let mut moves = BTreeMap::<(String, String), BTreeMap<(u16, usize), u64>>::new();
    for list in lists {
        let mut seen = BTreeMap::<(ChangeKind, String), usize>::new();
        let mut times = BTreeMap::<(String, String, u16), usize>::new();
        for change in list {
            if let Some(from) = change.from.clone().filter(|_| change.what == ChangeKind::SlotsMoved) {
                let slots = moves.entry((from.clone(), change.node.clone())).or_default();
                for slot in change.slots.iter().flat_map(|range| range.first..=range.last) {
                    let nth = times.entry((from.clone(), change.node.clone(), slot)).or_default();
                    let at = slots.entry((slot, *nth)).or_insert(u64::MAX);
                    *at = change.at_nanoseconds.min(*at);
                    *nth += 1;
                }
                continue;
            }
            let nth = seen.entry((change.what, change.node.clone())).or_default();
            let key = (change.what, change.node.clone(), *nth);
            *nth += 1;
            match nodes.get_mut(&key) {
                Some(known) if known.at_nanoseconds <= change.at_nanoseconds => {}
                _ => drop(nodes.insert(key, change)),
            }
        }
    }
    let mut all: Vec<Change> = nodes.into_values().collect();
    for ((from, to), slots) in moves {
        all.extend(together(&from, &to, slots));
    }
    all.sort_by(|a, b| (a.at_nanoseconds, a.what, &a.node).cmp(&(b.at_nanoseconds, b.what, &b.node)));
    all
}

/// Groups slots that moved at about the same time into one change.
fn together(from: &str, to: &str, slots: BTreeMap<(u16, usize), u64>) -> Vec<Change> {
    let mut by_time: Vec<(u64, u16)> = slots.into_iter().map(|((slot, _), at)| (at, slot)).collect();
    by_time.sort_unstable();
    let mut changes = Vec::new();
    let mut rest = by_time.as_slice();
    while let Some((first, _)) = rest.first() {
        let count = rest.partition_point(|(at, _)| at - first < TOGETHER);
        let mut slots: Vec<u16> = rest[..count].iter().map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        changes.push(Change {
            at_nanoseconds: *first,
            what: ChangeKind::SlotsMoved,
            node: to.to_owned(),
            from: Some(from.to_owned()),
            slots: ranges(slots),
        });
        rest = &rest[count..];
    }
    changes
}

impl MergedTopology {
    /// The outages of the measurement, which is `window` nanoseconds long, each cut to it. Drops those that become shorter than the
    /// shortest outage.
    pub fn outages_within(&self, window: u64) -> impl Iterator<Item = Outage> {
        let (from, until) = (self.measured_from, self.measured_from.saturating_add(window));
        let cut = move |outage: &Outage| Outage {
            from_nanoseconds: outage.from_nanoseconds.max(from),
            until_nanoseconds: outage.until_nanoseconds.min(until),
            ..outage.clone()
        };
        self.outages.iter().map(cut).filter(|outage| outage.nanoseconds() >= Outage::SHORTEST_NANOSECONDS)
    }

    /// Share of slots times time that was unavailable in the `window` nanoseconds from the beginning of the measurement, in hundredths of a
    /// per cent.
    pub fn unavailable(&self, window: u64) -> u64 {
        let share = |reads: bool| {
            let outages = self.outages_within(window).filter(|outage| outage.reads == reads);
            let slots_by_time =
                outages.map(|outage| u128::from(outage.nanoseconds()) * u128::from(outage.slots.count()));
            let whole = u128::from(window.max(1)) * u128::from(SlotRange::ALL.count());
            slots_by_time.sum::<u128>() * 10_000 / whole
        };
        u64::try_from(share(false).max(share(true))).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SECOND, snapshot};

    const MS: u64 = 1_000_000;

    fn slots(first: u16, last: u16) -> Vec<SlotRange> {
        vec![SlotRange { first, last }]
    }

    fn change(what: ChangeKind, node: &str, from: Option<&str>, at: u64, slots: Vec<SlotRange>) -> Change {
        Change { at_nanoseconds: at * MS, what, node: node.into(), from: from.map(str::to_owned), slots }
    }

    /// A snapshot with these changes and outages, from a shard with its own clock.
    fn seen(shard: u32, changes: &[Change], outages: &[(u64, u64)]) -> Snapshot {
        let mut snapshot = snapshot(shard, &[1_000]);
        let start = snapshot.window.start_nanoseconds;
        let outage = |(from, until): &(u64, u64)| Outage {
            slots: SlotRange { first: 0, last: 5460 },
            reads: false,
            node: "a:1".into(),
            from_nanoseconds: start + from * MS,
            until_nanoseconds: start + until * MS,
            lasting: false,
        };
        let at = |change: &Change| Change { at_nanoseconds: start + change.at_nanoseconds, ..change.clone() };
        snapshot.topology.changes = changes.iter().map(at).collect();
        snapshot.topology.outages = outages.iter().map(outage).collect();
        snapshot.topology.primaries = 3;
        snapshot
    }

    fn merged(snapshots: &[Snapshot]) -> MergedTopology {
        merge(&TrialPlan::basic("redis:6379"), &snapshots.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_change_is_told_once_and_by_who_saw_it_first() {
        let changes = |late: u64| {
            [
                change(ChangeKind::Gone, "a:1", None, 100 + late, slots(0, 9)),
                change(ChangeKind::Appeared, "a:1", None, 200 + late, vec![]),
                change(ChangeKind::Gone, "a:1", None, 300 + late, vec![]),
            ]
        };
        let merged = merged(&[seen(0, &changes(30), &[]), seen(1, &changes(0), &[]), seen(2, &changes(60), &[])]);
        assert_eq!(merged.changes, changes(0));
        assert_eq!(merged.primaries, 3);
    }

    #[test]
    fn slots_on_their_way_are_one_change_whoever_saw_which_first() {
        let moved = |at, first, last| change(ChangeKind::SlotsMoved, "b:1", Some("a:1"), at, slots(first, last));
        let one = seen(0, &[moved(100, 0, 299), moved(600, 300, 999)], &[]);
        let other = seen(1, &[moved(350, 0, 599), moved(700, 600, 999), moved(1700, 1000, 1000)], &[]);
        assert_eq!(merged(&[one, other]).changes, [moved(100, 0, 999), moved(1700, 1000, 1000)]);
    }

    #[test]
    fn unavailable_is_what_half_of_the_shards_could_not_reach() {
        let shards = [seen(0, &[], &[(100, 300), (500, 520)]), seen(1, &[], &[(110, 320)]), seen(2, &[], &[])];
        let outages = merged(&shards).outages;
        assert_eq!(outages.len(), 1);
        assert_eq!((outages[0].from_nanoseconds, outages[0].until_nanoseconds), (110 * MS, 300 * MS));
    }

    #[test]
    fn the_share_is_weighed_by_slots_and_is_that_of_the_measurement() {
        let mut topology = merged(&[seen(0, &[], &[(0, 3_000)])]);
        topology.measured_from = SECOND;
        // A third of the slots for 2 s of 10.
        assert_eq!(topology.unavailable(10 * SECOND), 666);
        assert_eq!(MergedTopology::default().unavailable(0), 0);
    }
}

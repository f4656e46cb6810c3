//! The differences between two topologies of a target. Pure.

use std::collections::BTreeMap;

use redisbench_wire::topology::{Change, ChangeKind, ranges};

use super::SLOTS;
use super::topology::{Member, Topology};

/// The changes since `before`, in this order: nodes that appeared, nodes that changed their role, slots that moved, nodes that left.
pub fn changes(before: &Topology, after: &Topology, at_nanoseconds: u64) -> Vec<Change> {
    let of = |what, member: &Member, map: &Topology| Change {
        at_nanoseconds,
        what,
        node: member.label.clone(),
        from: None,
        slots: ranges(owned(map, &member.id)),
    };
    let known = |map: &Topology, id: &str| map.members.iter().find(|member| member.id == id).cloned();
    let (mut came, mut turned, mut went) = (Vec::new(), Vec::new(), Vec::new());
    for member in &after.members {
        let earlier = known(before, &member.id);
        if member.healthy && !earlier.as_ref().is_some_and(|earlier| earlier.healthy) {
            came.push(of(ChangeKind::Appeared, member, after));
        }
        match earlier {
            Some(Member { primary: true, .. }) if !member.primary => {
                turned.push(of(ChangeKind::BecameReplica, member, after));
            }
            Some(Member { primary: false, .. }) if member.primary => {
                turned.push(of(ChangeKind::BecamePrimary, member, after));
            }
            _ => {}
        }
    }
    for member in before.members.iter().filter(|member| member.healthy) {
        if !known(after, &member.id).is_some_and(|later| later.healthy) {
            went.push(of(ChangeKind::Gone, member, before));
        }
    }
    came.into_iter().chain(turned).chain(moved(before, after, at_nanoseconds)).chain(went).collect()
}

/// The slots with a new owner, grouped by old and new owner.
fn moved(before: &Topology, after: &Topology, at_nanoseconds: u64) -> Vec<Change> {
    let mut moves = BTreeMap::<(&str, &str), Vec<u16>>::new();
    for slot in 0..SLOTS {
        if let (Some(from), Some(to)) = (before.owner_of(slot), after.owner_of(slot))
            && from != to
        {
            moves.entry((from, to)).or_default().push(slot as u16);
        }
    }
    let label = |map: &Topology, id: &str| {
        let node = map.nodes.iter().find(|node| node.id == id);
        node.map_or_else(|| id.to_owned(), |node| node.label.clone())
    };
    let moves = moves.into_iter().map(|((from, to), slots)| Change {
        at_nanoseconds,
        what: ChangeKind::SlotsMoved,
        node: label(after, to),
        from: Some(label(before, from)),
        slots: ranges(slots),
    });
    moves.collect()
}

fn owned<'a>(map: &'a Topology, id: &'a str) -> impl Iterator<Item = u16> + 'a {
    (0..SLOTS).filter(move |slot| map.owner_of(*slot) == Some(id)).map(|slot| slot as u16)
}

#[cfg(test)]
mod tests {
    use redisbench_wire::topology::SlotRange;

    use super::*;
    use crate::cluster::NodeAddress;

    fn map(primaries: &[(&str, std::ops::Range<usize>)], members: &[(&str, bool, bool)]) -> Topology {
        let label = |id: &str| format!("{id}:1");
        let mut slots: Box<[u16; SLOTS]> = vec![super::super::UNCOVERED; SLOTS].into_boxed_slice().try_into().unwrap();
        for (index, (_, range)) in primaries.iter().enumerate() {
            slots[range.clone()].fill(index as u16);
        }
        let node = |(id, _): &(&str, _)| NodeAddress {
            id: (*id).to_owned(),
            address: "127.0.0.1:1".parse().unwrap(),
            label: label(id),
        };
        let member = |(id, primary, healthy): &(&str, bool, bool)| Member {
            id: (*id).to_owned(),
            label: label(id),
            primary: *primary,
            healthy: *healthy,
        };
        Topology {
            nodes: primaries.iter().map(node).collect(),
            slots: Some(slots),
            members: members.iter().map(member).collect(),
            ..Topology::default()
        }
    }

    fn told(before: &Topology, after: &Topology) -> Vec<String> {
        let text = |change: Change| {
            assert_eq!(change.at_nanoseconds, 7);
            let slots: u64 = change.slots.iter().map(|range| range.count()).sum();
            format!("{:?} {} {} {slots}", change.what, change.from.unwrap_or_default(), change.node)
        };
        changes(before, after, 7).into_iter().map(text).collect()
    }

    #[test]
    fn a_failover_is_told() {
        let before =
            map(&[("a", 0..8192), ("b", 8192..SLOTS)], &[("a", true, true), ("b", true, true), ("r", false, true)]);
        let after =
            map(&[("r", 0..8192), ("b", 8192..SLOTS)], &[("a", true, false), ("b", true, true), ("r", true, true)]);
        assert_eq!((before.counts(), after.counts()), ((2, 1), (2, 0)));
        assert_eq!(told(&before, &after), ["BecamePrimary  r:1 8192", "SlotsMoved a:1 r:1 8192", "Gone  a:1 8192"]);
        let back =
            map(&[("r", 0..8192), ("b", 8192..SLOTS)], &[("a", false, true), ("b", true, true), ("r", true, true)]);
        assert_eq!(told(&after, &back), ["Appeared  a:1 0", "BecameReplica  a:1 0"]);
    }

    #[test]
    fn slots_that_move_are_told_by_both_their_owners() {
        let two = [("a", true, true), ("b", true, true)];
        let before = map(&[("a", 0..8192), ("b", 8192..SLOTS)], &two);
        let after = map(&[("a", 100..8092), ("b", 8192..SLOTS), ("c", 0..100)], &[two[0], two[1], ("c", true, true)]);
        assert_eq!(told(&before, &after), ["Appeared  c:1 100", "SlotsMoved a:1 c:1 100"]);
        assert_eq!(told(&before, &before), Vec::<String>::new());
        let more = map(&[("a", 0..5000), ("b", 5000..SLOTS)], &two);
        let [change] = changes(&before, &more, 7).try_into().unwrap();
        assert_eq!(change.slots, [SlotRange { first: 5000, last: 8191 }]);
    }
}

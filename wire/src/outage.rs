//! Agreement on outages: combines the reports of several workers of a shard, or several shards of a benchmark. Pure functions.

use crate::topology::{Outage, SLOTS, SlotRange};

/// The most outages that are compared. Of more, the longest are kept.
const COMPARED: usize = 8192;

/// The outages that at least half of `parties` saw at the same time, and at least two if there are two. Each list is from one party. A
/// single broken connection is no outage, and a party that requested no key of a slot meanwhile need not have noticed. Sorted by time.
/// Outages below [`Outage::SHORTEST_NANOSECONDS`] are left out.
pub fn agreed(lists: &[&[Outage]], parties: usize) -> Vec<Outage> {
    let mut all: Vec<(usize, &Outage)> =
        lists.iter().enumerate().flat_map(|(party, list)| list.iter().map(move |outage| (party, outage))).collect();
    all.retain(|(_, outage)| outage.from_nanoseconds < outage.until_nanoseconds);
    if all.len() > COMPARED {
        all.sort_by_key(|(_, outage)| std::cmp::Reverse(outage.nanoseconds()));
        all.truncate(COMPARED);
    }
    let mut agreed = Vec::new();
    for reads in [false, true] {
        let these: Vec<_> = all.iter().copied().filter(|(_, outage)| outage.reads == reads).collect();
        by_slots(&these, parties, &mut agreed);
    }
    agreed.sort_by_key(|outage: &Outage| (outage.from_nanoseconds, outage.slots, outage.reads));
    agreed
}

fn by_slots(all: &[(usize, &Outage)], parties: usize, agreed: &mut Vec<Outage>) {
    let ends = all.iter().flat_map(|(_, outage)| [outage.slots.first, outage.slots.last.saturating_add(1)]);
    let mut edges: Vec<u16> = ends.collect();
    edges.sort_unstable();
    edges.dedup();
    let mut before: Vec<Outage> = Vec::new();
    for edge in edges.windows(2) {
        let slots = SlotRange { first: edge[0], last: edge[1] - 1 };
        let here: Vec<_> = all
            .iter()
            .copied()
            .filter(|(_, outage)| outage.slots.first <= slots.first && slots.last <= outage.slots.last)
            .collect();
        let mut now = by_time(&here, slots, parties);
        // Merge adjacent slots with the same outage into one range.
        for outage in &mut now {
            let alike = |other: &&Outage| {
                other.slots.last.checked_add(1) == Some(slots.first) && Outage { slots, ..(*other).clone() } == *outage
            };
            if let Some(found) = before.iter().position(|other| alike(&other)) {
                outage.slots.first = before.swap_remove(found).slots.first;
            }
        }
        agreed.append(&mut before);
        before = now;
    }
    agreed.append(&mut before);
}

/// The times at which at least half of the parties had one of these outages. All of them contain `slots`.
fn by_time(these: &[(usize, &Outage)], slots: SlotRange, parties: usize) -> Vec<Outage> {
    let mut steps: Vec<(u64, bool, usize)> = (0..these.len())
        .flat_map(|at| [(these[at].1.from_nanoseconds, true, at), (these[at].1.until_nanoseconds, false, at)])
        .collect();
    // Ends sort before begins at the same time, so that adjacent outages do not overlap.
    steps.sort_unstable();
    let needed = parties.div_ceil(2).max(parties.min(2));
    let mut lasting_of = vec![0_u32; these.iter().map(|(party, _)| party + 1).max().unwrap_or(0)];
    let (mut out, mut open, mut agreed) = (0, None::<(u64, usize)>, Vec::new());
    for (time, begins, at) in steps {
        let (party, outage) = these[at];
        let count = &mut lasting_of[party];
        if begins {
            *count += 1;
            out += usize::from(*count == 1);
        } else {
            *count = count.saturating_sub(1);
            out -= usize::from(*count == 0);
        }
        let enough = out > 0 && out >= needed;
        match open {
            None if enough => open = Some((time, at)),
            Some((from, first)) if !enough => {
                open = None;
                if time.saturating_sub(from) >= Outage::SHORTEST_NANOSECONDS {
                    agreed.push(Outage {
                        slots,
                        reads: outage.reads,
                        node: these[first].1.node.clone(),
                        from_nanoseconds: from,
                        until_nanoseconds: time,
                        lasting: outage.lasting,
                    });
                }
            }
            _ => {}
        }
    }
    agreed
}

/// Checks the bounds of an outage that [`agreed`] relies on.
pub(crate) fn is_sound(outage: &Outage) -> bool {
    outage.slots.first <= outage.slots.last
        && outage.slots.last < SLOTS
        && outage.from_nanoseconds <= outage.until_nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn outage(slots: (u16, u16), from: u64, until: u64) -> Outage {
        Outage {
            slots: SlotRange { first: slots.0, last: slots.1 },
            reads: false,
            node: "a:1".into(),
            from_nanoseconds: from * MS,
            until_nanoseconds: until * MS,
            lasting: false,
        }
    }

    #[test]
    fn one_party_s_word_is_its_own() {
        let list = [outage((0, 99), 100, 300), outage((0, 99), 400, 405), outage((200, 300), 100, 300)];
        assert_eq!(agreed(&[&list], 1), [list[0].clone(), list[2].clone()], "but for the short one");
    }

    #[test]
    fn half_of_the_parties_must_have_had_it() {
        let (a, b) = ([outage((0, 99), 100, 300)], [outage((0, 99), 110, 320)]);
        assert_eq!(agreed(&[&a, &[], &[]], 3), []);
        assert_eq!(agreed(&[&a, &[]], 2), [], "of two, both");
        assert_eq!(agreed(&[&a, &b], 2), [outage((0, 99), 110, 300)]);
        assert_eq!(agreed(&[&a, &b, &[]], 3), [outage((0, 99), 110, 300)]);
        // The second earliest of four.
        let early = [outage((0, 99), 90, 290)];
        assert_eq!(agreed(&[&a, &b, &early, &[]], 4), [outage((0, 99), 100, 300)]);
    }

    #[test]
    fn slots_that_fared_alike_are_one_range() {
        let a = [outage((0, 99), 100, 300), outage((100, 199), 100, 300)];
        assert_eq!(agreed(&[&a], 1), [outage((0, 199), 100, 300)]);
        let b = [outage((50, 199), 100, 300)];
        assert_eq!(agreed(&[&a, &b], 2), [outage((50, 199), 100, 300)]);
        assert_eq!(agreed(&[&a, &a, &b, &b], 4), [outage((0, 199), 100, 300)]);
        let b = [outage((50, 149), 200, 400)];
        let both = agreed(&[&a, &a, &b, &b], 4);
        assert_eq!(both, [outage((0, 49), 100, 300), outage((50, 149), 100, 400), outage((150, 199), 100, 300)]);
    }

    #[test]
    fn what_reads_and_writes_had_stays_apart() {
        let reads = Outage { reads: true, ..outage((0, 99), 100, 300) };
        let list = [outage((0, 99), 100, 200), reads];
        assert_eq!(agreed(&[&list], 1).len(), 2);
    }

    #[test]
    fn the_end_of_a_lasting_one_lasts() {
        let lasting = [Outage { lasting: true, ..outage((0, 0), 100, 300) }];
        assert_eq!(agreed(&[&lasting], 1), lasting);
    }
}

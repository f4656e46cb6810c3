use super::{SLOTS, UNCOVERED};

/// Why a cluster's primaries cannot be divided among shards.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uneven {
    /// More nodes for a shard than there are.
    #[error("load.nodesPerShard is {nodes}, and the cluster has {primaries} primaries: set it to {primaries} or less")]
    TooMany { nodes: u64, primaries: u64 },
    /// Some primaries would be loaded by more shards than others.
    #[error(
        "load.nodesPerShard is {nodes}, shards.count is {shards}, and the cluster has {primaries} primaries, which must \
         divide {shards} x {nodes}: set nodesPerShard to {fitting_nodes}, or count to {fitting_shards}"
    )]
    Unequal { nodes: u64, shards: u64, primaries: u64, fitting_nodes: String, fitting_shards: String },
}

/// The slots of a cluster that a shard loads if each shard loads some of the primaries.
///
/// The primaries, in the order of their first slots, repeat in a ring of shards x nodes places, and each shard takes the next places. So
/// every primary has the same number of shards. The slots stay the shard's own when other servers take them over.
#[derive(Debug)]
pub struct Group {
    shard: u64,
    nodes: u64,
    primaries: u64,
    /// Shards that load each primary.
    copies: u64,
    /// By slot, the place of its primary in that order, or [`UNCOVERED`].
    places: Vec<u16>,
    /// By slot.
    own: Vec<bool>,
}

impl Group {
    /// The slots of `shard`, if each of `shards` loads `nodes` primaries. `slots` has the primary of each slot.
    ///
    /// # Errors
    /// Fails if the primaries cannot be divided evenly.
    pub fn new(shard: u32, shards: u32, nodes: u32, slots: &[u16; SLOTS]) -> Result<Self, Uneven> {
        let (shard, shards, nodes) = (u64::from(shard), u64::from(shards), u64::from(nodes));
        let (mut place_of, mut count) = (vec![UNCOVERED; 1 << u16::BITS], 0);
        let mut places = vec![UNCOVERED; SLOTS];
        for (place, node) in places.iter_mut().zip(slots).filter(|(_, node)| **node != UNCOVERED) {
            let known = &mut place_of[usize::from(*node)];
            if *known == UNCOVERED {
                *known = count;
                count += 1;
            }
            *place = *known;
        }
        let primaries = u64::from(count);
        if nodes > primaries {
            return Err(Uneven::TooMany { nodes, primaries });
        }
        let fits = |shards: u64, nodes: u64| (shards * nodes).is_multiple_of(primaries);
        if nodes == 0 || !fits(shards, nodes) {
            return Err(Uneven::Unequal {
                nodes,
                shards,
                primaries,
                fitting_nodes: nearest(nodes, primaries, |nodes| fits(shards, nodes)),
                fitting_shards: nearest(shards, shards + primaries, |shards| fits(shards, nodes)),
            });
        }
        let first = shard * nodes % primaries;
        let is_own = |place: &u16| *place != UNCOVERED && (u64::from(*place) + primaries - first) % primaries < nodes;
        let own = places.iter().map(is_own).collect();
        Ok(Self { shard, nodes, primaries, copies: shards * nodes / primaries, places, own })
    }

    /// Returns whether the shard loads the slot.
    #[inline]
    pub fn has(&self, slot: u16) -> bool {
        self.own.get(usize::from(slot)).is_some_and(|own| *own)
    }

    /// Returns whether the shard, of those that load the slot, takes request `number` of a sequence that all shards divide.
    pub fn takes(&self, number: u64, slot: u16) -> bool {
        let place = self.places.get(usize::from(slot)).filter(|place| **place != UNCOVERED);
        let in_ring = |place: &u16| u64::from(*place) + self.primaries * (number % self.copies);
        place.is_some_and(|place| in_ring(place) / self.nodes == self.shard)
    }

    /// Which of `nodes` servers have own slots in any of `maps`.
    pub fn used<'a>(&self, nodes: usize, maps: impl Iterator<Item = &'a [u16; SLOTS]>) -> Vec<bool> {
        let mut used = vec![false; nodes];
        for map in maps {
            for (node, _) in map.iter().zip(&self.own).filter(|(_, own)| **own) {
                if let Some(used) = used.get_mut(usize::from(*node)) {
                    *used = true;
                }
            }
        }
        used
    }
}

/// The nearest values on both sides of `value` that fit, from 1 to `most`.
fn nearest(value: u64, most: u64, fits: impl Fn(u64) -> bool) -> String {
    let below = (1..value).rev().find(|value| fits(*value));
    let above = (value + 1..=most).find(|value| fits(*value));
    below.into_iter().chain(above).map(|value| value.to_string()).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::Topology;

    /// Slots in even ranges, of two primaries or more.
    fn slots(primaries: u16) -> Box<[u16; SLOTS]> {
        let addresses: Vec<std::net::SocketAddr> =
            (0..primaries).map(|port| ([127, 0, 0, 1], port + 1).into()).collect();
        Topology::of(&addresses).slots.unwrap()
    }

    fn greatest_common_divisor(a: u32, b: u32) -> u32 {
        if b == 0 { a } else { greatest_common_divisor(b, a % b) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn each_shard_has_its_nodes_and_each_primary_as_many_shards(
            primaries in 2_u16..40, nodes in 1_u32..40, more in 1_u32..4,
        ) {
            let all = u32::from(primaries);
            let nodes = nodes.min(all);
            let shards = all / greatest_common_divisor(all, nodes) * more;
            let slots = slots(primaries);
            let mut loaded = vec![0; usize::from(primaries)];
            let mut takers = vec![0; 100];
            for shard in 0..shards {
                let group = Group::new(shard, shards, nodes, &slots).unwrap();
                let used = group.used(usize::from(primaries), [&*slots].into_iter());
                prop_assert_eq!(used.iter().filter(|used| **used).count(), nodes as usize);
                used.iter().zip(&mut loaded).for_each(|(used, loaded)| *loaded += u32::from(*used));
                for (number, takers) in (0..).zip(&mut takers) {
                    let slot = (number * 7_919 % SLOTS as u64) as u16;
                    let takes = group.takes(number, slot);
                    prop_assert!(!takes || group.has(slot));
                    *takers += u32::from(takes);
                }
            }
            prop_assert!(loaded.iter().all(|loaded| *loaded == shards * nodes / all), "{loaded:?}");
            prop_assert!(takers.iter().all(|takers| *takers == 1), "every number has one shard");
        }
    }

    #[test]
    fn an_uneven_division_names_what_would_be_even() {
        let refused = |shards, nodes| Group::new(0, shards, nodes, &slots(6)).unwrap_err().to_string();
        let message = refused(4, 4);
        assert!(message.starts_with("load.nodesPerShard is 4, shards.count is 4, and the cluster has 6"), "{message}");
        assert!(message.ends_with("set nodesPerShard to 3 or 6, or count to 3 or 6"), "{message}");
        assert!(refused(3, 7).ends_with("has 6 primaries: set it to 6 or less"));
    }

    #[test]
    fn a_server_that_takes_slots_over_inherits_the_shards() {
        let slots = slots(6);
        let group = Group::new(1, 3, 2, &slots).unwrap();
        let used = |slots: &[u16; SLOTS]| group.used(7, [slots].into_iter());
        assert_eq!(used(&slots), [false, false, true, true, false, false, false]);
        let mut after = slots.clone();
        after.iter_mut().filter(|node| **node == 2).for_each(|node| *node = 6);
        assert_eq!(used(&after), [false, false, false, true, false, false, true]);
    }
}

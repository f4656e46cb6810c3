//! A hash table of fixed size, which drops entries that were not used for long (CLOCK). It never allocates after it was made.

/// The state of a key in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Hash of key and operation; 0 in a free place.
    pub hash: u64,
    /// The arrival of the reply.
    pub at: u64,
    /// The connection that the servers report its invalidation to.
    pub owner: u32,
    /// The number of times that connection was emptied before, with [`USED`] and [`RECENT`] in the lowest bits.
    state: u32,
}

/// A read has used the entry.
const USED: u32 = 1;
/// The entry was used since the hand passed.
const RECENT: u32 = 2;
const FLAGS: u32 = 2;

impl Entry {
    pub(super) fn new(hash: u64, at: u64, owner: u32, epoch: u32) -> Self {
        Self { hash: hash.max(1), at, owner, state: epoch << FLAGS }
    }

    /// Returns whether its connection was not emptied since, with `epoch` its current number.
    pub(super) fn is_of(&self, epoch: u32) -> bool {
        self.state >> FLAGS == epoch << FLAGS >> FLAGS
    }

    pub(super) fn is_used(&self) -> bool {
        self.state & USED != 0
    }
}

#[derive(Debug)]
pub(super) struct Table {
    places: Box<[Entry]>,
    /// The most entries.
    most: usize,
    count: usize,
    /// The next place that may be freed.
    hand: usize,
}

impl Table {
    /// A table of `most` entries, at least one.
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        // Runs of full places stay short while a quarter is free.
        let places = (most + most / 3 + 1).next_power_of_two();
        Self { places: vec![Entry::default(); places].into(), most, count: 0, hand: 0 }
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.places.len() - 1)
    }

    /// The place of an entry.
    pub(super) fn find(&self, hash: u64) -> Option<usize> {
        let hash = hash.max(1);
        let mut place = self.home(hash);
        loop {
            match self.places[place].hash {
                0 => return None,
                found if found == hash => return Some(place),
                _ => place = self.after(place),
            }
        }
    }

    pub(super) fn entry(&self, place: usize) -> Entry {
        self.places[place]
    }

    /// Notes that a read has used an entry.
    pub(super) fn touch(&mut self, place: usize) {
        self.places[place].state |= USED | RECENT;
    }

    /// Adds an entry, or replaces that of the same hash, which is returned. Otherwise returns an entry that made room for it.
    pub(super) fn insert(&mut self, entry: Entry) -> (Option<Entry>, Option<Entry>) {
        if let Some(place) = self.find(entry.hash) {
            return (Some(std::mem::replace(&mut self.places[place], entry)), None);
        }
        let dropped = (self.count >= self.most).then(|| self.make_room());
        let mut place = self.home(entry.hash);
        while self.places[place].hash != 0 {
            place = self.after(place);
        }
        self.places[place] = entry;
        self.count += 1;
        (None, dropped)
    }

    fn make_room(&mut self) -> Entry {
        loop {
            let place = self.hand;
            self.hand = self.after(place);
            let entry = &mut self.places[place];
            match (entry.hash, entry.state & RECENT) {
                (0, _) => {}
                (_, 0) => return self.remove(place),
                _ => entry.state &= !RECENT,
            }
        }
    }

    /// Removes the entry of a place. Later entries of its run move up, so that they are still found.
    pub(super) fn remove(&mut self, place: usize) -> Entry {
        let removed = self.places[place];
        let (mut free, mut next) = (place, self.after(place));
        while self.places[next].hash != 0 {
            let home = self.home(self.places[next].hash);
            let stays = if free < next { free < home && home <= next } else { free < home || home <= next };
            if !stays {
                self.places[free] = self.places[next];
                free = next;
            }
            next = self.after(next);
        }
        self.places[free] = Entry::default();
        self.count -= 1;
        removed
    }

    pub(super) fn clear(&mut self) {
        if self.count > 0 {
            self.places.fill(Entry::default());
            self.count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_entry_takes_little_room() {
        assert_eq!(size_of::<Entry>(), 24);
        for most in [1, 2, 3, 10, 100, 1_000, 100_000] {
            let bytes = Table::new(most).places.len() * size_of::<Entry>();
            assert!(
                bytes as u64 <= redisbench_wire::plan::Caching::BYTES_PER_ENTRY * (most as u64 + 2),
                "{most}: {bytes}"
            );
        }
    }

    #[test]
    fn a_full_table_drops_what_was_not_used() {
        let mut table = Table::new(3);
        for hash in 1..=3 {
            assert_eq!(table.insert(Entry::new(hash, 0, 0, 0)), (None, None));
        }
        table.touch(table.find(1).unwrap());
        table.touch(table.find(3).unwrap());
        let (_, dropped) = table.insert(Entry::new(4, 0, 0, 0));
        assert_eq!(dropped.map(|entry| (entry.hash, entry.is_used())), Some((2, false)));
        assert!(table.find(1).is_some() && table.find(3).is_some() && table.find(4).is_some());
    }

    #[test]
    fn an_entry_knows_whether_its_connection_was_emptied() {
        let entry = Entry::new(5, 0, 1, 7);
        assert!(entry.is_of(7) && !entry.is_of(8) && !entry.is_used());
        // The number of times wraps.
        assert!(Entry::new(5, 0, 1, u32::MAX).is_of(u32::MAX));
    }

    proptest! {
        #[test]
        fn a_table_is_a_map(steps in prop::collection::vec((0..3_u8, 0..40_u64), 0..400)) {
            let mut table = Table::new(64);
            let mut map = HashMap::new();
            for (at, (what, key)) in steps.into_iter().enumerate() {
                // Few homes, so that runs form and wrap around the end.
                let hash = (key << 32) + 125 + key % 5;
                match what {
                    0 => {
                        let (before, dropped) = table.insert(Entry::new(hash, at as u64, 0, 0));
                        prop_assert_eq!(before.map(|entry| entry.at), map.insert(hash, at as u64));
                        prop_assert_eq!(dropped, None);
                    }
                    1 => {
                        let removed = table.find(hash).map(|place| table.remove(place));
                        prop_assert_eq!(removed.map(|entry| entry.at), map.remove(&hash));
                    }
                    _ => prop_assert_eq!(table.find(hash).map(|place| table.entry(place).at), map.get(&hash).copied()),
                }
                prop_assert_eq!(table.count, map.len());
            }
        }
    }
}

//! The latest writes of each key: when they were sent, by which connection, and whether they were acknowledged.

/// Keys are kept in this many places. A key loses its writes to another one of the same place.
const PLACES: usize = 1 << 14;

/// Writes kept of a key.
const KEPT: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
struct Writes {
    /// Of the key.
    hash: u64,
    /// The times of their sends; 0 for none.
    sent: [u64; KEPT],
    by: [u32; KEPT],
    /// The place of the next one.
    next: u8,
    /// The time at which the latest acknowledged one was sent.
    acknowledged: u64,
}

#[derive(Debug)]
pub(super) struct RecentWrites(Box<[Writes]>);

impl RecentWrites {
    pub(super) fn new() -> Self {
        Self(vec![Writes::default(); PLACES].into())
    }

    fn of(&mut self, hash: u64) -> &mut Writes {
        &mut self.0[hash as usize % PLACES]
    }

    fn known(&mut self, hash: u64) -> Option<&mut Writes> {
        Some(self.of(hash)).filter(|writes| writes.hash == hash)
    }

    /// Notes that connection `by` sent a write.
    pub(super) fn sent(&mut self, hash: u64, at: u64, by: u32) {
        let writes = self.of(hash);
        if writes.hash != hash {
            *writes = Writes { hash, ..Writes::default() };
        }
        let place = usize::from(writes.next) % KEPT;
        (writes.sent[place], writes.by[place]) = (at, by);
        writes.next = writes.next.wrapping_add(1);
    }

    /// Notes that a write sent at `sent` was executed.
    pub(super) fn acknowledged(&mut self, hash: u64, sent: u64) {
        if let Some(writes) = self.known(hash) {
            writes.acknowledged = writes.acknowledged.max(sent);
        }
    }

    /// Notes that a write sent at `sent` changed nothing.
    pub(super) fn refused(&mut self, hash: u64, sent: u64) {
        if let Some(writes) = self.known(hash) {
            writes.sent.iter_mut().filter(|at| **at == sent).for_each(|at| *at = 0);
        }
    }

    /// The first write sent after `at`, and its connection. None if that is not known.
    pub(super) fn first_after(&mut self, hash: u64, at: u64) -> Option<(u64, u32)> {
        let writes = self.known(hash)?;
        let after = writes.sent.into_iter().zip(writes.by).filter(|(sent, _)| *sent > at);
        // There may have been others before, which are not kept.
        if after.clone().count() == KEPT {
            return None;
        }
        after.min()
    }

    /// Returns whether a write sent after `at` was acknowledged.
    pub(super) fn was_acknowledged_after(&mut self, hash: u64, at: u64) -> bool {
        self.known(hash).is_some_and(|writes| writes.acknowledged > at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_write_after_a_read_is_what_invalidates_it() {
        let mut writes = RecentWrites::new();
        assert_eq!(writes.first_after(7, 0), None);
        writes.sent(7, 10, 1);
        writes.sent(7, 20, 2);
        assert_eq!((writes.first_after(7, 5), writes.first_after(7, 10)), (Some((10, 1)), Some((20, 2))));
        assert_eq!(writes.first_after(7, 20), None);
        writes.refused(7, 10);
        assert_eq!(writes.first_after(7, 5), Some((20, 2)));
    }

    #[test]
    fn an_unknown_first_write_is_none() {
        let mut writes = RecentWrites::new();
        (1..=4).for_each(|at| writes.sent(7, at, 0));
        assert_eq!(writes.first_after(7, 0), None, "an older one may be lost");
        assert_eq!(writes.first_after(7, 1), Some((2, 0)));
        // Another key of the same place.
        let other = 7 + PLACES as u64;
        writes.sent(other, 9, 0);
        assert_eq!((writes.first_after(7, 1), writes.first_after(other, 1)), (None, Some((9, 0))));
    }

    #[test]
    fn a_value_is_stale_once_a_later_write_is_acknowledged() {
        let mut writes = RecentWrites::new();
        writes.sent(7, 10, 1);
        assert!(!writes.was_acknowledged_after(7, 5));
        writes.acknowledged(7, 10);
        assert!(writes.was_acknowledged_after(7, 5) && !writes.was_acknowledged_after(7, 10));
        assert!(!writes.was_acknowledged_after(8, 5));
    }
}

//! Expected values of keys: the write that each must hold.

use std::collections::HashMap;

use super::Judgement;
use super::stamp::Stamped;

/// The most ambiguous writes to remember over all keys. Keys beyond that are marked unsure.
const AMBIGUOUS: usize = 1 << 16;

/// The state of one key. Its writes are numbered from 1.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The last write that must be present; 0 if none.
    expected: u32,
    /// Writes up to this one are no longer missing, because their loss was reported.
    told: u32,
    /// The last write sent.
    sent: u32,
    flags: u32,
}

/// A write is in flight. There is never a second one.
const IN_FLIGHT: u32 = 1;
/// A write with an expiry was sent, so the key may vanish at any time.
const EXPIRES: u32 = 2;
/// An ambiguous write could not be remembered.
const UNSURE: u32 = 4;

/// All keys that this shard owns.
#[derive(Debug)]
pub(super) struct Written {
    keys: Vec<Known>,
    /// Writes that may or may not have been executed, or may still be: a server may execute them from its buffers long after the client
    /// gave up. Each is executed at most once, so one that was read is settled.
    ambiguous: HashMap<u32, Vec<u32>>,
    remembered: usize,
    may_evict: bool,
}

impl Written {
    pub(super) fn new(keys: usize, may_evict: bool) -> Self {
        Self { keys: vec![Known::default(); keys], ambiguous: HashMap::new(), remembered: 0, may_evict }
    }

    fn known(&mut self, key: u32) -> &mut Known {
        // The plan check bounds keys to the size of this table.
        &mut self.keys[key as usize]
    }

    pub(super) fn is_in_flight(&self, key: u32) -> bool {
        self.keys.get(key as usize).is_some_and(|known| known.flags & IN_FLIGHT != 0)
    }

    /// The write in flight, if any.
    pub(super) fn in_flight(&self, key: u32) -> Option<u32> {
        self.is_in_flight(key).then(|| self.keys[key as usize].sent)
    }

    /// Marks everything in flight as unknown, because no reply will come.
    pub(super) fn abandon(&mut self) {
        for key in 0..self.keys.len() as u32 {
            if let Some(sequence) = self.in_flight(key) {
                self.unknown(key, sequence);
            }
        }
    }

    /// Returns whether a write was ever sent to the key.
    pub(super) fn is_touched(&self, key: u32) -> bool {
        self.keys.get(key as usize).is_some_and(|known| known.sent > 0)
    }

    pub(super) fn expected(&self, key: u32) -> u32 {
        self.keys.get(key as usize).map_or(0, |known| known.expected)
    }

    /// Registers a write before it is sent. Returns its number.
    pub(super) fn begin(&mut self, key: u32, expires: bool) -> u32 {
        let known = self.known(key);
        known.flags |= if expires { IN_FLIGHT | EXPIRES } else { IN_FLIGHT };
        known.sent = known.sent.saturating_add(1);
        known.sent
    }

    pub(super) fn acknowledged(&mut self, key: u32, sequence: u32) {
        let known = self.known(key);
        known.flags &= !IN_FLIGHT;
        known.expected = sequence;
    }

    /// The write was certainly not executed, as if it had never been sent.
    pub(super) fn rejected(&mut self, key: u32, sequence: u32) {
        let known = self.known(key);
        known.flags &= !IN_FLIGHT;
        if known.sent == sequence {
            known.sent -= 1;
        }
    }

    /// The write may or may not have been executed.
    pub(super) fn unknown(&mut self, key: u32, sequence: u32) {
        self.known(key).flags &= !IN_FLIGHT;
        if self.remembered >= AMBIGUOUS {
            self.known(key).flags |= UNSURE;
            return;
        }
        self.remembered += 1;
        self.ambiguous.entry(key).or_default().push(sequence);
    }

    /// Removes an ambiguous write that turned out to be executed. Returns false if it is not listed.
    fn settle(&mut self, key: u32, sequence: u32) -> bool {
        let Some(list) = self.ambiguous.get_mut(&key) else { return false };
        let Some(at) = list.iter().position(|known| *known == sequence) else { return false };
        list.swap_remove(at);
        if list.is_empty() {
            self.ambiguous.remove(&key);
        }
        self.remembered -= 1;
        true
    }

    /// Judges a read. `expected` is the write that had to be present when the read was sent.
    pub(super) fn read(&mut self, key: u32, expected: u32, stamped: Option<Stamped>) -> Judgement {
        let known = *self.known(key);
        // A reported loss is not reported again.
        let least = if expected > known.told { expected } else { 0 };
        let found = match stamped {
            Some(Stamped::Own(sequence)) if sequence > known.sent => return Judgement::Corrupt,
            Some(Stamped::Own(sequence)) => sequence,
            // Before our first write a key may hold anything.
            Some(Stamped::Broken) if least == 0 => return Judgement::Fine,
            Some(Stamped::Broken) => return Judgement::Corrupt,
            Some(Stamped::Foreign) | None => 0,
        };
        if found > 0 && self.settle(key, found) {
            // The late write replaced the present value, so the overwritten one is not missing.
            let known = self.known(key);
            if found < known.expected {
                known.told = known.told.max(known.expected);
            }
            known.expected = found;
            return Judgement::Fine;
        }
        if found >= least || found == known.expected {
            return Judgement::Fine;
        }
        if found > 0 && known.flags & UNSURE != 0 {
            self.known(key).expected = found;
            return Judgement::Indeterminate;
        }
        let writes = self.missing(key, found);
        let known = self.known(key);
        known.told = known.told.max(known.expected).max(expected);
        known.expected = found;
        match stamped {
            None if known.flags & EXPIRES != 0 || self.may_evict => Judgement::Indeterminate,
            None => Judgement::LostKey,
            Some(_) => Judgement::Lost { writes },
        }
    }

    /// The number of acknowledged writes after `found` whose loss has not been reported.
    fn missing(&self, key: u32, found: u32) -> u64 {
        let Some(known) = self.keys.get(key as usize) else { return 0 };
        let after = found.max(known.told);
        let ambiguous = self.ambiguous.get(&key).map_or(0, |list| {
            list.iter().filter(|sequence| (after + 1..=known.expected).contains(sequence)).count() as u64
        });
        u64::from(known.expected.saturating_sub(after)).saturating_sub(ambiguous).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: Judgement = Judgement::Fine;

    fn written(count: u32) -> Written {
        let mut written = Written::new(2, false);
        for _ in 0..count {
            let sequence = written.begin(1, false);
            written.acknowledged(1, sequence);
        }
        written
    }

    #[test]
    fn the_last_acknowledged_write_or_one_sent_since_is_right() {
        let mut written = written(3);
        assert_eq!(written.begin(1, false), 4);
        assert!(written.is_in_flight(1) && !written.is_in_flight(0));
        for sequence in [3, 4, 3] {
            assert_eq!(written.read(1, 3, Some(Stamped::Own(sequence))), FINE);
        }
        assert_eq!(written.read(1, 3, Some(Stamped::Own(5))), Judgement::Corrupt, "above the highest that was sent");
        assert_eq!(written.read(1, 3, Some(Stamped::Broken)), Judgement::Corrupt);
        // Sent on another connection before the third write was acknowledged.
        assert_eq!(written.read(1, 2, Some(Stamped::Own(2))), FINE);
    }

    #[test]
    fn lost_writes_are_counted_once() {
        let mut written = written(7);
        assert_eq!(written.read(1, 7, Some(Stamped::Own(4))), Judgement::Lost { writes: 3 });
        assert_eq!(written.read(1, 7, Some(Stamped::Own(4))), FINE, "a read that was under way when the loss was told");
        assert_eq!(written.read(1, 4, Some(Stamped::Own(4))), FINE);
        let sequence = written.begin(1, false);
        written.acknowledged(1, sequence);
        assert_eq!(written.read(1, 8, Some(Stamped::Own(4))), Judgement::Lost { writes: 1 });
        assert_eq!(written.read(1, 8, Some(Stamped::Own(8))), FINE, "it was only hidden");
        assert_eq!(written.read(1, 8, Some(Stamped::Foreign)), FINE, "of what was told nothing is missed");
    }

    #[test]
    fn a_missing_key_is_lost_once_unless_it_may_be_gone() {
        assert_eq!(written(0).read(1, 0, None), FINE, "never written");
        let mut lost = written(3);
        assert_eq!(lost.read(1, 3, None), Judgement::LostKey);
        assert_eq!(lost.read(1, 3, None), FINE);
        let sequence = lost.begin(1, false);
        lost.acknowledged(1, sequence);
        assert_eq!(lost.read(1, 3, None), FINE, "read before the write that made it again");
        assert_eq!(lost.read(1, 4, None), Judgement::LostKey);

        let mut expiring = written(1);
        let sequence = expiring.begin(1, true);
        expiring.acknowledged(1, sequence);
        assert_eq!(expiring.read(1, 2, None), Judgement::Indeterminate);
        assert_eq!(expiring.read(1, 0, None), FINE);

        let mut evicted = written(2);
        evicted.may_evict = true;
        assert_eq!(evicted.read(1, 2, None), Judgement::Indeterminate);
        assert_eq!(evicted.read(1, 2, Some(Stamped::Foreign)), FINE, "told already");
    }

    #[test]
    fn an_ambiguous_write_may_show_whenever_it_likes_but_once() {
        let mut written = written(2);
        let late = written.begin(1, false);
        written.unknown(1, late);
        assert_eq!(written.read(1, 2, Some(Stamped::Own(2))), FINE, "not executed, or not yet");
        let next = written.begin(1, false);
        written.acknowledged(1, next);
        // The server executed the buffered write after the next one arrived on another connection.
        assert_eq!(written.read(1, next, Some(Stamped::Own(late))), FINE);
        assert_eq!(written.read(1, next, Some(Stamped::Own(late))), FINE, "a read that was under way");
        let last = written.begin(1, false);
        written.acknowledged(1, last);
        assert_eq!(
            written.read(1, last, Some(Stamped::Own(late))),
            Judgement::Lost { writes: 1 },
            "executed long ago, and only once"
        );
    }

    #[test]
    fn ambiguous_writes_are_none_that_were_acknowledged() {
        let mut written = written(1);
        for _ in 0..2 {
            let sequence = written.begin(1, false);
            written.unknown(1, sequence);
        }
        let sequence = written.begin(1, false);
        written.acknowledged(1, sequence);
        assert_eq!(written.read(1, 4, Some(Stamped::Own(1))), Judgement::Lost { writes: 1 });
    }

    #[test]
    fn a_rejected_write_never_was() {
        let mut written = written(1);
        let sequence = written.begin(1, false);
        written.rejected(1, sequence);
        assert!(!written.is_in_flight(1));
        assert_eq!(written.read(1, 1, Some(Stamped::Own(2))), Judgement::Corrupt);
        assert_eq!(written.begin(1, false), 2);
    }

    #[test]
    fn what_was_there_before_the_first_write_is_not_ours_to_judge() {
        let mut written = written(0);
        assert_eq!(written.read(1, 0, Some(Stamped::Broken)), FINE);
        assert_eq!(written.read(1, 0, Some(Stamped::Foreign)), FINE);
        assert_eq!(written.read(1, 0, Some(Stamped::Own(1))), Judgement::Corrupt, "nothing was sent");
        let sequence = written.begin(1, false);
        written.acknowledged(1, sequence);
        assert_eq!(written.read(1, 1, Some(Stamped::Foreign)), Judgement::Lost { writes: 1 });
    }

    #[test]
    fn more_ambiguous_writes_than_are_remembered_make_a_key_unsure() {
        let mut written = written(1);
        written.remembered = AMBIGUOUS;
        let sequence = written.begin(1, false);
        written.unknown(1, sequence);
        let next = written.begin(1, false);
        written.acknowledged(1, next);
        assert_eq!(written.read(1, next, Some(Stamped::Own(sequence))), Judgement::Indeterminate);
        assert_eq!(written.read(1, sequence, None), Judgement::LostKey, "no write makes a key vanish");
    }

    #[test]
    fn a_key_takes_sixteen_bytes() {
        assert_eq!(size_of::<Known>(), redisbench_wire::plan::Verify::BYTES_PER_KEY);
    }
}

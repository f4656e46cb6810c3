//! Expected values of keys used as counters.

use super::Judgement;

/// The state of one key.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    /// The last known number.
    value: i64,
    /// Increments that may or may not have been executed, or may still be.
    ambiguous: u32,
    flags: u32,
}

/// An increment is in flight. There is never a second one.
const IN_FLIGHT: u32 = 1;
/// The number is known.
const KNOWN: u32 = 2;

/// All keys that this shard owns.
#[derive(Debug)]
pub(super) struct Counted {
    keys: Vec<Counter>,
    step: i64,
    may_evict: bool,
}

impl Counted {
    pub(super) fn new(keys: usize, step: i64, may_evict: bool) -> Self {
        Self { keys: vec![Counter::default(); keys], step, may_evict }
    }

    fn counter(&mut self, key: u32) -> &mut Counter {
        // The plan check bounds keys to the size of this table.
        &mut self.keys[key as usize]
    }

    pub(super) fn is_in_flight(&self, key: u32) -> bool {
        self.keys.get(key as usize).is_some_and(|counter| counter.flags & IN_FLIGHT != 0)
    }

    pub(super) fn is_known(&self, key: u32) -> bool {
        self.keys.get(key as usize).is_some_and(|counter| counter.flags & KNOWN != 0)
    }

    pub(super) fn begin(&mut self, key: u32) {
        self.counter(key).flags |= IN_FLIGHT;
    }

    /// The increment was certainly not executed.
    pub(super) fn rejected(&mut self, key: u32) {
        self.counter(key).flags &= !IN_FLIGHT;
    }

    /// The increment may or may not have been executed.
    pub(super) fn unknown(&mut self, key: u32) {
        let counter = self.counter(key);
        counter.flags &= !IN_FLIGHT;
        counter.ambiguous = counter.ambiguous.saturating_add(1);
    }

    /// Marks everything in flight as unknown, because no reply will come.
    pub(super) fn abandon(&mut self) {
        for key in 0..self.keys.len() as u32 {
            if self.is_in_flight(key) {
                self.unknown(key);
            }
        }
    }

    /// The lowest and highest possible number after `counts` more increments.
    pub(super) fn range(&self, key: u32, counts: i64) -> (i64, i64) {
        let Some(counter) = self.keys.get(key as usize) else { return (0, 0) };
        let first = counter.value.saturating_add(self.step.saturating_mul(counts));
        let last = first.saturating_add(self.step.saturating_mul(i64::from(counter.ambiguous)));
        (first.min(last), first.max(last))
    }

    /// Judges the reply to an increment.
    pub(super) fn counted(&mut self, key: u32, value: i64) -> Judgement {
        self.counter(key).flags &= !IN_FLIGHT;
        self.judge(key, value, 1)
    }

    /// Judges the result of the last read.
    pub(super) fn read(&mut self, key: u32, value: Option<i64>) -> Judgement {
        match value {
            Some(value) => self.judge(key, value, 0),
            None if self.may_evict => Judgement::Indeterminate,
            None => Judgement::LostKey,
        }
    }

    fn judge(&mut self, key: u32, value: i64, counts: i64) -> Judgement {
        let (step, may_evict) = (self.step, self.may_evict);
        let counter = self.counter(key);
        let known = counter.flags & KNOWN != 0;
        let first = counter.value.saturating_add(step.saturating_mul(counts));
        counter.value = value;
        counter.flags |= KNOWN;
        // The first reply sets the starting value.
        if !known {
            return Judgement::Fine;
        }
        let ahead = value.saturating_sub(first).saturating_mul(step.signum());
        let steps = ahead / step.abs();
        match ahead {
            0.. if ahead % step.abs() == 0 && steps <= i64::from(counter.ambiguous) => {
                // This many of the unknown increments were executed.
                counter.ambiguous -= u32::try_from(steps).unwrap_or(counter.ambiguous);
                Judgement::Fine
            }
            0.. => Judgement::TooHigh,
            _ if may_evict => Judgement::Indeterminate,
            _ => Judgement::Lost { writes: steps.unsigned_abs().max(1) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(step: i64, values: &[i64]) -> Counted {
        let mut counted = Counted::new(1, step, false);
        for value in values {
            counted.begin(0);
            assert_eq!(counted.counted(0, *value), Judgement::Fine);
        }
        counted
    }

    #[test]
    fn the_next_number_is_the_only_right_one() {
        assert_eq!(counted(1, &[17, 18]).counted(0, 19), Judgement::Fine);
        assert_eq!(counted(1, &[17, 18]).counted(0, 18), Judgement::Lost { writes: 1 });
        assert_eq!(counted(1, &[17, 18]).counted(0, 1), Judgement::Lost { writes: 18 });
        assert_eq!(counted(1, &[17, 18]).counted(0, 20), Judgement::TooHigh);
        assert_eq!(counted(-5, &[10, 5]).counted(0, 0), Judgement::Fine);
        assert_eq!(counted(-5, &[10, 5]).counted(0, 5), Judgement::Lost { writes: 1 });
        assert_eq!(counted(-5, &[10, 5]).counted(0, -1), Judgement::TooHigh);
    }

    #[test]
    fn each_ambiguous_count_widens_the_set_by_one() {
        let mut counter = counted(1, &[5]);
        for _ in 0..2 {
            counter.begin(0);
            counter.unknown(0);
        }
        assert_eq!(counter.range(0, 1), (6, 8));
        counter.begin(0);
        assert_eq!(counter.counted(0, 7), Judgement::Fine);
        assert_eq!(counter.range(0, 1), (8, 9), "one of them was executed");
        assert_eq!(counter.read(0, Some(8)), Judgement::Fine);
        assert_eq!(counter.range(0, 0), (8, 8));
        assert_eq!(counter.read(0, Some(7)), Judgement::Lost { writes: 1 });
        assert_eq!(counter.read(0, None), Judgement::LostKey);
    }

    #[test]
    fn a_rejected_count_widens_nothing() {
        let mut counter = counted(1, &[5]);
        counter.begin(0);
        assert!(counter.is_in_flight(0));
        counter.rejected(0);
        assert_eq!(counter.range(0, 1), (6, 6));
    }

    #[test]
    fn absurd_numbers_are_still_judged() {
        let mut counter = counted(i64::from(i32::MAX), &[i64::MIN]);
        assert_eq!(counter.counted(0, i64::MAX), Judgement::TooHigh);
        assert!(matches!(counter.counted(0, i64::MIN), Judgement::Lost { .. }));
    }
}

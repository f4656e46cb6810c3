//! Commands encoded once, with the places where a request's key and value go.

mod field;
mod slot;
mod steps;

use redisbench_wire::plan::Part;

use super::WorkloadError;
use super::exchange::{Around, Exchange};
use super::keys::KeySpace;
use super::values::Values;
use field::{Field, Item};
use slot::SlotRule;
use steps::{Step, Steps};

#[derive(Debug)]
pub(super) struct Template {
    keys: KeySpace,
    /// What nearly all commands are.
    short: Option<Short>,
    /// What all are.
    steps: Steps,
    /// The bytes of the longest of its commands.
    length: usize,
    slot: SlotRule,
    /// What makes several commands of a request; then it is no short one.
    around: Option<Box<Around>>,
}

/// Commands of up to so many bytes are copied as if they had so many: in a few moves of a size that the compiler knows.
pub(super) const SHORT: usize = 64;

/// The bytes behind the value of such a command: mostly the end of its line.
const TAIL: usize = 16;

/// A command of one key, and of one value of a fixed length or none: `GET key`, `SET key value`.
#[derive(Debug)]
struct Short {
    /// The bytes before the value, with zeros behind them.
    head: [u8; SHORT],
    head_length: usize,
    /// Where the digits of the key's number begin.
    digits: usize,
    /// The bytes behind the value, if there is one.
    tail: Option<[u8; TAIL]>,
}

impl Short {
    /// None if that is not all of it.
    fn of(steps: &[Step], width: usize, values: &Values) -> Option<Self> {
        let (before, after, tail) = match steps {
            [Step::Bytes(before), Step::Field(Field::Key), Step::Bytes(after)] => (before, after, None),
            [
                Step::Bytes(before),
                Step::Field(Field::Key),
                Step::Bytes(after),
                Step::Field(Field::Value),
                Step::Bytes(tail),
            ] if values.fixed_length().is_some() => (before, after, Some(padded(tail)?)),
            _ => return None,
        };
        let head = [before, vec![b'0'; width].as_slice(), after].concat();
        Some(Self { head: padded(&head)?, head_length: head.len(), digits: before.len(), tail })
    }

    // Out of line, so that a command without a value does not draw one.
    #[inline(never)]
    fn append_value<'v>(&self, tail: &[u8; TAIL], value: impl FnOnce() -> &'v [u8], room: &mut [u8]) {
        let value = value();
        let Some((place, rest)) = room[self.head_length..].split_at_mut_checked(value.len()) else { return };
        place.copy_from_slice(value);
        if let Some(rest) = rest.first_chunk_mut() {
            *rest = *tail;
        }
    }
}

/// The bytes with zeros behind them; none if there are too many.
fn padded<const LENGTH: usize>(bytes: &[u8]) -> Option<[u8; LENGTH]> {
    let mut padded = [0; LENGTH];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(padded)
}

/// How many keys a command takes: each place of one number is the same key.
pub(super) fn keys_of(arguments: &[Vec<Part>]) -> u64 {
    let nth = |part: &Part| if let Part::NthKey(nth) = part { u64::from(*nth) } else { 1 };
    arguments.iter().flatten().map(nth).max().unwrap_or(1).max(1)
}

impl Template {
    pub(super) fn new(
        arguments: &[Vec<Part>],
        keys: KeySpace,
        values: &Values,
        seed: u64,
        around: Option<Around>,
    ) -> Result<Self, WorkloadError> {
        let mut fields = 0;
        let arguments: Vec<Vec<Item>> =
            arguments.iter().map(|parts| field::items(parts, &keys, seed, &mut fields)).collect::<Result<_, _>>()?;
        let mut slot = SlotRule::new(&arguments, &keys);
        let steps = Steps::new(arguments, &keys, values);
        let mut short = Short::of(steps.all(), keys.width(), values);
        let mut length = steps.longest(&keys, values);
        if let Some(around) = &around {
            (slot, short) = (SlotRule::OfFirst(Box::new(slot)), None);
            length = around.longest(length);
        }
        Ok(Self { length, short, steps, slot, keys, around: around.map(Box::new) })
    }

    /// The number in the key of request `k`, of its first command.
    #[inline]
    pub(super) fn key_number(&self, k: u64) -> u64 {
        self.keys.draw(self.first(k))
    }

    /// Which replies its requests get; none if it is one.
    pub(super) fn exchange(&self) -> Option<Exchange> {
        self.around.as_ref().map(|around| around.exchange)
    }

    fn first(&self, k: u64) -> u64 {
        self.around.as_ref().map_or(k, |around| around.first(k))
    }

    /// Writes the command of request `k` to the beginning of `room`, which has [`SHORT`] bytes more than it needs, and
    /// returns its length.
    #[inline]
    pub(super) fn encode(&self, k: u64, values: &Values, room: &mut [u8]) -> usize {
        if let Some(short) = &self.short
            && let Some(head) = room.first_chunk_mut::<SHORT>()
        {
            *head = short.head;
            self.keys.write_into(self.keys.draw(k), head, short.digits);
            if let Some(tail) = &short.tail {
                short.append_value(tail, || values.of(k), room);
            }
            self.length
        } else {
            self.encode_steps(k, values, room)
        }
    }

    /// The same for what is rare: of [`Self::encode`] there is one call, so that it is a part of its caller.
    #[inline(never)]
    pub(super) fn encode_steps(&self, k: u64, values: &Values, room: &mut [u8]) -> usize {
        let encode = |number: u64, room: &mut [u8]| self.steps.encode(number, &self.keys, values, room);
        match &self.around {
            None => encode(k, room),
            Some(around) => around.encode(k, room, encode),
        }
    }

    /// None if the command names no key.
    #[inline]
    pub(super) fn slot(&self, k: u64) -> Option<u16> {
        match &self.slot {
            SlotRule::Any => None,
            SlotRule::Fixed(slot) => Some(*slot),
            SlotRule::Number(slots) => Some(slots.of(self.keys.draw(k))),
            SlotRule::Items(items) => Some(slot::of_items(items, k, &self.keys)),
            SlotRule::OfFirst(rule) => self.slot_of_first(rule, k),
        }
    }

    // All commands of a request are in one slot, or it would not have been planned.
    #[inline(never)]
    fn slot_of_first(&self, rule: &SlotRule, k: u64) -> Option<u16> {
        let number = self.first(k);
        match rule {
            SlotRule::Any | SlotRule::OfFirst(_) => None,
            SlotRule::Fixed(slot) => Some(*slot),
            SlotRule::Number(slots) => Some(slots.of(self.keys.draw(number))),
            SlotRule::Items(items) => Some(slot::of_items(items, number, &self.keys)),
        }
    }

    /// The most bytes that its commands have.
    pub(super) fn longest(&self) -> usize {
        self.length
    }
}

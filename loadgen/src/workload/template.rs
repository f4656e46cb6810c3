//! Commands encoded in advance, with the places of a request's key and value.

mod field;
mod slot;
mod steps;

use redisbench_wire::plan::Part;

use super::error::WorkloadError;
use super::keys::KeySpace;
use super::rng::RandomStream;
use super::transaction::{Around, Compound};
use super::values::Values;
use field::{Field, Item};
use slot::SlotRule;
use steps::{Step, Steps};

pub(super) use slot::slot_of_words;

#[derive(Debug)]
pub(super) struct Template {
    keys: KeySpace,
    /// The fast path of nearly all commands.
    short: Option<Short>,
    /// The general path of every command.
    steps: Steps,
    /// The length of the longest request in bytes, and without its values.
    length: usize,
    length_around: usize,
    slot: SlotRule,
    /// The keys after the first, each with its stream.
    others: Vec<(u64, RandomStream)>,
    /// Set if a request has several commands; `short` is then `None`.
    around: Option<Box<Around>>,
}

/// Commands of up to this many bytes are copied as if they had exactly this length: in a few moves of constant size.
pub(super) const SHORT: usize = 64;

/// The maximum number of bytes after the value of such a command: usually the end of its line.
const TAIL: usize = 16;

/// A command with one key, and with one value of a fixed length or none: `GET key`, `SET key value`.
#[derive(Debug)]
struct Short {
    /// The bytes before the value, padded with zeros.
    head: [u8; SHORT],
    head_length: usize,
    /// Where the digits of the key's number begin.
    digits: usize,
    /// The bytes after the value, if there is one.
    tail: Option<[u8; TAIL]>,
}

impl Short {
    /// `None` if the command has other parts.
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

    /// Writes the commands of `numbers`, each of `length` bytes, and returns their length in all.
    // Out of line, so that it has the registers to itself.
    #[inline(never)]
    fn encode(
        &self,
        numbers: impl Iterator<Item = u64>,
        length: usize,
        (keys, values): (&KeySpace, &Values),
        room: &mut [u8],
    ) -> usize {
        let mut written = 0;
        for k in numbers {
            let command = &mut room[written..];
            let Some(head) = command.first_chunk_mut::<SHORT>() else { break };
            *head = self.head;
            keys.write_into(keys.draw(k), head, self.digits);
            if let Some(tail) = &self.tail {
                let value = values.of(k);
                let Some((place, rest)) = command[self.head_length..].split_at_mut_checked(value.len()) else { break };
                place.copy_from_slice(value);
                let Some(rest) = rest.first_chunk_mut() else { break };
                *rest = *tail;
            }
            written += length;
        }
        written
    }
}

/// Pads the bytes with zeros; `None` if they are too long.
fn padded<const LENGTH: usize>(bytes: &[u8]) -> Option<[u8; LENGTH]> {
    let mut padded = [0; LENGTH];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(padded)
}

/// The number of different keys of a command: places with the same number hold the same key.
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
        let other = |item: &Item| match item {
            Item::Field(Field::NthKey { nth, stream }) => Some((*nth, *stream)),
            _ => None,
        };
        let mut others: Vec<_> = arguments.iter().flatten().filter_map(other).collect();
        others.sort_by_key(|(nth, _)| *nth);
        others.dedup_by_key(|(nth, _)| *nth);
        let mut slot = SlotRule::new(&arguments, &keys);
        let steps = Steps::new(arguments, &keys, values);
        let mut short = Short::of(steps.all(), keys.width(), values);
        let mut length = steps.longest(&keys, values);
        let mut length_around = length - steps.values() * values.longest();
        if let Some(around) = &around {
            (slot, short) = (SlotRule::OfFirst(Box::new(slot)), None);
            (length, length_around) = (around.longest(length), around.longest(length_around));
        }
        Ok(Self { length, length_around, short, steps, slot, others, keys, around: around.map(Box::new) })
    }

    /// The number in the key of request `k`; of its first command if it has several.
    #[inline]
    pub(super) fn key_number(&self, k: u64) -> u64 {
        self.keys.draw(self.first(k))
    }

    /// Passes each key of request `k` to `take`, which may use `text` no longer.
    pub(super) fn each_key(&self, k: u64, text: &mut Vec<u8>, mut take: impl FnMut(&[u8])) {
        let k = self.first(k);
        self.keys.write_text(self.keys.draw(k), text);
        take(text);
        for (nth, stream) in &self.others {
            self.keys.write_text(self.keys.draw_nth(k, *nth, *stream), text);
            take(text);
        }
    }

    /// The replies that its requests get; `None` if each gets one.
    pub(super) fn compound(&self) -> Option<Compound> {
        self.around.as_ref().map(|around| around.compound)
    }

    fn first(&self, k: u64) -> u64 {
        self.around.as_ref().map_or(k, |around| around.first(k))
    }

    /// Writes the commands of requests to the beginning of `room`, and returns their length. `room` must have [`SHORT`] bytes more than
    /// that. `None` if these commands need the general path.
    #[inline]
    pub(super) fn encode_short(
        &self,
        numbers: impl IntoIterator<Item = u64>,
        values: &Values,
        room: &mut [u8],
    ) -> Option<usize> {
        let short = self.short.as_ref()?;
        Some(short.encode(numbers.into_iter(), self.length, (&self.keys, values), room))
    }

    /// The general path of every command. `write_value` writes the value of a request to the beginning of its room, and returns how many
    /// bytes it wrote.
    pub(super) fn encode_steps(
        &self,
        k: u64,
        values: &Values,
        room: &mut [u8],
        mut write_value: impl FnMut(u64, &mut [u8]) -> usize,
    ) -> usize {
        let mut encode =
            |number: u64, room: &mut [u8]| self.steps.encode(number, &self.keys, values, room, &mut write_value);
        match &self.around {
            None => encode(k, room),
            Some(around) => around.encode(k, room, encode),
        }
    }

    /// `None` if the command has no key.
    #[inline]
    pub(super) fn slot(&self, k: u64) -> Option<u16> {
        match &self.slot {
            SlotRule::Number(slots) => Some(slots.of(self.keys.draw(k))),
            rule => self.slot_by(rule, k),
        }
    }

    // Out of line, so that the rule of most commands is inlined.
    #[inline(never)]
    fn slot_by(&self, rule: &SlotRule, k: u64) -> Option<u16> {
        match rule {
            SlotRule::Any => None,
            SlotRule::Fixed(slot) => Some(*slot),
            SlotRule::Number(slots) => Some(slots.of(self.keys.draw(k))),
            SlotRule::Items(items) => Some(slot::of_items(items, k, &self.keys)),
            SlotRule::Text(items) => Some(slot::of_text(items, k, &self.keys)),
            // All commands of a request are in one slot; other plans are refused.
            SlotRule::OfFirst(rule) => self.slot_by(rule, self.first(k)),
        }
    }

    pub(super) fn longest(&self) -> usize {
        self.length
    }

    pub(super) fn longest_around(&self) -> usize {
        self.length_around
    }
}

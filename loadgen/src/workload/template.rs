//! Commands encoded once, with the places where a request's key and value go.

use redisbench_wire::plan::Part;

use super::keys::KeySpace;
use crate::cluster::{NumberedSlots, hashed_part, slot_of};
use crate::resp;

#[derive(Debug)]
pub(super) struct Template {
    keys: KeySpace,
    /// What nearly all commands are.
    short: Option<Short>,
    pieces: Box<[Piece]>,
    length: usize,
    slot: SlotRule,
}

/// Commands of up to so many bytes are copied as if they had so many: in a few moves of a size that the compiler knows.
pub(super) const SHORT: usize = 64;

/// The bytes behind the value of such a command: mostly the end of its line.
const TAIL: usize = 16;

/// A command of one key, and of one value or none: `GET key`, `SET key value`.
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
    fn of(pieces: &[Piece]) -> Option<Self> {
        let (head, tail) = match pieces {
            [head] => (head, None),
            [head, tail] if tail.digits.is_empty() => (head, Some(padded(&tail.bytes)?)),
            _ => return None,
        };
        let [digits] = head.digits.as_slice() else { return None };
        Some(Self { head: padded(&head.bytes)?, head_length: head.bytes.len(), digits: *digits, tail })
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

/// Encoded bytes up to the next value, or to the end: only the last piece has no value behind it.
#[derive(Debug, Default)]
struct Piece {
    bytes: Vec<u8>,
    /// Where the digits of a key's number begin.
    digits: Vec<usize>,
    /// Whether a value follows.
    value: bool,
}

/// How the slot of a command follows from its key.
#[derive(Debug)]
enum SlotRule {
    /// No argument looks like a key.
    Any,
    /// A hash tag or a fixed key decides.
    Fixed(u16),
    /// The number counts.
    Number(NumberedSlots),
}

impl Template {
    pub(super) fn new(arguments: &[Vec<Part>], keys: KeySpace, value_length: usize) -> Self {
        let mut pieces = Vec::new();
        let mut values = 0;
        let mut open = Piece::default();
        resp::append_header(&mut open.bytes, arguments.len());
        for argument in arguments {
            let length: usize = argument.iter().map(|part| part_length(part, &keys, value_length)).sum();
            open.bytes.extend_from_slice(format!("${length}\r\n").as_bytes());
            for part in argument {
                match part {
                    Part::Literal(text) => open.bytes.extend_from_slice(text.as_bytes()),
                    Part::Key => {
                        open.bytes.extend_from_slice(keys.prefix());
                        open.digits.push(open.bytes.len());
                        open.bytes.resize(open.bytes.len() + keys.width(), b'0');
                    }
                    Part::Data => {
                        open.value = true;
                        values += 1;
                        pieces.push(std::mem::take(&mut open));
                    }
                }
            }
            open.bytes.extend_from_slice(b"\r\n");
        }
        pieces.push(open);
        let length = pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>() + values * value_length;
        let slot = SlotRule::new(arguments, &keys);
        Self { keys, short: Short::of(&pieces), pieces: pieces.into(), length, slot }
    }

    /// The number in the key of request `k`.
    #[inline]
    pub(super) fn key_number(&self, k: u64) -> u64 {
        self.keys.draw(k)
    }

    /// Writes the command of request `k` to the beginning of `room`, which has [`SHORT`] bytes more than it needs, and
    /// returns its length.
    #[inline]
    pub(super) fn encode<'v>(&self, k: u64, value: impl FnOnce() -> &'v [u8], room: &mut [u8]) -> usize {
        let number = self.keys.draw(k);
        if let Some(short) = &self.short
            && let Some(head) = room.first_chunk_mut::<SHORT>()
        {
            *head = short.head;
            self.keys.write_into(number, head, short.digits);
            if let Some(tail) = &short.tail {
                short.append_value(tail, value, room);
            }
        } else {
            self.encode_pieces(number, value, room);
        }
        self.length
    }

    #[inline(never)]
    fn encode_pieces<'v>(&self, number: u64, value: impl FnOnce() -> &'v [u8], mut room: &mut [u8]) {
        let value = if self.pieces.len() > 1 { value() } else { &[] };
        for piece in &self.pieces {
            room[..piece.bytes.len()].copy_from_slice(&piece.bytes);
            for digits in &piece.digits {
                self.keys.write_into(number, room, *digits);
            }
            if piece.value {
                room = &mut room[piece.bytes.len()..];
                room[..value.len()].copy_from_slice(value);
                room = &mut room[value.len()..];
            }
        }
    }

    /// None if the command names no key.
    #[inline]
    pub(super) fn slot(&self, k: u64) -> Option<u16> {
        match &self.slot {
            SlotRule::Any => None,
            SlotRule::Fixed(slot) => Some(*slot),
            SlotRule::Number(slots) => Some(slots.of(self.keys.draw(k))),
        }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

fn part_length(part: &Part, keys: &KeySpace, value_length: usize) -> usize {
    match part {
        Part::Literal(text) => text.len(),
        Part::Key => keys.prefix().len() + keys.width(),
        Part::Data => value_length,
    }
}

impl SlotRule {
    /// By the first argument with the key in it. A command without one is taken to name its key in its first argument,
    /// as nearly all do; where that is wrong the cluster's redirect says so.
    fn new(arguments: &[Vec<Part>], keys: &KeySpace) -> Self {
        let Some(argument) = arguments.iter().find(|argument| argument.contains(&Part::Key)) else {
            return match arguments.get(1).map(Vec::as_slice) {
                Some([Part::Literal(key)]) => Self::Fixed(slot_of(key.as_bytes())),
                _ => Self::Any,
            };
        };
        let mut bytes = Vec::new();
        let mut digits = Vec::new();
        for part in argument {
            match part {
                Part::Literal(text) => bytes.extend_from_slice(text.as_bytes()),
                Part::Key => {
                    bytes.extend_from_slice(keys.prefix());
                    digits.push(bytes.len());
                    bytes.resize(bytes.len() + keys.width(), b'0');
                }
                Part::Data => return Self::Any,
            }
        }
        let (start, end) = hashed_part(&bytes);
        match digits.iter().filter(|at| (start..end).contains(at)).collect::<Vec<_>>().as_slice() {
            [] => Self::Fixed(slot_of(&bytes)),
            [at] => Self::Number(NumberedSlots::new(&bytes[start..end], *at - start, keys.width())),
            // A key named twice in one argument: left to the cluster's redirects.
            _ => Self::Any,
        }
    }
}

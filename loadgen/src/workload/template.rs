//! Commands encoded once, with the places where a request's key and value go.

use redisbench_wire::plan::Part;

use super::DIGITS;
use super::keys::KeySpace;
use crate::cluster::{SLOTS, crc16, hashed_part, slot_of};
use crate::resp;

#[derive(Debug)]
pub(super) struct Template {
    pieces: Box<[Piece]>,
    length: usize,
    slot: SlotRule,
}

/// Pieces of up to so many bytes are copied as if they had so many: in a few moves of a size that the compiler knows.
pub(super) const SHORT: usize = 64;

/// Encoded bytes up to the next value, or to the end: only the last piece has no value behind it.
#[derive(Debug, Default)]
struct Piece {
    /// The bytes, and zeros up to [`SHORT`].
    bytes: Vec<u8>,
    length: usize,
    /// Where the digits of a key's number begin.
    digits: Option<usize>,
    /// Where those of more such keys do.
    more_digits: Vec<usize>,
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
    /// The number counts: `before` is the CRC of what stands before its digits.
    Number { before: u16, after: Vec<u8> },
}

impl Piece {
    /// The digits of a key begin here.
    fn add_digits(&mut self) {
        match self.digits {
            None => self.digits = Some(self.bytes.len()),
            Some(_) => self.more_digits.push(self.bytes.len()),
        }
    }

    #[inline(never)]
    fn write_more(&self, number: u64, keys: &KeySpace, room: &mut [u8]) {
        for digits in &self.more_digits {
            KeySpace::write(number, &mut room[*digits..digits + keys.width()]);
        }
    }

    /// Pads the bytes, which are all there.
    fn closed(mut self) -> Self {
        self.length = self.bytes.len();
        self.bytes.resize(self.length.max(SHORT), 0);
        self
    }

    /// Copies the bytes to the beginning of `room`.
    #[inline]
    fn copy_to(&self, room: &mut [u8]) {
        match (self.bytes.first_chunk::<SHORT>(), room.first_chunk_mut::<SHORT>()) {
            (Some(bytes), Some(room)) if self.length <= SHORT => *room = *bytes,
            _ => self.copy_long(room),
        }
    }

    // Out of line, or the compiler makes one copy of a variable length of both.
    #[inline(never)]
    fn copy_long(&self, room: &mut [u8]) {
        room[..self.length].copy_from_slice(&self.bytes[..self.length]);
    }
}

impl Template {
    pub(super) fn new(arguments: &[Vec<Part>], keys: &KeySpace, value_length: usize) -> Self {
        let mut pieces = Vec::new();
        let mut values = 0;
        let mut open = Piece::default();
        resp::append_header(&mut open.bytes, arguments.len());
        for argument in arguments {
            let length: usize = argument.iter().map(|part| part_length(part, keys, value_length)).sum();
            open.bytes.extend_from_slice(format!("${length}\r\n").as_bytes());
            for part in argument {
                match part {
                    Part::Literal(text) => open.bytes.extend_from_slice(text.as_bytes()),
                    Part::Key => {
                        open.bytes.extend_from_slice(keys.prefix());
                        open.add_digits();
                        open.bytes.resize(open.bytes.len() + keys.width(), b'0');
                    }
                    Part::Data => {
                        open.value = true;
                        values += 1;
                        pieces.push(std::mem::take(&mut open).closed());
                    }
                }
            }
            open.bytes.extend_from_slice(b"\r\n");
        }
        pieces.push(open.closed());
        let length = pieces.iter().map(|piece| piece.length).sum::<usize>() + values * value_length;
        Self { pieces: pieces.into(), length, slot: SlotRule::new(arguments, keys) }
    }

    /// Writes the command to the beginning of `room`, which has [`SHORT`] bytes more than it needs, and returns its length.
    #[inline]
    pub(super) fn encode<'v>(
        &self,
        number: u64,
        keys: &KeySpace,
        value: impl Fn() -> &'v [u8],
        mut room: &mut [u8],
    ) -> usize {
        for piece in &self.pieces {
            piece.copy_to(room);
            if let Some(digits) = piece.digits {
                KeySpace::write(number, &mut room[digits..digits + keys.width()]);
                if !piece.more_digits.is_empty() {
                    piece.write_more(number, keys, room);
                }
            }
            if piece.value {
                room = append_value(&value, &mut room[piece.length..]);
            }
        }
        self.length
    }

    /// None if the command names no key.
    #[inline]
    pub(super) fn slot(&self, number: u64, keys: &KeySpace) -> Option<u16> {
        match &self.slot {
            SlotRule::Any => None,
            SlotRule::Fixed(slot) => Some(*slot),
            SlotRule::Number { before, after } => {
                let mut digits = [b'0'; DIGITS];
                let digits = &mut digits[..keys.width()];
                KeySpace::write(number, digits);
                Some(crc16(crc16(*before, digits), after) % SLOTS as u16)
            }
        }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

// Out of line, so that a command without a value does not draw one.
#[inline(never)]
fn append_value<'r, 'v>(value: &impl Fn() -> &'v [u8], room: &'r mut [u8]) -> &'r mut [u8] {
    let value = value();
    let (place, rest) = room.split_at_mut(value.len());
    place.copy_from_slice(value);
    rest
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
            [at] => {
                Self::Number { before: crc16(0, &bytes[start..**at]), after: bytes[*at + keys.width()..end].to_vec() }
            }
            // A key named twice in one argument: left to the cluster's redirects.
            _ => Self::Any,
        }
    }
}

//! The parts of a command that differ between requests.

use redisbench_wire::plan::Part;

use crate::workload::digits::DIGITS;
use crate::workload::error::WorkloadError;
use crate::workload::keys::{KeySpace, TAG};
use crate::workload::rng::{self, RandomStream};
use crate::workload::values::Values;

/// Digits of a score: `0.` and nine decimals.
const SCORE: usize = 11;

/// The maximum length in bytes of a field other than a value.
pub(super) const LONGEST: usize = DIGITS;

/// A piece of an argument.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Text(Vec<u8>),
    Field(Field),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    /// The number of the request's first key.
    Key,
    /// The number in the hash tag of the request's keys.
    Tag,
    /// The number of another key, counted from 0.
    NthKey {
        nth: u64,
        stream: RandomStream,
    },
    Value,
    Integer {
        least: i64,
        count: u64,
        /// Digits to pad to; 0 for no padding.
        width: usize,
        stream: RandomStream,
    },
    Sequence,
    Score {
        stream: RandomStream,
    },
}

/// The pieces of an argument. `fields` counts the fields of the command, because each has its own stream.
pub(super) fn items(parts: &[Part], keys: &KeySpace, seed: u64, fields: &mut u64) -> Result<Vec<Item>, WorkloadError> {
    let mut items = Vec::new();
    for part in parts {
        let own = RandomStream::new(seed, rng::FIELDS + *fields);
        *fields += 1;
        let field = match part {
            Part::Literal(text) => {
                items.push(Item::Text(text.clone().into_bytes()));
                continue;
            }
            Part::Key | Part::NthKey(0..=1) => Field::Key,
            Part::NthKey(nth) => {
                let nth = u64::from(*nth) - 1;
                Field::NthKey { nth, stream: RandomStream::new(seed, rng::NTH_KEYS + nth) }
            }
            Part::Data => Field::Value,
            Part::Integer { least, most, width } => {
                let count = i128::from(*most) - i128::from(*least) + 1;
                let width = *width as usize;
                let fits = width == 0 || (*least >= 0 && (length_of(*most)..=DIGITS).contains(&width));
                let count = u64::try_from(count).ok().filter(|count| *count > 0 && fits);
                let bad = WorkloadError::Integer { least: *least, most: *most };
                Field::Integer { least: *least, count: count.ok_or(bad)?, width, stream: own }
            }
            Part::Sequence => Field::Sequence,
            Part::Score => Field::Score { stream: own },
        };
        if matches!(field, Field::Key | Field::NthKey { .. }) {
            let mut before = keys.prefix().to_vec();
            if keys.tag_width().is_some() {
                before.extend_from_slice(TAG[0]);
                items.extend([Item::Text(before), Item::Field(Field::Tag)]);
                before = TAG[1].to_vec();
            }
            if !before.is_empty() {
                items.push(Item::Text(before));
            }
        }
        items.push(Item::Field(field));
    }
    Ok(items)
}

impl Field {
    /// The line that is the key in request `k`, if keys are lines of a file and this is one.
    pub(super) fn line(self, k: u64, keys: &KeySpace) -> Option<&[u8]> {
        let lines = keys.lines()?;
        match self {
            Self::Key => Some(lines.line(keys.draw(k))),
            Self::NthKey { nth, stream } => Some(lines.line(keys.draw_nth(k, nth, stream))),
            Self::Tag | Self::Value | Self::Integer { .. } | Self::Sequence | Self::Score { .. } => None,
        }
    }

    /// The length, if it is the same in every request.
    pub(super) fn fixed_length(self, keys: &KeySpace, values: &Values) -> Option<usize> {
        match self {
            Self::Key | Self::NthKey { .. } => keys.fixed_length(),
            Self::Tag => keys.tag_width(),
            Self::Value => values.fixed_length(),
            Self::Score { .. } => Some(SCORE),
            Self::Integer { width: 0, .. } | Self::Sequence => None,
            Self::Integer { width, .. } => Some(width),
        }
    }

    pub(super) fn longest(self, keys: &KeySpace, values: &Values) -> usize {
        match self {
            Self::Value => values.longest(),
            Self::Integer { least, count, width, .. } => {
                let most = least.wrapping_add_unsigned(count - 1);
                length_of(least).max(length_of(most)).max(width)
            }
            Self::Sequence => digits_of(u64::MAX),
            Self::Key | Self::NthKey { .. } => keys.longest(),
            Self::Tag | Self::Score { .. } => self.fixed_length(keys, values).unwrap_or(0),
        }
    }

    /// The length in request `k`.
    pub(super) fn length(self, k: u64, keys: &KeySpace, values: &Values) -> usize {
        match self {
            Self::Value => values.length_of(k),
            Self::Integer { least, count, width, stream } => length_of(drawn(least, count, stream, k)).max(width),
            Self::Sequence => digits_of(k),
            Self::Key | Self::Tag | Self::NthKey { .. } | Self::Score { .. } => {
                let line = || self.line(k, keys).map_or(0, <[u8]>::len);
                self.fixed_length(keys, values).unwrap_or_else(line)
            }
        }
    }

    /// Writes the content in request `k` of a field other than a value to the beginning of `room`, and returns its length.
    pub(super) fn write(self, k: u64, keys: &KeySpace, room: &mut [u8]) -> usize {
        if let Some(line) = self.line(k, keys) {
            room[..line.len()].copy_from_slice(line);
            line.len()
        } else {
            self.write_number(k, keys, room)
        }
    }

    /// Like [`Self::write`], for a field other than a line of a file.
    pub(super) fn write_number(self, k: u64, keys: &KeySpace, room: &mut [u8]) -> usize {
        match self {
            Self::Key => padded(keys.draw(k), keys.width(), room),
            Self::Tag => padded(keys.draw_tag(k), keys.tag_width().unwrap_or(0), room),
            Self::NthKey { nth, stream } => padded(keys.draw_nth(k, nth, stream), keys.width(), room),
            Self::Integer { least, count, width, stream } => {
                let number = drawn(least, count, stream, k);
                room[0] = b'-';
                let sign = usize::from(number < 0);
                let digits = number.unsigned_abs();
                sign + padded(digits, digits_of(digits).max(width), &mut room[sign..])
            }
            Self::Sequence => padded(k, digits_of(k), room),
            Self::Score { stream } => {
                room[..2].copy_from_slice(b"0.");
                2 + padded(stream.below(k, 1_000_000_000), SCORE - 2, &mut room[2..])
            }
            Self::Value => 0,
        }
    }
}

fn drawn(least: i64, count: u64, stream: RandomStream, k: u64) -> i64 {
    least.wrapping_add_unsigned(stream.below(k, count))
}

/// Length in digits, including the sign.
fn length_of(number: i64) -> usize {
    usize::from(number < 0) + digits_of(number.unsigned_abs())
}

fn digits_of(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Writes `number` with `digits` digits.
pub(super) fn padded(number: u64, digits: usize, room: &mut [u8]) -> usize {
    room[..digits].fill(b'0');
    KeySpace::write(number, &mut room[..digits]);
    digits
}

/// Writes the header of an argument of `length` bytes.
pub(super) fn write_header(length: usize, room: &mut [u8]) -> usize {
    room[0] = b'$';
    let end = 1 + padded(length as u64, digits_of(length as u64), &mut room[1..]);
    room[end..end + 2].copy_from_slice(b"\r\n");
    end + 2
}

/// The maximum length of such a header in bytes.
pub(super) fn longest_header(length: usize) -> usize {
    digits_of(length as u64) + 3
}

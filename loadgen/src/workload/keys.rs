//! The key that a request takes, and its text: the decimal form of its number, or a line of a file.

use redisbench_wire::plan::{KeyFile, Keys, Lines};

use super::digits::DIGITS;
use super::error::WorkloadError;
use super::numbering::seat_of;
use super::pattern::Pattern;
use super::rng::RandomStream;

#[derive(Clone, Debug)]
pub(super) struct KeySpace {
    prefix: Vec<u8>,
    start: u64,
    count: u64,
    width: usize,
    tags: Option<TagText>,
    /// Keys instead of prefix, tag and number.
    lines: Option<Lines>,
    pattern: Pattern,
    /// Keys per request, for sequential patterns.
    per_request: u64,
    stream: RandomStream,
}

/// The hash tag of a key: its number modulo `count`, with `width` digits.
#[derive(Clone, Copy, Debug)]
struct TagText {
    count: u64,
    width: usize,
}

/// The text around the number of a hash tag.
pub(super) const TAG: [&[u8]; 2] = [b"{t", b"}"];

/// The keys `count*part/parts .. count*(part+1)/parts`: the parts cover all keys without overlap.
pub fn part_of(count: u64, part: u64, parts: u64) -> std::ops::Range<u64> {
    let edge = |part: u64| (u128::from(count) * u128::from(part) / u128::from(parts.max(1))) as u64;
    edge(part)..edge(part + 1)
}

impl KeySpace {
    pub(super) fn new(
        keys: &Keys,
        pattern: Pattern,
        per_request: u64,
        stream: RandomStream,
    ) -> Result<Self, WorkloadError> {
        let last = keys.count.checked_sub(1).and_then(|above| keys.start.checked_add(above));
        let last = last.ok_or(WorkloadError::Keys { start: keys.start, count: keys.count })?;
        // All keys have one length, so that their numbers can be written in place.
        let width = (keys.width as usize).max(last.checked_ilog10().unwrap_or(0) as usize + 1);
        if width > DIGITS {
            return Err(WorkloadError::Width(keys.width));
        }
        let tags = keys.tags.map(|tags| {
            let count = u64::from(tags.count).max(1);
            TagText { count, width: (count - 1).checked_ilog10().unwrap_or(0) as usize + 1 }
        });
        let prefix = keys.prefix.clone().into_bytes();
        let (start, count) = (keys.start, keys.count);
        Ok(Self { prefix, start, count, width, tags, lines: None, pattern, per_request, stream })
    }

    /// The same numbers, whose keys are the lines of `file`.
    pub(super) fn of_file(self, file: Option<&KeyFile>) -> Result<Self, WorkloadError> {
        let Some(file) = file else { return Ok(self) };
        let needed = self.start.saturating_add(self.count);
        let enough = |lines: &Lines| needed <= lines.count() && self.tags.is_none();
        let lines = file.lines.clone().filter(enough).ok_or(WorkloadError::KeyFile { needed })?;
        Ok(Self { prefix: Vec::new(), lines: Some(lines), ..self })
    }

    /// The number in the first key of request `k`.
    #[inline]
    pub(super) fn draw(&self, k: u64) -> u64 {
        match &self.pattern {
            Pattern::Uniform => self.start + self.stream.below(k, self.count),
            _ => self.draw_nth(k, 0, self.stream),
        }
    }

    /// The number in key `nth` of request `k`, from 0. Each key has its own stream.
    // Out of line: it is long, and would cost Uniform its registers.
    #[inline(never)]
    pub(super) fn draw_nth(&self, k: u64, nth: u64, stream: RandomStream) -> u64 {
        self.start
            + match &self.pattern {
                Pattern::Numbered(numbered) => self.index(&numbered.1, numbered.0.of(k), nth, stream),
                pattern => self.index(pattern, k, nth, stream),
            }
    }

    /// The number in the hash tag of all keys of request `k`. 0 if keys have none.
    pub(super) fn draw_tag(&self, k: u64) -> u64 {
        self.tags.map_or(0, |tags| self.draw(k) % tags.count)
    }

    #[inline]
    fn index(&self, pattern: &Pattern, k: u64, nth: u64, stream: RandomStream) -> u64 {
        let walked = |k: u64| k.wrapping_mul(self.per_request).wrapping_add(nth);
        match pattern {
            // Numbered patterns are never nested.
            Pattern::Uniform | Pattern::Numbered(_) => stream.below(k, self.count),
            Pattern::Sequential => walked(k) % self.count,
            Pattern::Partitioned { shards } => self.in_part(k % shards, *shards, walked(k / shards)),
            Pattern::PerConnection { parts } => {
                let (connection, own) = seat_of(k);
                self.in_part(connection % parts, *parts, walked(own))
            }
            Pattern::Drawn(drawn) => drawn.draw(stream.own(k)),
            Pattern::Tagged(tagged) => tagged.index(k, nth, self.per_request, stream),
        }
    }

    /// Key `walked` of a part, which repeats. Where there are more parts than keys, one without keys walks all of them.
    // Out of line, so that the common patterns stay small.
    #[inline(never)]
    fn in_part(&self, part: u64, parts: u64, walked: u64) -> u64 {
        let part = part_of(self.count, part, parts);
        let (first, length) = if part.is_empty() { (0, self.count) } else { (part.start, part.end - part.start) };
        first + walked % length
    }

    /// Key `index` of the key space, from 0.
    pub(super) fn key(&self, index: u64) -> Vec<u8> {
        let mut key = Vec::new();
        self.write_text(self.start + index, &mut key);
        key
    }

    /// Writes the key with this number to `text`.
    pub(super) fn write_text(&self, number: u64, text: &mut Vec<u8>) {
        text.clear();
        if let Some(lines) = &self.lines {
            return text.extend_from_slice(lines.line(number));
        }
        text.extend_from_slice(&self.prefix);
        if let Some(tags) = self.tags {
            text.extend_from_slice(TAG[0]);
            append(number % tags.count, tags.width, text);
            text.extend_from_slice(TAG[1]);
        }
        append(number, self.width, text);
    }

    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The keys, if they are lines of a file.
    pub(super) fn lines(&self) -> Option<&Lines> {
        self.lines.as_ref()
    }

    /// The length of what is written for a number, if it is the same for all.
    pub(super) fn fixed_length(&self) -> Option<usize> {
        self.lines.is_none().then_some(self.width)
    }

    /// The longest that is written for a number.
    pub(super) fn longest(&self) -> usize {
        self.lines.as_ref().map_or(self.width, Lines::longest)
    }

    /// Digits in the hash tag, if keys have one.
    pub(super) fn tag_width(&self) -> Option<usize> {
        self.tags.map(|tags| tags.width)
    }

    /// Writes `number` into the digits of `command` that begin at `at`, which must be zeros.
    #[inline]
    pub(super) fn write_into(&self, number: u64, command: &mut [u8], at: usize) {
        if let Some(digits) = command.get_mut(at..at + self.width) {
            Self::write(number, digits);
        }
    }

    /// Writes `number` right-aligned into `digits`, which must be zeros.
    #[inline]
    pub(super) fn write(number: u64, digits: &mut [u8]) {
        match (u32::try_from(number), digits.last_chunk_mut()) {
            (Ok(number @ 0..EIGHT_DIGITS), Some(last)) => *last = eight_digits(number),
            _ => Self::write_pairs(number, digits),
        }
    }

    // Out of line, so that its caller is inlined.
    #[inline(never)]
    fn write_pairs(mut number: u64, digits: &mut [u8]) {
        for pair in digits.rchunks_mut(2) {
            let two = PAIRS[(number % 100) as usize];
            number /= 100;
            match pair {
                [tens, ones] => (*tens, *ones) = (two[0], two[1]),
                [ones] => *ones = two[1],
                _ => {}
            }
        }
    }
}

/// Appends `number` with `digits` digits.
fn append(number: u64, digits: usize, text: &mut Vec<u8>) {
    let at = text.len();
    text.resize(at + digits, b'0');
    KeySpace::write(number, &mut text[at..]);
}

/// The digits of 0 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

const EIGHT_DIGITS: u32 = 100_000_000;

/// The decimal digits of a number below 10^8, computed side by side in one word: split into halves of four digits, each into pairs, each
/// into single digits. Divisions by constants are multiplications by the inverse, exact in these ranges.
#[inline]
fn eight_digits(number: u32) -> [u8; 8] {
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - tens * 10) << 8;
    (ones | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_written_as_they_are_formatted(
            number in prop_oneof![0..200_000_000_u64, 0..10_u64.pow(18), any::<u64>()],
            padding in 0..13_usize,
        ) {
            let expected = number.to_string();
            let mut digits = vec![b'0'; expected.len() + padding];
            KeySpace::write(number, &mut digits);
            prop_assert_eq!(String::from_utf8(digits).unwrap(), "0".repeat(padding) + &expected);
        }
    }

    #[test]
    fn eight_digits_of_every_number() {
        // All numbers that differ in one half, and steps through the whole range.
        for number in (0..20_000).chain((0..EIGHT_DIGITS).step_by(9_973)) {
            assert_eq!(eight_digits(number), format!("{number:08}").as_bytes(), "{number}");
        }
    }
}

//! Which key a request takes, and how its number is written.

use redisbench_wire::plan::Keys;

use super::rng::Stream;
use super::{DIGITS, WorkloadError};

#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern {
    Uniform,
    Sequential,
    Partitioned { shards: u64 },
}

#[derive(Debug)]
pub(super) struct KeySpace {
    prefix: Vec<u8>,
    start: u64,
    count: u64,
    width: usize,
    pattern: Pattern,
    stream: Stream,
}

/// The keys `count*part/parts .. count*(part+1)/parts`: together all, none twice.
pub fn part_of(count: u64, part: u64, parts: u64) -> std::ops::Range<u64> {
    let edge = |part: u64| (u128::from(count) * u128::from(part) / u128::from(parts.max(1))) as u64;
    edge(part)..edge(part + 1)
}

impl KeySpace {
    pub(super) fn new(keys: &Keys, pattern: Pattern, stream: Stream) -> Result<Self, WorkloadError> {
        let last = keys.count.checked_sub(1).and_then(|above| keys.start.checked_add(above));
        let last = last.ok_or(WorkloadError::Keys { start: keys.start, count: keys.count })?;
        // All keys have one length, so that their numbers can be written in place.
        let width = (keys.width as usize).max(last.checked_ilog10().unwrap_or(0) as usize + 1);
        if width > DIGITS {
            return Err(WorkloadError::Width(keys.width));
        }
        let prefix = keys.prefix.clone().into_bytes();
        Ok(Self { prefix, start: keys.start, count: keys.count, width, pattern, stream })
    }

    /// The number in the key of request `k`.
    #[inline]
    pub(super) fn draw(&self, k: u64) -> u64 {
        self.start
            + match self.pattern {
                Pattern::Uniform => self.stream.below(k, self.count),
                Pattern::Sequential => k % self.count,
                Pattern::Partitioned { shards } => self.partitioned(k, shards),
            }
    }

    fn partitioned(&self, k: u64, shards: u64) -> u64 {
        let part = part_of(self.count, k % shards, shards);
        // A shard without a part, because there are more shards than keys, walks all of them.
        let (first, length) = if part.is_empty() { (0, self.count) } else { (part.start, part.end - part.start) };
        first + k / shards % length
    }

    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Writes `number` over the end of `digits`, which hold zeros so far.
    #[inline]
    pub(super) fn write(mut number: u64, digits: &mut [u8]) {
        for pair in digits.rchunks_mut(2) {
            if number == 0 {
                return;
            }
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

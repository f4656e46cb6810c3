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

    /// Writes `number` over `digits`, padded with zeros.
    #[inline]
    pub(super) fn write(mut number: u64, digits: &mut [u8]) {
        for pair in digits.rchunks_exact_mut(2) {
            let two = (number % 100) as u8;
            pair[0] = b'0' + two / 10;
            pair[1] = b'0' + two % 10;
            number /= 100;
        }
        if digits.len() % 2 == 1 {
            digits[0] = b'0' + (number % 10) as u8;
        }
    }
}

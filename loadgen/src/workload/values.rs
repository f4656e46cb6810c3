//! Values: slices of one pool of bytes or lines of a file, so that making one costs at most a copy.

use std::ops::Range;
use std::sync::Arc;

use redisbench_wire::plan::{self, Lines, ValueContent, ValueSize};

use super::error::WorkloadError;
use super::mix::Mix;
use super::numbering::Numbering;
use super::rng::{self, RandomStream};

/// The number of different values; small enough that the pool stays in a processor's cache.
const OFFSETS: usize = 128 << 10;

/// Compressible values repeat a period of at most this many bytes, because a compressor looks back only a limited distance.
const LONGEST_PERIOD: u64 = 4096;

/// Values of at least this mean length are sent from the pool. At this length, copying them first costs about as much CPU time.
const LARGE: u64 = 64 << 10;

/// A clone shares the pool.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pool: Arc<[u8]>,
    /// The length of all values, or of the longest.
    length: usize,
    /// They are large, and slices of the pool.
    large: bool,
    stream: RandomStream,
    /// `None` if all values have one length.
    lengths: Option<Lengths>,
    /// Values instead of those in the pool, and how commands are numbered that take them in turns, if not by their own numbers.
    lines: Option<Lines>,
    numbering: Option<Numbering>,
}

/// Lengths that differ between requests.
#[derive(Clone, Debug)]
enum Lengths {
    Range { least: u64, count: u64, stream: RandomStream },
    Weighted { bytes: Vec<u32>, mix: Mix },
}

impl Values {
    pub(super) fn new(values: &plan::Values, seed: u64) -> Result<Self, WorkloadError> {
        let lines = if values.content == ValueContent::Lines {
            Some(values.lines.clone().ok_or(WorkloadError::Lines)?)
        } else {
            None
        };
        let length = lines.as_ref().map_or(values.size.longest() as usize, Lines::longest);
        let stream = RandomStream::new(seed, rng::LENGTHS);
        let lengths = match &values.size {
            ValueSize::Fixed { .. } => None,
            ValueSize::Range { least_bytes, most_bytes } => {
                let count = u64::from(*most_bytes).checked_sub((*least_bytes).into()).ok_or(WorkloadError::Sizes)? + 1;
                Some(Lengths::Range { least: (*least_bytes).into(), count, stream })
            }
            ValueSize::Weighted(sizes) => {
                let mix = Mix::new(sizes.iter().map(|size| size.weight), stream).ok_or(WorkloadError::Sizes)?;
                Some(Lengths::Weighted { bytes: sizes.iter().map(|size| size.bytes).collect(), mix })
            }
        };
        let pool = pool(values, length, seed).into();
        let large = lines.is_none() && values.size.mean() >= LARGE;
        Ok(Self { pool, length, large, stream: RandomStream::new(seed, rng::VALUES), lengths, lines, numbering: None })
    }

    /// The same values with other numbers for lines, or with the commands' own.
    pub(super) fn numbered(self, numbering: Option<Numbering>) -> Self {
        Self { numbering: numbering.filter(|numbering| !numbering.is_plain()), ..self }
    }

    fn line<'l>(&self, lines: &'l Lines, k: u64) -> &'l [u8] {
        lines.line(self.numbering.map_or(k, |numbering| numbering.of(k)))
    }

    /// The pool, if values are large.
    pub(super) fn pool_of_large(&self) -> Option<Arc<[u8]>> {
        self.large.then(|| self.pool.clone())
    }

    #[cfg(test)]
    pub(super) fn shares_pool(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pool, &other.pool)
    }

    /// The length of all values; `None` if they differ.
    pub(super) fn fixed_length(&self) -> Option<usize> {
        (self.lengths.is_none() && self.lines.is_none()).then_some(self.length)
    }

    pub(super) fn longest(&self) -> usize {
        self.length
    }

    /// The value of request `k`, for values of one length.
    #[inline]
    pub(super) fn of(&self, k: u64) -> &[u8] {
        let offset = self.offset(k);
        &self.pool[offset..offset + self.length]
    }

    #[inline]
    fn offset(&self, k: u64) -> usize {
        self.stream.below(k, OFFSETS as u64) as usize
    }

    /// The place in the pool of the value of request `k`, for any lengths. Meaningless for lines.
    pub(super) fn place_of(&self, k: u64) -> Range<usize> {
        let offset = self.offset(k);
        offset..offset + self.length_of(k)
    }

    /// The value of request `k`, for any lengths.
    pub(super) fn any_of(&self, k: u64) -> &[u8] {
        match &self.lines {
            Some(lines) => self.line(lines, k),
            None => &self.pool[self.place_of(k)],
        }
    }

    /// Writes the value of request `k`, of any length, to the beginning of `room`, and returns its length.
    pub(super) fn write(&self, k: u64, room: &mut [u8]) -> usize {
        let value = self.any_of(k);
        room[..value.len()].copy_from_slice(value);
        value.len()
    }

    pub(super) fn length_of(&self, k: u64) -> usize {
        if let Some(lines) = &self.lines {
            return self.line(lines, k).len();
        }
        match &self.lengths {
            None => self.length,
            Some(Lengths::Range { least, count, stream }) => (least + stream.below(k, *count)) as usize,
            Some(Lengths::Weighted { bytes, mix }) => {
                bytes.get(usize::from(mix.draw(k))).map_or(0, |bytes| *bytes as usize)
            }
        }
    }
}

/// The pool that values of up to `length` bytes are slices of. Each period consists of random bytes followed by compressible zeros, so
/// every value at least as long as a period has the same share of zeros, at any offset.
fn pool(values: &plan::Values, length: usize, seed: u64) -> Vec<u8> {
    let percent = match values.content {
        ValueContent::Zero => return vec![0; OFFSETS + length],
        ValueContent::Lines => return Vec::new(),
        ValueContent::Random { compressibility_percent } => u64::from(compressibility_percent.min(100)),
    };
    let stream = RandomStream::new(seed, rng::POOL);
    let words = (OFFSETS + length).div_ceil(8) as u64;
    let mut pool: Vec<u8> = (0..words).flat_map(|index| stream.at(index).to_le_bytes()).collect();
    let mean = values.size.mean().max(1);
    // A whole number of equal periods per mean length.
    let period = mean / mean.div_ceil(LONGEST_PERIOD);
    let random = period - (period * percent + 50) / 100;
    for piece in pool.chunks_mut(period as usize) {
        piece.iter_mut().skip(random as usize).for_each(|byte| *byte = 0);
    }
    pool
}

#[cfg(test)]
mod tests;

//! Values: slices of one pool of bytes, so that making one costs a copy.

use std::sync::Arc;

use redisbench_wire::plan::{self, ValueContent, ValueSize};

use super::WorkloadError;
use super::mix::Mix;
use super::rng::{self, Stream};

/// Different values; few enough that the pool stays in a processor's cache.
const OFFSETS: usize = 128 << 10;

/// What can be compressed of a value is in pieces as long as the value, but no longer than this: a compressor looks back
/// only so far.
const LONGEST_PERIOD: u64 = 4096;

/// A copy shares the pool.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pool: Arc<[u8]>,
    /// Of all values, or of the longest.
    length: usize,
    stream: Stream,
    /// None if all have one length.
    lengths: Option<Lengths>,
}

/// Lengths that differ from request to request.
#[derive(Clone, Debug)]
enum Lengths {
    Range { least: u64, count: u64, stream: Stream },
    Weighted { bytes: Vec<u32>, mix: Mix },
}

impl Values {
    pub(super) fn new(values: &plan::Values, seed: u64) -> Result<Self, WorkloadError> {
        let length = values.size.longest() as usize;
        let stream = Stream::new(seed, rng::LENGTHS);
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
        Ok(Self { pool: pool(values, length, seed).into(), length, stream: Stream::new(seed, rng::VALUES), lengths })
    }

    /// Whether both are slices of the same bytes in memory.
    #[cfg(test)]
    pub(super) fn shares_pool(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pool, &other.pool)
    }

    /// The length of all values. None if they differ.
    pub(super) fn fixed_length(&self) -> Option<usize> {
        self.lengths.is_none().then_some(self.length)
    }

    /// The length of the longest.
    pub(super) fn longest(&self) -> usize {
        self.length
    }

    /// The value of request `k`, of values of one length.
    #[inline]
    pub(super) fn of(&self, k: u64) -> &[u8] {
        let offset = self.stream.below(k, OFFSETS as u64) as usize;
        &self.pool[offset..offset + self.length]
    }

    /// The value of request `k`, whatever its length.
    pub(super) fn any_of(&self, k: u64) -> &[u8] {
        &self.of(k)[..self.length_of(k)]
    }

    /// The length of the value of request `k`.
    pub(super) fn length_of(&self, k: u64) -> usize {
        match &self.lengths {
            None => self.length,
            Some(Lengths::Range { least, count, stream }) => (least + stream.below(k, *count)) as usize,
            Some(Lengths::Weighted { bytes, mix }) => {
                bytes.get(usize::from(mix.draw(k))).map_or(0, |bytes| *bytes as usize)
            }
        }
    }
}

/// The bytes that values of up to `length` bytes are slices of. What is to be compressed away are zeros, in each period
/// behind the random bytes: so every value as long as a period has the same share of them, wherever it begins.
fn pool(values: &plan::Values, length: usize, seed: u64) -> Vec<u8> {
    let percent = match values.content {
        ValueContent::Zero => return vec![0; OFFSETS + length],
        ValueContent::Random { compressibility_percent } => u64::from(compressibility_percent.min(100)),
    };
    let stream = Stream::new(seed, rng::POOL);
    let words = (OFFSETS + length).div_ceil(8) as u64;
    let mut pool: Vec<u8> = (0..words).flat_map(|index| stream.at(index).to_le_bytes()).collect();
    let mean = values.size.mean().max(1);
    // As many as fit evenly.
    let period = mean / mean.div_ceil(LONGEST_PERIOD);
    let random = period - (period * percent + 50) / 100;
    for piece in pool.chunks_mut(period as usize) {
        piece.iter_mut().skip(random as usize).for_each(|byte| *byte = 0);
    }
    pool
}

#[cfg(test)]
mod tests;

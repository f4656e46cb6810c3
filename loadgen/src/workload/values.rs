//! Values: slices of one pool of random bytes, so that making one costs a copy.

use super::rng::{self, Stream};

/// Different values; few enough that the pool stays in a processor's cache.
const OFFSETS: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct Values {
    pool: Vec<u8>,
    length: usize,
    stream: Stream,
}

impl Values {
    pub(super) fn new(length: usize, seed: u64) -> Self {
        let pool = Stream::new(seed, rng::POOL);
        let words = (OFFSETS + length).div_ceil(8) as u64;
        Self {
            pool: (0..words).flat_map(|index| pool.at(index).to_le_bytes()).collect(),
            length,
            stream: Stream::new(seed, rng::VALUES),
        }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The value of request `k`.
    #[inline]
    pub(super) fn of(&self, k: u64) -> &[u8] {
        let offset = self.stream.below(k, OFFSETS as u64) as usize;
        &self.pool[offset..offset + self.length]
    }
}

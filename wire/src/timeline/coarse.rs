//! Coarse latency histograms: one type for recording, one for storage and transfer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::histogram::HIGHEST_NANOSECONDS;
use crate::limits::LARGEST_COUNT;

/// log2 of the lowest value that is distinguished from zero: 64 ns.
const UNIT_BITS: u32 = 6;

/// log2 of the linear steps in each power of two. From 2 µs on, a bucket is at most 1/32 wide.
const STEP_BITS: u32 = 5;

/// Buckets of a coarse histogram.
pub const BUCKETS: usize = bucket(HIGHEST_NANOSECONDS) + 1;

/// The maximum size of a sparse histogram: each bucket has a gap of at most two bytes and a count of at most ten.
const SPARSE_BYTES: usize = BUCKETS * 12;

/// The bucket of a latency of at most [`HIGHEST_NANOSECONDS`].
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "there are less than a thousand buckets")]
pub const fn bucket(nanoseconds: u64) -> usize {
    let first_range = (2 << (STEP_BITS + UNIT_BITS)) - 1;
    let power = (nanoseconds | first_range).ilog2() - STEP_BITS - UNIT_BITS;
    (((power as u64) << STEP_BITS) + (nanoseconds >> (power + UNIT_BITS))) as usize
}

/// The shortest latency in a bucket, in nanoseconds.
pub const fn lowest_in(bucket: usize) -> u64 {
    match bucket.checked_sub(1) {
        None => 0,
        Some(before) => highest_in(before) + 1,
    }
}

/// The longest latency in a bucket, in nanoseconds.
pub const fn highest_in(bucket: usize) -> u64 {
    let (next, steps) = (bucket as u64 + 1, 1 << STEP_BITS);
    let first_of_next = match next >> STEP_BITS {
        0 => next << UNIT_BITS,
        power => (next % steps + steps) << (power - 1 + UNIT_BITS as u64),
    };
    first_of_next - 1
}

/// A coarse histogram that records latencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coarse(Box<[u64; BUCKETS]>);

impl Default for Coarse {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

impl Coarse {
    /// Counts a latency `times` times. Clamps it to [`HIGHEST_NANOSECONDS`].
    #[inline]
    pub fn record(&mut self, nanoseconds: u64, times: u64) {
        if let Some(count) = self.0.get_mut(bucket(nanoseconds.min(HIGHEST_NANOSECONDS))) {
            *count += times;
        }
    }

    /// Adds a stored histogram. Saturates.
    pub fn add(&mut self, buckets: &Buckets) {
        for (bucket, times) in buckets.iter() {
            if let Some(count) = self.0.get_mut(bucket) {
                *count = count.saturating_add(times);
            }
        }
    }

    /// The form for storage and transfer.
    pub fn buckets(&self) -> Buckets {
        // Usually a gap takes one byte, and a second's count at most two.
        let mut bytes = Vec::with_capacity(3 * self.0.iter().filter(|count| **count > 0).count());
        let mut next = 0;
        for (bucket, count) in (0_u64..).zip(self.0.iter()).filter(|(_, count)| **count > 0) {
            push(&mut bytes, bucket - next);
            push(&mut bytes, *count);
            next = bucket + 1;
        }
        Buckets(bytes)
    }

    /// The non-empty buckets, in order.
    pub fn used(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, _)| bucket)
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// A coarse histogram as it is stored and sent. For each non-empty bucket: the number of empty ones before it and its count, as LEB128. In
/// JSON this is base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets(Vec<u8>);

impl Buckets {
    /// The non-empty buckets, in order, and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut rest = self.0.as_slice();
        let mut next = 0_usize;
        std::iter::from_fn(move || {
            let (gap, count) = (pull(&mut rest)?, pull(&mut rest)?);
            let bucket = next.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX));
            next = bucket.saturating_add(1);
            Some((bucket, count))
        })
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.iter().fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// True if it has no latencies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An upper estimate of its size as JSON, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.0.len() * 3 / 2
    }

    /// Parses untrusted input.
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        if text.len() > SPARSE_BYTES.div_ceil(3) * 4 {
            return Err("longer than its buckets allow");
        }
        let bytes = BASE64.decode(text).map_err(|_| "not base64")?;
        let (mut rest, mut next, mut sum) = (bytes.as_slice(), 0_u64, 0_u64);
        while !rest.is_empty() {
            let (gap, count) = pull(&mut rest).zip(pull(&mut rest)).ok_or("truncated number")?;
            let bucket = next.checked_add(gap).filter(|bucket| *bucket < BUCKETS as u64).ok_or("too many buckets")?;
            sum =
                sum.checked_add(count).filter(|sum| count > 0 && *sum <= LARGEST_COUNT).ok_or("count out of range")?;
            next = bucket + 1;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Buckets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Buckets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: String| Self::read(&text);
        read(String::deserialize(deserializer)?)
            .map_err(|why| D::Error::custom(format_args!("invalid coarse histogram: {why}")))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Removes the first number from `rest`. None if there is none, or it exceeds 64 bits.
fn pull(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (at, byte) in rest.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return None;
        }
        number |= bits << (7 * at);
        if byte & 0x80 == 0 {
            *rest = &rest[at + 1..];
            return Some(number);
        }
    }
    None
}

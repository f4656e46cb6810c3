//! Random numbers by index instead of in sequence: number k of a stream does not need those before it.

pub(crate) const KEYS: u64 = 1;
pub(crate) const MIX: u64 = 2;
pub(crate) const VALUES: u64 = 3;
pub(crate) const SLOTS: u64 = 4;
pub(crate) const POOL: u64 = 5;
pub(crate) const ARRIVALS: u64 = 6;
pub(crate) const LENGTHS: u64 = 7;
pub(crate) const TRACES: u64 = 8;
pub(crate) const TAGS: u64 = 9;
pub(crate) const LANES: u64 = 10;
/// First of the streams for numbers in a command, one per place.
pub(crate) const FIELDS: u64 = 1 << 32;
/// First of the streams for further keys of a command, one per key.
pub(crate) const NTH_KEYS: u64 = 2 << 32;

/// The step of `SplitMix64`: 2^64 over the golden ratio, odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// An unlimited sequence of random 64-bit numbers, addressed by index. Streams of one seed are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomStream {
    origin: u64,
}

impl RandomStream {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        // Two rounds, so that neighbouring seeds and streams begin far apart.
        Self { origin: mix(mix(seed).wrapping_add(stream.wrapping_mul(STEP))) }
    }

    #[inline]
    pub(crate) fn at(self, index: u64) -> u64 {
        mix(self.origin.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP)))
    }

    /// A stream that belongs to number `index`, where one number is not enough.
    #[inline]
    pub(crate) fn own(self, index: u64) -> Self {
        Self { origin: self.at(index) }
    }

    /// Number `index`, mapped to 0..bound. The bias is below bound / 2^64.
    #[inline]
    pub(crate) fn below(self, index: u64, bound: u64) -> u64 {
        ((u128::from(self.at(index)) * u128::from(bound)) >> 64) as u64
    }
}

/// The finalizer of `SplitMix64` (Stafford's variant 13): every bit of the input flips every bit of the output with a probability of
/// about one half.
#[inline]
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_uniform() {
        let stream = RandomStream::new(1, KEYS);
        let mut counts = [0u64; 10];
        (0..100_000).for_each(|index| counts[stream.below(index, 10) as usize] += 1);
        let chi_square: f64 = counts.iter().map(|count| (*count as f64 - 10_000.0).powi(2) / 10_000.0).sum();
        // The 99.9 % quantile with 9 degrees of freedom.
        assert!(chi_square < 27.9, "{chi_square}");
    }

    #[test]
    fn streams_and_seeds_differ() {
        let of = |seed, stream| (0..4).map(|index| RandomStream::new(seed, stream).at(index)).collect::<Vec<_>>();
        assert_ne!(of(1, KEYS), of(1, MIX));
        assert_ne!(of(1, KEYS), of(2, KEYS));
        assert_eq!(of(7, VALUES), of(7, VALUES));
    }
}

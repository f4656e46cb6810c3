//! Maps ranks to keys, so that popular keys are not neighbours.

use crate::workload::rng::RandomStream;

/// A bijection of 0..count that steps by the golden ratio, modulo the count. The first n ranks, for any n, are spread evenly, with at
/// most three distances between neighbours (Steinhaus).
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    count: u64,
    /// Coprime to the count, so that no key is met twice.
    step: u64,
    /// The key of the first rank, which depends on the seed.
    first: u64,
}

impl Scatter {
    pub(super) fn new(count: u64, stream: RandomStream) -> Self {
        /// 2^64 over the golden ratio.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let golden = ((u128::from(count) * u128::from(GOLDEN)) >> 64) as u64;
        let step = (golden..=count).find(|step| greatest_common_divisor(*step, count) == 1).unwrap_or(1);
        // An index that no request uses: those of requests begin at 0.
        Self { count, step, first: stream.below(u64::MAX, count) }
    }

    pub(super) fn index(&self, rank: u64) -> u64 {
        ((u128::from(rank) * u128::from(self.step) + u128::from(self.first)) % u128::from(self.count)) as u64
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workload::rng::KEYS;

    proptest! {
        #[test]
        fn each_rank_is_a_key_of_its_own(count in 1_u64..3000, seed: u64) {
            let scatter = Scatter::new(count, RandomStream::new(seed, KEYS));
            let mut keys: Vec<u64> = (0..count).map(|rank| scatter.index(rank)).collect();
            keys.sort_unstable();
            prop_assert_eq!(keys, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn the_first_ranks_are_spread_evenly(count in 10_000_u64..1 << 40, ranks in 10_u64..1000, seed: u64) {
            let scatter = Scatter::new(count, RandomStream::new(seed, KEYS));
            let mut keys: Vec<u64> = (0..ranks).map(|rank| scatter.index(rank)).collect();
            keys.sort_unstable();
            let gaps = keys.windows(2).map(|pair| pair[1] - pair[0]);
            // For the golden ratio itself the widest is below 2.62 times the mean.
            let widest = gaps.max().unwrap_or(0) as f64;
            prop_assert!(widest < 3.0 * count as f64 / ranks as f64, "{widest}");
        }
    }
}

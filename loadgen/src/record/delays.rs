//! A small histogram: four buckets per power of two, up to a minute.

/// Counts of delays. A bucket's width is at most a quarter of its lowest value.
#[derive(Clone, Debug)]
pub struct Delays([u32; Self::STEPS]);

impl Default for Delays {
    fn default() -> Self {
        Self([0; Self::STEPS])
    }
}

impl Delays {
    /// The limit of the wire format. The last bucket also counts everything longer.
    pub const STEPS: usize = redisbench_wire::limits::DELAY_STEPS;

    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        let nanoseconds = nanoseconds.max(4);
        let power = nanoseconds.ilog2();
        let step = (power as usize - 2) * 4 + (nanoseconds >> (power - 2)) as usize % 4;
        let count = &mut self.0[step.min(Self::STEPS - 1)];
        *count = count.saturating_add(1);
    }

    /// The count of each bucket.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|count| u64::from(*count))
    }
}

#[cfg(test)]
mod tests {
    use redisbench_wire::snapshot::ReceiveDelay;

    use super::*;

    #[test]
    fn a_quantile_is_the_end_of_the_step_it_is_in() {
        for nanoseconds in [4, 5, 7, 8, 100, 1000, 123_456, 300_000_000, 50_000_000_000] {
            let mut delays = Delays::default();
            delays.record(nanoseconds);
            let told = ReceiveDelay { connections: 1, counts: delays.counts().collect() };
            let end = told.quantile_nanoseconds(990_000).unwrap();
            assert!(nanoseconds < end && end <= nanoseconds + nanoseconds / 4 + 1, "{nanoseconds} in a step to {end}");
        }
    }

    #[test]
    fn whatever_comes_has_a_step() {
        let mut delays = Delays::default();
        for nanoseconds in [0, 1, 3, u64::MAX] {
            delays.record(nanoseconds);
        }
        assert_eq!(delays.counts().sum::<u64>(), 4);
    }
}

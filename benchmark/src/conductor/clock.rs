//! Estimates of the shards' clocks. Pure.
//!
//! Instants on the conductor's clock are nanoseconds since the conductor began. They are negative before that: after a takeover, the start
//! may lie in the past.

use std::time::Duration;

use redisbench_wire::ClockReading;

use super::ShardClock;

/// Assumed drift between two crystals: 50 ppm is 180 ms in an hour.
const DRIFT_PER_MILLION: i64 = 50;

/// Converts to nanoseconds; saturates to the far future.
pub fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Converts from nanoseconds; negative values give zero.
pub fn duration(nanoseconds: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

/// One exchange with a shard, as an estimate of its clock. The reading was taken somewhere between send and receipt, so half of the round
/// trip bounds the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEstimate {
    offset: i64,
    half_round_trip: i64,
    taken_at: i64,
}

impl ClockEstimate {
    /// From the conductor's instants around the call and the shard's reading.
    pub fn from_exchange(sent_at: i64, received_at: i64, reading: ClockReading) -> Self {
        let half_round_trip = (received_at - sent_at + 1) / 2;
        let reading = i64::try_from(reading.monotonic_nanoseconds).unwrap_or(i64::MAX);
        Self {
            offset: reading.saturating_sub(sent_at).saturating_sub(half_round_trip),
            half_round_trip,
            taken_at: received_at,
        }
    }

    /// Maximum error of the offset at `at`, before or after the exchange: it grows with the drift.
    pub fn uncertainty(&self, at: i64) -> i64 {
        let age = at.saturating_sub(self.taken_at).saturating_abs();
        self.half_round_trip.saturating_add(age / 1_000_000 * DRIFT_PER_MILLION)
    }

    /// The better of `known` and `new` at the time of `new`: the shortest round trip, until drift outweighs it.
    pub fn better(known: Option<Self>, new: Self) -> Self {
        match known {
            Some(known) if known.uncertainty(new.taken_at) < new.half_round_trip => known,
            _ => new,
        }
    }

    pub fn half_round_trip(&self) -> Duration {
        duration(self.half_round_trip)
    }

    /// Converts the conductor's instant `at` to the shard's clock.
    pub fn to_shard(self, at: i64) -> u64 {
        u64::try_from(at.saturating_add(self.offset)).unwrap_or(0)
    }

    /// Converts the shard's reading `at` to the conductor's clock.
    pub fn to_conductor(self, at: u64) -> i64 {
        i64::try_from(at).unwrap_or(i64::MAX).saturating_sub(self.offset)
    }

    pub fn report(&self) -> ShardClock {
        ShardClock { offset_nanoseconds: self.offset, uncertainty: self.half_round_trip() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(at: i64) -> ClockReading {
        ClockReading { monotonic_nanoseconds: u64::try_from(at).unwrap() }
    }

    proptest! {
        /// Wherever in the round trip the shard read its clock, the error is within the uncertainty.
        #[test]
        fn the_truth_is_within_the_uncertainty(
            offset in 0..1_000_000_000_000_i64,
            sent_at in 0..1_000_000_000_i64,
            there in 0..10_000_000_i64,
            back in 0..10_000_000_i64,
        ) {
            let estimate =
                ClockEstimate::from_exchange(sent_at, sent_at + there + back, reading(sent_at + there + offset));
            prop_assert!((estimate.offset - offset).abs() <= estimate.half_round_trip);
        }

        #[test]
        fn there_and_back_is_the_same(offset in 0..1_000_000_000_i64, at in 0..1_000_000_000_i64) {
            let estimate = ClockEstimate::from_exchange(10, 20, reading(15 + offset));
            prop_assert_eq!(estimate.to_conductor(estimate.to_shard(at)), at);
        }
    }

    #[test]
    fn the_lowest_round_trip_is_kept_until_it_ages() {
        let sharp = ClockEstimate::from_exchange(0, 1_000, reading(5_000));
        let blurred = ClockEstimate::from_exchange(1_000, 101_000, reading(60_000));
        assert_eq!(ClockEstimate::better(Some(sharp), blurred), sharp);
        // After 2 s, drift adds 100 us of uncertainty to the sharp estimate.
        let late = ClockEstimate::from_exchange(2_000_000_000, 2_000_100_000, reading(2_000_060_000));
        assert_eq!(ClockEstimate::better(Some(sharp), late), late);
    }
}

//! Resends of requests that paused because no server served them. All workers of a benchmark together keep a bound per server.
//!
//! As many as a worker has in flight are sent again at once. Further ones have turns, because after an outage there may be far more.

use crate::schedule::Seat;

/// Interval of a worker's turns per worker of all shards: together they send at most 100,000 per second again to one server.
const SHARE: u64 = 10_000;

/// The turns of one worker at one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resends {
    interval: u64,
    /// The time at which all turns that were taken at once are made up for.
    even: u64,
}

impl Resends {
    pub(super) fn of(seat: Seat) -> Self {
        Self { interval: SHARE.saturating_mul(seat.step()).max(1), even: 0 }
    }

    /// Takes a turn. As many as `at_once` may follow each other without a pause.
    ///
    /// # Errors
    /// Too early: when the next turn may be taken.
    pub(super) fn take(&mut self, at_once: u64, now: u64) -> Result<(), u64> {
        let ahead = at_once.saturating_sub(1).saturating_mul(self.interval);
        let earliest = self.even.saturating_sub(ahead);
        if now < earliest {
            return Err(earliest);
        }
        self.even = self.even.max(now).saturating_add(self.interval);
        Ok(())
    }
}

/// The pause of request `k` for about `pause` nanoseconds: up to a quarter shorter or longer, so that requests that were refused together
/// do not come back together.
pub(super) fn jittered(pause: u64, k: u64) -> u64 {
    // The upper bits of a product with the golden ratio are spread evenly for consecutive numbers.
    let random = (k ^ pause).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    pause - pause / 4 + (random.saturating_mul(pause / 2) >> 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const START: u64 = 77 * SECOND;

    /// The times of one worker's resends in `length` nanoseconds, if it always has more. It comes late by up to `late`.
    fn sent(seat: Seat, at_once: u64, length: u64, late: u64) -> Vec<u64> {
        let (mut turns, mut now, mut times) = (Resends::of(seat), START, Vec::new());
        while now < START + length {
            match turns.take(at_once, now) {
                Ok(()) => times.push(now),
                Err(next) => {
                    assert!(next > now, "the worker would turn without end");
                    now = next + if late == 0 { 0 } else { next.wrapping_mul(0x9E37_79B9_7F4A_7C15) % late };
                }
            }
        }
        times
    }

    #[test]
    fn all_workers_together_keep_the_bound() {
        for (shards, workers) in [(1, 1), (20, 2), (1_000, 4)] {
            for (at_once, late) in [(1, 0), (16, 0), (16, SECOND / 1000)] {
                let seat = |shard, worker| Seat { shard, shards, worker, workers };
                let seats = (0..shards).flat_map(|shard| (0..workers).map(move |worker| seat(shard, worker)));
                let all: usize = seats.map(|seat| sent(seat, at_once, 2 * SECOND, late).len()).sum();
                // The number of the documentation, and what is in flight.
                let bound = 2 * 100_000 + u64::from(shards * workers) * at_once;
                assert!(all as u64 <= bound, "{shards} shards of {workers} workers: {all}, not {bound}");
                assert!(late > 0 || all as u64 >= 2 * 100_000, "{shards} shards of {workers} workers: only {all}");
            }
        }
    }

    #[test]
    fn what_was_in_flight_is_sent_again_at_once() {
        let mut resends = Resends::of(Seat { shard: 3, shards: 1_000, worker: 0, workers: 1 });
        let interval = 1_000 * SHARE;
        for now in [START, START + 3600 * SECOND] {
            let taken = (0..100).take_while(|_| resends.take(50, now).is_ok()).count();
            assert_eq!(taken, 50, "turns are not saved up");
            assert_eq!(resends.take(50, now), Err(now + interval));
        }
        assert_eq!(resends.take(50, START + 3600 * SECOND + interval), Ok(()));
    }

    #[test]
    fn pauses_spread_what_was_refused_together() {
        for pause in [10_000_000, 10_000_000 << 15] {
            let mut tenths = [0; 10];
            for k in 0..1_000 {
                let jittered = jittered(pause, k);
                assert!((pause * 3 / 4..=pause * 5 / 4).contains(&jittered), "{pause}: {jittered}");
                tenths[usize::try_from(((jittered - pause * 3 / 4) * 10 / (pause / 2)).min(9)).unwrap()] += 1;
            }
            assert!(tenths.iter().all(|count| (50..=150).contains(count)), "{pause}: {tenths:?}");
        }
    }
}

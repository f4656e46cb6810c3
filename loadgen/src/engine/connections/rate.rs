//! The time at which a worker may begin its next connection.

use crate::schedule::Seat;

const SECOND: u64 = 1_000_000_000;

/// A worker's part of a rate shared by all workers of all shards. Connections begin one at a time, evenly spaced, and missed turns are
/// not made up.
#[derive(Debug)]
pub(crate) struct ConnectRate {
    /// Nanoseconds between turns; 0 without a limit.
    interval: u64,
    /// Delay of the first turn, so that the workers alternate.
    first: u64,
    next: u64,
}

impl ConnectRate {
    /// `rate` per second over all seats.
    pub(super) fn of(rate: Option<u32>, seat: Seat) -> Self {
        let after = |turns: u64| {
            let rate = rate.filter(|rate| *rate > 0)?;
            u64::try_from(u128::from(turns) * u128::from(SECOND) / u128::from(rate)).ok()
        };
        Self { interval: after(seat.step()).unwrap_or(0), first: after(seat.first()).unwrap_or(0), next: 0 }
    }

    pub(super) fn begin(&mut self, now: u64) {
        self.next = now.saturating_add(self.first);
    }

    /// Takes a turn at `now`.
    ///
    /// # Errors
    /// Too early: the time of the next turn.
    pub(crate) fn take(&mut self, now: u64) -> Result<(), u64> {
        if now < self.next {
            return Err(self.next);
        }
        self.next = now.saturating_add(self.interval);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 77 * SECOND;

    fn turns(mut rate: ConnectRate, count: usize) -> Vec<u64> {
        rate.begin(START);
        let mut now = START;
        let mut turns = Vec::new();
        while turns.len() < count {
            match rate.take(now) {
                Ok(()) => turns.push(now - START),
                Err(next) => now = next,
            }
        }
        turns
    }

    #[test]
    fn all_workers_together_keep_the_rate() {
        let mut all = Vec::new();
        for shard in 0..2 {
            for worker in 0..3 {
                all.extend(turns(ConnectRate::of(Some(300), Seat { shard, shards: 2, worker, workers: 3 }), 50));
            }
        }
        all.sort_unstable();
        assert_eq!(all.len(), 300);
        let gaps: Vec<u64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (3_333_332..=3_333_334).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn what_was_missed_is_not_made_up_for() {
        let mut rate = ConnectRate::of(Some(10), Seat { shard: 0, shards: 1, worker: 0, workers: 1 });
        rate.begin(START);
        assert_eq!(rate.take(START + SECOND), Ok(()));
        assert_eq!(rate.take(START + SECOND), Err(START + SECOND + SECOND / 10));
    }

    #[test]
    fn without_a_rate_it_is_always_time() {
        assert_eq!(turns(ConnectRate::of(None, Seat { shard: 3, shards: 4, worker: 1, workers: 2 }), 3), [0, 0, 0]);
    }
}

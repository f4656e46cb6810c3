//! Counts of one shard's client-side caches in the last seconds. No IO.

use std::collections::VecDeque;

use redisbench_wire::snapshot::{Snapshot, Stage};

use super::held::RECENT_SECONDS;
use crate::measurement::merge;

/// The most kept counts. A shard is asked once a second or less often, except at the end of its load.
const KEPT: usize = 2 * RECENT_SECONDS as usize;

/// Rates of client-side caches in the last seconds of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheRates {
    pub hits_per_second: u64,
    /// Keys in the servers' invalidation messages.
    pub invalidations_per_second: u64,
}

impl CacheRates {
    /// Of both. They saturate: counts of shards are untrusted.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            hits_per_second: self.hits_per_second.saturating_add(other.hits_per_second),
            invalidations_per_second: self.invalidations_per_second.saturating_add(other.invalidations_per_second),
        }
    }
}

/// Counts since the measurement began.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// On the shard's clock.
    nanoseconds: u64,
    hits: u64,
    invalidations: u64,
}

/// The last counts of a shard, the oldest first.
#[derive(Debug, Default)]
pub struct Cached {
    counts: VecDeque<Counts>,
}

impl Cached {
    /// Takes the counts of an accepted snapshot, if it has any.
    pub fn take(&mut self, snapshot: &Snapshot) {
        let Some(cache) = snapshot.cache.as_ref().filter(|_| snapshot.stage >= Stage::Measuring) else { return };
        let window = &snapshot.window;
        let ended = window.measure_to_nanoseconds;
        let now = if ended > 0 { snapshot.taken_nanoseconds.min(ended) } else { snapshot.taken_nanoseconds };
        if self.counts.is_empty() {
            // A conductor that takes over begins with the mean rate so far.
            self.counts.push_back(Counts { nanoseconds: window.measure_from_nanoseconds, hits: 0, invalidations: 0 });
        }
        if self.counts.back().is_some_and(|last| last.nanoseconds < now) {
            let (hits, invalidations) = (cache.counts.hits, cache.counts.invalidations);
            self.counts.push_back(Counts { nanoseconds: now, hits, invalidations });
        }
        // The first is the newest that is old enough.
        let old = now.saturating_sub(u64::from(RECENT_SECONDS) * 1_000_000_000);
        while self.counts.len() > KEPT || self.counts.get(1).is_some_and(|second| second.nanoseconds <= old) {
            self.counts.pop_front();
        }
    }

    /// None without caches and before the measurement.
    pub fn rates(&self) -> Option<CacheRates> {
        let (first, last) = (self.counts.front()?, self.counts.back()?);
        let time = last.nanoseconds.saturating_sub(first.nanoseconds);
        let per_second = |from: u64, to: u64| merge::per_second(to.saturating_sub(from), time);
        (time > 0).then(|| CacheRates {
            hits_per_second: per_second(first.hits, last.hits),
            invalidations_per_second: per_second(first.invalidations, last.invalidations),
        })
    }
}

#[cfg(test)]
mod tests {
    use redisbench_wire::histogram::Kind;
    use redisbench_wire::snapshot::{Cache, CacheCounts, Window};

    use super::*;
    use crate::sample;

    const SECOND: u64 = 1_000_000_000;

    /// Taken this many seconds after the begin of a measurement of 20 s.
    fn after(seconds: u64, stage: Stage, hits: u64, invalidations: u64) -> Snapshot {
        let counts = CacheCounts { hits, invalidations, ..CacheCounts::default() };
        Snapshot {
            stage,
            taken_nanoseconds: (100 + seconds) * SECOND,
            window: Window {
                measure_from_nanoseconds: 100 * SECOND,
                measure_to_nanoseconds: 120 * SECOND,
                ..Window::default()
            },
            cache: Some(Cache { counts, invalidation: sample::encoded(Kind::Request, &[]) }),
            ..sample::snapshot(0, &[])
        }
    }

    fn rates(hits_per_second: u64, invalidations_per_second: u64) -> CacheRates {
        CacheRates { hits_per_second, invalidations_per_second }
    }

    #[test]
    fn rates_are_of_the_last_seconds_of_the_measurement() {
        let mut cached = Cached::default();
        cached.take(&Snapshot { cache: None, ..after(1, Stage::Measuring, 7, 7) });
        cached.take(&after(1, Stage::Warmup, 7, 7));
        assert_eq!(cached.rates(), None);
        cached.take(&after(2, Stage::Measuring, 200, 20));
        assert_eq!(cached.rates(), Some(rates(100, 10)));
        for second in 3..=10 {
            cached.take(&after(second, Stage::Measuring, 200 + (second - 2) * 1_000, 20));
        }
        assert_eq!(cached.rates(), Some(rates(1_000, 0)));
        // The same snapshot again, and one that counts less than before.
        cached.take(&after(10, Stage::Measuring, 8_200, 20));
        assert_eq!(cached.rates(), Some(rates(1_000, 0)));
        cached.take(&after(11, Stage::Measuring, 0, 0));
        assert_eq!(cached.rates(), Some(rates(0, 0)));
        // After a silence, and the end of the load, with the time until that end.
        cached.take(&after(60, Stage::Done, 1_800, 45));
        assert_eq!(cached.rates(), Some(rates(200, 5)));
    }

    #[test]
    fn few_counts_are_kept_however_often_a_shard_is_asked() {
        let mut cached = Cached::default();
        for times in 0..1_000 {
            let snapshot = Snapshot {
                taken_nanoseconds: 101 * SECOND + times * SECOND / 1_000,
                ..after(1, Stage::Measuring, times, 0)
            };
            cached.take(&snapshot);
        }
        assert_eq!((cached.counts.len(), cached.rates()), (KEPT, Some(rates(1_000, 0))));
    }
}

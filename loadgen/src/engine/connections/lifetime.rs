//! The lives of connections: when each ends, and how long new ones take.

use redisbench_wire::plan::{Lifetime, LifetimeLimit, LifetimeSpread};

use crate::record::ChurnCounts;

/// The life of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// Requests that it may still send.
    left: u32,
    /// Its latest end.
    ends: u64,
}

impl Life {
    /// The number of `room` requests that may be staged beside `staged` ones.
    #[cold]
    pub(super) fn room(&self, room: usize, staged: usize) -> usize {
        room.min((self.left as usize).saturating_sub(staged))
    }

    /// Accounts for a send of `count` requests.
    pub(crate) fn sent(&mut self, count: usize) {
        self.left = self.left.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Returns whether the connection may send no more.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Ends the life if its time is up. Returns when it will be, if not yet.
    pub(super) fn come_to(&mut self, now: u64) -> Option<u64> {
        if self.ends <= now {
            self.left = 0;
        }
        (self.left > 0).then_some(self.ends)
    }
}

/// The lives of a worker's connections, if they have a lifetime.
#[derive(Debug)]
pub(super) struct Lives {
    lifetime: Lifetime,
    /// This worker's place among all of the benchmark, and their number.
    seat: (u64, u64),
    /// The beginning of the load; none if connections live for ever, because no load runs.
    since: Option<u64>,
    pub counts: ChurnCounts,
}

impl Lives {
    /// `seat`: this worker's place among all of the benchmark, and their number.
    pub(super) fn new(lifetime: Lifetime, seat: (u64, u64)) -> Self {
        Self { lifetime, seat, since: None, counts: ChurnCounts::default() }
    }

    /// Begins the lives of a load that began at `since`.
    pub(super) fn begin(&mut self, since: u64) {
        self.since = Some(since);
    }

    /// Ends the lives of a load. Returns whether there were any.
    pub(super) fn end(&mut self) -> bool {
        self.since.take().is_some()
    }

    /// Returns whether lives are going on that end by time.
    pub(super) fn are_timed(&self) -> bool {
        self.since.is_some() && matches!(self.lifetime.limit, LifetimeLimit::Duration { .. })
    }

    /// The life of connection `index` of `count` that is ready at `now`; `first` if the load began with it. None without a load.
    pub(super) fn of(&self, index: usize, count: usize, first: bool, now: u64) -> Option<Life> {
        let since = self.since?;
        // Places of all connections of all workers, from just above 0 to 1, in units of the last one.
        let (seat, seats) = self.seat;
        let (place, places) = (index as u64 * seats + seat + 1, count as u64 * seats);
        let part = |whole: u64| match self.lifetime.spread {
            LifetimeSpread::Together => whole,
            LifetimeSpread::Even => {
                let part = u128::from(whole) * u128::from(place.min(places)) / u128::from(places.max(1));
                u64::try_from(part).unwrap_or(whole).max(1)
            }
        };
        Some(match self.lifetime.limit {
            LifetimeLimit::Requests { count } => {
                let left = if first { part(count.into()) } else { count.into() };
                Life { left: u32::try_from(left).unwrap_or(count), ends: u64::MAX }
            }
            LifetimeLimit::Duration { nanoseconds } => {
                // On a grid of its own, so that lives keep their distances however long connecting takes.
                let offset = part(nanoseconds);
                let passed = now.saturating_sub(since).saturating_sub(offset);
                let steps = if now < since.saturating_add(offset) { 0 } else { passed / nanoseconds.max(1) + 1 };
                let ends = since.saturating_add(offset).saturating_add(steps.saturating_mul(nanoseconds));
                Life { left: u32::MAX, ends }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    fn lives(limit: LifetimeLimit, spread: LifetimeSpread, seat: (u64, u64)) -> Lives {
        let mut lives = Lives::new(Lifetime { limit, spread }, seat);
        lives.begin(1_000);
        lives
    }

    #[test]
    fn lives_end_evenly_over_a_lifetime_or_together() {
        let limit = LifetimeLimit::Duration { nanoseconds: 100 * MILLISECOND };
        let ends = |spread, seat| -> Vec<u64> {
            let lives = lives(limit, spread, seat);
            (0..5).map(|index| (lives.of(index, 5, true, 1_000).unwrap().ends - 1_000) / MILLISECOND).collect()
        };
        assert_eq!(ends(LifetimeSpread::Even, (0, 1)), [20, 40, 60, 80, 100]);
        assert_eq!(ends(LifetimeSpread::Even, (0, 2)), [10, 30, 50, 70, 90]);
        assert_eq!(ends(LifetimeSpread::Even, (1, 2)), [20, 40, 60, 80, 100]);
        assert_eq!(ends(LifetimeSpread::Together, (1, 2)), [100; 5]);
    }

    #[test]
    fn later_lives_end_on_the_grid_of_the_first() {
        let limit = LifetimeLimit::Duration { nanoseconds: 100 };
        let lives = lives(limit, LifetimeSpread::Even, (0, 1));
        let ends = |now| lives.of(0, 5, false, now).unwrap().ends;
        assert_eq!(
            (ends(1_000), ends(1_019), ends(1_020), ends(1_119), ends(1_120)),
            (1_020, 1_020, 1_120, 1_120, 1_220)
        );
    }

    #[test]
    fn only_the_first_life_is_short() {
        let limit = LifetimeLimit::Requests { count: 10 };
        let lefts = |spread, first| -> Vec<u32> {
            let lives = lives(limit, spread, (0, 1));
            (0..4).map(|index| lives.of(index, 4, first, 5_000).unwrap().left).collect()
        };
        assert_eq!(lefts(LifetimeSpread::Even, true), [2, 5, 7, 10]);
        assert_eq!(lefts(LifetimeSpread::Even, false), [10; 4]);
        assert_eq!(lefts(LifetimeSpread::Together, true), [10; 4]);
    }

    #[test]
    fn a_life_ends_by_requests_or_by_time() {
        let mut life = Life { left: 3, ends: 50 };
        assert_eq!((life.room(8, 0), life.room(8, 2), life.come_to(49)), (3, 1, Some(50)));
        life.sent(2);
        assert_eq!((life.room(8, 0), life.is_over()), (1, false));
        assert_eq!((life.come_to(50), life.is_over(), life.room(8, 0)), (None, true, 0));
    }
}

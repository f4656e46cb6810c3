//! Retries of a worker's connections to a server. All workers of a benchmark together keep a bound per server.
//!
//! While a worker has no connection to a server, one attempt at a time looks for it: a scout. The other connections follow its success.
//! Each worker has turns of its own for both. They are spread evenly over the interval of a turn, so a failure that all workers notice at
//! once causes no burst. The clocks of shards on several machines differ, which only shifts their turns.

use crate::schedule::Seat;

const MILLISECOND: u64 = 1_000_000;

/// Interval of a worker's scouts per worker of all shards: together they make at most 500 attempts per second.
const SCOUT_SHARE: u64 = 2 * MILLISECOND;

/// Few workers scout no more often than this.
const SCOUT_SHORTEST: u64 = 30 * MILLISECOND;

/// Each of more than 400 workers still scouts this often, to notice the server's return within a second.
const SCOUT_LONGEST: u64 = 800 * MILLISECOND;

/// A scout without an outcome for this long is no longer waited for, because the kernel repeats an unanswered SYN only after seconds. Short
/// enough that the turn after it is within the longest interval.
const PATIENCE: u64 = SCOUT_LONGEST / 2 - LATE;

/// Interval of a worker's following attempts per worker of all shards: together they make at most 5,000 per second.
const FOLLOWING_SHARE: u64 = MILLISECOND / 5;

/// Turns up to this late are made up for, because workers look at their connections only at ticks.
const LATE: u64 = 50 * MILLISECOND;

/// The turns of one worker: one per interval, at the same place of each.
#[derive(Clone, Copy, Debug)]
struct Turns {
    interval: u64,
    place: u64,
    next: u64,
}

impl Turns {
    fn of(interval: u64, seat: Seat) -> Self {
        let place = u128::from(interval) * u128::from(seat.first()) / u128::from(seat.step().max(1));
        Self { interval: interval.max(1), place: u64::try_from(place).unwrap_or(0), next: 0 }
    }

    /// Returns whether a turn may be taken. Missed ones are lost.
    ///
    /// # Errors
    /// Too early: the time of the next turn.
    fn due(&mut self, now: u64) -> Result<(), u64> {
        if self.next.saturating_add(LATE.max(self.interval / 4)) < now {
            let passed = now.saturating_sub(self.place) % self.interval;
            self.next = if passed == 0 { now } else { now.saturating_add(self.interval - passed) };
        }
        if now < self.next { Err(self.next) } else { Ok(()) }
    }

    fn take(&mut self) {
        self.next = self.next.saturating_add(self.interval);
    }
}

/// One worker's further attempts to connect to one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retries {
    scouts: Turns,
    following: Turns,
    /// The worker has no connection to the server.
    down: bool,
    /// The beginning of the scout without an outcome.
    scouting: Option<u64>,
}

impl Retries {
    pub(super) fn of(seat: Seat) -> Self {
        let every = |share: u64| share.saturating_mul(seat.step());
        Self {
            scouts: Turns::of(every(SCOUT_SHARE).clamp(SCOUT_SHORTEST, SCOUT_LONGEST), seat),
            following: Turns::of(every(FOLLOWING_SHARE), seat),
            down: false,
            scouting: None,
        }
    }

    /// Returns whether only a scout may try.
    pub(super) fn are_scouts(&self) -> bool {
        self.down
    }

    /// Returns whether an attempt may begin.
    ///
    /// # Errors
    /// Too early: when to ask again.
    pub(super) fn due(&mut self, now: u64) -> Result<(), u64> {
        if !self.down {
            return self.following.due(now);
        }
        let patient = self.scouting.map_or(0, |began| began.saturating_add(PATIENCE));
        match self.scouts.due(now) {
            Ok(()) if patient <= now => Ok(()),
            Ok(()) => Err(patient),
            Err(next) => Err(next.max(patient)),
        }
    }

    /// Notes that an attempt began when it was due.
    pub(super) fn began(&mut self, now: u64) {
        if self.down {
            self.scouts.take();
            self.scouting = Some(now);
        } else {
            self.following.take();
        }
    }

    /// Notes that an attempt failed or a connection broke, and the worker has no other.
    pub(super) fn failed(&mut self) {
        (self.down, self.scouting) = (true, None);
    }

    /// Lets the other connections follow. Returns whether only a scout might try until now.
    pub(super) fn succeeded(&mut self) -> bool {
        self.scouting = None;
        std::mem::take(&mut self.down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1000 * MILLISECOND;
    /// The times at which the server goes, and is back.
    const GONE: u64 = 77 * SECOND + 123_456_789;
    const BACK: u64 = GONE + 10 * SECOND;
    const CONNECTIONS: usize = 50;

    /// The treatment of attempts by a server that is down.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum While {
        Refusing,
        /// Attempts have no outcome.
        Silent,
    }

    /// One worker's attempts, and when it has made a connection again. It comes late by up to `late`.
    fn attempts(seat: Seat, down: While, late: u64) -> (Vec<u64>, u64) {
        let mut retries = Retries::of(seat);
        retries.failed();
        let (mut now, mut attempts, mut made, mut first) = (GONE, Vec::new(), 0, None);
        while made < CONNECTIONS {
            match retries.due(now) {
                Ok(()) => {
                    attempts.push(now);
                    retries.began(now);
                    if now >= BACK {
                        retries.succeeded();
                        first.get_or_insert(now);
                        made += 1;
                    } else if down == While::Refusing {
                        retries.failed();
                    }
                }
                Err(next) => {
                    assert!(next > now, "the worker would turn without end");
                    now = next + if late == 0 { 0 } else { next.wrapping_mul(0x9E37_79B9_7F4A_7C15) % late };
                }
            }
        }
        (attempts, first.unwrap())
    }

    fn seats(shards: u32, workers: u32) -> impl Iterator<Item = Seat> {
        (0..shards).flat_map(move |shard| (0..workers).map(move |worker| Seat { shard, shards, worker, workers }))
    }

    /// The most attempts of any second.
    fn peak(mut attempts: Vec<u64>) -> u64 {
        attempts.sort_unstable();
        let mut first = 0;
        let within = attempts.iter().enumerate().map(|(index, at)| {
            while attempts[first] + SECOND <= *at {
                first += 1;
            }
            index - first + 1
        });
        within.max().unwrap_or(0) as u64
    }

    #[test]
    fn all_workers_together_keep_the_bound_in_any_second() {
        for (shards, workers) in [(1, 1), (20, 2), (200, 1), (1_000, 1), (1_000, 4)] {
            // The numbers of the documentation.
            let scouts = (u64::from(shards * workers) * 5 / 4).max(500);
            for down in [While::Refusing, While::Silent] {
                for late in [0, LATE] {
                    let all = || seats(shards, workers).flat_map(move |seat| attempts(seat, down, late).0);
                    let context = format!("{shards} shards of {workers} workers, {down:?}, late by {late}");
                    let bound = |rate: u64| rate + if late == 0 { 2 } else { rate / 20 + 2 };
                    let before = peak(all().filter(|at| *at < BACK).collect());
                    assert!(before <= bound(scouts), "{context}: {before} while it is down");
                    let peak = peak(all().collect());
                    assert!(peak <= bound(scouts + 5_000), "{context}: {peak}");
                }
            }
        }
    }

    #[test]
    fn every_worker_notices_within_a_second_that_the_server_is_back() {
        for (shards, workers) in [(1, 1), (200, 1), (280, 1), (1_000, 1), (1_000, 4)] {
            for down in [While::Refusing, While::Silent] {
                for seat in seats(shards, workers) {
                    let (attempts, first) = attempts(seat, down, 0);
                    assert!(first - BACK <= SCOUT_LONGEST, "{seat:?}, {down:?}: after {} ns", first - BACK);
                    // Its share of 5,000 per second.
                    let all = CONNECTIONS as u64 * u64::from(shards * workers) * SECOND / 5_000;
                    let last = attempts[attempts.len() - 1] - first;
                    assert!(last <= all, "{seat:?}, {down:?}: the last connection is back after {last} ns");
                }
            }
        }
    }

    /// Otherwise an outage would use up all attempts that a worker may have under way.
    #[test]
    fn silent_attempts_do_not_pile_up() {
        let (attempts, _) = attempts(Seat { shard: 0, shards: 1, worker: 0, workers: 1 }, While::Silent, 0);
        let before = attempts.iter().filter(|at| **at < BACK).count();
        assert!((27..=28).contains(&before), "{before} attempts in 10 s");
    }

    #[test]
    fn turns_are_not_saved_up() {
        let mut retries = Retries::of(Seat { shard: 3, shards: 1_000, worker: 0, workers: 1 });
        let mut taken = 0;
        for now in [GONE, GONE + 60 * SECOND] {
            while retries.due(now).is_ok() {
                retries.began(now);
                taken += 1;
            }
        }
        assert!(taken <= 2, "{taken} at two instants");
    }
}

//! Judges whether the machine gave a test its time: by the kernel's counters and a thread that sleeps and wakes, never by the output under
//! test.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The limit of steal time, in per cent of all CPU time.
const STOLEN: u64 = 2;
/// The limit of the canary's delays, in per cent of the time.
const LATE: u32 = 2;
/// One late wake-up in this many, or this part of the time, decides p99.9, the highest quantile that a verdict judges.
const ONE_OF: u32 = 1_000;

/// The sleep between two wake-ups.
const NAP: Duration = Duration::from_millis(2);
/// Normal inaccuracy of timers.
const PUNCTUAL: Duration = Duration::from_millis(1);

/// Lets time pass. The time itself is part of a test; it does not wait for a condition.
pub fn pass(time: Duration) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}

/// The priority of the canary, the thread that sleeps and wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Above everything else on the machine, so that the test itself does not delay it. Needs root; inherited otherwise.
    Highest,
    /// The caller's, so that any other work may delay it.
    Inherited,
}

/// Watches the machine until it is dropped.
#[derive(Debug)]
pub struct Watch {
    before: Times,
    began: Instant,
    canary: Option<Canary>,
}

impl Watch {
    /// Without a canary, only steal time is known.
    pub fn begin(canary: Option<Priority>) -> Self {
        Self { before: times(), began: Instant::now(), canary: canary.map(Canary::start) }
    }

    /// Observations since the beginning.
    pub fn seen(&self) -> Seen {
        let (after, elapsed) = (times(), self.began.elapsed());
        let seen = Seen {
            elapsed,
            all: after.all.saturating_sub(self.before.all),
            stolen: after.stolen.saturating_sub(self.before.stolen),
            ..Seen::default()
        };
        let Some(Canary(counts)) = &self.canary else { return seen };
        Seen {
            wakes: counts.wakes.load(Relaxed),
            late_wakes: counts.late_wakes.load(Relaxed),
            late: Duration::from_nanos(counts.late_nanoseconds.load(Relaxed)),
            ..seen
        }
    }
}

/// Observations of a [`Watch`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    elapsed: Duration,
    /// CPU time of all processors in ticks, and the hypervisor's part of it.
    all: u64,
    stolen: u64,
    /// Of the canary: all wake-ups, the late ones, and their delays in total.
    wakes: u64,
    late_wakes: u64,
    late: Duration,
}

impl Seen {
    /// Why the machine disturbed the test, if it did: a hypervisor or other work took more than 2 % of the time.
    pub fn disturbance(&self) -> Option<String> {
        if self.stolen * 100 > self.all * STOLEN {
            return Some(format!("a hypervisor took {} % of the machine", self.stolen * 100 / self.all.max(1)));
        }
        (self.late * 100 > self.elapsed * LATE)
            .then(|| format!("a thread that only sleeps and wakes was late for {:?} of {:?}", self.late, self.elapsed))
    }

    /// Why the machine may have decided p99.9 of the test, if it may: such a disturbance, or late wake-ups.
    pub fn unevenness(&self) -> Option<String> {
        let is_uneven = self.late_wakes * u64::from(ONE_OF) >= self.wakes.max(1) || self.late * ONE_OF >= self.elapsed;
        let uneven = || {
            let Self { late_wakes, wakes, late, .. } = self;
            format!(
                "{late_wakes} of {wakes} wake-ups of a thread that only sleeps and wakes were late, by {late:?} in all"
            )
        };
        self.disturbance().or_else(|| is_uneven.then(uneven))
    }
}

/// CPU time of all processors since boot, in ticks.
#[derive(Debug)]
struct Times {
    all: u64,
    stolen: u64,
}

fn times() -> Times {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let numbers: Vec<u64> =
        text.lines().next().unwrap().split_whitespace().skip(1).map(|tick| tick.parse().unwrap()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is included in user.
    Times { all: numbers[..8].iter().sum(), stolen: numbers[7] }
}

/// A thread that sleeps and wakes, and its counts. Ends on drop.
#[derive(Debug)]
struct Canary(Arc<CanaryCounts>);

#[derive(Debug, Default)]
struct CanaryCounts {
    over: AtomicBool,
    wakes: AtomicU64,
    late_wakes: AtomicU64,
    late_nanoseconds: AtomicU64,
}

impl Canary {
    fn start(priority: Priority) -> Self {
        let counts = Arc::new(CanaryCounts::default());
        let kept = Arc::clone(&counts);
        thread::spawn(move || {
            if priority == Priority::Highest {
                // Above the load generator and the servers of a test, which may have the lowest real-time priority.
                let highest = libc::sched_param { sched_priority: 2 };
                // SAFETY: `highest` is valid for the call, which affects only the calling thread. A refusal changes nothing.
                unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const highest) };
            }
            kept.count();
        });
        Self(counts)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
    }
}

impl CanaryCounts {
    /// Sleeps and wakes until it is over.
    fn count(&self) {
        while !self.over.load(Relaxed) {
            let before = Instant::now();
            pass(NAP);
            let late = before.elapsed().saturating_sub(NAP + PUNCTUAL);
            self.wakes.fetch_add(1, Relaxed);
            if !late.is_zero() {
                self.late_wakes.fetch_add(1, Relaxed);
                self.late_nanoseconds.fetch_add(u64::try_from(late.as_nanos()).unwrap(), Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::wait_until;

    #[test]
    fn more_than_two_per_cent_are_a_disturbance() {
        let quiet = Seen { elapsed: Duration::from_secs(10), all: 2_000, wakes: 5_000, ..Seen::default() };
        let late = |late_wakes, milliseconds| Seen { late_wakes, late: Duration::from_millis(milliseconds), ..quiet };
        assert_eq!((quiet.disturbance(), quiet.unevenness()), (None, None));
        assert!(Seen { stolen: 41, ..quiet }.disturbance().unwrap().contains("2 % of the machine"));
        assert_eq!(Seen { stolen: 40, ..quiet }.unevenness(), None);
        assert!(late(1, 201).disturbance().unwrap().contains("late for 201ms of 10s"));
        assert_eq!((late(5, 200).disturbance(), late(4, 9).unevenness()), (None, None));
        assert!(late(5, 9).unevenness().unwrap().starts_with("5 of 5000 wake-ups"));
        assert!(late(1, 10).unevenness().unwrap().ends_with("late, by 10ms in all"), "one long stop");
    }

    #[test]
    fn the_canary_wakes_until_the_end() {
        let watch = Watch::begin(Some(Priority::Inherited));
        wait_until("it has woken twice", || watch.seen().wakes > 1);
        assert!(watch.seen().elapsed >= 2 * NAP);
        assert_eq!(Watch::begin(None).seen().wakes, 0);
    }
}

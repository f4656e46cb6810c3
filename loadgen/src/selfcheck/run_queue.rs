//! The times for which a thread ran, and was runnable without a processor.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use crate::sys;

/// The scheduler's statistics of one thread.
#[derive(Debug, Default)]
pub struct RunQueue {
    statistics: Option<File>,
    /// True if that thread alone reads them.
    is_own: bool,
}

/// Nanoseconds since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Time on a processor.
    pub(crate) ran: u64,
    /// Time runnable without a processor.
    pub(crate) waited: u64,
}

impl RunQueue {
    /// Opens the statistics of the calling thread. The file stays open, so that a reading from any thread costs one system call.
    pub(crate) fn of_this_thread() -> Self {
        Self { statistics: File::open("/proc/thread-self/schedstat").ok(), is_own: true }
    }

    /// The same, to be read from other threads.
    #[must_use]
    pub(crate) fn elsewhere(self) -> Self {
        Self { is_own: false, ..self }
    }

    /// Nanoseconds that the thread has run since it began. Exact in the thread itself; for other threads as of its last tick or switch.
    pub(crate) fn ran_nanoseconds(&self) -> u64 {
        if self.is_own { sys::thread_cpu_nanoseconds() } else { self.times().unwrap_or_default().ran }
    }

    /// Nanoseconds that the thread has waited for a processor since it began; 0 where the kernel does not report it.
    pub(crate) fn waited_nanoseconds(&self) -> u64 {
        self.times().unwrap_or_default().waited
    }

    /// `None` where the kernel does not count.
    pub(crate) fn times(&self) -> Option<Times> {
        let mut text = [0; 96];
        let length = self.statistics.as_ref()?.read_at(&mut text, 0).ok()?;
        times(std::str::from_utf8(&text[..length]).ok()?).filter(|times| times.ran > 0)
    }
}

/// The workers of an engine, readable from another thread.
#[derive(Debug, Default)]
pub(crate) struct Threads(Mutex<Vec<RunQueue>>);

impl Threads {
    pub(crate) fn add_this(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(RunQueue::of_this_thread());
    }

    /// The times of all threads; `None` if one has none.
    pub(super) fn times(&self) -> Option<Vec<Times>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(RunQueue::times).collect()
    }
}

/// The first two of three numbers: time on a processor, time in a run queue, number of time slices (the kernel's
/// Documentation/scheduler/sched-stats.rst).
fn times(statistics: &str) -> Option<Times> {
    let mut numbers = statistics.split_whitespace().map(|number| number.parse().ok());
    Some(Times { ran: numbers.next()??, waited: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(times("943845 155892 1\n"), Some(Times { ran: 943_845, waited: 155_892 }));
        assert_eq!(times("943845"), None);
        assert_eq!(times("a b c"), None);
    }

    #[test]
    fn this_thread_has_statistics() {
        assert!(RunQueue::of_this_thread().statistics.is_some());
        assert_eq!(RunQueue::default().waited_nanoseconds(), 0);
        let threads = Threads::default();
        threads.add_this();
        let other = std::thread::scope(|scope| scope.spawn(|| threads.times()).join());
        assert!(other.unwrap().is_some_and(|times| times.len() == 1));
    }
}

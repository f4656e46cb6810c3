//! How long a thread was ready and had no processor.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The scheduler's statistics of one thread.
#[derive(Debug, Default)]
pub(crate) struct RunQueue(Option<File>);

impl RunQueue {
    /// Of the calling thread. It stays open, so that a reading costs one system call.
    pub(crate) fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Nanoseconds that the thread has waited for a processor since it began; 0 where the kernel does not say.
    pub(crate) fn waited_nanoseconds(&self) -> u64 {
        let mut text = [0; 96];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        read.and_then(|length| waited(std::str::from_utf8(&text[..length]).ok()?)).unwrap_or_default()
    }
}

/// The second of three numbers: time on a processor, time in a run queue, number of time slices
/// (the kernel's Documentation/scheduler/sched-stats.rst).
fn waited(statistics: &str) -> Option<u64> {
    statistics.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(waited("943845 155892 1\n"), Some(155_892));
        assert_eq!(waited("943845"), None);
        assert_eq!(waited("a b c"), None);
    }

    #[test]
    fn this_thread_has_statistics() {
        assert!(RunQueue::of_this_thread().0.is_some());
        assert_eq!(RunQueue::default().waited_nanoseconds(), 0);
    }
}

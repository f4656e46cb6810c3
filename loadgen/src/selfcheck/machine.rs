//! What the kernel says of the machine and of the process's cgroup, over a load.

mod throttling;

use std::fs;
use std::sync::{Mutex, PoisonError};

/// What was found over a load so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Time for which a CPU quota held the cgroup back, over all its threads.
    pub throttled_nanoseconds: u64,
    /// Processors of the machine.
    pub processors: u32,
    /// Time that the hypervisor gave to other machines, over all processors.
    pub stolen_nanoseconds: u64,
}

/// The kernel's counters at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    throttled_nanoseconds: u64,
    processors: u32,
    stolen_nanoseconds: u64,
}

impl Counters {
    fn read() -> Self {
        let (processors, stolen_nanoseconds) =
            fs::read_to_string("/proc/stat").ok().map_or((0, 0), |text| processors(&text));
        Self { throttled_nanoseconds: throttling::nanoseconds(), processors, stolen_nanoseconds }
    }

    fn since(self, before: Self) -> Evidence {
        Evidence {
            throttled_nanoseconds: self.throttled_nanoseconds.saturating_sub(before.throttled_nanoseconds),
            processors: self.processors,
            stolen_nanoseconds: self.stolen_nanoseconds.saturating_sub(before.stolen_nanoseconds),
        }
    }
}

/// Watches the machine over one load after another. Only the cold side knows it.
#[derive(Debug, Default)]
pub(crate) struct Observer(Mutex<Watch>);

#[derive(Debug, Default)]
struct Watch {
    before: Counters,
    evidence: Evidence,
    /// The load is over, and what comes later is not its.
    over: bool,
}

impl Observer {
    /// A load begins.
    pub(crate) fn begin(&self) {
        *self.watch() = Watch { before: Counters::read(), ..Watch::default() };
    }

    /// What was found since then, up to the first look after the load was over.
    pub(crate) fn look(&self, over: bool) -> Evidence {
        let mut watch = self.watch();
        if !watch.over {
            watch.evidence = Counters::read().since(watch.before);
            watch.over = over;
        }
        watch.evidence
    }

    fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
        // Plain numbers: whoever panicked left them whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kernel's ticks are hundredths of a second towards programs, on every architecture that this runs on.
const TICK_NANOSECONDS: u64 = 10_000_000;

/// The processors and their stolen time, from the lines of /proc/stat: the eighth number of the first, which sums up all.
fn processors(statistics: &str) -> (u32, u64) {
    let lines = statistics.lines().take_while(|line| line.starts_with("cpu"));
    let stolen = statistics.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok());
    let count = u32::try_from(lines.count().saturating_sub(1)).unwrap_or(u32::MAX);
    (count, stolen.unwrap_or_default().saturating_mul(TICK_NANOSECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let text = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3\nintr 5 6\n";
        assert_eq!(processors(text), (2, 800_000_000));
        assert_eq!(processors("cpu 1 2\n"), (0, 0));
        assert_eq!(processors(""), (0, 0));
    }

    #[test]
    fn this_machine_has_processors() {
        let observer = Observer::default();
        observer.begin();
        assert!(observer.look(false).processors > 0);
    }

    #[test]
    fn what_comes_after_the_load_is_not_its() {
        let observer = Observer::default();
        observer.begin();
        let last = observer.look(true);
        observer.watch().before = Counters::default();
        assert_eq!(observer.look(true), last);
    }
}

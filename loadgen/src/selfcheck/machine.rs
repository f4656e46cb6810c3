//! The kernel's counters of the machine and of the process's cgroup, over a load.

mod kernel_file;
mod throttling;

use std::fs::{self, File};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use redisbench_wire::snapshot::{Environment, Interface};
use redisbench_wire::strain::Strain;

use kernel_file::read_start;
use throttling::Throttling;

use super::environment;
use super::interface::Interfaces;
use super::run_queue::Threads;
use super::seconds::{Sample, StrainSeconds};
use crate::sys::monotonic_nanoseconds;

pub use throttling::quota_millionths;

/// Interval for reading the interfaces while a load runs. Processors are read at the end of each second since the start.
const INTERVAL: Duration = Duration::from_millis(100);

/// The kernel's counters at one time, or their increase over a load so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Time throttled by a CPU quota, over all threads of the cgroup.
    pub throttled_nanoseconds: u64,
    /// Processors of the machine.
    pub processors: u32,
    /// Steal time over all processors.
    pub stolen_nanoseconds: u64,
}

/// Sources of the counters. Files stay open, so that a reading is cheap and does not allocate.
#[derive(Debug, Default)]
struct Kernel {
    statistics: Option<File>,
    processors: u32,
    throttling: Throttling,
}

impl Kernel {
    fn of_this_machine() -> Self {
        let processors = fs::read_to_string("/proc/stat").map_or(0, |text| processors(&text));
        Self { statistics: File::open("/proc/stat").ok(), processors, throttling: Throttling::default() }
    }

    fn counters(&mut self) -> Evidence {
        Evidence {
            throttled_nanoseconds: self.throttling.nanoseconds(),
            processors: self.processors,
            stolen_nanoseconds: self.statistics.as_ref().and_then(|file| read_start(file, stolen)).unwrap_or_default(),
        }
    }
}

impl Evidence {
    /// Adds the workers' times; `None` where the kernel does not count them.
    fn sample(self, threads: &Threads) -> Option<Sample> {
        let Self { throttled_nanoseconds: throttled, processors, stolen_nanoseconds: stolen } = self;
        let workers = threads.times().filter(|workers| !workers.is_empty())?;
        Some(Sample { at: monotonic_nanoseconds(), throttled, processors, stolen, workers })
    }

    fn since(self, before: Self) -> Self {
        Self {
            throttled_nanoseconds: self.throttled_nanoseconds.saturating_sub(before.throttled_nanoseconds),
            processors: self.processors,
            stolen_nanoseconds: self.stolen_nanoseconds.saturating_sub(before.stolen_nanoseconds),
        }
    }
}

/// Watches the machine over one load after another. Only the cold side uses it.
#[derive(Debug, Default)]
pub(crate) struct Observer(Mutex<RunningWatch>);

/// A watch, and the sender that keeps its thread running.
#[derive(Debug, Default)]
struct RunningWatch {
    watch: Arc<Mutex<Watch>>,
    _thread: Option<Sender<()>>,
}

/// The machine under a load, as far as the kernel reports it.
#[derive(Clone, Debug, Default)]
pub struct ObservedMachine {
    /// Processors, throttling and steal time.
    pub evidence: Evidence,
    /// The settings when the load began.
    pub environment: Option<Environment>,
    /// The interface that carried most bytes.
    pub interface: Option<Interface>,
}

#[derive(Debug, Default)]
struct Watch {
    kernel: Kernel,
    before: Evidence,
    environment: Option<Environment>,
    interfaces: Interfaces,
    /// Start of the load on the monotonic clock, in nanoseconds.
    start: u64,
    /// The last time the interfaces were read.
    read: Option<Instant>,
    evidence: Evidence,
    threads: Arc<Threads>,
    /// `None` where the kernel does not count the workers' times.
    seconds: Option<StrainSeconds>,
    /// The load has ended, and later counts do not belong to it.
    over: bool,
}

impl Watch {
    /// Time until the next look.
    fn rest(&self) -> Duration {
        let interfaces = self.read.map_or(Duration::ZERO, |read| INTERVAL.saturating_sub(read.elapsed()));
        let second = self.seconds.as_ref().map_or(u64::MAX, StrainSeconds::border);
        interfaces.min(Duration::from_nanos(second.saturating_sub(monotonic_nanoseconds())))
    }

    /// Looks at whatever is due, and at everything if the load has ended.
    fn interval(&mut self, over: bool) {
        if self.over {
            return;
        }
        let now = Instant::now();
        let length = self.read.map_or(Duration::ZERO, |read| now.duration_since(read));
        if over || length >= INTERVAL {
            self.read = Some(now);
            let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
            // An interval that began before the start or contains the end is not entirely under load.
            let loaded = !over && monotonic_nanoseconds() >= self.start.saturating_add(length);
            self.interfaces.look(length, loaded);
        }
        if over {
            self.look(true);
        } else if self.seconds.as_ref().is_some_and(|seconds| monotonic_nanoseconds() >= seconds.border()) {
            let counters = self.kernel.counters();
            self.take(counters, false);
        }
    }

    /// Takes counters during or at the end of the load. Without the workers' counters the seconds would look better than they were, so they
    /// are dropped.
    fn take(&mut self, counters: Evidence, over: bool) {
        let sample = counters.sample(&self.threads);
        match (&mut self.seconds, sample) {
            (Some(seconds), Some(sample)) if over => seconds.end(sample),
            (Some(seconds), Some(sample)) => seconds.take(sample),
            (seconds, None) => *seconds = None,
            (None, _) => {}
        }
    }

    fn look(&mut self, over: bool) -> ObservedMachine {
        if !self.over {
            let counters = self.kernel.counters();
            self.evidence = counters.since(self.before);
            self.over = over;
            if over {
                self.take(counters, true);
            }
        }
        ObservedMachine {
            evidence: self.evidence,
            environment: self.environment.clone(),
            interface: self.interfaces.busiest(),
        }
    }
}

impl Observer {
    /// Starts watching a load of `threads` that begins at `start` nanoseconds of the monotonic clock. Until `is_over` returns true, a
    /// thread reads the interfaces ten times a second, and the processors at the end of every second.
    pub(crate) fn begin(&self, start: u64, threads: &Arc<Threads>, is_over: impl Fn() -> bool + Send + 'static) {
        let mut kernel = Kernel::of_this_machine();
        let before = kernel.counters();
        let watch = Arc::new(Mutex::new(Watch {
            kernel,
            before,
            environment: Some(environment::read()),
            interfaces: Interfaces::begin(),
            start,
            read: Some(Instant::now()),
            threads: Arc::clone(threads),
            seconds: before.sample(threads).map(|first| StrainSeconds::begin(start, first)),
            ..Watch::default()
        }));
        let (end, ended) = channel();
        *locked(&self.0) = RunningWatch { watch: Arc::clone(&watch), _thread: Some(end) };
        // Without the thread there is less evidence, but the load is the same.
        let _ = thread::Builder::new().name("observer".to_owned()).spawn(move || observe(&watch, &ended, is_over));
    }

    /// The findings since `begin`, up to the first look after the end of the load.
    pub(crate) fn look(&self, over: bool) -> ObservedMachine {
        let watch = Arc::clone(&locked(&self.0).watch);
        locked(&watch).look(over)
    }

    /// The seconds of a load that has ended; `None` where the kernel does not count a thread's times.
    pub(crate) fn strain(&self) -> Option<Strain> {
        let watch = Arc::clone(&locked(&self.0).watch);
        let watch = locked(&watch);
        watch.seconds.as_ref().filter(|_| watch.over).map(|seconds| seconds.strain().clone())
    }
}

/// Ends with the load, or when the observer drops the watch.
fn observe(watch: &Mutex<Watch>, ended: &Receiver<()>, is_over: impl Fn() -> bool) {
    let rest = || locked(watch).rest();
    while ended.recv_timeout(rest()) == Err(RecvTimeoutError::Timeout) {
        let over = is_over();
        locked(watch).interval(over);
        if over {
            return;
        }
    }
}

/// Ignores poisoning: the values are plain numbers, valid even after a panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `USER_HZ` is 100 on every supported architecture.
const TICK_NANOSECONDS: u64 = 10_000_000;

/// The number of per-processor lines in /proc/stat. The first line is the total.
fn processors(statistics: &str) -> u32 {
    let lines = statistics.lines().take_while(|line| line.starts_with("cpu"));
    u32::try_from(lines.count().saturating_sub(1)).unwrap_or(u32::MAX)
}

/// Steal time of all processors in nanoseconds: the eighth number of the first line.
fn stolen(statistics: &str) -> Option<u64> {
    let ticks: u64 = statistics.lines().next()?.split_whitespace().nth(8)?.parse().ok()?;
    Some(ticks.saturating_mul(TICK_NANOSECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let text = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3\nintr 5 6\n";
        assert_eq!((processors(text), stolen(text)), (2, Some(800_000_000)));
        assert_eq!((processors("cpu 1 2\n"), stolen("cpu 1 2\n")), (0, None));
        assert_eq!((processors(""), stolen("")), (0, None));
    }

    #[test]
    fn this_machine_has_processors() {
        let observer = Observer::default();
        observer.begin(monotonic_nanoseconds(), &Arc::default(), || true);
        let seen = observer.look(false);
        assert!(seen.evidence.processors > 0 && seen.environment.is_some() && seen.interface.is_some());
    }

    #[test]
    fn what_comes_after_the_load_is_not_its() {
        let mut watch =
            Watch { kernel: Kernel::of_this_machine(), interfaces: Interfaces::begin(), ..Watch::default() };
        let last = watch.look(true);
        watch.before = Evidence::default();
        watch.interval(true);
        let later = watch.look(true);
        assert_eq!((later.evidence, later.interface), (last.evidence, last.interface));
    }
}

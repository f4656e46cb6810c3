//! Detects whether the machine prevented a situation: by the kernel's counters and a thread of our own, never by the run's output.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::situation::pass;

/// The limit of steal time, in per cent of all CPU time.
const STOLEN: u64 = 2;
/// The limit of the canary thread's delays, in per cent of the time.
const ASLEEP: u64 = 2;
/// The limit of the run-queue wait of a server that should be saturated, in per cent of the time.
const WAITED: u64 = 4;

/// The sleep between two wake-ups.
const NAP: Duration = Duration::from_millis(2);
/// Normal inaccuracy of timers.
const PUNCTUAL: Duration = Duration::from_millis(1);

/// Watches the machine during a run.
pub struct Watch {
    before: Times,
    began: Instant,
    server: Option<(u32, Option<Schedule>)>,
    canary: Option<Canary>,
}

impl Watch {
    /// `server` is the process of a server that should be saturated.
    pub fn begin(server: Option<u32>, with_canary: bool) -> Self {
        Self {
            before: times(),
            began: Instant::now(),
            server: server.map(|process| (process, schedule(process))),
            canary: with_canary.then(Canary::start),
        }
    }

    /// Why the situation did not occur, if it did not.
    pub fn end(self) -> Option<String> {
        let (elapsed, after) = (self.began.elapsed(), times());
        let stolen = after.stolen.saturating_sub(self.before.stolen);
        let all = after.all.saturating_sub(self.before.all);
        let late = self.canary.map(Canary::end).unwrap_or_default();
        let waited = self.server.and_then(|(process, before)| Some(schedule(process)?.since(before?)));
        if stolen * 100 > all * STOLEN {
            return Some(format!("a hypervisor took {} % of the machine", stolen * 100 / all.max(1)));
        }
        if late * 100 > elapsed * u32::try_from(ASLEEP).unwrap() {
            return Some(format!("a thread that only sleeps and wakes was late for {late:?} of {elapsed:?}"));
        }
        let Schedule { ran, waited } = waited?;
        (waited * 100 > (ran + waited) * WAITED)
            .then(|| format!("the server waited for a processor {} % of the time", waited * 100 / (ran + waited)))
    }
}

/// CPU time of all processors since boot, in ticks.
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

/// CPU time and run-queue wait of a process' first thread, in nanoseconds.
#[derive(Clone, Copy)]
struct Schedule {
    ran: u64,
    waited: u64,
}

impl Schedule {
    fn since(self, before: Self) -> Self {
        Self { ran: self.ran - before.ran, waited: self.waited - before.waited }
    }
}

/// None if the kernel does not report it.
fn schedule(process: u32) -> Option<Schedule> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{process}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    Some(Schedule { ran: numbers.next()?, waited: numbers.next()? })
}

/// A thread that sleeps and wakes, with priority over everything else on the machine if permitted.
struct Canary {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Canary {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = thread::spawn(move || {
            // Above the load generator and the servers, so that the situation itself does not delay it.
            let first = libc::sched_param { sched_priority: 2 };
            // SAFETY: `first` is valid for the call, which affects only the calling thread. A refusal changes nothing.
            unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const first) };
            let mut late = Duration::ZERO;
            while !ended.load(Ordering::Relaxed) {
                let before = Instant::now();
                pass(NAP);
                late += before.elapsed().saturating_sub(NAP + PUNCTUAL);
            }
            late
        });
        Self { over, thread }
    }

    /// Its total delay.
    fn end(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

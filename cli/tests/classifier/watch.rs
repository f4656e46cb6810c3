//! Whether the machine let a situation be made: by the kernel's counts and a thread of our own, never by what the run said.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::situation::pass;

/// More than this share of all processor time, in per cent, taken by a hypervisor.
const STOLEN: u64 = 2;
/// More than this share of the time, in per cent, in which a thread that sleeps and wakes had no processor.
const ASLEEP: u64 = 2;
/// More than this share of the time, in per cent, in which a server that was to be full was ready and had no processor.
const WAITED: u64 = 4;

/// From one wake to the next.
const NAP: Duration = Duration::from_millis(2);
/// What timers do without anything being wrong.
const PUNCTUAL: Duration = Duration::from_millis(1);

/// Watches the machine for as long as a run takes.
pub struct Watch {
    before: Times,
    began: Instant,
    server: Option<(u32, Option<Schedule>)>,
    canary: Option<Canary>,
}

impl Watch {
    /// `server` is one that is to be full, by its process.
    pub fn begin(server: Option<u32>, with_canary: bool) -> Self {
        Self {
            before: times(),
            began: Instant::now(),
            server: server.map(|process| (process, schedule(process))),
            canary: with_canary.then(Canary::start),
        }
    }

    /// Why the situation was not made, if it was not.
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

/// All processors' time since the machine was started, in ticks.
struct Times {
    all: u64,
    stolen: u64,
}

fn times() -> Times {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let numbers: Vec<u64> =
        text.lines().next().unwrap().split_whitespace().skip(1).map(|tick| tick.parse().unwrap()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    Times { all: numbers[..8].iter().sum(), stolen: numbers[7] }
}

/// How long a process' first thread ran, and how long it was ready and had no processor, in nanoseconds.
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

/// None of a kernel that does not count it.
fn schedule(process: u32) -> Option<Schedule> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{process}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    Some(Schedule { ran: numbers.next()?, waited: numbers.next()? })
}

/// A thread that sleeps and wakes, before everything else on the machine if we may ask for that.
struct Canary {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Canary {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = thread::spawn(move || {
            // Above the load generator and the servers, so that it does not wait for what the situation itself does.
            let first = libc::sched_param { sched_priority: 2 };
            // SAFETY: `first` is valid for the call, which is about the calling thread. A refusal changes nothing.
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

    /// How late it was in all.
    fn end(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

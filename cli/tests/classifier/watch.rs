//! Detects whether the machine prevented a situation, by what [`machine`] sees and the wait of a server that should be saturated, never by
//! the run's output.

use std::fs;

use redisbench_testkit::machine::{self, Priority};

/// The limit of the run-queue wait of a server that should be saturated, in per cent of the time.
const WAITED: u64 = 4;

/// Watches the machine during a run.
pub struct Watch {
    machine: machine::Watch,
    server: Option<(u32, Option<Schedule>)>,
}

impl Watch {
    /// `server` is the process of a server that should be saturated.
    pub fn begin(server: Option<u32>, with_canary: bool) -> Self {
        Self {
            machine: machine::Watch::begin(with_canary.then_some(Priority::Highest)),
            server: server.map(|process| (process, schedule(process))),
        }
    }

    /// Why the situation did not occur, if it did not.
    pub fn end(self) -> Option<String> {
        let disturbance = self.machine.seen().disturbance();
        let waited = self.server.and_then(|(process, before)| Some(schedule(process)?.since(before?)));
        disturbance.or_else(|| {
            let Schedule { ran, waited } = waited?;
            (waited * 100 > (ran + waited) * WAITED)
                .then(|| format!("the server waited for a processor {} % of the time", waited * 100 / (ran + waited)))
        })
    }
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

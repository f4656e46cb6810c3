//! Callers: tasks that take requests of a lane when they are due, and wait for a library to answer them.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redisbench_loadgen::engine::{Alarm, Call, Failed, Lane, Next, Outcome, RunQueue, monotonic_nanoseconds};
use redisbench_loadgen::schedule::Seat;
use redisbench_loadgen::workload::Workload;
use redisbench_wire::plan::ShardPlan;
use tokio::io::unix::AsyncFd;

use crate::command::Command;
use crate::library::{CallError, Connections, Finished};

/// A lane and what its callers share.
#[derive(Debug)]
pub struct Desk {
    lane: Mutex<Lane>,
    workload: Arc<Workload>,
    /// Held by the one caller that waits for the next request to be due. tokio's own timers are precise to a millisecond only.
    turn: tokio::sync::Mutex<Option<Clock>>,
}

/// The kernel's timer in a runtime.
#[derive(Debug)]
struct Clock(AsyncFd<Timer>);

#[derive(Debug)]
struct Timer(Alarm);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Clock {
    /// Must be called within a runtime.
    #[allow(
        deprecated,
        reason = "the other way asks in an unsafe block for what holds: an alarm owns its descriptor as long as it lives"
    )]
    fn new() -> io::Result<Self> {
        AsyncFd::new(Timer(Alarm::new()?)).map(Self)
    }

    /// Waits until `instant` of the monotonic clock.
    async fn until(&mut self, instant: u64) -> io::Result<()> {
        self.0.get_mut().0.set(instant)?;
        while monotonic_nanoseconds() < instant {
            self.0.readable().await?.clear_ready();
        }
        Ok(())
    }
}

impl Desk {
    /// The desk of `seat`, whose calls `thread` makes.
    pub fn new(plan: &ShardPlan, seat: Seat, workload: &Arc<Workload>, thread: RunQueue) -> Self {
        Self {
            lane: Mutex::new(Lane::new(plan, seat, Arc::clone(workload), thread)),
            workload: Arc::clone(workload),
            turn: tokio::sync::Mutex::default(),
        }
    }

    pub fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self) -> Next {
        let mut lane = self.lane();
        lane.next(monotonic_nanoseconds())
    }

    /// The next request, once it is due. `None` if the load sends no more.
    async fn next(&self) -> io::Result<Option<Call>> {
        match self.ask() {
            Next::Call(call) => return Ok(Some(call)),
            Next::Over => return Ok(None),
            Next::At(_) => {}
        }
        let mut turn = self.turn.lock().await;
        loop {
            match self.ask() {
                Next::Call(call) => return Ok(Some(call)),
                Next::Over => return Ok(None),
                Next::At(instant) => {
                    let clock = match &mut *turn {
                        Some(clock) => clock,
                        none => none.insert(Clock::new()?),
                    };
                    clock.until(instant).await?;
                }
            }
        }
    }

    /// Makes one call after the other until the load sends no more.
    ///
    /// # Errors
    /// Fails if the kernel refuses a timer, or the library can make no further call.
    pub async fn serve(&self, connections: &Connections) -> io::Result<()> {
        let mut command = Command::new(&self.workload);
        while let Some(call) = self.next().await? {
            command.become_request(&self.workload, call.k, call.operation);
            let Finished { called, completed, reply } = connections.call(&command).await?;
            let outcome = Outcome {
                called,
                completed,
                sent_bytes: if reply.as_ref().is_err_and(|error| !error.sent) { 0 } else { command.bytes().len() },
                received_bytes: reply.as_ref().map_or_else(CallError::bytes, |reply| reply.bytes),
                reply: match &reply {
                    Ok(reply) => Ok(reply.nil),
                    Err(error) => Err(Failed { kind: &error.kind, message: &error.message, answered: error.answered }),
                },
            };
            self.lane().completed(&call, &outcome);
        }
        Ok(())
    }
}

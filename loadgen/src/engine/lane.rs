//! One worker's part of a trial whose requests are sent by another driver: a client library, or a program.
//!
//! A lane says which request is due when, and counts its outcome, with the engine's own load and recording. It knows no connection
//! and no clock.

use std::collections::VecDeque;
use std::sync::Arc;

use redisbench_wire::Detail;
use redisbench_wire::plan::ShardPlan;
use redisbench_wire::snapshot::{Sending, Stage};

use super::links::Links;
use super::load::Load;
use super::pipeline::{Class, Waiting};
use crate::record::{Completion, Period, Recording, Span, Traced, Unsent, WorkerReport};
use crate::schedule::Seat;
use crate::selfcheck::RunQueue;
use crate::workload::Workload;

/// The interval after which to ask again if only other requests' outcomes allow one more, in nanoseconds.
const SOON: u64 = 1_000_000;

/// A request to send now.
#[derive(Debug)]
pub struct Call {
    /// Its number.
    pub k: u64,
    /// Index into the mix.
    pub operation: u16,
    /// Its due time; in a closed loop, the time at which it was drawn.
    due: u64,
    period: Period,
    /// The load that it belongs to.
    load: u64,
}

/// The next step of a caller.
#[derive(Debug)]
pub enum Next {
    /// Sends a request.
    Call(Call),
    /// Asks again at this instant.
    At(u64),
    /// Nothing: the load sends no further requests.
    Over,
}

/// A request that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// As in [`redisbench_wire::snapshot::ErrorTally::kind`].
    pub kind: &'a str,
    pub message: &'a str,
    /// True if a server replied with the error.
    pub answered: bool,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The time at which the library was called.
    pub called: u64,
    /// The time at which it returned.
    pub completed: u64,
    /// Bytes of the command.
    pub sent_bytes: usize,
    /// Bytes of the reply.
    pub received_bytes: usize,
    /// True if the reply was null, unless it was an error.
    pub reply: Result<bool, Failed<'a>>,
}

/// The connections are the driver's.
struct Elsewhere;

impl Links for Elsewhere {
    fn usable(&self) -> usize {
        0
    }

    fn ready_time(&self, _: u64) -> u128 {
        0
    }

    fn sending(&self, _: u64) -> Sending {
        Sending::default()
    }
}

/// The requests of one seat. Times are of the monotonic clock, in nanoseconds. Those of different callers may come slightly out of order.
#[derive(Debug)]
pub struct Lane {
    plan: ShardPlan,
    seat: Seat,
    workload: Arc<Workload>,
    load: Load,
    /// Counts loads, so that late outcomes are not taken for those of the current one.
    number: u64,
    recording: Recording,
    /// Drawn requests of a closed loop.
    drawn: VecDeque<u64>,
    run_queue: RunQueue,
}

impl Lane {
    /// The lane of `seat`, whose requests `thread` sends. A closed loop needs `plan.concurrency`, the most requests in flight.
    pub fn new(plan: &ShardPlan, seat: Seat, workload: Arc<Workload>, thread: RunQueue) -> Self {
        // The driver chooses the node.
        let mut own = plan.with(|plan| plan.breakdown.node = false);
        (own.connections, own.concurrency) = (plan.connections, plan.concurrency);
        let load = Load::none(Arc::clone(&workload));
        let recording = Recording::new(&own);
        Self { plan: own, seat, workload, load, number: 0, recording, drawn: VecDeque::new(), run_queue: thread }
    }

    /// Begins a trial at `start`.
    pub fn start(&mut self, start: u64, now: u64) {
        self.abort(now);
        self.number += 1;
        self.recording = Recording::new(&self.plan);
        self.recording.begin(start);
        self.load = Load::trial(&self.plan, self.seat, Arc::clone(&self.workload), start, Arc::default());
    }

    /// Ends the warm-up at `from`, unless that instant has passed or the warm-up ends sooner.
    pub fn measure_from(&mut self, from: u64, now: u64) {
        self.load.measure_sooner(from, now);
    }

    /// Stops the load at once. Requests in flight stay counted as such.
    pub fn abort(&mut self, now: u64) {
        if self.load.stage == Stage::Done {
            return;
        }
        self.number += 1;
        while self.load.take_backlog(now, &mut self.recording).is_some() {}
        self.drawn.clear();
        self.load.abort(now);
        self.end(now);
    }

    /// Stops any load and drops its measurements.
    pub fn rearm(&mut self, now: u64) {
        self.abort(now);
        self.load = Load::none(Arc::clone(&self.workload));
        self.recording = Recording::new(&self.plan);
    }

    /// Returns whether every request of the load has its outcome, or will never have one.
    pub fn is_done(&self) -> bool {
        self.load.stage == Stage::Done
    }

    /// Returns the next step of a free caller.
    pub fn next(&mut self, now: u64) -> Next {
        self.recording.come_to(now);
        self.load.woke(now);
        if self.load.stage == Stage::Waiting {
            if now < self.load.start {
                return Next::At(self.load.start);
            }
            self.load.begin(now, &Elsewhere, &self.run_queue);
        }
        if !self.load.come_to(now) {
            return Next::Over;
        }
        let call = if self.load.is_open() { self.due(now) } else { self.drawn(now) };
        if let Some(call) = call {
            return Next::Call(call);
        }
        self.advance(now);
        if !self.load.is_active() {
            return Next::Over;
        }
        let (at, _) = self.load.next(now);
        Next::At(if self.load.is_open() { at } else { at.min(now + SOON) })
    }

    /// The oldest request that is due and not too late.
    fn due(&mut self, now: u64) -> Option<Call> {
        while let Some(slot) = self.load.take_slot(now, &mut self.recording) {
            if self.load.is_too_late(slot.due, now) {
                self.load.give_up(slot, Unsent::NoRoom, &mut self.recording);
                continue;
            }
            self.load.sent(0, None, now);
            return Some(self.call(slot));
        }
        None
    }

    fn drawn(&mut self, now: u64) -> Option<Call> {
        let class = self.load.class_at(now)?;
        if self.drawn.is_empty() {
            self.drawn.extend(self.load.draw_tokens()?);
        }
        let drawn = Waiting { k: self.drawn.pop_front()?, due: now };
        let call = Call { period: class.period()?, ..self.call(drawn) };
        self.recording.scheduled(call.period, call.operation, 1);
        self.load.sent(1, Some(class), now);
        Some(call)
    }

    fn call(&self, slot: Waiting) -> Call {
        let request = self.load.request(slot);
        let period = if request.class == Class::Warmup { Period::Warmup } else { Period::Measured };
        Call { k: request.k, operation: request.operation, due: request.due, period, load: self.number }
    }

    /// Counts the outcome of a request.
    pub fn completed(&mut self, call: &Call, outcome: &Outcome<'_>) {
        let Outcome { called, completed: now, .. } = *outcome;
        if call.load != self.number {
            return;
        }
        self.recording.come_to(now);
        let (period, operation) = (call.period, call.operation);
        // In a closed loop the clock starts with the call.
        let due = if self.load.is_open() { call.due } else { called };
        self.recording.sent(period, operation, called.saturating_sub(due));
        let measured = period == Period::Measured;
        let measuring = measured && self.load.class_at(now) == Some(Class::Measured);
        if measuring {
            self.recording.wrote(outcome.sent_bytes);
            self.recording.wrote_of(operation, outcome.sent_bytes);
        }
        self.recording.read(outcome.received_bytes, measuring);
        self.recording.read_of(operation, outcome.received_bytes);
        if measured && self.recording.traces(call.k) {
            let error = outcome.reply.err().map(|failed| failed.kind.to_owned());
            let (k, sent) = (call.k, Some(called));
            self.recording.trace(Span { k, operation, node: None, due, sent, ended: now, redirects: 0, error });
        }
        match outcome.reply {
            Ok(nil) => {
                if measured {
                    self.recording.responded(operation, now.saturating_sub(due), 1);
                    self.recording.served(operation, 0, now.saturating_sub(called), 1);
                }
                self.recording.succeeded(period, operation, 1, u64::from(nil));
                self.recording.completed(now, 1);
            }
            Err(Failed { kind, message, answered }) => {
                let completion = Completion { operation, node: 0, due, now, redirected: false };
                self.recording.failed(period, &completion, answered);
                if measured {
                    self.recording.error(kind, || message.to_owned());
                }
            }
        }
        self.load.finished(1, now);
        self.load.come_to(now);
        if !self.load.is_active() || self.load.class_at(now).is_none() {
            self.advance(now);
        }
    }

    /// Ends the load once it sends nothing more and every request has its outcome.
    fn advance(&mut self, now: u64) {
        self.load.drain(&Elsewhere, now);
        if self.load.stage != Stage::Draining {
            return;
        }
        self.drawn.clear();
        if self.load.is_over(now) {
            while let Some(slot) = self.load.take_backlog(now, &mut self.recording) {
                self.load.give_up(slot, Unsent::AtEnd, &mut self.recording);
            }
        }
        if self.load.has_drained() {
            self.end(now);
        }
    }

    fn end(&mut self, now: u64) {
        self.load.settle(&Elsewhere, now);
        self.load.end(now, &self.run_queue);
    }

    /// Removes the traced requests, if there are any.
    pub fn take_traced(&mut self) -> Option<Traced> {
        self.recording.take_traced()
    }

    /// Its part of a snapshot, with the seconds from `from` on.
    pub fn report(&mut self, detail: Detail, from: u32, now: u64) -> WorkerReport {
        self.recording.come_to(now);
        let report = WorkerReport {
            taken_nanoseconds: now,
            recording: self.recording.summary(detail),
            seconds: self.recording.seconds_since(from),
            ..WorkerReport::default()
        };
        self.load.report(&Elsewhere, now, &self.run_queue, report)
    }
}

#[cfg(test)]
mod tests;

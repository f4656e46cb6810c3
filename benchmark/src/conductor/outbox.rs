//! Requests of one step to the driver: calls, now or later, and the next wake-up.

use std::time::Duration;

use super::event::{Action, Ask};

#[derive(Debug, Default)]
pub struct Outbox {
    pub actions: Vec<Action>,
    now: Duration,
    /// Calls for a later time.
    later: Vec<(Duration, Ask)>,
    /// Calls without a reply, including those for later.
    pub unanswered: usize,
    wake_at: Option<Duration>,
    /// The delay of this step's beginning after the requested time.
    pub late: Duration,
}

impl Outbox {
    /// Begins a step at `now`: makes the calls that are due.
    pub fn begin(&mut self, now: Duration) {
        self.late = self.wake_at.take().map_or(Duration::ZERO, |at| now.saturating_sub(at));
        self.now = now;
        let (due, later): (Vec<_>, _) = std::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        self.actions.extend(due.into_iter().map(|(_, ask)| Action::Call(ask)));
    }

    /// Ends the step. Returns its actions.
    pub fn end(&mut self) -> Vec<Action> {
        self.wake_at = self.later.iter().map(|(at, _)| *at).chain(self.wake_at).min();
        self.actions.extend(self.wake_at.map(Action::WakeAt));
        std::mem::take(&mut self.actions)
    }

    pub fn call(&mut self, ask: Ask) {
        self.call_at(self.now, ask);
    }

    pub fn call_at(&mut self, at: Duration, ask: Ask) {
        self.unanswered += 1;
        if at <= self.now {
            self.actions.push(Action::Call(ask));
        } else {
            self.later.push((at, ask));
        }
    }

    /// Drops all calls and the record, so that no answer to them follows.
    pub fn forget(&mut self) {
        self.actions.push(Action::Forget);
        self.later.clear();
        self.unanswered = 0;
    }

    /// Requests another step at `at` at the latest.
    pub fn wake_by(&mut self, at: Duration) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }
}

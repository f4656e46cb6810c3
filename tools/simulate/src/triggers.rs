//! Faults that wait for a moment of the protocol rather than for a time.

use tokio::sync::oneshot;

use crate::ground_truth::Try;
use crate::scenario::Way;

/// The current triggers. A new one replaces the old of its kind.
#[derive(Default)]
pub struct Triggers {
    halt: Option<Halt>,
    lose: Option<Lose>,
    /// The next call of a conductor panics.
    panic: bool,
}

/// Halts an operator during the calls of a start, after some of them.
struct Halt {
    calls: u32,
    left: u32,
    sprung: oneshot::Sender<String>,
}

/// Loses all calls of one shard's start in an attempt.
struct Lose {
    shard: u32,
    way: Way,
    attempt: Option<Try>,
    sprung: Option<oneshot::Sender<()>>,
}

impl Triggers {
    /// Halts the next operator that starts shards, after `calls` of its calls. Sends the operator's name when that happens.
    pub fn lay_halt(&mut self, calls: u32) -> oneshot::Receiver<String> {
        let (sprung, name) = oneshot::channel();
        self.halt = Some(Halt { calls, left: calls, sprung });
        name
    }

    /// Makes the next conductor that calls a shard panic.
    pub fn lay_panic(&mut self) {
        self.panic = true;
    }

    /// Loses the calls of the start to `shard` in the next attempt. Signals the first loss.
    pub fn lay_loss(&mut self, shard: u32, way: Way) -> oneshot::Receiver<()> {
        let (sprung, lost) = oneshot::channel();
        self.lose = Some(Lose { shard, way, attempt: None, sprung: Some(sprung) });
        lost
    }

    /// Called before a conductor makes a call. Returns whether it panics.
    pub fn panics(&mut self) -> bool {
        std::mem::take(&mut self.panic)
    }

    /// Called before `operator` sends a start. If it is halted, returns the number of its calls before.
    pub fn halts(&mut self, operator: &str) -> Option<u32> {
        if let Some(halt) = self.halt.as_mut().filter(|halt| halt.left > 0) {
            halt.left -= 1;
            return None;
        }
        let halt = self.halt.take()?;
        halt.sprung.send(operator.to_owned()).ok()?;
        Some(halt.calls)
    }

    /// The way in which a start of `shard` is lost, if it is.
    pub fn loses(&mut self, shard: u32, attempt: Try) -> Option<Way> {
        let lose = self.lose.as_mut().filter(|lose| lose.shard == shard)?;
        if *lose.attempt.get_or_insert(attempt) != attempt {
            self.lose = None;
            return None;
        }
        if let Some(sprung) = lose.sprung.take() {
            // The receiver is gone if the world is already calm.
            sprung.send(()).ok()?;
        }
        Some(lose.way)
    }
}

//! Faults that wait for a moment of the protocol rather than for a time.

use std::net::IpAddr;

use tokio::sync::oneshot;

use crate::ground_truth::Try;
use crate::world::{Freezer, World, lock};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The call does not reach the shard.
    There,
    /// The shard executes the call, and the answer is lost.
    Back,
}

/// The current triggers. A new one replaces the old of its kind.
#[derive(Default)]
pub struct Triggers {
    halt: Option<Halt>,
    lose: Option<Lose>,
    /// The next call of a conductor panics.
    panic: bool,
}

/// The event of a conductor that panicked.
pub const PANICKED: &str = "- a conductor panicked";

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

impl World {
    /// Halts the next operator that starts shards, after `calls` of its calls. Sends the operator's name when that happens.
    pub fn lay_halt(&self, calls: u32) -> oneshot::Receiver<String> {
        let (sprung, name) = oneshot::channel();
        lock(&self.triggers).halt = Some(Halt { calls, left: calls, sprung });
        name
    }

    /// Makes the next conductor that calls a shard panic.
    pub fn lay_panic(&self) {
        lock(&self.triggers).panic = true;
    }

    /// Returns whether a conductor of `run` panics now.
    pub fn spring_panic(&self, run: &str) -> bool {
        let springs = std::mem::take(&mut lock(&self.triggers).panic);
        if springs {
            self.tell("a conductor panics");
            let mut ground_truth = lock(&self.ground_truth);
            ground_truth.count(PANICKED);
            ground_truth.run(run).panics += 1;
        }
        springs
    }

    /// Loses the calls of the start to `shard` in the next attempt. Signals the first loss.
    pub fn lay_loss(&self, shard: u32, way: Way) -> oneshot::Receiver<()> {
        let (sprung, lost) = oneshot::channel();
        lock(&self.triggers).lose = Some(Lose { shard, way, attempt: None, sprung: Some(sprung) });
        lost
    }

    /// Called before `operator` sends a start.
    pub fn halt_at_start(&self, operator: &str, freezer: &Freezer) {
        let mut triggers = lock(&self.triggers);
        if let Some(halt) = triggers.halt.as_mut().filter(|halt| halt.left > 0) {
            halt.left -= 1;
        } else if let Some(halt) = triggers.halt.take()
            && halt.sprung.send(operator.to_owned()).is_ok()
        {
            self.tell(format_args!("{operator} is frozen after {} calls of the start", halt.calls));
            freezer.freeze();
        }
    }

    /// The way in which a start is lost, if it is.
    pub fn lose_start(&self, address: IpAddr, attempt: Try) -> Option<Way> {
        let shard = lock(&self.processes).get(&address)?.shard;
        let mut triggers = lock(&self.triggers);
        let lose = triggers.lose.as_mut().filter(|lose| lose.shard == shard)?;
        if *lose.attempt.get_or_insert(attempt) != attempt {
            triggers.lose = None;
            return None;
        }
        if let Some(sprung) = lose.sprung.take() {
            // The receiver is gone if the world is already calm.
            sprung.send(()).ok()?;
        }
        Some(lose.way)
    }
}

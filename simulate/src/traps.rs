//! Faults that wait for a moment of the protocol rather than for a time.

use std::net::IpAddr;

use tokio::sync::oneshot;

use crate::ledger::Try;
use crate::world::{Freezer, World, lock};

/// Where a message is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The shard never hears of it.
    There,
    /// The shard does what it says, and the conductor never hears of that.
    Back,
}

/// What is laid out. Of each kind the newest counts.
#[derive(Default)]
pub struct Traps {
    halt: Option<Halt>,
    lose: Option<Lose>,
}

/// An operator stops before its next call of a start, once some were sent.
struct Halt {
    calls: u32,
    left: u32,
    sprung: oneshot::Sender<String>,
}

/// One shard's start is lost, in the whole attempt.
struct Lose {
    shard: u32,
    way: Way,
    attempt: Option<Try>,
    sprung: Option<oneshot::Sender<()>>,
}

impl World {
    /// Stops whichever operator is next to start shards, after `calls` of its calls. Its name comes when that happens.
    pub fn lay_halt(&self, calls: u32) -> oneshot::Receiver<String> {
        let (sprung, name) = oneshot::channel();
        lock(&self.traps).halt = Some(Halt { calls, left: calls, sprung });
        name
    }

    /// Loses what the next attempt says to `shard` of its start. Tells when that begins.
    pub fn lay_loss(&self, shard: u32, way: Way) -> oneshot::Receiver<()> {
        let (sprung, lost) = oneshot::channel();
        lock(&self.traps).lose = Some(Lose { shard, way, attempt: None, sprung: Some(sprung) });
        lost
    }

    /// `operator` is about to call a start.
    pub fn halt_at_start(&self, operator: &str, freezer: &Freezer) {
        let mut traps = lock(&self.traps);
        if let Some(halt) = traps.halt.as_mut().filter(|halt| halt.left > 0) {
            halt.left -= 1;
        } else if let Some(halt) = traps.halt.take()
            && halt.sprung.send(operator.to_owned()).is_ok()
        {
            self.tell(format_args!("{operator} stands still after {} calls of the start", halt.calls));
            freezer.freeze();
        }
    }

    /// Whether a start is lost on its way.
    pub fn lose_start(&self, address: IpAddr, attempt: Try) -> Option<Way> {
        let shard = lock(&self.processes).get(&address)?.shard;
        let mut traps = lock(&self.traps);
        let lose = traps.lose.as_mut().filter(|lose| lose.shard == shard)?;
        if *lose.attempt.get_or_insert(attempt) != attempt {
            traps.lose = None;
            return None;
        }
        if let Some(sprung) = lose.sprung.take() {
            // Nobody waits any more if the world is calm by now.
            sprung.send(()).ok()?;
        }
        Some(lose.way)
    }
}

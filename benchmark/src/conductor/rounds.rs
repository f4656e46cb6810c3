//! Rounds of calls, with a rest in between.

use std::sync::Arc;
use std::time::Duration;

use super::intervals::polling_interval;
use super::polled::Share;
use super::trial::Conductor;

#[derive(Debug, Default)]
pub enum Round {
    /// The next round begins at once.
    #[default]
    Due,
    /// Some calls have no reply yet.
    Asking,
    /// Until this time, or until the platform reports a change.
    Resting(Duration),
}

/// The next action of a phase.
pub enum Turn {
    /// Begin a round.
    Ask,
    /// All shards have answered: judge, and rest if that decides nothing.
    Judge,
    Wait,
}

impl Round {
    pub fn turn(&mut self, conductor: &mut Conductor) -> Turn {
        match *self {
            Self::Asking if conductor.out.unanswered > 0 => Turn::Wait,
            Self::Asking => Turn::Judge,
            Self::Resting(until) if !conductor.news && conductor.now < until => {
                conductor.out.wake_by(until);
                Turn::Wait
            }
            Self::Due | Self::Resting(_) => {
                conductor.news = false;
                *self = Self::Asking;
                Turn::Ask
            }
        }
    }

    pub fn rest(&mut self, conductor: &Conductor) {
        let shards = conductor.shards.len();
        let shortest = Share::preparing(Arc::clone(&conductor.config.polled), shards).interval();
        *self = Self::Resting(conductor.now + polling_interval(shards, shortest, Duration::ZERO));
    }
}

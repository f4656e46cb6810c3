//! Events of the machine, and its requests to the driver.

use std::time::Duration;

use super::{
    Call, CallError, Control, Endpoint, JournalError, Outcome, Progress, Reply, ShardPresence, StartRecord, Unreachable,
};

/// The current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic, since the conductor began.
    pub elapsed: Duration,
    /// By the wall clock, since the Unix epoch.
    pub unix_nanoseconds: u64,
}

#[derive(Debug)]
pub enum Event {
    /// The platform's newest report on each shard.
    Presence(Vec<ShardPresence>),
    Control(Control),
    Answered(Box<Answered>),
    /// The reply to [`Action::Record`].
    Recorded(Result<(), JournalError>),
    /// The time of [`Action::WakeAt`] has come.
    Due,
}

/// A call to a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The shard's place in the list of presence.
    pub shard: usize,
    pub endpoint: Endpoint,
    pub call: Call,
}

/// The reply to a call, and when it was sent and received since the conductor began.
#[derive(Debug)]
pub struct Answered {
    pub ask: Ask,
    pub sent: Duration,
    pub received: Duration,
    pub reply: Result<Reply, CallError>,
}

impl Answered {
    /// Whether the call may have reached the shard, even if no answer came back.
    pub fn may_have_arrived(&self) -> bool {
        !matches!(self.reply, Err(CallError::Unreachable(Unreachable::DialTimedOut(_))))
    }
}

/// Work for the driver. Actions are performed in order.
#[derive(Debug)]
pub enum Action {
    /// Call a shard. [`Event::Answered`] follows.
    Call(Ask),
    /// Read the state of these shards, so that they do not exit. The replies do not matter. Replaces the previous such calls.
    KeepContact(Vec<Endpoint>),
    /// Make a start durable. [`Event::Recorded`] follows.
    Record(StartRecord),
    /// Drop all calls and records that have no reply: no event follows.
    Forget,
    Publish(Box<Progress>),
    /// Send [`Event::Due`] at this time since the conductor began. Replaces the previous time.
    WakeAt(Duration),
    /// The trial has ended. Nothing follows.
    Done(Box<Outcome>),
}

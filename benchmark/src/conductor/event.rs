//! Events of the machine, and its requests to the driver.

use std::time::Duration;

use super::{
    Call, CallError, ConductProgress, Control, Endpoint, JournalError, Outcome, Reply, ShardPresence, StartRecord,
    Unreachable,
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

/// The longest time for which the kernel resends a call without an answer, even after its connection was closed: Linux gives up after 102
/// s.
pub const SENT_FOR: Duration = Duration::from_secs(120);

impl Answered {
    /// The latest time at which the call reached the shard, since the conductor began. None if it never does.
    pub fn arrives_by(&self) -> Option<Duration> {
        match &self.reply {
            Ok(_) | Err(CallError::Refused(_)) => Some(self.received),
            Err(CallError::Unreachable(Unreachable::DialTimedOut(_))) => None,
            Err(CallError::Unreachable(_)) => Some(self.received + SENT_FOR),
        }
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
    Publish(Box<ConductProgress>),
    /// Send [`Event::Due`] at this time since the conductor began. Replaces the previous time.
    WakeAt(Duration),
    /// The trial has ended. Nothing follows.
    Done(Box<Outcome>),
}

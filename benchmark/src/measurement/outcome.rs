//! What a trial came to.

use std::time::Duration;

use redisbench_wire::Probe;
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::timeline::Span;

use super::threshold::Judged;
use crate::human;

/// What a trial came to, and everything that the shards measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// How many trials the run has.
    pub of: u32,
    /// The last attempt, from 1; 0 if none was ordered.
    pub attempt: u32,
    /// When that attempt started, in nanoseconds since the Unix epoch; none if it never did.
    pub start_at_unix_nanoseconds: Option<u64>,
    /// One entry per shard, in the order of their indices.
    pub shards: Vec<ShardOutcome>,
    /// The seconds since the start, in order, merged over all shards.
    pub timeline: Vec<Span>,
    /// The largest difference between the shards' first sends, each seen against its own schedule; none with fewer
    /// than two shards, or if nothing was sent.
    pub start_skew: Option<Duration>,
    /// Half of the worst shard's round trip at the start, or, for a conductor that took over, as it came to be known
    /// best; none if the clocks were never exchanged.
    pub clock_uncertainty: Option<Duration>,
    /// What the measurement must keep to, and what was seen of it while the load ran.
    pub thresholds: Vec<Judged>,
    /// What half of the connections made of the load afterwards, on every shard; empty if that was not asked for.
    pub probes: Vec<Probe>,
    /// What became of the keys, if they were to be deleted.
    pub cleanup: Option<Cleanup>,
}

impl Failure {
    pub(crate) fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

impl Outcome {
    /// Shards that are lost.
    pub fn lost(&self) -> impl Iterator<Item = &ShardOutcome> {
        self.shards.iter().filter(|shard| shard.lost.is_some())
    }

    /// Shards that did not acknowledge the abort within 2 s: their processes are to be ended from outside.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &ShardOutcome> {
        self.shards.iter().filter(|shard| shard.unacknowledged)
    }
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Measured to its end. Shards may have been lost on the way; see [`Outcome::lost`].
    Completed,
    /// It cannot go on.
    Failed(Failure),
    /// Stopped by the user. What was measured is in the shards' snapshots.
    Aborted,
    /// Another conductor has taken over. Write nothing more about this trial.
    Superseded,
}

/// Classes of [`Failure`] that the conductor itself finds. Shards add the names of
/// [`redisbench_wire::FailureReason`] and [`redisbench_wire::RefusalCode`].
pub mod reason {
    /// A shard ended before the start without a replacement, or after it and `onLost` is not Invalidate.
    pub const SHARD_LOST: &str = "ShardLost";
    /// Not all shards were armed in time.
    pub const PREPARE_TIMED_OUT: &str = "PrepareTimedOut";
    /// A shard's clock could not be known well enough.
    pub const CLOCK_UNCERTAIN: &str = "ClockUncertain";
    /// Three start instants were not acknowledged by all shards in time.
    pub const START_MISSED: &str = "StartMissed";
    /// No shard delivered its final snapshot in time.
    pub const TRIAL_TIMED_OUT: &str = "TrialTimedOut";
    /// Shards had been stopped before their end, by a conductor that did not live to say why.
    pub const STOPPED_EARLY: &str = "StoppedEarly";
    /// A threshold that stops the load did not hold.
    pub const THRESHOLD_FAILED: &str = "ThresholdFailed";
    /// A shard holds another plan of this trial.
    pub const PLAN_CONFLICT: &str = "PlanConflict";
}

/// Why a trial failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The class, in `CamelCase`: see [`reason`].
    pub reason: String,
    /// For people: one shard, how many it concerns, and the way out.
    pub message: String,
}

/// What one shard came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardOutcome {
    /// The shard's index, from 0.
    pub shard: u32,
    /// The incarnation that the snapshot is of; empty if none was ever dialled.
    pub incarnation: String,
    /// The machine that it ran on, as its endpoint said.
    pub host: String,
    /// The last accepted snapshot: the full one, unless `partial`. Its seconds are in [`Outcome::timeline`].
    pub snapshot: Option<Snapshot>,
    /// The snapshot is not the final one: what came after it is unknown.
    pub partial: bool,
    /// Why it is lost, if it is.
    pub lost: Option<String>,
    /// It did not acknowledge the abort in time.
    pub unacknowledged: bool,
    /// The shard's clock, if it was ever exchanged.
    pub clock: Option<ShardClock>,
}

/// What is known of a shard's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardClock {
    /// The shard's monotonic clock minus the conductor's, in nanoseconds. Only differences between shards mean
    /// anything to others.
    pub offset_nanoseconds: i64,
    /// How far it may be off.
    pub uncertainty: Duration,
}

/// What became of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Keys that were there and are deleted.
    pub removed_keys: u64,
    /// Shards whose part may be left, and why.
    pub left: Vec<(u32, String)>,
}

impl Cleanup {
    /// For people: how many are deleted, and what may be left.
    pub fn summary(&self) -> String {
        let removed = format!("{} keys deleted", human::count(self.removed_keys));
        match self.left.first() {
            None => removed,
            Some((shard, why)) => format!(
                "{removed}, and those of {} shards may be left: delete them by hand, or run it again; shard {shard}: {}",
                self.left.len(),
                human::cut(why, 256)
            ),
        }
    }
}

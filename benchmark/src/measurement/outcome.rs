//! The outcome of a trial.

use std::time::Duration;

use redisbench_wire::Probe;
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::timeline::Span;
use serde::{Deserialize, Serialize};

use super::judged::Judged;
use super::memory::Kept;
use super::parts::{OwnLatency, Parts};
use crate::human;

/// Outcome of a trial, with everything that the shards measured. Written as evidence, it has only the verdict's input.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    #[serde(skip)]
    pub ending: Ending,
    /// Number of trials of the run.
    #[serde(skip)]
    pub of: u32,
    /// The last attempt, from 1; 0 if none was ordered.
    #[serde(skip)]
    pub attempt: u32,
    /// One entry per shard, in index order.
    pub shards: Vec<ShardEvidence>,
    /// Histograms and breakdowns that were merged as they arrived; see [`ShardEvidence::own_latency`].
    #[serde(skip)]
    pub parts: Parts,
    /// Memory of the snapshots.
    #[serde(skip)]
    pub kept: Kept,
    /// Seconds since the start, in order, merged over all shards.
    #[serde(default)]
    pub timeline: Vec<Span>,
    /// The start of the last attempt, in nanoseconds since the Unix epoch; none if it never did.
    pub start_at_unix_nanoseconds: Option<u64>,
    /// Largest difference between the shards' first sends, each relative to its own schedule; none with fewer than two shards, or if
    /// nothing was sent.
    pub start_skew: Option<Duration>,
    /// Half of the worst shard's round trip at the start or, after a takeover, of the best estimate since. None if the clocks were never
    /// exchanged.
    pub clock_uncertainty: Option<Duration>,
    /// The thresholds, as judged while the load ran.
    #[serde(skip)]
    pub thresholds: Vec<Judged>,
    /// Results of the probe with half of the connections, one per shard; empty if there was none.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// Result of deleting the keys, if that was requested.
    #[serde(skip)]
    pub cleanup: Option<Cleanup>,
}

impl Failure {
    pub(crate) fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

impl Outcome {
    pub fn lost(&self) -> impl Iterator<Item = &ShardEvidence> {
        self.shards.iter().filter(|shard| shard.lost.is_some())
    }

    /// Measurements of the shards that reported any.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.shards.iter().filter_map(|shard| shard.snapshot.as_ref())
    }

    /// Shards that did not acknowledge the abort within 4 s: their processes must be ended from outside.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &ShardEvidence> {
        self.shards.iter().filter(|shard| shard.unacknowledged)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Measured to its end. Shards may have been lost on the way; see [`Outcome::lost`].
    #[default]
    Completed,
    Failed(Failure),
    /// Stopped by the user. The shards' snapshots hold what was measured.
    Aborted,
    /// Another conductor has taken over. Write nothing more about this trial.
    Superseded,
}

/// Classes of [`Failure`] that the conductor itself detects. Shards add the names of [`redisbench_wire::FailureReason`] and
/// [`redisbench_wire::RefusalCode`].
pub mod reason {
    /// A shard ended before the start without a replacement, or after it and `onLost` is not Invalidate.
    pub const SHARD_LOST: &str = "ShardLost";
    /// Not all shards were armed in time.
    pub const PREPARE_TIMED_OUT: &str = "PrepareTimedOut";
    /// A shard's clock uncertainty is too high.
    pub const CLOCK_UNCERTAIN: &str = "ClockUncertain";
    /// Three start instants were not acknowledged by all shards in time.
    pub const START_MISSED: &str = "StartMissed";
    /// No shard delivered its final snapshot in time.
    pub const TRIAL_TIMED_OUT: &str = "TrialTimedOut";
    /// A shard was stopped before its end: by an operator that died before it recorded why, or by itself, because no call had reached it for
    /// `safety.unattended`. The load of the others then ended, too, and the result has what all measured until then. See whether an operator
    /// runs, whether it reaches the API server, without which it gives up its Lease, and whether a network policy keeps it from the pods.
    pub const STOPPED_EARLY: &str = "StoppedEarly";
    /// A threshold that stops the load did not hold.
    pub const THRESHOLD_FAILED: &str = "ThresholdFailed";
    /// A shard holds another plan of this trial.
    pub const PLAN_CONFLICT: &str = "PlanConflict";
    /// Conducting the run failed twice because of a bug in the operator. Its log has the details; please report it.
    pub const INTERNAL_ERROR: &str = "InternalError";
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The class, in `CamelCase`: see [`reason`].
    pub reason: String,
    /// For people: one shard, the number of affected shards, and the remedy.
    pub message: String,
}

/// One shard's part of an outcome. Written as evidence, it names no machine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardEvidence {
    /// Counted from 0.
    pub shard: u32,
    /// The incarnation that sent the snapshot; empty if none was ever dialled.
    #[serde(skip)]
    pub incarnation: String,
    /// The machine that it ran on, from its endpoint.
    #[serde(skip)]
    pub host: String,
    /// The last accepted snapshot: the full one, unless `partial`. Its seconds are in [`Outcome::timeline`].
    pub snapshot: Option<Snapshot>,
    /// Set if the histograms and breakdowns of the snapshot are in [`Outcome::parts`] instead.
    #[serde(skip)]
    pub own_latency: Option<OwnLatency>,
    /// The snapshot is not the final one: later requests are unknown.
    #[serde(default)]
    pub partial: bool,
    /// Why it is lost, if it is.
    #[serde(default)]
    pub lost: Option<String>,
    /// It did not acknowledge the abort in time.
    #[serde(skip)]
    pub unacknowledged: bool,
    /// The shard's clock, if it was ever exchanged.
    #[serde(skip)]
    pub clock: Option<ShardClock>,
}

/// Estimate of a shard's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardClock {
    /// The shard's monotonic clock minus the conductor's. Meaningful only as a difference between shards.
    pub offset_nanoseconds: i64,
    /// Maximum error of the offset.
    pub uncertainty: Duration,
}

/// Result of deleting the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Keys that existed and were deleted.
    pub removed_keys: u64,
    /// Shards whose keys may be left, and why.
    pub left: Vec<(u32, String)>,
}

impl Cleanup {
    /// For people: number of deleted keys, and which may be left.
    pub fn summary(&self) -> String {
        let removed = format!("{} deleted", human::counted(self.removed_keys, "key"));
        match self.left.first() {
            None => removed,
            Some((shard, why)) => format!(
                "{removed}, keys of {} may be left: delete them by hand, or run it again; shard {shard}: {}",
                human::counted(self.left.len() as u64, "shard"),
                human::cut(why, 256)
            ),
        }
    }
}

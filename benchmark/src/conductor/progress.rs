//! The picture that a conductor publishes while it conducts.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use redisbench_wire::snapshot::{Tally, Verification};

use super::drive::planned_length;
use super::{ConductorConfig, StartRecord};
use crate::measurement::threshold::Judged;
use crate::measurement::topology::MergedTopology;

/// The state of a trial, replaced whole with every change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// What the conductor is doing.
    pub stage: ConductStage,
    /// The trial, from 0.
    pub trial: u32,
    /// How many trials the run has.
    pub of: u32,
    /// The attempt, from 1; 0 until it is known.
    pub attempt: u32,
    /// The last attempt that was ordered or recorded and is given up, while none has been measured; 0 if there is none.
    /// What is known of its start then means nothing any more.
    pub missed: u32,
    /// When the trial starts or started, in nanoseconds since the Unix epoch; none before it is recorded.
    pub start_at_unix_nanoseconds: Option<u64>,
    /// How many shards are in which state.
    pub shards: ShardCounts,
    /// How far phase Preparing has come.
    pub preparation: PreparationProgress,
    /// The merge of the newest live snapshots; none before the first.
    pub live: Option<Arc<LivePicture>>,
    /// What the measurement must keep to, and whether it does so far.
    pub thresholds: Vec<Judged>,
    /// The difference between the shards' first sends; none before two are known.
    pub start_skew: Option<Duration>,
    /// Half of the worst shard's round trip; none before the clocks are exchanged.
    pub clock_uncertainty: Option<Duration>,
    /// The age of the oldest of the newest snapshots of running shards.
    pub oldest_snapshot_age: Option<Duration>,
}

impl Progress {
    /// What is to be said before the conductor has asked any shard: a recorded start is taken for a start, by the time
    /// of day. A trial that seems to be over is not stopped by an abort that nobody acted on while it ran.
    pub fn at_first(config: &ConductorConfig) -> Self {
        let desired = u32::try_from(config.plans.len()).unwrap_or(u32::MAX);
        let shards = ShardCounts { desired, ..ShardCounts::default() };
        let trial = config.plans.first().map_or(0, |plan| plan.trial);
        let place = Self { trial, of: config.of, shards, ..Self::default() };
        let Some(StartRecord { start_at_unix_nanoseconds, .. }) = config.resume else {
            return Self { attempt: config.attempts, missed: config.attempts, ..place };
        };
        let longest = config.plans.iter().map(planned_length).max().unwrap_or_default();
        let end = Duration::from_nanos(start_at_unix_nanoseconds).saturating_add(longest);
        let over = Duration::from_nanos(config.wall_clock.unix_nanoseconds()) >= end;
        let stage = if over { ConductStage::Collecting } else { ConductStage::Running };
        Self { stage, start_at_unix_nanoseconds: Some(start_at_unix_nanoseconds), ..place }
    }
}

/// What the conductor is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConductStage {
    /// Waiting for shards to come, prepare and arm.
    #[default]
    Preparing,
    /// The start is ordered, and the end of the trial has not come.
    Running,
    /// The load is over; final snapshots are fetched.
    Collecting,
    /// There is an outcome.
    Done,
}

/// How many shards are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardCounts {
    /// Shards of the plan.
    pub desired: u32,
    /// Shards with a process to dial.
    pub present: u32,
    /// Shards that are armed or have started.
    pub armed: u32,
    /// Shards that accepted the start and have not finished.
    pub running: u32,
    /// Shards whose final snapshot is here.
    pub finished: u32,
    /// Shards that are lost.
    pub lost: u32,
    /// Shards that did not answer the last call. They may well be running.
    pub unreachable: u32,
}

/// How far phase Preparing has come, over all shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparationProgress {
    /// Connections that are ready.
    pub connected: u64,
    /// Connections wanted.
    pub connections: u64,
    /// Keys written or found.
    pub preloaded_keys: u64,
    /// Keys to preload.
    pub preload_keys: u64,
    /// What the first shard that is not armed waits for, with its index.
    pub waiting_for: Option<String>,
}

/// Latency of succeeded requests in the last seconds, rounded up by at most 1/32.
#[derive(Clone, Debug, PartialEq)]
pub struct RecentLatency {
    /// Response time.
    pub response: Histogram<u64>,
    /// Service time; none in a closed loop.
    pub service: Option<Histogram<u64>>,
}

/// The merge of the newest snapshot of every shard, final ones included.
#[derive(Clone, Debug, PartialEq)]
pub struct LivePicture {
    /// The measured requests.
    pub total: Tally,
    /// The warm-up's requests.
    pub warmup: Tally,
    /// Response time of succeeded requests.
    pub response: Histogram<u64>,
    /// Errors by kind, the most frequent first.
    pub errors: Vec<(String, u64)>,
    /// What was found of the answers so far; none if nothing is checked.
    pub verification: Option<Verification>,
    /// How much of the trial is over.
    pub percent: u8,
    /// Successful requests per second, of the warm-up or measured, in the last five seconds that all shards have
    /// completed; before there are any, since the beginning.
    pub achieved_per_second: u64,
    /// Latency of measured requests in these seconds; none while there were none.
    pub recent: Option<RecentLatency>,
    /// Whether any shard's measurement has begun.
    pub measuring: bool,
    /// The target's servers so far.
    pub topology: MergedTopology,
}

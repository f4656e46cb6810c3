//! What the conductor is told: once at its start, and while it conducts.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redisbench_wire::plan::ShardPlan;

use super::Endpoint;
use crate::api::Threshold;
use crate::api::Validated;
use crate::measurement::threshold::Standing;

/// What to conduct, and how. One conductor conducts one trial.
#[derive(Clone, Debug)]
pub struct ConductorConfig {
    /// The conductor's epoch, in every `PUT`. A shard that has seen a higher one refuses.
    pub epoch: u64,
    /// One plan per shard, in the order of their indices; all of one run and one trial.
    pub plans: Vec<ShardPlan>,
    /// How many trials the run has.
    pub of: u32,
    /// How long nobody has a connection between the trial before and this one.
    pub interval: Duration,
    /// What the conductor gives up on.
    pub limits: ConductorLimits,
    /// What to do when a shard is lost after the start.
    pub on_lost: OnLost,
    /// Whether shards delete their keys once the load is over.
    pub cleanup: bool,
    /// The start that an earlier conductor recorded for this trial, if any. With it the conductor first asks every
    /// shard what it accepted.
    pub resume: Option<StartRecord>,
    /// The last attempt that is known to be over without a result; 0 if there is none. New ones are numbered beyond it.
    pub attempts: u32,
    /// What the measurement must keep to.
    pub thresholds: Vec<Threshold>,
    /// How they stood when an earlier conductor last said so; of a trial that begins, nothing.
    pub standings: Vec<Standing>,
    /// What was asked for, where a probe may follow if the result does not tell its limit.
    pub probe: Option<Arc<Validated>>,
    /// What the conductor reads the time of day from.
    pub wall_clock: WallClock,
}

/// Where the time of day comes from: the system, unless a simulation has a time of its own.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    /// Reads the time from `now`.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time of day.
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }

    /// The time of day in nanoseconds since the Unix epoch.
    pub fn unix_nanoseconds(&self) -> u64 {
        let since = self.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WallClock")
    }
}

/// What the conductor gives up on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConductorLimits {
    /// From the beginning until all shards are armed; extended while preload advances.
    pub prepare: Duration,
    /// From the planned end of the trial until a shard without a final snapshot counts as lost.
    pub collect: Duration,
    /// The largest wanted difference between the shards' starts. A clock known no better than half of it may not start.
    pub max_start_skew: Duration,
}

impl Default for ConductorLimits {
    /// The API's defaults: 10 min, 2 min, 20 ms.
    fn default() -> Self {
        Self {
            prepare: Duration::from_secs(600),
            collect: Duration::from_secs(120),
            max_start_skew: Duration::from_millis(20),
        }
    }
}

/// What to do when a shard is lost after the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// Go on with the rest; the verdict names the shard.
    #[default]
    Invalidate,
    /// Stop the rest, keep what was measured, and fail.
    Abort,
    /// Stop, wait for the replacement, and begin a new attempt; at most twice, then as Abort.
    Restart,
}

/// What is known of one shard from outside: from its pod or its child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardPresence {
    /// Not there yet.
    Absent {
        /// What keeps it from coming, as the platform words it: `Unschedulable: ..`, `ImagePullBackOff: ..`.
        why: Option<String>,
    },
    /// Running, as far as the platform knows, and to be dialled here.
    Present(Endpoint),
    /// The process that was here has ended without having been released.
    Gone {
        /// What ended it: exit code, eviction, deletion.
        why: String,
        /// Whether the platform will start another in its place. Without one, a run that has not started fails at once.
        replaced: bool,
    },
    /// Exited with 0 after its release.
    Done,
}

/// What the user wants beside the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Stop now and keep what was measured. One way.
    pub abort: bool,
}

/// A start that is about to be ordered. Written down before the first shard hears of it, so that whoever takes over
/// knows which attempt to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartRecord {
    /// The attempt, from 1.
    pub attempt: u32,
    /// The start instant in nanoseconds since the Unix epoch, by the conductor's wall clock. For people, and for the
    /// rough judgement whether it has passed; shards get theirs on their own clocks.
    pub start_at_unix_nanoseconds: u64,
}

/// Where starts are written down.
pub trait Journal: Send + Sync {
    /// Makes `record` durable. No shard is started before this returns. The time it takes counts against the lead.
    ///
    /// # Errors
    /// [`JournalError::Superseded`] ends the conductor; [`JournalError::Failed`] costs the attempt.
    fn record_start(&self, record: StartRecord) -> impl Future<Output = Result<(), JournalError>> + Send;
}

/// Why a start could not be written down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Another conductor has taken over.
    #[error("another conductor has taken over")]
    Superseded,
    /// It could not be written.
    #[error("failed to record the start: {0}")]
    Failed(String),
}

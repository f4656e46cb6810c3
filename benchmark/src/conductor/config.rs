//! Input of the conductor: its configuration, and the signals it gets while it conducts.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redisbench_wire::plan::TrialPlan;

use super::{Endpoint, PolledShards, ResultMemory};
use crate::api::Threshold;
use crate::api::Validated;
use crate::api::spec::OnLost;
use crate::measurement::judged::ThresholdState;
use crate::plan::Trial;

/// Configuration of one conductor, which conducts one trial.
#[derive(Clone, Debug)]
pub struct ConductorConfig {
    /// Sent with every `PUT`. A shard that has seen a higher epoch refuses.
    pub epoch: u64,
    /// The plan of all shards.
    pub plan: Arc<TrialPlan>,
    /// The run's identity.
    pub run: Arc<str>,
    /// The trial, from 0.
    pub trial: u32,
    /// Number of trials of the run.
    pub of: u32,
    /// Pause between the previous trial and this one, during which no shard has a connection.
    pub interval: Duration,
    pub limits: ConductorLimits,
    pub on_lost: OnLost,
    /// True if shards delete their keys after the load.
    pub cleanup: bool,
    /// The start that an earlier conductor recorded for this trial. If set, the conductor first asks every shard which start it accepted.
    pub resume: Option<StartRecord>,
    /// The last attempt known to have ended without a result, or 0. New attempts get higher numbers.
    pub attempts: u32,
    pub thresholds: Vec<Threshold>,
    /// The thresholds' standings as an earlier conductor last published them; empty for a new trial.
    pub standings: Vec<ThresholdState>,
    /// The checked spec, if a probe may follow a result whose limiting factor is unclear.
    pub probe: Option<Arc<Validated>>,
    pub wall_clock: WallClock,
    /// Memory for final snapshots, shared with other conductors.
    pub memory: Arc<ResultMemory>,
    /// Shards that are polled, shared with other conductors.
    pub polled: Arc<PolledShards>,
}

impl ConductorConfig {
    /// A new attempt at `trial` of the run `run`.
    pub fn of(trial: &Trial, run: &str, epoch: u64) -> Self {
        let spec = &trial.spec;
        Self {
            epoch,
            plan: Arc::clone(&spec.plan),
            run: run.into(),
            trial: trial.index,
            of: trial.of,
            interval: trial.interval,
            limits: ConductorLimits {
                prepare: spec.shards.prepare_timeout,
                collect: spec.shards.collect_timeout,
                max_start_skew: spec.shards.max_start_skew,
            },
            on_lost: spec.shards.on_lost,
            cleanup: spec.cleanup,
            resume: None,
            attempts: 0,
            thresholds: spec.thresholds.clone(),
            standings: Vec::new(),
            probe: (spec.plan.measurement.probe_nanoseconds > 0).then(|| Arc::new(spec.clone())),
            wall_clock: WallClock::default(),
            memory: Arc::default(),
            polled: Arc::default(),
        }
    }
}

/// Source of the time of day: the system, or the virtual time of a simulation.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> SystemTime {
        (self.0)()
    }

    /// Time of day in nanoseconds since the Unix epoch.
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

/// Time limits after which the conductor gives up, and the allowed start skew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConductorLimits {
    /// From the beginning until all shards are armed; extended while the preload advances.
    pub prepare: Duration,
    /// From the planned end of the trial until a shard without a final snapshot counts as lost.
    pub collect: Duration,
    /// Largest allowed difference between the shards' starts. No start is ordered while a clock's uncertainty exceeds half of it.
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

/// A shard as the platform reports it: its pod or child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardPresence {
    /// No process yet.
    Absent {
        /// The platform's reason: `Unschedulable: ..`, `ImagePullBackOff: ..`.
        why: Option<String>,
    },
    /// No process, because a queue holds the run back. This time does not count as preparing.
    Queued,
    /// Running according to the platform, and reachable at this endpoint.
    Present(Endpoint),
    /// Its process was told to terminate. It has stopped its load, and serves what it measured until it exits, at most [`GRACE_PERIOD`].
    Leaving {
        endpoint: Endpoint,
        /// Eviction or deletion.
        why: String,
        /// Another process will take its place.
        replaced: bool,
    },
    /// The process has ended without a release.
    Gone {
        /// Exit code, eviction or deletion.
        why: String,
        /// True if the platform will start a replacement. If not, a run that has not started fails at once.
        replaced: bool,
    },
    /// Exited with 0 after its release.
    Done,
}

impl ShardPresence {
    /// Where it can be called.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Present(endpoint) | Self::Leaving { endpoint, .. } => Some(endpoint),
            Self::Absent { .. } | Self::Queued | Self::Gone { .. } | Self::Done => None,
        }
    }

    /// Present if it can be called.
    #[must_use]
    pub fn while_reachable(self) -> Self {
        match self {
            Self::Leaving { endpoint, .. } => Self::Present(endpoint),
            other => other,
        }
    }
}

/// The longest time between telling a process to terminate and killing it.
pub const GRACE_PERIOD: Duration = Duration::from_secs(30);

/// Why a shard is [`ShardPresence::Queued`].
pub const QUEUED: &str = "its Job is suspended, as by a queue that has not admitted it";

/// Settings that the user can change during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Stop now and keep what was measured. One way.
    pub abort: bool,
}

/// A start that is about to be ordered. It is recorded before any shard gets it, so that a takeover knows which attempt to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartRecord {
    /// Counted from 1.
    pub attempt: u32,
    /// Start instant in nanoseconds since the Unix epoch, by the conductor's wall clock. Only for display and for a rough check whether it
    /// has passed; shards get the instant on their own clocks.
    pub start_at_unix_nanoseconds: u64,
}

/// Records starts durably.
pub trait Journal: Send + Sync {
    /// Makes `record` durable. No shard is started before this returns. The time it takes counts against the lead.
    ///
    /// # Errors
    /// [`JournalError::Superseded`] ends the conductor; [`JournalError::Failed`] costs the attempt.
    fn record_start(&self, record: StartRecord) -> impl Future<Output = Result<(), JournalError>> + Send;
}

/// Why a start could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    #[error("another conductor has taken over")]
    Superseded,
    /// The write failed.
    #[error("failed to record the start: {0}")]
    Failed(String),
}

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use jiff::Timestamp;
use redisbench_benchmark::conductor::WallClock;
use tokio::task::JoinError;

/// Where long computations run: compiling a large plan, merging thousands of histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// So that nothing else waits for them, such as the calls to other benchmarks' shards.
    #[default]
    OnAnotherThread,
    /// Simulations have only one thread.
    Here,
}

impl Compute {
    /// Runs `work`.
    ///
    /// # Errors
    /// If it panicked.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
        match self {
            Self::OnAnotherThread => tokio::task::spawn_blocking(work).await,
            Self::Here => Ok(work()),
        }
    }
}

/// Inputs of reconciling besides the API server: the time of day, random numbers, and threads. A simulation provides its own, so that each
/// seed determines the course of events.
#[derive(Clone)]
pub struct Environment {
    pub wall_clock: WallClock,
    /// Returns a random number.
    pub chance: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub compute: Compute,
}

impl Default for Environment {
    /// Those of the system.
    fn default() -> Self {
        Self {
            wall_clock: WallClock::default(),
            chance: Arc::new(|| RandomState::new().build_hasher().finish()),
            compute: Compute::default(),
        }
    }
}

impl Environment {
    pub(crate) fn now(&self) -> Timestamp {
        // A time that a timestamp cannot hold does not occur in practice.
        Timestamp::try_from(self.wall_clock.now()).unwrap_or_default()
    }

    pub(crate) fn chance(&self) -> u64 {
        (self.chance)()
    }

    /// A runId: a UUID of version 7 without hyphens.
    pub(crate) fn fresh_run_id(&self) -> String {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.chance().to_be_bytes());
        random[8..].copy_from_slice(&self.chance().to_be_bytes()[..2]);
        let milliseconds = self.wall_clock.unix_nanoseconds() / 1_000_000;
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid().simple().to_string()
    }
}

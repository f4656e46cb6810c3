use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use jiff::Timestamp;
use redisbench_benchmark::conductor::WallClock;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Maximum number of merges of whole trials at once. Otherwise 50 benchmarks that end together would need the memory for 50.
const MERGES: usize = 2;

/// Where long computations run: compiling a large plan, merging thousands of histograms.
#[derive(Clone, Debug)]
pub enum Compute {
    /// So that nothing else waits for them, such as the calls to other benchmarks' shards. Clones share the permits of merges.
    OnAnotherThread(Arc<Semaphore>),
    /// Simulations have only one thread.
    Here,
}

impl Default for Compute {
    fn default() -> Self {
        Self::OnAnotherThread(Arc::new(Semaphore::new(MERGES)))
    }
}

impl Compute {
    /// Runs `work` for a reconciliation. It waits for no merge, because an abort may wait for it.
    ///
    /// # Errors
    /// If it panicked.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
        match self {
            Self::OnAnotherThread(_) => tokio::task::spawn_blocking(work).await,
            Self::Here => Ok(work()),
        }
    }

    /// Merges a trial, once there is a permit for it.
    ///
    /// # Errors
    /// If it panicked.
    pub async fn merge<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
        match self {
            Self::OnAnotherThread(permits) => {
                // The work continues if its caller gives up, so it holds the permit itself. The semaphore is never closed.
                let permit = permits.clone().acquire_owned().await;
                let work = move || {
                    let done = work();
                    drop(permit);
                    done
                };
                tokio::task::spawn_blocking(work).await
            }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn at_most_two_trials_are_merged_at_once() {
        let compute = Compute::default();
        let (begin, mut started) = mpsc::unbounded_channel();
        let mut ends = Vec::new();
        let works: Vec<_> = (0..3)
            .map(|index| {
                let (end, ended) = std::sync::mpsc::channel::<()>();
                ends.push(end);
                let (compute, begin) = (compute.clone(), begin.clone());
                let work = move || {
                    begin.send(index).unwrap();
                    // Ends once its sender is dropped.
                    let _ = ended.recv();
                };
                tokio::spawn(async move { compute.merge(work).await })
            })
            .collect();
        let mut first = [started.recv().await, started.recv().await];
        first.sort_unstable();
        assert_eq!(first, [Some(0), Some(1)]);
        assert_eq!(compute.run(|| 7).await.unwrap(), 7, "reconciliations wait for no merge");
        timeout(Duration::from_millis(200), started.recv()).await.unwrap_err();
        drop(ends.remove(0));
        assert_eq!(started.recv().await, Some(2));
        ends.clear();
        for work in works {
            work.await.unwrap().unwrap();
        }
    }
}

//! The result of deciding: actions, a status and events.

use std::sync::Arc;
use std::time::Duration;

use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::{Artifact, TrialLine};
use redisbench_benchmark::conductor::StartRecord;
use redisbench_benchmark::report::Finished;

/// The steps to take, in this order: `before`, the status, `after`, the events.
#[derive(Debug, Default)]
pub struct Decision {
    /// Actions that the status will refer to, or that must not wait for it.
    pub before: Vec<Action>,
    /// The status to write, if it differs.
    pub status: RedisBenchmarkStatus,
    /// Actions that require the status to be durable.
    pub after: Vec<Action>,
    pub notices: Vec<Notice>,
    /// The longest time until the next reconciliation.
    pub requeue: Option<Duration>,
}

/// A change of the cluster or of the conducting task.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Write the full result to ConfigMaps.
    WriteArtifacts(Arc<Finished>),
    /// Read the trials' results, aggregate the repeats of each cell, and write that to ConfigMaps.
    Aggregate {
        /// All finished trials.
        trials: Vec<TrialLine>,
        /// Where their full results are.
        artifacts: Vec<Artifact>,
    },
    /// Create the run's Secret, budget of disruptions and Job, if they do not exist.
    CreateChildren,
    Conduct {
        /// The epoch in the new status.
        epoch: u64,
        trial: u32,
        /// The start that an earlier conductor recorded.
        resume: Option<StartRecord>,
        /// The number of earlier attempts without a result.
        attempts: u32,
    },
    /// Stop conducting and drop the task.
    StopTask,
    /// Stop the load, and keep the measurement.
    Abort,
    /// Release the shards: the result is stored.
    Release,
    /// Delete the pods of shards that did not stop.
    DeletePods { incarnations: Vec<String> },
    /// Delete the run's Secret, budget of disruptions, and Job with its pods.
    DeleteChildren,
    /// Delete the benchmark, because its time to live has passed.
    DeleteBenchmark,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// True if the event is a warning.
    pub warning: bool,
    /// The reason, in `CamelCase`.
    pub reason: String,
    pub message: String,
}

impl Notice {
    pub(super) fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self { warning: false, reason: reason.to_owned(), message: message.into() }
    }

    pub(super) fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self { warning: true, reason: reason.to_owned(), message: message.into() }
    }
}

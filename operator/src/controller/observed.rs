//! The facts about a run that decisions depend on.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use redisbench_benchmark::api::status::TrialStatus;
use redisbench_benchmark::conductor::ShardPresence;

use crate::tasks::{Aggregate, TaskView};

#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The run's Job. None if it does not exist or is not ours.
    pub job: Option<JobView>,
    pub presence: Vec<ShardPresence>,
    /// True if pods of a suspended Job are being deleted, as by the deletion of the namespace.
    pub left_pods: bool,
    /// The conducting task in this process.
    pub conduct: Option<TaskView>,
    /// The index of the trial that it conducts.
    pub conducted: u32,
    /// Time since this process last wrote the status.
    pub since_write: Option<Duration>,
    /// Why the previous decision could not be carried out, as reason and message.
    pub failure: Option<(&'static str, String)>,
    /// True once this process has deleted the run's children.
    pub cleared: bool,
    /// The aggregate of the repeats, once computed.
    pub aggregate: Option<Arc<Aggregate>>,
    /// Why a run that has not begun cannot be compared with the benchmark that its spec names.
    pub unfit_baseline: Option<String>,
    /// Why a run that is to begin or to continue has to wait for memory.
    pub no_room: Option<String>,
    /// The runId of a run that begins now.
    pub fresh_run_id: String,
}

/// The view of the run's Job for decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobView {
    /// Its UID, which its pods refer to.
    pub uid: String,
    pub deleting: bool,
    /// It has no pods, because a queue such as Kueue has not admitted it, or has taken it back.
    pub suspended: bool,
    /// Why it will run no more pods.
    pub ended: Option<String>,
}

impl JobView {
    pub fn of(job: &Job) -> Self {
        let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let ended = conditions.iter().find(|condition| {
            condition.status == "True" && matches!(condition.type_.as_str(), "Complete" | "Failed" | "FailureTarget")
        });
        Self {
            uid: job.uid().unwrap_or_default(),
            deleting: job.metadata.deletion_timestamp.is_some(),
            suspended: job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true),
            ended: ended.map(|condition| match &condition.message {
                Some(message) => format!("its Job has ended: {}: {message}", condition.type_),
                None => format!("its Job has ended: {}", condition.type_),
            }),
        }
    }
}

/// Returns whether the shards may hold a measurement. A recorded start does not count if it was missed.
pub fn has_started(trial: Option<&TrialStatus>, conduct: Option<&TaskView>) -> bool {
    let (known, missed) = match conduct {
        Some(TaskView::Running(progress)) => (progress.start_at_unix_nanoseconds.is_some(), progress.missed),
        _ => (false, 0),
    };
    known || trial.is_some_and(|trial| trial.start_at.is_some() && trial.attempt > missed)
}

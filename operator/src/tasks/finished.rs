use redisbench_benchmark::api::status::{Artifact, ShardCounts, Summary};
use redisbench_benchmark::measurement::{Ending, Failure, Outcome};
use redisbench_benchmark::plan::Trial;
use redisbench_benchmark::report;

use super::Bytes;
use crate::controller::build::Run;
use crate::controller::events::chain;

/// A finished trial with all data for its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// As in the status and the full result. Its ending is never superseded.
    pub report: report::Finished,
    /// The pieces of the full result, as listed in the status.
    pub artifacts: Vec<Artifact>,
    /// Incarnations of shards that did not acknowledge an abort.
    pub unacknowledged: Vec<String>,
    pub bytes: Bytes,
}

impl Finished {
    /// Merges and judges `outcome`.
    pub fn of(run: &Run, trial: &Trial, outcome: &Outcome) -> Self {
        let report = match report::Finished::of_trial(&run.benchmark, &run.id, trial, outcome) {
            Ok(report) => report,
            Err(error) => {
                let message = format!("the shards' results are unusable: {}", chain(&error));
                return Self::unmeasured(trial.of, trial.spec.plan.shards, "ResultUnusable", message);
            }
        };
        let artifact = |(index, (name, _)): (usize, &(String, String))| Artifact {
            name: name.clone(),
            config_map: run.artifact_name((trial.of > 1).then_some(trial.index), index),
        };
        let tallies = || outcome.shards.iter().filter_map(|shard| Some(&shard.snapshot.as_ref()?.total));
        Self {
            artifacts: report.pieces.iter().enumerate().map(artifact).collect(),
            unacknowledged: outcome.unacknowledged().map(|shard| shard.incarnation.clone()).collect(),
            bytes: [
                ("sent", tallies().map(|tally| tally.sent_bytes).sum()),
                ("received", tallies().map(|tally| tally.received_bytes).sum()),
            ],
            report,
        }
    }

    /// A trial of `shards` that failed because of a bug in the operator.
    pub fn broken(of: u32, shards: usize) -> Self {
        let message = "the operator failed while conducting the run; see its log, and please report it";
        Self::unmeasured(of, u32::try_from(shards).unwrap_or(u32::MAX), "InternalError", message.into())
    }

    fn unmeasured(of: u32, desired: u32, reason: &str, message: String) -> Self {
        Self {
            report: report::Finished {
                topology: None,
                of,
                ending: Ending::Failed(Failure { reason: reason.into(), message }),
                trial: None,
                result: None,
                verdict: None,
                synchronization: None,
                thresholds: Vec::new(),
                cleanup: None,
                summary: Summary { shards: Some(format!("0/{desired}")), ..Summary::default() },
                shards: ShardCounts { desired, ..ShardCounts::default() },
                line: None,
                pieces: Vec::new(),
            },
            artifacts: Vec::new(),
            unacknowledged: Vec::new(),
            bytes: [("sent", 0), ("received", 0)],
        }
    }
}

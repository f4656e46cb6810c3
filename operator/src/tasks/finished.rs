use redisbench_benchmark::measurement::{Ending, Failure, Outcome};
use redisbench_benchmark::plan::Trial;
use redisbench_benchmark::report::Finished;

use crate::build::Run;
use crate::telemetry::chain;

/// Merges and judges `outcome`. Its ending is never superseded.
pub fn finish(run: &Run, trial: &Trial, outcome: Outcome) -> Finished {
    Finished::of(&run.benchmark, &run.id, trial, outcome).unwrap_or_else(|error| {
        let message = format!("the shards' results are unusable: {}", chain(&error));
        failed(trial.of, trial.spec.plan.shards, "ResultUnusable", message)
    })
}

/// A trial of `shards` that failed because of a bug in the operator.
pub(super) fn broken(of: u32, shards: usize) -> Finished {
    let message = "the operator failed while conducting the run; see its log, and please report it";
    failed(of, u32::try_from(shards).unwrap_or(u32::MAX), "InternalError", message.into())
}

fn failed(of: u32, shards: u32, reason: &str, message: String) -> Finished {
    Finished::unmeasured(of, shards, Ending::Failed(Failure { reason: reason.into(), message }))
}

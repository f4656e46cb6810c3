//! Aggregates the repeats of each cell from the full results of their trials. Reads them from ConfigMaps, so any operator can do it.

use redisbench_benchmark::api::Problem;
use redisbench_benchmark::api::status::{Artifact, CellResult, ComparisonResult, TrialLine};
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::comparison::comparisons;
use redisbench_benchmark::report::historical;
use redisbench_benchmark::report::measurement::trial_prefix;
use redisbench_benchmark::report::repeats::{self, Experiment, Together};
use redisbench_wire::histogram::HistogramError;
use tokio::task::JoinError;

use super::ReconcileError;
use super::apply::{Applier, ApplyError};
use super::execute::Executor;
use crate::build;
use crate::tasks::{Aggregate, ConductTask};
use crate::telemetry::chain;

/// Why the trials of a cell could not be merged.
#[derive(Debug, thiserror::Error)]
enum AggregateError {
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error("trial {trial}: its full result was not stored")]
    NotKept { trial: u32 },
    #[error("failed to read the full result of trial {trial}")]
    Unreadable { trial: u32, source: serde_json::Error },
    #[error("failed to merge the histogram of trial {trial}")]
    Unusable { trial: u32, source: HistogramError },
    #[error("{0}")]
    Incomparable(Problem),
    #[error("failed to write a histogram")]
    Histogram(#[from] HistogramError),
    #[error("failed to write the document")]
    Document(#[from] serde_json::Error),
    #[error("merging panicked; the log says where")]
    Panicked(#[from] JoinError),
}

/// Merges the repeats of each cell of `trials`, writes the aggregate, and stores it in the conducting task.
pub(super) async fn aggregate(
    executor: &Executor<'_>,
    applier: &Applier<'_>,
    trials: &[TrialLine],
    artifacts: &[Artifact],
) -> Result<(), ReconcileError> {
    let Some(conduct) = executor.context.shared.tasks.get(&executor.run.uid) else { return Ok(()) };
    let mut failure = None;
    let mut experiment = Experiment::default();
    for cell in repeats::cells(&executor.benchmark.spec, trials) {
        // Steps of a search have different rates.
        let together = if executor.benchmark.spec.search.is_some() {
            None
        } else {
            match together(executor, applier, &cell, artifacts).await {
                Ok(together) => Some(together),
                Err(error) => {
                    give_up(&conduct, error, &mut failure)?;
                    None
                }
            }
        };
        if let Err(error) = experiment.add(cell, together.as_ref()) {
            give_up(&conduct, error.into(), &mut failure)?;
        }
    }
    let against = match against(executor, trials).await {
        Ok(against) => against,
        Err(error) => {
            give_up(&conduct, error, &mut failure)?;
            Vec::new()
        }
    };
    let artifacts = match write(executor, applier, &conduct, &experiment, trials, &against).await {
        Ok(artifacts) => artifacts,
        Err(error) => {
            give_up(&conduct, error, &mut failure)?;
            Vec::new()
        }
    };
    conduct.store_aggregate(Aggregate { experiment, artifacts, against, failure });
    Ok(())
}

/// Stores the first `error` that is not retried.
///
/// # Errors
/// Returns `error` if it must be retried.
fn give_up(conduct: &ConductTask, error: AggregateError, failure: &mut Option<String>) -> Result<(), ReconcileError> {
    match error {
        AggregateError::Apply(error) if error.is_outage() => Err(error.into()),
        AggregateError::Apply(error) if error.code() != Some(404) && !conduct.note_aggregate_refused() => {
            Err(error.into())
        }
        error => {
            failure.get_or_insert_with(|| chain(&error));
            Ok(())
        }
    }
}

/// Merges the trials of a cell.
async fn together(
    executor: &Executor<'_>,
    applier: &Applier<'_>,
    cell: &CellResult,
    artifacts: &[Artifact],
) -> Result<Together, AggregateError> {
    let compute = &executor.context.shared.environment.compute;
    let mut together = Together::default();
    for &trial in &cell.trials {
        let prefix = trial_prefix(trial);
        let mut pieces = Vec::new();
        for artifact in artifacts.iter().filter(|artifact| artifact.name.starts_with(&prefix)) {
            pieces.push(applier.read_artifact(&artifact.config_map, &artifact.name).await?);
        }
        if pieces.is_empty() {
            return Err(AggregateError::NotKept { trial });
        }
        let add = move || {
            let read = Measurement::read(pieces.iter().map(String::as_str));
            let whole = read.map_err(|source| AggregateError::Unreadable { trial, source })?;
            together.add(&whole).map_err(|source| AggregateError::Unusable { trial, source })?;
            Ok::<_, AggregateError>(together)
        };
        together = compute.run(add).await??;
    }
    Ok(together)
}

/// Compares `trials` with the previous benchmark that the spec names.
async fn against(executor: &Executor<'_>, trials: &[TrialLine]) -> Result<Vec<ComparisonResult>, AggregateError> {
    let spec = &executor.benchmark.spec;
    let Some(name) = spec.comparison.as_ref().and_then(|comparison| comparison.benchmark.as_deref()) else {
        return Ok(Vec::new());
    };
    let other = executor.context.reads.benchmark(&executor.run.namespace, name).await?;
    historical::check(spec, name, other.as_ref()).map_err(AggregateError::Incomparable)?;
    let status = other.and_then(|other| other.status).unwrap_or_default();
    Ok(historical::compare(spec, trials, name, &status.trials))
}

async fn write(
    executor: &Executor<'_>,
    applier: &Applier<'_>,
    conduct: &ConductTask,
    experiment: &Experiment,
    trials: &[TrialLine],
    against: &[ComparisonResult],
) -> Result<Vec<Artifact>, AggregateError> {
    let run = executor.run;
    let comparison = [comparisons(&executor.benchmark.spec, trials).as_slice(), against].concat();
    let pieces = experiment.pieces(&run.benchmark, &run.id, trials, &comparison)?;
    let mut artifacts = Vec::new();
    for (index, (name, text)) in pieces.into_iter().enumerate() {
        let config_map = run.experiment_name(index);
        applier.write_artifact(conduct.epoch, &build::artifact(run, conduct.epoch, &config_map, &name, &text)).await?;
        artifacts.push(Artifact { name, config_map });
    }
    Ok(artifacts)
}

//! Aggregates the repeats of each cell from the full results of their trials. Reads them from ConfigMaps, so any operator can do it.

use redisbench_benchmark::api::status::{Artifact, CellResult, ComparisonResult, TrialLine};
use redisbench_benchmark::api::{Problem, RedisBenchmarkSpec};
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::comparison::comparisons;
use redisbench_benchmark::report::historical;
use redisbench_benchmark::report::measurement::trial_prefix;
use redisbench_benchmark::report::repeats::{self, Experiment, Together};
use redisbench_wire::histogram::HistogramError;
use tokio::task::JoinError;

use super::apply::{Applier, ApplyError};
use super::context::Context;
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

pub(super) struct Aggregation<'a> {
    pub(super) context: &'a Context,
    pub(super) spec: &'a RedisBenchmarkSpec,
    pub(super) applier: &'a Applier<'a>,
}

impl Aggregation<'_> {
    /// Merges the repeats of each cell of `trials`, writes the aggregate, and stores it in the conducting task.
    ///
    /// # Errors
    /// If it must be retried.
    pub(super) async fn store(&self, trials: &[TrialLine], artifacts: &[Artifact]) -> Result<(), ApplyError> {
        let Some(conduct) = self.context.shared.tasks.get(&self.applier.run.uid) else { return Ok(()) };
        let mut failure = None;
        let mut experiment = Experiment::default();
        for cell in repeats::cells(self.spec, trials) {
            // Steps of a search have different rates.
            let together = if self.spec.search.is_some() {
                None
            } else {
                match self.together(&cell, artifacts).await {
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
        let against = match self.against(trials).await {
            Ok(against) => against,
            Err(error) => {
                give_up(&conduct, error, &mut failure)?;
                Vec::new()
            }
        };
        let artifacts = match self.write(conduct.epoch, &experiment, trials, &against).await {
            Ok(artifacts) => artifacts,
            Err(error) => {
                give_up(&conduct, error, &mut failure)?;
                Vec::new()
            }
        };
        conduct.store_aggregate(Aggregate { experiment, artifacts, against, failure });
        Ok(())
    }

    /// Merges the trials of a cell.
    async fn together(&self, cell: &CellResult, artifacts: &[Artifact]) -> Result<Together, AggregateError> {
        let compute = &self.context.shared.environment.compute;
        let mut together = Together::default();
        for &trial in &cell.trials {
            let prefix = trial_prefix(trial);
            let mut pieces = Vec::new();
            for artifact in artifacts.iter().filter(|artifact| artifact.name.starts_with(&prefix)) {
                pieces.push(self.context.reads.artifact(self.applier.run, artifact).await?);
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
    async fn against(&self, trials: &[TrialLine]) -> Result<Vec<ComparisonResult>, AggregateError> {
        let Some(name) = self.spec.comparison.as_ref().and_then(|comparison| comparison.benchmark.as_deref()) else {
            return Ok(Vec::new());
        };
        let other = self.context.reads.benchmark(&self.applier.run.namespace, name).await?;
        historical::check(self.spec, name, other.as_ref()).map_err(AggregateError::Incomparable)?;
        let status = other.and_then(|other| other.status).unwrap_or_default();
        Ok(historical::compare(self.spec, trials, name, &status.trials))
    }

    async fn write(
        &self,
        epoch: u64,
        experiment: &Experiment,
        trials: &[TrialLine],
        against: &[ComparisonResult],
    ) -> Result<Vec<Artifact>, AggregateError> {
        let run = self.applier.run;
        let comparison = [comparisons(self.spec, trials).as_slice(), against].concat();
        let pieces = experiment.pieces(&run.benchmark, &run.id, trials, &comparison)?;
        let mut artifacts = Vec::new();
        for (index, (name, text)) in pieces.into_iter().enumerate() {
            let config_map = run.experiment_name(index);
            self.applier.write_artifact(epoch, &build::artifact(run, epoch, &config_map, &name, &text)).await?;
            artifacts.push(Artifact { name, config_map });
        }
        Ok(artifacts)
    }
}

/// Stores the first `error` that is not retried.
///
/// # Errors
/// Returns `error` if it must be retried.
fn give_up(conduct: &ConductTask, error: AggregateError, failure: &mut Option<String>) -> Result<(), ApplyError> {
    match error {
        AggregateError::Apply(error) if error.is_outage() => Err(error),
        AggregateError::Apply(error) if error.code() != Some(404) && !conduct.note_aggregate_refused() => Err(error),
        error => {
            failure.get_or_insert_with(|| chain(&error));
            Ok(())
        }
    }
}

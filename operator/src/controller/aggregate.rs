//! Aggregates the repeats of each cell from the full results of their trials. Reads them from ConfigMaps, so any operator can do it.
//!
//! A run may have hundreds of results, so the conducting task keeps what is merged: a reconciliation continues where the previous one
//! ended, failed or timed out.

use futures::{StreamExt as _, TryStreamExt as _, stream};
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
use crate::tasks::{Aggregate, ConductTask, Gathered};
use crate::telemetry::chain;

/// A reconciliation reads no further trial after this number of ConfigMaps, so that an abort or a suspension waits for few reads.
pub(super) const READS: usize = 64;
/// Concurrent reads of one trial's full result.
const READS_AT_ONCE: usize = 8;

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
    #[error("failed to merge the trials, because of a panic; see the operator's log")]
    Panicked(#[from] JoinError),
}

pub(super) struct Aggregation<'a> {
    pub(super) context: &'a Context,
    pub(super) spec: &'a RedisBenchmarkSpec,
    pub(super) applier: &'a Applier<'a>,
}

impl Aggregation<'_> {
    /// Merges the repeats of each cell of `trials`, writes the aggregate, and stores it in the conducting task. If there are many, only a
    /// part of them is merged, and the next reconciliation continues.
    ///
    /// # Errors
    /// If it must be retried.
    pub(super) async fn store(&self, trials: &[TrialLine], artifacts: &[Artifact]) -> Result<(), ApplyError> {
        let Some(conduct) = self.context.shared.tasks.get(&self.applier.run.uid) else { return Ok(()) };
        let mut gathered = conduct.gathered.lock().await;
        gathered.resume(trials, artifacts);
        if !self.gather(&conduct, &mut gathered, trials, artifacts).await? {
            return Ok(());
        }
        let mut failure = gathered.failure.clone();
        let against = match self.against(trials).await {
            Ok(against) => against,
            Err(error) => {
                give_up(&conduct, error, &mut failure)?;
                Vec::new()
            }
        };
        let artifacts = match self.write(conduct.epoch, &gathered.experiment, trials, &against).await {
            Ok(artifacts) => artifacts,
            Err(error) => {
                give_up(&conduct, error, &mut failure)?;
                Vec::new()
            }
        };
        let Gathered { experiment, .. } = std::mem::take(&mut *gathered);
        conduct.store_aggregate(Aggregate { experiment, artifacts, against, failure });
        Ok(())
    }

    /// Adds the cells of `trials` that `gathered` lacks. Returns false if the next reconciliation must continue.
    async fn gather(
        &self,
        conduct: &ConductTask,
        gathered: &mut Gathered,
        trials: &[TrialLine],
        artifacts: &[Artifact],
    ) -> Result<bool, ApplyError> {
        let mut reads = 0;
        for cell in repeats::cells(self.spec, trials).into_iter().skip(gathered.cells) {
            // Steps of a search have different rates.
            let together = if self.spec.search.is_some() {
                None
            } else {
                match self.together(&cell, artifacts, &mut gathered.open, &mut reads).await {
                    Ok(Some(together)) => Some(together),
                    Ok(None) => return Ok(false),
                    Err(error) => {
                        give_up(conduct, error, &mut gathered.failure)?;
                        None
                    }
                }
            };
            if let Err(error) = gathered.finish(cell, together.as_ref()) {
                give_up(conduct, error.into(), &mut gathered.failure)?;
            }
        }
        Ok(true)
    }

    /// Merges the trials of a cell, after those in `open`. Returns none once there were enough `reads`.
    async fn together(
        &self,
        cell: &CellResult,
        artifacts: &[Artifact],
        open: &mut (usize, Together),
        reads: &mut usize,
    ) -> Result<Option<Together>, AggregateError> {
        let compute = &self.context.shared.environment.compute;
        while let Some(&trial) = cell.trials.get(open.0) {
            if *reads >= READS {
                return Ok(None);
            }
            let pieces = self.pieces(trial, artifacts).await?;
            *reads += pieces.len();
            // If merging is cancelled or fails, the cell starts anew.
            let (merged, mut together) = std::mem::take(open);
            let add = move || {
                let read = Measurement::read(pieces.iter().map(String::as_str));
                let whole = read.map_err(|source| AggregateError::Unreadable { trial, source })?;
                together.add(&whole).map_err(|source| AggregateError::Unusable { trial, source })?;
                Ok::<_, AggregateError>(together)
            };
            *open = (merged + 1, compute.run(add).await??);
        }
        Ok(Some(std::mem::take(open).1))
    }

    /// Reads the full result of `trial`, in pieces.
    async fn pieces(&self, trial: u32, artifacts: &[Artifact]) -> Result<Vec<String>, AggregateError> {
        let prefix = trial_prefix(trial);
        let of_trial = artifacts.iter().filter(|artifact| artifact.name.starts_with(&prefix));
        let reads: Vec<_> = of_trial.map(|artifact| self.context.reads.artifact(self.applier.run, artifact)).collect();
        if reads.is_empty() {
            return Err(AggregateError::NotKept { trial });
        }
        Ok(stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?)
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

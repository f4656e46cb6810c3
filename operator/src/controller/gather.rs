//! Aggregates the repeats of each cell from the full results of their trials. Reads them from ConfigMaps, so any operator can do it.

use k8s_openapi::api::core::v1::ConfigMap;
use redisbench_benchmark::api::Problem;
use redisbench_benchmark::api::status::{Artifact, CellResult, ComparisonResult, TrialLine};
use redisbench_benchmark::report::apart;
use redisbench_benchmark::report::comparison::comparisons;
use redisbench_benchmark::report::export::trial_prefix;
use redisbench_benchmark::report::repeats::{self, Experiment, Together, TogetherError};
use redisbench_wire::histogram::HistogramError;

use super::apply::{Applier, ApplyError};
use super::perform::Performer;
use super::{ReconcileError, build, events};
use crate::conduct::{Conduct, Gathered};

/// Why the trials of a cell could not be merged.
#[derive(Debug, thiserror::Error)]
enum GatherError {
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error("trial {trial}: its full result was not stored")]
    NotKept { trial: u32 },
    #[error("trial {trial}")]
    Unusable { trial: u32, source: TogetherError },
    #[error("{0}")]
    Incomparable(Problem),
    #[error("failed to write a histogram")]
    Histogram(#[from] HistogramError),
    #[error("failed to write the document")]
    Document(#[from] serde_json::Error),
}

/// Merges the repeats of each cell of `trials`, writes the aggregate, and stores it in the conducting task.
pub(super) async fn gather(
    performer: &Performer<'_>,
    applier: &Applier<'_>,
    trials: &[TrialLine],
    artifacts: &[Artifact],
) -> Result<(), ReconcileError> {
    let Some(conduct) = performer.context.shared.conducts.get(&performer.run.uid) else { return Ok(()) };
    let mut failure = None;
    let mut experiment = Experiment::default();
    for cell in repeats::cells(trials) {
        let together = match together(applier, &cell, artifacts).await {
            Ok(together) => Some(together),
            Err(error) => {
                give_up(&conduct, error, &mut failure)?;
                None
            }
        };
        if let Err(error) = experiment.add(cell, together.as_ref()) {
            give_up(&conduct, error.into(), &mut failure)?;
        }
    }
    let against = match against(performer, trials).await {
        Ok(against) => against,
        Err(error) => {
            give_up(&conduct, error, &mut failure)?;
            Vec::new()
        }
    };
    let artifacts = match write(performer, applier, &conduct, &experiment, trials, &against).await {
        Ok(artifacts) => artifacts,
        Err(error) => {
            give_up(&conduct, error, &mut failure)?;
            Vec::new()
        }
    };
    conduct.note_gathered(Gathered { experiment, artifacts, against, failure });
    Ok(())
}

/// Stores the first `error` that is not retried.
///
/// # Errors
/// Returns `error` if it must be retried.
fn give_up(conduct: &Conduct, error: GatherError, failure: &mut Option<String>) -> Result<(), ReconcileError> {
    match error {
        GatherError::Apply(error) if error.is_outage() => Err(error.into()),
        GatherError::Apply(error) if error.code() != Some(404) && !conduct.note_gathering_refused() => {
            Err(error.into())
        }
        error => {
            failure.get_or_insert_with(|| events::chain(&error));
            Ok(())
        }
    }
}

/// Merges the trials of a cell.
async fn together(applier: &Applier<'_>, cell: &CellResult, artifacts: &[Artifact]) -> Result<Together, GatherError> {
    let mut together = Together::default();
    for &trial in &cell.trials {
        let prefix = trial_prefix(trial);
        let mut document = String::new();
        for artifact in artifacts.iter().filter(|artifact| artifact.name.starts_with(&prefix)) {
            document.push_str(&applier.read_artifact(&artifact.config_map, &artifact.name).await?);
        }
        if document.is_empty() {
            return Err(GatherError::NotKept { trial });
        }
        together.add(&document).map_err(|source| GatherError::Unusable { trial, source })?;
    }
    Ok(together)
}

/// Compares `trials` with the previous benchmark that the spec names.
async fn against(performer: &Performer<'_>, trials: &[TrialLine]) -> Result<Vec<ComparisonResult>, GatherError> {
    let spec = &performer.benchmark.spec;
    let Some(name) = spec.comparison.as_ref().and_then(|comparison| comparison.benchmark.as_deref()) else {
        return Ok(Vec::new());
    };
    let other = performer.context.reads.benchmark(&performer.run.namespace, name).await?;
    apart::check(spec, name, other.as_ref()).map_err(GatherError::Incomparable)?;
    let status = other.and_then(|other| other.status).unwrap_or_default();
    Ok(apart::compare(spec, trials, name, &status.trials))
}

async fn write(
    performer: &Performer<'_>,
    applier: &Applier<'_>,
    conduct: &Conduct,
    experiment: &Experiment,
    trials: &[TrialLine],
    against: &[ComparisonResult],
) -> Result<Vec<Artifact>, GatherError> {
    let run = performer.run;
    let comparison = [comparisons(&performer.benchmark.spec, trials).as_slice(), against].concat();
    let pieces = experiment.pieces(&run.benchmark, &run.id, trials, &comparison)?;
    let named = pieces.into_iter().enumerate().map(|(index, (name, text))| (name, run.experiment_name(index), text));
    let named: Vec<_> = named.collect();
    let maps: Vec<ConfigMap> =
        named.iter().map(|(name, map, text)| build::artifact(run, conduct.epoch(), map, name, text)).collect();
    applier.write_artifacts(conduct.epoch(), &maps).await?;
    Ok(named.into_iter().map(|(name, config_map, _)| Artifact { name, config_map }).collect())
}

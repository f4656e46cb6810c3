//! Aggregates the repeats of each cell, trial by trial. Of a full result, only the histograms are kept.

use std::collections::BTreeMap;

use anyhow::Context as _;
use redisbench_benchmark::api::{RedisBenchmarkSpec, RedisBenchmarkStatus};
use redisbench_benchmark::measurement::Ending;
use redisbench_benchmark::report::repeats::{Experiment, Together, cells};
use redisbench_benchmark::report::{Finished, Measurement};

/// The trials so far, by cell.
#[derive(Debug, Default)]
pub struct Repeats(BTreeMap<u32, Together>);

impl Repeats {
    /// Adds a finished trial, if it ran to its end and is one of several of its cell.
    pub fn add(&mut self, finished: &Finished) -> anyhow::Result<()> {
        let line = finished.line.as_ref().filter(|line| line.repeat.is_some() && line.requests.is_some());
        // Steps of a search have different rates.
        let line = line.filter(|line| line.search.is_none());
        let Some(line) = line.filter(|_| finished.ending == Ending::Completed) else { return Ok(()) };
        let read = Measurement::read(finished.pieces.iter().map(|(_, piece)| piece.as_str()));
        let whole = read.context("failed to read the full result of a trial")?;
        self.0.entry(line.cell).or_default().add(&whole).context("failed to merge the repeats of a trial")
    }

    /// Adds the aggregate to `status`, which must be final.
    pub fn tell(&self, spec: &RedisBenchmarkSpec, status: &mut RedisBenchmarkStatus) -> anyhow::Result<Experiment> {
        let mut experiment = Experiment::default();
        for cell in cells(spec, &status.trials) {
            let together = self.0.get(&cell.cell);
            experiment.add(cell, together).context("failed to encode a histogram")?;
        }
        experiment.tell(status);
        Ok(experiment)
    }
}

//! `--output-dir`: saves the full result of every trial as a file, the same document as in the ConfigMaps of a cluster.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::report::Finished;
use redisbench_benchmark::report::comparison::comparisons;
use redisbench_benchmark::report::repeats::Experiment;

use crate::reading;

/// The directory for the results of one run.
#[derive(Debug)]
pub struct OutputDirectory {
    directory: PathBuf,
    /// The prefix of its file names.
    name: String,
    failure: Option<anyhow::Error>,
}

impl OutputDirectory {
    /// Prepares `directory` for the results of benchmark `name` before any load: creates it if it does not exist, and checks that files can
    /// be written.
    ///
    /// # Errors
    /// If that fails, or the directory has results: those of two runs cannot be read together.
    pub fn prepare(directory: &Path, name: &str) -> anyhow::Result<Self> {
        let output = Self { directory: directory.to_owned(), name: name.replace('/', "-"), failure: None };
        let way_out = || format!("--output-dir {}: must be a writable directory", directory.display());
        fs::create_dir_all(directory).with_context(way_out)?;
        let there = reading::results_in(directory).with_context(way_out)?;
        if let Some(there) = there.first().and_then(|file| file.file_name()) {
            anyhow::bail!(
                "--output-dir {}: has {} of an earlier run: use another directory, or remove the files of that run",
                directory.display(),
                there.display()
            );
        }
        let probe = directory.join(unfinished(&output.trial(0)));
        fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)).with_context(way_out)?;
        Ok(output)
    }

    /// Saves the full result of a trial, if there is a measurement. A failure does not stop the run; [`Self::finish`] returns it.
    pub fn save_trial(&mut self, finished: &Finished) {
        if let Some(trial) = finished.trial.as_ref().filter(|_| !finished.pieces.is_empty()) {
            self.save(&self.trial(trial.index), &finished.pieces);
        }
    }

    /// Saves the aggregate of the trials of `benchmark`, which has finished.
    pub fn save_experiment(&mut self, benchmark: &RedisBenchmark, experiment: &Experiment) -> anyhow::Result<()> {
        let Some(status) = benchmark.status.as_ref().filter(|status| !status.trials.is_empty()) else { return Ok(()) };
        let name = benchmark.metadata.name.as_deref().unwrap_or_default();
        let run = status.run_id.as_deref().unwrap_or_default();
        let comparison = comparisons(&benchmark.spec, &status.trials);
        self.save(&self.experiment(), &experiment.pieces(name, run, &status.trials, &comparison)?);
        Ok(())
    }

    /// Succeeds if all files were saved.
    ///
    /// # Errors
    /// The first error of a write.
    pub fn finish(self) -> anyhow::Result<()> {
        self.failure.map_or(Ok(()), Err)
    }

    fn trial(&self, index: u32) -> String {
        format!("{}-trial-{index}.json", self.name)
    }

    fn experiment(&self) -> String {
        format!("{}-experiment.json", self.name)
    }

    /// Writes to a temporary name and renames, so that only complete files appear.
    fn save(&mut self, file: &str, pieces: &[(String, String)]) {
        let document: String = pieces.iter().map(|(_, piece)| piece.as_str()).collect();
        let (partial, whole) = (self.directory.join(unfinished(file)), self.directory.join(file));
        let saved = fs::write(&partial, document).and_then(|()| fs::rename(&partial, &whole));
        if let Err(error) = saved {
            let _ = fs::remove_file(&partial);
            let what = format!("failed to write {}: free some space, or use another --output-dir", whole.display());
            let error = anyhow::Error::new(error).context(what);
            self.failure.get_or_insert(error);
        }
    }
}

fn unfinished(file: &str) -> String {
    format!(".{file}.partial")
}

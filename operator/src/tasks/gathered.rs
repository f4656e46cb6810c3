//! The repeats of a run that have been merged so far: several reconciliations may be needed for their aggregate.

use redisbench_benchmark::api::status::{Artifact, CellResult, TrialLine};
use redisbench_benchmark::report::repeats::{Experiment, Together};
use redisbench_wire::histogram::HistogramError;

/// The merged part of the trials' full results, so that none is read twice. Takes as much memory as the aggregate that it becomes, and one
/// merged cell.
#[derive(Debug, Default)]
pub struct Gathered {
    trials: Vec<TrialLine>,
    artifacts: Vec<Artifact>,
    /// Number of finished cells, with those that are missing in `experiment`.
    pub cells: usize,
    pub experiment: Experiment,
    /// Number of merged trials of the next cell, and their requests.
    pub open: (usize, Together),
    /// Why a part is missing, if one is.
    pub failure: Option<String>,
}

impl Gathered {
    /// Continues with these trials and the places of their full results, or starts anew if they are others.
    pub fn resume(&mut self, trials: &[TrialLine], artifacts: &[Artifact]) {
        if self.trials != trials || self.artifacts != artifacts {
            *self = Self { trials: trials.to_vec(), artifacts: artifacts.to_vec(), ..Self::default() };
        }
    }

    /// Finishes the next cell, with its merged trials or without them.
    ///
    /// # Errors
    /// If the merged histogram cannot be encoded. The cell is then missing.
    pub fn finish(&mut self, cell: CellResult, together: Option<&Together>) -> Result<(), HistogramError> {
        self.cells += 1;
        self.open = (0, Together::default());
        self.experiment.add(cell, together)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_trials_begin_anew() {
        let line = |index: u32| json!({"index": index, "state": "Completed", "attempt": 1});
        let lines: Vec<TrialLine> = serde_json::from_value(json!([line(0), line(1)])).unwrap();
        let artifact = Artifact { name: "trial-0.result.json".into(), config_map: "cart-result-0".into() };
        let mut gathered = Gathered::default();
        gathered.resume(&lines, &[]);
        gathered.cells = 1;
        gathered.resume(&lines, &[]);
        assert_eq!(gathered.cells, 1);
        gathered.resume(&lines, std::slice::from_ref(&artifact));
        assert_eq!(gathered.cells, 0);
        gathered.cells = 1;
        gathered.resume(&lines[..1], &[artifact]);
        assert_eq!(gathered.cells, 0);
    }
}

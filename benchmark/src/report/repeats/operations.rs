//! The operations of a cell in its best and its worst trial, and over all of them, as `memtier_benchmark -x` prints.

use std::collections::BTreeMap;

use redisbench_wire::histogram::HistogramError;

use crate::api::status::{Latencies, OperationRepeats, OperationResult, OperationRun};
use crate::measurement::latencies;
use crate::measurement::measured::Measured;
use crate::report::measurement::Measurement;

/// Maximum operations of a cell: the first ones of the mix.
const OPERATIONS: usize = 16;

/// The operations of several trials.
#[derive(Debug, Default)]
pub(super) struct Operations {
    /// By the trial's index and the operation's name.
    runs: BTreeMap<u32, BTreeMap<String, OperationRun>>,
    /// In the order of the mix.
    sums: Vec<Sum>,
}

/// The requests of an operation in all trials so far.
#[derive(Debug)]
struct Sum {
    name: String,
    measured: Measured,
    /// True if no trial lacks its histograms.
    is_whole: bool,
}

impl Operations {
    /// Adds a trial with its full measurement.
    ///
    /// # Errors
    /// If a histogram violates the contract.
    pub(super) fn add(&mut self, whole: &Measurement) -> Result<(), HistogramError> {
        let operations: Vec<&OperationResult> = whole.result.operations.iter().take(OPERATIONS).collect();
        if self.runs.is_empty() {
            let sum = |name: String| Sum { name, measured: Measured::default(), is_whole: true };
            self.sums = operations.iter().map(|operation| sum(operation.name.clone())).collect();
        }
        for sum in &mut self.sums {
            let operation = operations.iter().find(|operation| operation.name == sum.name);
            let set = whole.histograms.iter().flat_map(|all| &all.operations).find(|set| set.name == sum.name);
            match operation.zip(set) {
                Some((operation, set)) => {
                    set.histograms.add_to(&mut sum.measured, &operation.requests, &operation.response_time)?;
                }
                None => sum.is_whole = false,
            }
        }
        let named = |operation: &&OperationResult| {
            let per_second = latencies::round(whole.result.rate_of(&operation.requests));
            (operation.name.clone(), run(per_second, &operation.response_time))
        };
        self.runs.insert(whole.trial.index, operations.iter().map(named).collect());
        Ok(())
    }

    /// Each operation of a cell with this best and this worst trial. A single one is the total, and is left out.
    pub(super) fn repeats(&self, ends: (u32, u32)) -> Vec<OperationRepeats> {
        if self.sums.len() < 2 {
            return Vec::new();
        }
        self.sums.iter().filter_map(|sum| self.of(sum, ends)).collect()
    }

    fn of(&self, sum: &Sum, (best, worst): (u32, u32)) -> Option<OperationRepeats> {
        let within = |trial: u32| self.runs.get(&trial)?.get(&sum.name).copied();
        let rates = self.runs.values().map(|runs| runs.get(&sum.name).map(|run| run.per_second));
        let all = rates.collect::<Option<Vec<u64>>>()?.into_iter().fold(0, u64::saturating_add);
        let times = if sum.is_whole { latencies::response_time(&sum.measured, &[]) } else { Latencies::default() };
        Some(OperationRepeats {
            name: sum.name.clone(),
            best: within(best)?,
            worst: within(worst)?,
            average: run(all.checked_div(self.runs.len() as u64)?, &times),
        })
    }
}

fn run(per_second: u64, times: &Latencies) -> OperationRun {
    OperationRun {
        per_second,
        mean_nanoseconds: times.mean_nanoseconds,
        p50_nanoseconds: times.p50_nanoseconds,
        p99_nanoseconds: times.p99_nanoseconds,
        p999_nanoseconds: times.p999_nanoseconds,
    }
}

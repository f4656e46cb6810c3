//! Trials that repeat one another, as `memtier_benchmark -x` reports them: the best, the worst, and their average.

use std::collections::BTreeSet;

use redisbench_benchmark::api::status::{
    Bandwidth, CellResult, Latencies, OperationResult, Requests, Throughput, TrialResult, TrialStatus,
};
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::measurement::{HistogramSet, Histograms, NamedHistograms};
use redisbench_benchmark::report::repeats::Together;
use redisbench_wire::histogram::HistogramError;
use redisbench_wire::snapshot::ErrorTally;

use crate::reading::Reading;

/// The trials of one cell.
pub struct Runs<'a> {
    pub all: Vec<&'a Measurement>,
    /// The one with the highest throughput; of open loops that met their rate, with the lowest p99.
    pub best: &'a Measurement,
    pub worst: &'a Measurement,
}

/// The histograms, counts and response time of some requests in a trial.
type Part<'a> = (&'a HistogramSet, &'a Requests, &'a Latencies);

/// Those of `reading`. None if it has trials that do not repeat one another.
pub fn runs(reading: &Reading) -> Option<Runs<'_>> {
    let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
    let cells: Vec<&CellResult> = match (&reading.experiment, status) {
        (Some(document), _) => document.cells.iter().map(|cell| &cell.result).collect(),
        (None, Some(status)) => status.repeats.iter().collect(),
        (None, None) => Vec::new(),
    };
    let [cell] = cells[..] else { return None };
    let find = |index: u32| reading.measurements.iter().find(|one| one.trial.index == index);
    let all: Vec<_> = cell.trials.iter().map(|index| find(*index)).collect::<Option<_>>()?;
    let (best, worst) = cell.ends()?;
    let runs = Runs { best: find(best)?, worst: find(worst)?, all };
    (runs.all.len() == reading.measurements.len()).then_some(runs)
}

/// The average of `runs` as one trial: counts and rates are means, times are over the requests of all runs. It has neither a start nor
/// seconds.
pub fn average(runs: &[&Measurement]) -> Result<Measurement, HistogramError> {
    let [first, ..] = runs else { return Err(HistogramError::Malformed("left out")) };
    let of = |value: fn(&Measurement) -> u64| mean(runs.iter().map(|run| value(run)));
    let total = runs.iter().map(|run| of_all(run)).collect::<Option<Vec<_>>>().map(merged).transpose()?;
    let several = first.result.operations.len() > 1;
    let (mut operations, mut named) = (Vec::new(), Vec::new());
    for OperationResult { name, .. } in &first.result.operations {
        let Some(each) = runs.iter().map(|run| operation(run, name)).collect::<Option<Vec<_>>>() else { continue };
        let parts = runs.iter().zip(&each).map(|(run, own)| of_operation(run, own)).collect::<Option<Vec<_>>>();
        let own = parts.map(merged).transpose()?;
        // The histograms of a single operation are the total's.
        let times = own.as_ref().or(total.as_ref().filter(|_| !several)).map(|(times, _)| times.clone());
        let each = |value: fn(&OperationResult) -> u64| mean(each.iter().map(|own| value(own)));
        let bandwidth = |bytes: fn(Bandwidth) -> u64| mean(runs.iter().map(|run| bytes_of(run, name, bytes)));
        operations.push(OperationResult {
            name: name.clone(),
            requests: Requests { succeeded: each(|own| own.requests.succeeded), ..Requests::default() },
            hits: each(|own| own.hits),
            misses: each(|own| own.misses),
            bandwidth: operation(first, name).and_then(|own| own.bandwidth).map(|_| Bandwidth {
                sent_bytes_per_second: bandwidth(|bytes| bytes.sent_bytes_per_second),
                received_bytes_per_second: bandwidth(|bytes| bytes.received_bytes_per_second),
            }),
            response_time: times.unwrap_or_default(),
            service_time: None,
        });
        named.extend(own.map(|(_, histograms)| NamedHistograms { name: name.clone(), histograms }));
    }
    let result = TrialResult {
        requests: Requests { succeeded: of(|run| run.result.requests.succeeded), ..Requests::default() },
        throughput: Throughput {
            achieved_per_second: of(|run| run.result.throughput.achieved_per_second),
            ..Throughput::default()
        },
        bandwidth: Bandwidth {
            sent_bytes_per_second: of(|run| run.result.bandwidth.sent_bytes_per_second),
            received_bytes_per_second: of(|run| run.result.bandwidth.received_bytes_per_second),
        },
        response_time: total.as_ref().map(|(times, _)| times.clone()).unwrap_or_default(),
        operations,
        errors: errors(runs),
        ..TrialResult::default()
    };
    let trial = TrialStatus { start_at: None, ..first.trial.clone() };
    let mut average = Measurement::new(trial, result, first.verdict.clone());
    average.spec.clone_from(&first.spec);
    average.synchronization.common_window_milliseconds = of(|run| run.synchronization.common_window_milliseconds);
    average.histograms = total.map(|(_, total)| Histograms {
        total,
        operations_left_out: several && named.is_empty(),
        operations: named,
        nodes: Vec::new(),
        nodes_left_out: true,
    });
    Ok(average)
}

fn of_all(run: &Measurement) -> Option<Part<'_>> {
    Some((&run.histograms.as_ref()?.total, &run.result.requests, &run.result.response_time))
}

fn of_operation<'a>(run: &'a Measurement, own: &'a OperationResult) -> Option<Part<'a>> {
    let named = run.histograms.as_ref()?.operations.iter().find(|named| named.name == own.name)?;
    Some((&named.histograms, &own.requests, &own.response_time))
}

fn operation<'a>(run: &'a Measurement, name: &str) -> Option<&'a OperationResult> {
    run.result.operations.iter().find(|one| one.name == name)
}

fn bytes_of(run: &Measurement, name: &str, bytes: fn(Bandwidth) -> u64) -> u64 {
    operation(run, name).and_then(|own| own.bandwidth).map_or(0, bytes)
}

/// The response time of these requests together, with its distribution.
fn merged(parts: Vec<Part<'_>>) -> Result<(Latencies, HistogramSet), HistogramError> {
    let mut together = Together::default();
    for (set, requests, times) in parts {
        together.add_part(set, requests, times)?;
    }
    let response = together.histogram()?;
    Ok((together.response_time(), HistogramSet { response, service: None, error_replies: None }))
}

fn errors(runs: &[&Measurement]) -> Vec<ErrorTally> {
    let kinds: BTreeSet<&str> =
        runs.iter().flat_map(|run| &run.result.errors).map(|error| error.kind.as_str()).collect();
    let of = |run: &Measurement, kind: &str| {
        let errors = run.result.errors.iter().filter(|error| error.kind == kind);
        errors.map(|error| error.count).fold(0, u64::saturating_add)
    };
    let tally = |kind: &str| ErrorTally {
        kind: kind.to_owned(),
        count: mean(runs.iter().map(|run| of(run, kind))),
        first_message: String::new(),
    };
    kinds.into_iter().map(tally).collect()
}

fn mean(values: impl Iterator<Item = u64>) -> u64 {
    let (sum, count) = values.fold((0_u128, 0_u128), |(sum, count), value| (sum + u128::from(value), count + 1));
    u64::try_from((sum + count / 2) / count.max(1)).unwrap_or(u64::MAX)
}

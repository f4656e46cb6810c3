//! Repeats of one cell: their spread, from the lines of `status.trials`; and their aggregate, from the histograms of the trials' full
//! results. Both are durable, so a takeover loses nothing.

mod operations;

use std::collections::BTreeMap;

use redisbench_statistics::Direction;
use redisbench_wire::histogram::{EncodedHistogram, HistogramError};
use serde::{Deserialize, Serialize};

use self::operations::Operations;
use super::search;
use super::size_budget::SizeBudget;
use super::spread::Spread;
use crate::api::status::{
    CacheResult, CellCache, CellResult, ClientResult, ComparisonResult, Latencies, LimitedBy, Requests, TrialLine,
    TrialOutcome,
};
use crate::api::{RedisBenchmarkSpec, RedisBenchmarkStatus};
use crate::measurement::latencies::{self, CurvePoint};
use crate::measurement::measured::Measured;
use crate::quantile::Quantile;
use crate::report::measurement::{self, HistogramSet, Measurement};

/// Format of the document of an experiment. An incompatible change gets a new number.
pub const FORMAT: &str = "redisbench.dev/experiment/v1";

/// Name of that document among the artifacts.
pub const DOCUMENT: &str = "experiment.json";

/// Maximum cells in a status.
const LISTED: usize = 32;

const MILLION: u128 = 1_000_000;

/// All cells of `spec` with at least two trials that were measured to the end, in order. Of searches, with the rates found.
pub fn cells(spec: &RedisBenchmarkSpec, trials: &[TrialLine]) -> Vec<CellResult> {
    let trials = search::answers(spec, trials);
    let mut by_cell = BTreeMap::<u32, Vec<&TrialLine>>::new();
    let counts =
        |line: &&TrialLine| line.repeat.is_some() && line.state == TrialOutcome::Completed && line.requests.is_some();
    for line in trials.iter().filter(counts) {
        by_cell.entry(line.cell).or_default().push(line);
    }
    by_cell.into_values().filter(|lines| lines.len() > 1).map(|lines| cell(&lines)).collect()
}

fn cell(lines: &[&TrialLine]) -> CellResult {
    let spread = |direction, value: fn(&TrialLine) -> Option<u64>| {
        let values: Option<Vec<_>> = lines.iter().map(|line| Some((line.index, value(line)?))).collect();
        values.and_then(|values| Spread::of(&values, direction))
    };
    let latency = |value| spread(Direction::LowerIsBetter, value).map(Spread::latency);
    let p99 = latency(|line| line.p99_nanoseconds);
    CellResult {
        cell: lines[0].cell,
        setting: lines[0].setting.clone(),
        trials: lines.iter().map(|line| line.index).collect(),
        verdict: lines.iter().filter_map(|line| line.verdict).max(),
        throughput: spread(Direction::HigherIsBetter, |line| line.achieved_per_second).map(Spread::throughput),
        mean_response_time: latency(|line| line.mean_nanoseconds),
        p50: latency(|line| line.p50_nanoseconds),
        // Then their rates differ only by chance. A search has no limit here: its rates are what it found.
        by_p99: p99.is_some() && lines.iter().all(|line| line.limited_by == Some(LimitedBy::Rate)),
        p99,
        p999: latency(|line| line.p999_nanoseconds),
        error_rate: spread(Direction::LowerIsBetter, error_millionths).map(Spread::share),
        aggregate: None,
        cost: None,
        cache: None,
        operations: Vec::new(),
    }
}

/// Errors and unsent requests as a share of all.
fn error_millionths(line: &TrialLine) -> Option<u64> {
    let requests = line.requests?;
    let bad = u128::from(requests.errors) + u128::from(requests.unsent);
    u64::try_from(bad * MILLION / u128::from(requests.scheduled.max(1))).ok()
}

/// Sets the repeats of `status` from its lines.
pub(super) fn set_repeats(status: &mut RedisBenchmarkStatus, spec: &RedisBenchmarkSpec) {
    let cells = cells(spec, &status.trials);
    list(status, cells);
}

/// Lists as many of `cells` as the status has room for, and counts the rest. Beside them, lists the operations of the first ones.
fn list(status: &mut RedisBenchmarkStatus, cells: Vec<CellResult>) {
    (status.repeats, status.repeats_left_out) = (Vec::new(), 0);
    let many = cells.len().saturating_sub(LISTED);
    let apart = |mut cell: CellResult| {
        let operations = std::mem::take(&mut cell.operations);
        (cell, operations)
    };
    let (cells, operations): (Vec<_>, Vec<_>) = cells.into_iter().take(LISTED).map(apart).unzip();
    let (listed, left_out) = SizeBudget::of(status).fill(cells);
    (status.repeats, status.repeats_left_out) = (listed, left_out + many as u64);
    let (operations, _) = SizeBudget::of(status).fill(operations);
    for (cell, operations) in status.repeats.iter_mut().zip(operations) {
        cell.operations = operations;
    }
}

/// Merged requests of several trials.
#[derive(Debug, Default)]
pub struct Together {
    measured: Measured,
    /// Percentiles of the spec, the same for each trial.
    percentiles: Vec<Quantile>,
    /// Cost of the client so far, and its number of requests.
    cost: Option<(ClientResult, u64)>,
    /// Of each trial with caches its index, hits per second and invalidations per second.
    caches: Vec<Option<(u32, u64, u64)>>,
    operations: Operations,
}

impl Together {
    /// Adds a trial with its full measurement.
    ///
    /// # Errors
    /// If it is a shortened one, or a histogram violates the contract.
    pub fn add(&mut self, whole: &Measurement) -> Result<(), HistogramError> {
        let Measurement { result, histograms, .. } = whole;
        let total = &histograms.as_ref().ok_or(HistogramError::Malformed("left out"))?.total;
        let requests = &result.requests;
        self.add_part(total, requests, &result.response_time)?;
        self.operations.add(whole)?;
        let of_cache = |cache: &CacheResult| (whole.trial.index, cache.hits_per_second, cache.invalidations_per_second);
        self.caches.push(result.cache.as_ref().map(of_cache));
        let asked = result.response_time.percentiles.iter();
        self.percentiles = asked.filter_map(|one| Quantile::of_percent(&one.percentile)).collect();
        if let Some(client) = result.clients.first() {
            let answered = requests.scheduled.saturating_sub(requests.unsent);
            self.cost = Some(match self.cost.take() {
                Some(known) => add_cost(known, client, answered),
                None => (client.clone(), answered),
            });
        }
        Ok(())
    }

    /// Adds some requests of a trial, such as those of one operation, to [`Self::response_time`] alone.
    ///
    /// # Errors
    /// If a histogram violates the contract.
    pub fn add_part(
        &mut self,
        set: &HistogramSet,
        requests: &Requests,
        response_time: &Latencies,
    ) -> Result<(), HistogramError> {
        set.add_to(&mut self.measured, requests, response_time)
    }

    /// Cost of the client per request.
    pub fn cost(&self) -> Option<ClientResult> {
        self.cost.as_ref().map(|(cost, _)| cost.clone())
    }

    /// The caches' hits and invalidations. None unless all trials have caches.
    fn cache(&self) -> Option<CellCache> {
        let all = self.caches.iter().copied().collect::<Option<Vec<_>>>()?;
        let hits: Vec<_> = all.iter().map(|(trial, hits, _)| (*trial, *hits)).collect();
        let invalidations = all.iter().map(|(.., invalidations)| *invalidations).fold(0, u64::saturating_add);
        Some(CellCache {
            hits: Spread::of(&hits, Direction::HigherIsBetter)?.throughput(),
            mean_invalidations_per_second: invalidations.checked_div(all.len() as u64)?,
        })
    }

    /// Response time over all requests: those without an answer count as longer than any answer.
    pub fn response_time(&self) -> Latencies {
        latencies::response_time(&self.measured, &self.percentiles)
    }

    /// The curve of [`Self::response_time`].
    pub fn curve(&self, quantiles: &[Quantile]) -> Vec<CurvePoint> {
        latencies::curve(&self.measured, quantiles)
    }

    /// Distribution of the response time of succeeded requests.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn histogram(&self) -> Result<EncodedHistogram, HistogramError> {
        EncodedHistogram::encode(&self.measured.response)
    }
}

/// Adds a trial of `more` requests to the cost of a client: means over requests, and maxima.
fn add_cost((known, requests): (ClientResult, u64), trial: &ClientResult, more: u64) -> (ClientResult, u64) {
    let all = requests.saturating_add(more);
    let weighted = |known: u64, trial: u64| {
        let sum = u128::from(known) * u128::from(requests) + u128::from(trial) * u128::from(more);
        u64::try_from(sum / u128::from(all.max(1))).unwrap_or(u64::MAX)
    };
    let mean = |of: fn(&ClientResult) -> u64| weighted(of(&known), of(trial));
    let mean_of_known = |of: fn(&ClientResult) -> Option<u64>| {
        let both = of(&known).zip(of(trial));
        both.map(|(known, trial)| weighted(known, trial))
    };
    let cost = ClientResult {
        cpu_per_request_nanoseconds: mean(|cost| cost.cpu_per_request_nanoseconds),
        user_per_request_nanoseconds: mean(|cost| cost.user_per_request_nanoseconds),
        system_per_request_nanoseconds: mean(|cost| cost.system_per_request_nanoseconds),
        context_switches_per_thousand_requests: mean(|cost| cost.context_switches_per_thousand_requests),
        server_cpu_per_request_nanoseconds: mean_of_known(|cost| cost.server_cpu_per_request_nanoseconds),
        commands_per_thousand_reads: mean_of_known(|cost| cost.commands_per_thousand_reads),
        connections: known.connections.max(trial.connections),
        callers: known.callers.max(trial.callers),
        peak_bytes: known.peak_bytes.max(trial.peak_bytes),
        ..trial.clone()
    };
    (cost, all)
}

/// Results of the repeats of all cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    cells: Vec<CellRecord>,
}

/// One cell, with the distribution of response time over all its trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CellRecord {
    #[serde(flatten)]
    pub result: CellResult,
    /// None if the trials could not be merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<EncodedHistogram>,
}

/// The document of a run of several trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentDocument {
    /// [`FORMAT`].
    pub format: String,
    pub benchmark: String,
    pub run_id: String,
    pub trials: Vec<TrialLine>,
    pub cells: Vec<CellRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparison: Vec<ComparisonResult>,
}

impl Experiment {
    /// Adds a cell with its merged trials, or without them if they could not be merged or are of searches.
    ///
    /// # Errors
    /// If the merged histogram cannot be encoded.
    pub fn add(&mut self, mut cell: CellResult, together: Option<&Together>) -> Result<(), HistogramError> {
        cell.aggregate = together.map(Together::response_time);
        cell.cost = together.and_then(Together::cost);
        cell.cache = together.and_then(Together::cache);
        let known = together.zip(cell.ends());
        cell.operations = known.map(|(together, ends)| together.operations.repeats(ends)).unwrap_or_default();
        let histogram = together.map(Together::histogram).transpose()?;
        self.cells.push(CellRecord { result: cell, histogram });
        Ok(())
    }

    /// The document of all cells, trials and comparisons of a run, in pieces that fit into ConfigMaps.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn pieces(
        &self,
        benchmark: &str,
        run_id: &str,
        trials: &[TrialLine],
        comparison: &[ComparisonResult],
    ) -> Result<Vec<(String, String)>, serde_json::Error> {
        let document = ExperimentDocument {
            format: FORMAT.to_owned(),
            benchmark: benchmark.to_owned(),
            run_id: run_id.to_owned(),
            trials: trials.to_vec(),
            cells: self.cells.clone(),
            comparison: comparison.to_vec(),
        };
        measurement::pieces(DOCUMENT, &document, measurement::PIECE_BYTES, usize::MAX)
    }

    /// Sets the repeats of a finished `status` to the cells with their aggregates.
    pub fn tell(&self, status: &mut RedisBenchmarkStatus) {
        list(status, self.cells.iter().map(|cell| cell.result.clone()).collect());
    }
}

#[cfg(test)]
mod tests;

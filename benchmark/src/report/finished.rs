//! A finished trial in its form for the status.

use std::cmp::Reverse;
use std::time::Duration;

use redisbench_wire::histogram::{EncodedHistogram, HistogramError};
use redisbench_wire::plan::{Load, TrialPlan};
use redisbench_wire::snapshot::{ErrorTally, Sending, ServerSample, ServerStats, Snapshot, Tally};
use redisbench_wire::timeline::Span;

use super::{STATUS_BYTES, extras, search, stages, thresholds, verification};
use crate::api::load::LoadType;
use crate::api::status::{
    Bandwidth, EncodedHistogramStatus, Latencies, LoadResult, NodeResult, NodeRole, OperationResult, Percentile,
    PreloadResult, Requests, ServerResult, ShardCounts, ShardOutcome, ShardResult, Summary, Synchronization,
    ThresholdStatus, Throughput, TrialLine, TrialResult, TrialStatus, Truncated, Verdict, WorstSecond,
};
use crate::api::{RedisBenchmarkSpec, Validated};
use crate::measurement::measured::{Measured, NodeMeasured};
use crate::measurement::merge::{self, Merged, merge};
use crate::measurement::parts::OwnLatency;
use crate::measurement::{Cleanup, Ending, Outcome};
use crate::plan::{Plan, Trial};
use crate::quantile::Quantile;
use crate::report::measurement::{self, Measurement, Versions};
use crate::verdict::{self, verdict};
use crate::{human, measurement::latencies, measurement::topology};

/// Maximum entries of a list in a status.
const LISTED: usize = 32;

/// Bytes that a status needs beside result, verdict and artifacts, mostly for the conditions' messages.
const CONDITIONS_BYTES: usize = 12 << 10;

/// Maximum bytes of one entry in a status' artifacts.
const ARTIFACT_BYTES: usize = 128;

/// A finished trial, ready to be reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Number of trials of the run.
    pub of: u32,
    pub ending: Ending,
    /// None if it never started.
    pub trial: Option<TrialStatus>,
    /// As short as a status needs it; none if nothing was measured.
    pub measurement: Option<Measurement>,
    /// For people.
    pub summary: Summary,
    /// Result of deleting the keys, if that was requested.
    pub cleanup: Option<Cleanup>,
    pub shards: ShardCounts,
    /// Its line among several trials.
    pub line: Option<TrialLine>,
    /// The full measurement: names and pieces of a JSON document. Empty if nothing was measured.
    pub pieces: Vec<(String, String)>,
    /// Incarnations of shards that did not acknowledge an abort.
    pub unacknowledged: Vec<String>,
    /// Bytes that the shards wrote while measuring.
    pub sent_bytes: u64,
    /// Bytes that they read.
    pub received_bytes: u64,
}

impl Finished {
    /// The trial of `plan` after this one, which was measured to the end, given the `lines` of the trials before; none if it was the last.
    pub fn next_trial(&self, plan: &Plan, lines: &[TrialLine]) -> Option<Trial> {
        let index = self.line.as_ref().map(|line| line.index).or(self.trial.as_ref().map(|trial| trial.index))?;
        let mut lines: Vec<_> = lines.iter().filter(|line| line.index < index).cloned().collect();
        lines.extend(self.line.clone());
        plan.trial(index.checked_add(1)?, &lines)
    }
}

/// Why a finished trial cannot be reported.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// A shard's histogram violates the contract.
    #[error("failed to merge the shards' histograms")]
    Merge(#[from] HistogramError),
    /// The full result cannot be written as JSON.
    #[error("failed to write the full result")]
    Export(#[from] serde_json::Error),
}

impl Finished {
    /// A trial of `of`, with `shards` shards, that ended like this before anything was measured.
    pub fn unmeasured(of: u32, shards: u32, ending: Ending) -> Self {
        Self {
            of,
            ending,
            trial: None,
            measurement: None,
            summary: Summary { shards: Some(format!("0/{shards}")), ..Summary::default() },
            cleanup: None,
            shards: ShardCounts { desired: shards, ..ShardCounts::default() },
            line: None,
            pieces: Vec::new(),
            unacknowledged: Vec::new(),
            sent_bytes: 0,
            received_bytes: 0,
        }
    }

    /// Merges and judges `outcome` of one trial in run `run` of the benchmark called `name`.
    ///
    /// # Errors
    /// If a shard's histogram violates the contract, or the full result cannot be written.
    pub fn of(name: &str, run: &str, trial: &Trial, outcome: Outcome) -> Result<Self, FinishError> {
        let started = outcome.start_at_unix_nanoseconds.is_some();
        let shards = counts(&outcome);
        let tallies = || outcome.snapshots().map(|snapshot| &snapshot.total);
        let mut finished = Self {
            trial: started
                .then(|| super::trial(trial.index, outcome.of, outcome.attempt, outcome.start_at_unix_nanoseconds)),
            summary: Summary { shards: Some(format!("{}/{}", shards.finished, shards.desired)), ..Summary::default() },
            cleanup: outcome.cleanup.clone(),
            shards,
            unacknowledged: outcome.unacknowledged().map(|shard| shard.incarnation.clone()).collect(),
            sent_bytes: tallies().map(|tally| tally.sent_bytes).fold(0, u64::saturating_add),
            received_bytes: tallies().map(|tally| tally.received_bytes).fold(0, u64::saturating_add),
            ..Self::unmeasured(outcome.of, shards.desired, outcome.ending.clone())
        };
        let mut step = None;
        if let Some(place) = finished.trial.clone()
            && let Some(merged) = merge(&trial.spec.plan, &outcome)?
        {
            let verdict = verdict(&trial.spec, &outcome, &merged);
            step = trial.search.as_ref().map(|step| search::step(step, &trial.spec, &outcome, &merged, &verdict));
            let place = (place, trial.setting());
            finished.measured(&merged, measurement((name, run), place, &trial.spec, outcome, &merged, verdict)?)?;
        }
        finished.line = finished.line_of(&trial.kind);
        if let Some(line) = &mut finished.line {
            line.search = step.map(|step| search::fitted(step, trial.of, line.setting.parameters.len()));
        }
        Ok(finished)
    }

    fn measured(&mut self, merged: &Merged, mut whole: Measurement) -> Result<(), FinishError> {
        self.pieces = whole.pieces()?;
        whole.shorten(self.pieces.len())?;
        let p99 = latencies::response_time_at(&merged.total, Quantile::P99);
        summarize(&mut self.summary, &whole.result, &p99, &whole.verdict);
        self.measurement = Some(whole);
        Ok(())
    }

    pub fn result(&self) -> Option<&TrialResult> {
        self.measurement.as_ref().map(|measurement| &measurement.result)
    }

    pub fn verdict(&self) -> Option<&Verdict> {
        self.measurement.as_ref().map(|measurement| &measurement.verdict)
    }

    /// Empty if nothing was measured.
    pub fn thresholds(&self) -> &[ThresholdStatus] {
        self.measurement.as_ref().map_or(&[], |measurement| &measurement.thresholds)
    }
}

fn measurement(
    (name, run): (&str, &str),
    (trial, setting): (TrialStatus, String),
    spec: &Validated,
    outcome: Outcome,
    merged: &Merged,
    verdict: Verdict,
) -> Result<Measurement, HistogramError> {
    let several = (trial.of > 1).then_some(trial.index);
    let trial = TrialStatus { setting: several.map(|_| setting).filter(|setting| !setting.is_empty()), ..trial };
    let whole = Measurement {
        benchmark: name.to_owned(),
        run_id: run.to_owned(),
        spec: Some(Box::new(as_it_ran(spec))),
        versions: Versions::of(merged.servers.as_ref()),
        synchronization: synchronization(&outcome, merged),
        topology: merged.topology.report(outcome.start_at_unix_nanoseconds),
        thresholds: thresholds::finished(&outcome.thresholds, merged, several),
        histograms: Some(measurement::histograms(merged)?),
        seconds: measurement::seconds(&spec.plan, &outcome.timeline),
        ..Measurement::new(trial, result(spec, &outcome, merged)?, verdict)
    };
    // Without their histograms, the records would not add up to the result.
    if outcome.shards.iter().any(|shard| shard.own_latency.is_some()) {
        return Ok(Measurement { shards_left_out: true, ..whole });
    }
    Ok(Measurement { shards: measurement::shard_records(outcome), ..whole })
}

/// The spec of a trial, at the servers that its load went to: throwaway servers replace those of the manifest.
fn as_it_ran(spec: &Validated) -> RedisBenchmarkSpec {
    let mut own = RedisBenchmarkSpec::clone(&spec.spec);
    own.targets.iter_mut().for_each(|target| target.endpoints.clone_from(&spec.plan.target.endpoints));
    own
}

impl Measurement {
    /// Cuts it to what a status has room for, beside the names of `pieces` artifacts.
    fn shorten(&mut self, pieces: usize) -> Result<(), serde_json::Error> {
        (self.spec, self.histograms, self.seconds, self.shards) = (None, None, Vec::new(), Vec::new());
        self.topology = topology::shortened(std::mem::take(&mut self.topology));
        let beside = CONDITIONS_BYTES
            + serde_json::to_vec(&self.topology)?.len()
            + serde_json::to_vec(&self.verdict)?.len()
            + serde_json::to_vec(&self.thresholds)?.len()
            + pieces.max(1) * ARTIFACT_BYTES;
        self.result = shortened(std::mem::take(&mut self.result), STATUS_BYTES.saturating_sub(beside))?;
        Ok(())
    }
}

fn summarize(summary: &mut Summary, result: &TrialResult, p99: &Percentile, verdict: &Verdict) {
    let requests = &result.requests;
    summary.rate = Some(human::rate(result.throughput.achieved_per_second));
    summary.p99 = latencies::percentile(p99);
    summary.errors = Some(human::share(requests.errors + requests.unsent, requests.scheduled));
    summary.verdict = Some(format!("{:?}", verdict.value));
}

fn counts(outcome: &Outcome) -> ShardCounts {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let whole = outcome.shards.iter().filter(|shard| shard.snapshot.is_some() && !shard.partial);
    ShardCounts {
        desired: number(outcome.shards.len()),
        finished: number(whole.count()),
        lost: number(outcome.lost().count()),
        ..ShardCounts::default()
    }
}

fn synchronization(outcome: &Outcome, merged: &Merged) -> Synchronization {
    let micros = |time: Option<Duration>| time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    Synchronization {
        start_skew_microseconds: micros(outcome.start_skew),
        clock_uncertainty_microseconds: micros(outcome.clock_uncertainty),
        warmup_milliseconds: merged.topology.measured_from / 1_000_000,
        common_window_milliseconds: merged.throughput.window_nanoseconds / 1_000_000,
    }
}

fn result(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Result<TrialResult, HistogramError> {
    let tally = &merged.total.tally;
    let size = spec.plan.workload.options.transaction.map_or(0, |transaction| u64::from(transaction.size));
    let asked = spec.percentiles.as_slice();
    Ok(TrialResult {
        load: Some(load(&spec.plan)),
        requests: requests(tally, merged.total.unknown, size),
        throughput: Throughput {
            target_per_second: merged.throughput.target,
            achieved_per_second: merged.throughput.mean,
            min_per_second: merged.throughput.slowest,
            max_per_second: merged.throughput.fastest,
        },
        bandwidth: bandwidth(
            outcome,
            |span| (span.sent_bytes, span.received_bytes),
            |snapshot| (snapshot.total.sent_bytes, snapshot.total.received_bytes),
        ),
        response_time: latencies::response_time(&merged.total, asked),
        response_time_of_succeeded: (tally.succeeded < tally.scheduled + merged.total.unknown)
            .then(|| latencies::response_time_of_succeeded(&merged.total, asked)),
        service_time: merged.total.service.as_ref().map(|service| latencies::plain(service, asked)),
        send_lateness: merged.lateness.as_ref().map(|lateness| latencies::plain(lateness, asked)),
        generator_share: verdict::generator_shares(outcome, merged),
        histogram: Some(EncodedHistogramStatus {
            encoding: "HdrV2DeflateBase64".to_owned(),
            data: EncodedHistogram::encode(&merged.total.response)?.as_str().to_owned(),
        }),
        stages: stages::results(spec, outcome),
        operations: operations(outcome, merged, size, asked),
        nodes: nodes(merged, asked),
        errors: errors(merged),
        shards: shards(outcome, &merged.unknown, size)?,
        truncated: None,
        verification: verification::result(spec, outcome, merged),
        cache: merged.cache.as_ref().map(|cache| extras::cache(spec, outcome, cache)),
        clients: merged.client.iter().map(|client| extras::client(spec, outcome, merged, client)).collect(),
        connections: merged.churn.as_ref().map(|churn| extras::connections(spec, outcome, churn)),
        warmup: (merged.warmup != Tally::default()).then(|| requests(&merged.warmup, 0, size)),
        preload: (merged.preload_commands > 0)
            .then_some(PreloadResult { keys: merged.preloaded_keys, commands: merged.preload_commands }),
    })
}

/// Over the whole seconds of the common window. If there is none, each shard's bytes over its own window.
/// `of_span` and `of_shard` return the bytes sent and received.
fn bandwidth(
    outcome: &Outcome,
    of_span: impl Fn(&Span) -> (u64, u64),
    of_shard: impl Fn(&Snapshot) -> (u64, u64),
) -> Bandwidth {
    let both = |sums: (u64, u64), more: (u64, u64)| (sums.0.saturating_add(more.0), sums.1.saturating_add(more.1));
    let per_second = |bytes: (u64, u64), nanoseconds: u64| {
        (merge::per_second(bytes.0, nanoseconds), merge::per_second(bytes.1, nanoseconds))
    };
    let (sent_bytes_per_second, received_bytes_per_second) =
        if let Some((spans, seconds)) = merge::common_seconds(outcome, &merge::ALWAYS) {
            let sum = spans.iter().map(of_span).fold((0, 0), both);
            per_second(sum, u64::from(seconds.end - seconds.start) * 1_000_000_000)
        } else {
            let of_window = |one: &Snapshot| per_second(of_shard(one), merge::measured_nanoseconds(one));
            outcome.snapshots().map(of_window).fold((0, 0), both)
        };
    Bandwidth { sent_bytes_per_second, received_bytes_per_second }
}

/// The result shortened for a status, in at most `most` bytes of JSON: the worst entries of long lists, with the number of omitted ones. A
/// histogram that takes more than half is omitted at once. If the result is still too long, the percentiles of parts are omitted, then
/// lists are halved until it fits, and the histogram is omitted last.
fn shortened(whole: TrialResult, most: usize) -> Result<TrialResult, serde_json::Error> {
    let mut result = whole;
    let mut truncated = Truncated::default();
    let mut listed = LISTED;
    if result.histogram.as_ref().is_some_and(|histogram| histogram.data.len() > most / 2) {
        (result.histogram, truncated.histogram) = (None, true);
    }
    loop {
        truncated.stages += shorten(&mut result.stages, 2 * listed, |stage| stage.index);
        truncated.operations += shorten(&mut result.operations, listed, |operation| {
            Reverse((operation.requests.errors, operation.requests.scheduled))
        });
        truncated.nodes += shorten(&mut result.nodes, listed, |node| Reverse((node.errors, node.requests)));
        truncated.errors += shorten(&mut result.errors, listed, |error| Reverse(error.count));
        truncated.shards += shorten(&mut result.shards, listed, |shard| {
            Reverse((shard.state == ShardOutcome::Lost, shard.requests.errors, shard.p99_nanoseconds))
        });
        if let Some(verification) = &mut result.verification {
            truncated.findings +=
                shorten(&mut verification.findings, listed, |finding| finding.after_start_milliseconds);
        }
        result.truncated = (truncated != Truncated::default()).then_some(truncated);
        if serde_json::to_vec(&result)?.len() <= most {
            return Ok(result);
        }
        if !truncated.percentiles {
            truncated.percentiles = true;
            parts(&mut result).for_each(|latencies| latencies.percentiles.clear());
            continue;
        }
        if listed == 1 {
            truncated.histogram |= result.histogram.take().is_some();
            result.truncated = Some(truncated);
            return Ok(result);
        }
        listed /= 2;
    }
}

/// Latencies of stages, operations and nodes.
fn parts(result: &mut TrialResult) -> impl Iterator<Item = &mut Latencies> {
    let operations = result.operations.iter_mut();
    let operations = operations.flat_map(|part| std::iter::once(&mut part.response_time).chain(&mut part.service_time));
    let stages = result.stages.iter_mut();
    let stages = stages.flat_map(|part| std::iter::once(&mut part.response_time).chain(&mut part.service_time));
    stages.chain(operations).chain(result.nodes.iter_mut().map(|node| &mut node.service_time))
}

/// Keeps the first `listed` entries by `key` if there are more. Returns the number of omitted ones.
fn shorten<T, K: Ord>(all: &mut Vec<T>, listed: usize, key: impl FnMut(&T) -> K) -> u64 {
    let left_out = all.len().saturating_sub(listed);
    if left_out > 0 {
        all.sort_by_key(key);
        all.truncate(listed);
    }
    left_out as u64
}

/// At most `most` characters of an external text: the API server would refuse the whole status because of a longer one.
fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// `size` is the number of commands in each transaction; 0 without transactions.
fn requests(tally: &Tally, unknown: u64, size: u64) -> Requests {
    Requests {
        scheduled: tally.scheduled + unknown,
        succeeded: tally.succeeded,
        errors: tally.errors,
        unsent: tally.unsent,
        unsent_not_connected: tally.unsent_not_connected,
        unsent_at_end: tally.unsent_at_end,
        in_flight: tally.in_flight,
        unknown,
        unanswered: tally.unanswered,
        late: tally.late,
        redirected: tally.redirected,
        redirect_hops: tally.redirect_hops,
        deferral_hops: tally.deferral_hops,
        cluster_down_hops: tally.cluster_down_hops,
        loading_hops: tally.loading_hops,
        commands: tally.succeeded.saturating_mul(size),
        under_replicated: tally.under_replicated,
        fills: tally.fills,
        fill_errors: tally.fill_errors,
        overflow: tally.overflow,
    }
}

fn operations(outcome: &Outcome, merged: &Merged, size: u64, asked: &[Quantile]) -> Vec<OperationResult> {
    // Parts of seconds are in the order of the operations.
    let bandwidth = |index: usize, name: &str| {
        let of_span = |span: &Span| {
            let counts = span.parts.get(index).map(|part| part.counts).unwrap_or_default();
            (counts.sent_bytes, counts.received_bytes)
        };
        let of_shard = |snapshot: &Snapshot| {
            let own = snapshot.operations.iter().find(|operation| operation.name == name);
            own.map_or((0, 0), |own| (own.tally.sent_bytes, own.tally.received_bytes))
        };
        bandwidth(outcome, of_span, of_shard)
    };
    let result = |index: usize, name: &str, measured: &Measured, misses: u64| OperationResult {
        name: name.to_owned(),
        requests: requests(&measured.tally, 0, size),
        hits: measured.tally.succeeded.saturating_sub(misses),
        misses,
        bandwidth: Some(bandwidth(index, name)),
        response_time: latencies::response_time(measured, asked),
        service_time: measured.service.as_ref().map(|service| latencies::plain(service, asked)),
    };
    let operations = merged.operations.iter().enumerate();
    operations.map(|(index, part)| result(index, &part.name, &part.measured, part.nil_replies)).collect()
}

fn nodes(merged: &Merged, asked: &[Quantile]) -> Vec<NodeResult> {
    let (nodes, cluster): (&[NodeMeasured], bool) = (&merged.nodes, merged.topology.slotted);
    let sum: u64 = nodes.iter().map(|node| node.requests).sum();
    let imbalance = |requests: u64| {
        let percent = u128::from(requests) * 100 * nodes.len() as u128 / u128::from(sum.max(1));
        u64::try_from(percent).unwrap_or(u64::MAX)
    };
    nodes
        .iter()
        .map(|node| NodeResult {
            id: cut(&node.id, 256),
            address: cut(&node.address, 262),
            slots: node.slots,
            role: cluster.then_some(if node.replica { NodeRole::Replica } else { NodeRole::Primary }),
            connections: (node.connections > 0).then_some(node.connections),
            requests: node.requests,
            errors: node.errors,
            redirects: node.redirects,
            service_time: latencies::plain(&node.service, asked),
            imbalance_percent: imbalance(node.requests),
            server: merged.servers.as_ref().and_then(|servers| server(servers, &node.address)),
        })
        .collect()
}

/// Statistics of the server at `address` before and after the load.
fn server(servers: &ServerStats, address: &str) -> Option<ServerResult> {
    let node = servers.nodes.iter().find(|node| node.address == address)?;
    let (before, after) = (node.before?, node.after?);
    let since = |of: fn(&ServerSample) -> u64| of(&after).saturating_sub(of(&before));
    Some(ServerResult {
        cpu_mean_basis_points: node.cpu.map(|cpu| cpu.mean_basis_points),
        cpu_max_basis_points: node.cpu.map(|cpu| cpu.max_basis_points),
        cpu_full_milliseconds: node.cpu.map(|cpu| cpu.full_nanoseconds / 1_000_000),
        memory_before_bytes: before.used_memory_bytes,
        memory_after_bytes: after.used_memory_bytes,
        keys_before: before.keys,
        keys_after: after.keys,
        evicted_keys: since(|sample| sample.evicted_keys),
        expired_keys: since(|sample| sample.expired_keys),
        keyspace_hits: since(|sample| sample.keyspace_hits),
        keyspace_misses: since(|sample| sample.keyspace_misses),
        most_clients: node.most_clients,
    })
}

fn errors(merged: &Merged) -> Vec<ErrorTally> {
    let result = |error: &ErrorTally| ErrorTally {
        kind: cut(&error.kind, 64),
        count: error.count,
        first_message: cut(&error.first_message, 256),
    };
    merged.errors.iter().map(result).collect()
}

/// The kind of load.
fn load(plan: &TrialPlan) -> LoadResult {
    match &plan.load {
        Load::ClosedLoop => LoadResult {
            kind: LoadType::ClosedLoop,
            arrival: None,
            pacing_grid_nanoseconds: None,
            pipeline_mode: Some(plan.pipeline_mode),
            concurrency: Some(match plan.concurrency {
                Some(callers) => callers.into(),
                None => u64::from(plan.connections) * u64::from(plan.pipeline),
            }),
        },
        Load::OpenLoop { arrival, pacing_grid_nanoseconds, .. } => LoadResult {
            kind: LoadType::OpenLoop,
            arrival: Some(*arrival),
            pacing_grid_nanoseconds: Some(*pacing_grid_nanoseconds),
            pipeline_mode: None,
            concurrency: None,
        },
        Load::Recorded { pacing_grid_nanoseconds, .. } => LoadResult {
            kind: LoadType::OpenLoop,
            arrival: None,
            pacing_grid_nanoseconds: Some(*pacing_grid_nanoseconds),
            pipeline_mode: None,
            concurrency: None,
        },
    }
}

fn shards(outcome: &Outcome, unknown: &[u64], size: u64) -> Result<Vec<ShardResult>, HistogramError> {
    let first = outcome.shards.iter().filter_map(first_send).min();
    let each = outcome.shards.iter().zip(unknown).zip(verdict::worst_seconds(outcome));
    each.map(|((outcome, unknown), worst)| shard(outcome, first, *unknown, size, worst)).collect()
}

/// Delay of the shard's first send after its due time.
fn first_send(outcome: &crate::measurement::ShardEvidence) -> Option<u64> {
    let window = outcome.snapshot.as_ref()?.window;
    let sent = window.first_send_nanoseconds;
    (sent > 0).then(|| sent.saturating_sub(window.first_due_nanoseconds.max(window.start_nanoseconds)))
}

fn shard(
    outcome: &crate::measurement::ShardEvidence,
    first: Option<u64>,
    unknown: u64,
    size: u64,
    worst_second: Option<WorstSecond>,
) -> Result<ShardResult, HistogramError> {
    let generator = outcome.snapshot.as_ref().map(|snapshot| snapshot.generator.clone()).unwrap_or_default();
    let latency = match (&outcome.snapshot, outcome.own_latency) {
        (_, Some(own)) => own,
        (Some(snapshot), None) => OwnLatency::of(snapshot, unknown)?,
        (None, None) => OwnLatency::default(),
    };
    let lateness = latency.lateness;
    let waited = |millionths| generator.receive_delay.as_ref()?.quantile_nanoseconds(millionths);
    let after = first_send(outcome).zip(first).map_or(0, |(own, first)| own - first);
    Ok(ShardResult {
        index: outcome.shard,
        node: cut(if generator.host.is_empty() { &outcome.host } else { &generator.host }, 256),
        state: if outcome.lost.is_some() { ShardOutcome::Lost } else { ShardOutcome::Finished },
        requests: requests(
            &outcome.snapshot.as_ref().map(|snapshot| snapshot.total).unwrap_or_default(),
            unknown,
            size,
        ),
        p99_nanoseconds: latency.p99_nanoseconds,
        busiest_worker_percent: generator.busiest_worker_millionths / 10_000,
        run_queue_percent: generator.longest_waiting_worker_millionths / 10_000,
        stolen_percent: verdict::stolen_percent(&generator),
        worst_second,
        throttled_milliseconds: generator.throttled_nanoseconds / 1_000_000,
        send_lateness_p99_nanoseconds: lateness.and_then(|late| late.p99_nanoseconds),
        send_lateness_max_nanoseconds: lateness.and_then(|late| late.max_nanoseconds),
        delayed_milliseconds: lateness.is_some().then_some(generator.delayed_nanoseconds / 1_000_000),
        receive_delay_p99_nanoseconds: waited(990_000),
        receive_delay_max_nanoseconds: waited(1_000_000),
        send_peer_limited_percent: generator.sending.map(|sending| percent(&sending, sending.peer_limited_nanoseconds)),
        send_network_percent: generator.sending.map(|sending| {
            let held_up = sending.peer_limited_nanoseconds.saturating_add(sending.buffer_limited_nanoseconds);
            percent(&sending, sending.busy_nanoseconds.saturating_sub(held_up))
        }),
        interface_received_bytes_per_second: generator
            .interface
            .as_ref()
            .map(|seen| seen.busiest_received_bytes_per_second),
        interface_sent_bytes_per_second: generator.interface.as_ref().map(|seen| seen.busiest_sent_bytes_per_second),
        idle_percent: generator.idle_millionths.map(|idle| idle / 10_000),
        reconnects: generator.reconnects,
        start_skew_microseconds: after / 1000,
    })
}

/// Percentage of the time of the observed connections.
fn percent(sending: &Sending, part: u64) -> u32 {
    let percent = u128::from(part) * 100 / u128::from(sending.connection_nanoseconds.max(1));
    u32::try_from(percent.min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests;

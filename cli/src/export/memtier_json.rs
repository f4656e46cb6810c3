//! The JSON of `memtier_benchmark --json-out-file`, format version 2: times in milliseconds, histograms of microseconds. Unknown numbers are
//! null. `authenticate`, where memtier writes the password, does not exist.

use hdrhistogram::Histogram;
use redisbench_benchmark::api::status::{Latencies, Requests, ThresholdOutcome};
use redisbench_benchmark::quantile::Quantile;
use redisbench_benchmark::report::Measurement;
use redisbench_wire::histogram::{EncodedHistogram, HIGHEST_NANOSECONDS, HistogramError, Kind};
use redisbench_wire::timeline::{SpanPart, highest_in, lowest_in};
use serde_json::{Map, Value, json};

use super::configuration::{configuration, requests_per_connection};
use super::distribution::Distribution;
use super::error::ExportError;
use super::milliseconds::milliseconds;
use super::rows::{start, times};
use super::runs::{average, runs};
use super::trials::trials;
use crate::reading::Reading;

/// Errors of these kinds broke a connection, or prevented one.
const CONNECTION_ERRORS: [&str; 3] = ["ConnectionReset", "ConnectionRefused", "ConnectionClosed"];

pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let trials = trials(reading)?;
    let (first, repeats) = (&trials[0], runs(reading));
    let mut document = Map::new();
    let mut configuration = configuration(first.spec.as_deref());
    if let Some(options) = configuration.as_object_mut().filter(|_| trials.len() > 1) {
        options.insert("print-all-runs".into(), "true".into());
        options.insert("run_count".into(), repeats.as_ref().map_or(1, |runs| runs.all.len()).into());
    }
    document.insert("configuration".into(), configuration);
    document.insert("run information".into(), run(first));
    for trial in trials {
        let name = if trials.len() == 1 {
            "ALL STATS".into()
        } else {
            format!("RUN #{} RESULTS", trial.trial.index.saturating_add(1))
        };
        document.insert(name, statistics(trial)?);
    }
    if let Some(runs) = repeats {
        document.insert("BEST RUN RESULTS".into(), statistics(runs.best)?);
        document.insert("WORST RUN RESULTS".into(), statistics(runs.worst)?);
        let name = format!("AGGREGATED AVERAGE RESULTS ({} runs)", runs.all.len());
        document.insert(name, statistics(&average(&runs.all)?)?);
    }
    let mut text = serde_json::to_vec_pretty(&document).map_err(|error| ExportError::Write("JSON", error.into()))?;
    text.push(b'\n');
    Ok(text)
}

fn run(trial: &Measurement) -> Value {
    let spec = trial.spec.as_deref();
    let threads = spec.map(|spec| u64::from(spec.shards.count));
    let clients = spec.zip(threads).map(|(spec, threads)| u64::from(spec.load.connections) / threads.max(1));
    let mut run = json!({"Threads": threads, "Connections per thread": clients, "Format version": 2});
    let (length, value) = match spec.and_then(requests_per_connection) {
        Some(requests) => ("Requests per client", requests),
        None => ("Seconds", trial.synchronization.common_window_milliseconds / 1_000),
    };
    run[length] = value.into();
    run
}

fn statistics(trial: &Measurement) -> Result<Value, ExportError> {
    let mut all = Map::new();
    all.insert("Runtime".into(), runtime(trial));
    let all_histograms = trial.histograms.as_ref();
    let several = trial.result.operations.len() > 1;
    for operation in &trial.result.operations {
        let response = match all_histograms {
            Some(all) if several => all.operations.iter().find(|named| named.name == operation.name),
            _ => None,
        };
        let response = response.map(|named| &named.histograms.response);
        let response = response.or(all_histograms.filter(|_| !several).map(|all| &all.total.response));
        let seconds = trial.seconds.iter().filter_map(|second| {
            let named = second.operations.iter().find(|named| named.name == operation.name).map(|named| &named.part);
            let part = named.or((!several).then_some(&second.total))?;
            let bytes = operation.bandwidth.map(|_| (part.counts.received_bytes, part.counts.sent_bytes));
            Some((second.second, part, bytes))
        });
        let section = Section {
            requests: &operation.requests,
            rate: trial.result.rate_of(&operation.requests),
            hits_and_misses: Some((operation.hits, operation.misses)),
            times: &operation.response_time,
            response,
            bytes: operation.bandwidth.map(|own| (own.received_bytes_per_second, own.sent_bytes_per_second)),
            connection_errors: None,
        };
        let name = name(trial, &operation.name);
        all.insert(format!("{name}s"), section.json(seconds)?);
        all.insert(name.to_uppercase(), points(response, operation.requests.succeeded)?);
    }
    let bandwidth = &trial.result.bandwidth;
    let errors = trial.result.errors.iter().filter(|error| CONNECTION_ERRORS.contains(&error.kind.as_str()));
    let errors = errors.map(|error| error.count).fold(0, u64::saturating_add);
    let total = Section {
        requests: &trial.result.requests,
        rate: trial.result.throughput.achieved_per_second as f64,
        hits_and_misses: (!trial.result.operations.is_empty()).then(|| {
            let sum = |of: fn(&(u64, u64)) -> u64| {
                let each = trial.result.operations.iter().map(|each| of(&(each.hits, each.misses)));
                each.fold(0, u64::saturating_add)
            };
            (sum(|both| both.0), sum(|both| both.1))
        }),
        times: &trial.result.response_time,
        response: all_histograms.map(|all| &all.total.response),
        bytes: Some((bandwidth.received_bytes_per_second, bandwidth.sent_bytes_per_second)),
        connection_errors: Some((errors, per_second(errors, trial))),
    };
    let seconds = trial
        .seconds
        .iter()
        .map(|second| (second.second, &second.total, Some((second.received_bytes, second.sent_bytes))));
    all.insert("Totals".into(), total.json(seconds)?);
    Ok(all.into())
}

fn runtime(trial: &Measurement) -> Value {
    let duration = trial.synchronization.common_window_milliseconds;
    let begin = start(trial)
        .ok()
        .map(|start| start.as_millisecond().saturating_add_unsigned(trial.synchronization.warmup_milliseconds));
    // A threshold with `abortOnFail` stops the load as well.
    let stopped = trial.result.requests.in_flight > 0
        || trial.thresholds.iter().any(|one| one.outcome == ThresholdOutcome::Failed && one.at_milliseconds.is_some());
    json!({
        "Start time": begin,
        "Finish time": begin.map(|begin| begin.saturating_add_unsigned(duration)),
        "Total duration": duration,
        "Time unit": "MILLISECONDS",
        "Interrupted": stopped.to_string(),
    })
}

fn per_second(count: u64, trial: &Measurement) -> f64 {
    count as f64 * 1_000.0 / trial.synchronization.common_window_milliseconds.max(1) as f64
}

/// The name of an operation's section without its plural: that of its command, unless another operation has the same.
fn name(trial: &Measurement, operation: &str) -> String {
    let operations = trial.spec.iter().flat_map(|spec| &spec.workload.operations);
    let command = |text: &str| text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let own = operations.clone().find(|one| one.name == operation).map(|one| command(&one.command));
    let own = own.filter(|own| operations.filter(|one| command(&one.command) == *own).count() == 1);
    let name = own.unwrap_or_else(|| operation.to_owned());
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// One type of requests.
struct Section<'a> {
    requests: &'a Requests,
    /// Successes per second.
    rate: f64,
    hits_and_misses: Option<(u64, u64)>,
    times: &'a Latencies,
    response: Option<&'a EncodedHistogram>,
    /// Received and sent per second, where they are known.
    bytes: Option<(u64, u64)>,
    /// Their number and rate, where they are counted.
    connection_errors: Option<(u64, f64)>,
}

impl Section<'_> {
    /// With its `seconds`: when, what, and the bytes received and sent.
    fn json<'a>(
        &self,
        seconds: impl Iterator<Item = (u32, &'a SpanPart, Option<(u64, u64)>)>,
    ) -> Result<Value, ExportError> {
        let histogram = self.response.map(|response| response.decode(Kind::Request)).transpose()?;
        let mean = self.times.mean_nanoseconds.map(milliseconds);
        let of_rate = |count: u64| self.rate * count as f64 / self.requests.succeeded.max(1) as f64;
        let kilobytes = |bytes: u64| bytes as f64 / 1024.0;
        let compressed = histogram.as_ref().map(in_microseconds).transpose()?;
        let mut percentiles = Map::new();
        for (quantile, value) in [
            (Quantile::P50, self.times.p50_nanoseconds),
            (Quantile::P90, self.times.p90_nanoseconds),
            (Quantile::P95, self.times.p95_nanoseconds),
            (Quantile::P99, self.times.p99_nanoseconds),
            (Quantile::P999, self.times.p999_nanoseconds),
            (Quantile::P9999, self.times.p9999_nanoseconds),
        ] {
            percentiles.insert(percentile(quantile), value.map(milliseconds).into());
        }
        percentiles.insert("Histogram log format".into(), json!({"Compressed Histogram": compressed}));
        let series: Map<_, _> = seconds.map(|(at, part, bytes)| (at.to_string(), second(part, bytes))).collect();
        Ok(json!({
            "Count": self.requests.succeeded,
            "Ops/sec": self.rate,
            "Hits/sec": self.hits_and_misses.map(|(hits, _)| of_rate(hits)),
            "Misses/sec": self.hits_and_misses.map(|(_, misses)| of_rate(misses)),
            "Connection Errors/sec": self.connection_errors.map(|(_, rate)| rate),
            "Connection Errors": self.connection_errors.map(|(count, _)| count),
            "Latency": mean,
            "Average Latency": mean,
            "Accumulated Latency": mean.map(|mean| mean * self.requests.succeeded as f64),
            "Min Latency": histogram.filter(|times| !times.is_empty()).map(|times| milliseconds(times.min())),
            "Max Latency": self.times.max_nanoseconds.map(milliseconds),
            "KB/sec": self.bytes.map(|(received, sent)| kilobytes(received.saturating_add(sent))),
            "KB/sec RX/TX": self.bytes.map(|(received, sent)| kilobytes(received.saturating_add(sent))),
            "KB/sec RX": self.bytes.map(|(received, _)| kilobytes(received)),
            "KB/sec TX": self.bytes.map(|(_, sent)| kilobytes(sent)),
            "Time-Serie": series,
            "Percentile Latencies": percentiles,
        }))
    }
}

/// The key of a percentile: `p50.00`, `p99.90`.
fn percentile(quantile: Quantile) -> String {
    format!("p{:05.2}", f64::from(quantile.millionths()) / 1e4)
}

/// One second of a type, with times rounded up by at most 3.2 %.
fn second(part: &SpanPart, bytes: Option<(u64, u64)>) -> Value {
    let times = times(part);
    let mean = times.mean_nanoseconds.map(milliseconds);
    let succeeded = part.counts.succeeded;
    json!({
        "Bytes RX": bytes.map(|(received, _)| received),
        "Bytes TX": bytes.map(|(_, sent)| sent),
        "Count": succeeded,
        "Average Latency": mean,
        "Accumulated Latency": mean.map(|mean| mean * succeeded as f64),
        "Min Latency": part.response.iter().next().map(|(bucket, _)| milliseconds(lowest_in(bucket))),
        "Max Latency": part.response.iter().last().map(|(bucket, _)| milliseconds(highest_in(bucket))),
        percentile(Quantile::P50): times.p50_nanoseconds.map(milliseconds),
        percentile(Quantile::P99): times.p99_nanoseconds.map(milliseconds),
        percentile(Quantile::P999): times.p999_nanoseconds.map(milliseconds),
    })
}

/// The distribution of response times: this percentage took at most so long.
fn points(response: Option<&EncodedHistogram>, succeeded: u64) -> Result<Value, ExportError> {
    let Some(response) = response else { return Ok(json!([])) };
    let answered = response.decode(Kind::Request)?;
    let steps = Distribution { all: succeeded.max(answered.len()), answered }.steps();
    let point = |step: &super::distribution::Step| json!({"<=msec": milliseconds(step.nanoseconds), "percent": step.quantile * 100.0});
    Ok(steps.iter().map(point).collect())
}

/// The histogram in memtier's unit. Times are rounded up to whole microseconds.
fn in_microseconds(nanoseconds: &Histogram<u64>) -> Result<EncodedHistogram, HistogramError> {
    let out_of_bounds = || HistogramError::Malformed("counts beyond its bounds");
    let digits = Kind::Request.digits();
    let mut histogram =
        Histogram::new_with_bounds(1, HIGHEST_NANOSECONDS / 1_000, digits).map_err(|_| out_of_bounds())?;
    for bucket in nanoseconds.iter_recorded() {
        let time = bucket.value_iterated_to().min(nanoseconds.max()).div_ceil(1_000);
        histogram.record_n(time, bucket.count_since_last_iteration()).map_err(|_| out_of_bounds())?;
    }
    EncodedHistogram::encode(&histogram)
}

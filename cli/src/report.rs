//! `report`: a result as one HTML file, for reading and sending. It fetches nothing and has no program, and its size is bounded.

mod advice;
mod chart;
mod curve;
mod error;
mod heat;
mod intervals;
mod overtime;
mod several;
mod spread;
mod sweep;
mod table;
mod timeline;

use std::cmp::Reverse;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use redisbench_benchmark::api::RedisBenchmarkSpec;
use redisbench_benchmark::api::status::{
    NodeResult, Phase, ShardOutcome, ShardResult, ThresholdOutcome, TrialResult, VerdictValue,
};
use redisbench_benchmark::human::{self, are, count, counted, latency, rate};
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::conditions::{condition, find};
use redisbench_wire::plan::Topology;

use crate::arguments::ReportArguments;
use crate::exit::USAGE;
use crate::reading::{self, Finding, Reading, ReadingError};
use crate::render::{self, result, setup, thresholds};
use error::ReportError;

/// The most bytes of the manifest.
const MANIFEST: usize = 100_000;

/// The most findings.
const FINDINGS: usize = 64;

/// Writes the report of a finished benchmark.
///
/// # Errors
/// If the cluster cannot be read, or the output cannot be written.
pub async fn report(arguments: &ReportArguments) -> anyhow::Result<u8> {
    let reading = match reading::read(&arguments.source).await {
        Ok(reading) => reading,
        Err(ReadingError::Cluster(error)) => return Err(error),
        Err(error @ ReadingError::Refused { .. }) => {
            eprintln!("error: {error}");
            return Ok(USAGE);
        }
    };
    render::deliver(page(&reading, arguments.trial), arguments.output.as_deref())
}

/// The page. Of several trials, it has the details of `trial`, or else of the last one.
///
/// # Errors
/// If there is no such trial, or its numbers violate the contract.
pub fn page(reading: &Reading, trial: Option<u32>) -> Result<String, ReportError> {
    let shown = match trial {
        None => reading.measurements.last(),
        Some(index) => Some(reading.measurements.iter().find(|one| one.trial.index == index).ok_or_else(|| {
            let known: Vec<_> = reading.measurements.iter().map(|one| one.trial.index.to_string()).collect();
            ReportError::NoSuchTrial(index, if known.is_empty() { "none".to_owned() } else { known.join(", ") })
        })?),
    };
    let several = several::section(reading)?;
    let name = reading.name();
    let is_several = several.is_some() || reading.measurements.len() > 1;
    let details = shown.map(|shown| details(shown, reading)).transpose()?;
    let manifest = manifest(reading, shown)?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Enforces that nothing is fetched and nothing runs.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
                title { (name) " – redisbench" }
                style { (PreEscaped(include_str!("report/style.css"))) (PreEscaped(chart::style())) }
            }
            body {
                a.skip href="#result" { "Skip to the result" }
                header {
                    h1 { (name) }
                    (headline(reading, shown.filter(|_| !is_several)))
                }
                nav aria-label="Contents" {
                    ul {
                        li { a href="#result" { "Verdict" } }
                        @if several.is_some() { li { a href="#trials" { "Trials" } } }
                        @if details.is_some() {
                            li { a href="#time" { "Over time" } }
                            li { a href="#latency" { "Percentiles" } }
                            li { a href="#tables" { "Tables" } }
                        }
                        li { a href="#manifest" { "Manifest" } }
                    }
                }
                main {
                    section id="result" {
                        h2 { "Verdict" }
                        (verdict(reading, is_several))
                    }
                    @if let Some(several) = several {
                        section id="trials" { h2 { "Trials" } (several) }
                    }
                    @if let Some(shown) = shown.filter(|_| is_several) { (place(shown)) }
                    @if let Some(details) = details { (details) }
                    section id="manifest" { h2 { "Manifest" } (manifest) }
                }
            }
        }
    };
    Ok(page.into_string())
}

/// The result in sentences. `only` is the trial, if there is a single one.
fn headline(reading: &Reading, only: Option<&Measurement>) -> Markup {
    let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
    let answers = several::answers(reading);
    html! {
        @if let Some(status) = status.filter(|status| status.phase != Phase::Succeeded) {
            p.answer { span.bad { "✗ " (format!("{:?}", status.phase)) } }
            @if let Some(failed) = find(status, condition::FAILED).filter(|failed| failed.status == "True") {
                p { (failed.reason) ": " (failed.message) }
            }
        }
        @for answer in &answers { p.answer { (answer) } }
        @if reading.measurements.is_empty() {
            p { @if answers.is_empty() { "Nothing was measured." } @else { "The details of the trials are only in their full results." } }
        }
        @if let Some(only) = only { p.answer { (sentence(&only.result)) } }
        @if let Some(verdict) = reading.verdict() {
            p { (severity(verdict.value)) ". " (advice::meaning(verdict.value)) }
        }
        @if let Some(only) = only { (numbers(&only.result)) }
    }
}

/// Which of several trials the details are of.
fn place(shown: &Measurement) -> Markup {
    let setting = shown.trial.setting.as_deref().map_or_else(String::new, |setting| format!(": {setting}"));
    html! {
        div.place {
            p { "Everything below is trial " (shown.trial.index + 1) (setting) ". " code { "report --trial INDEX" }
                " shows another one, from 0." }
            p { (severity(shown.verdict.value)) ". " (sentence(&shown.result)) }
            (numbers(&shown.result))
        }
    }
}

/// Rate, p99 and failures.
fn sentence(result: &TrialResult) -> String {
    let requests = &result.requests;
    let p99 = match result.response_time.p99_nanoseconds {
        Some(nanoseconds) => format!("99 % of all requests took at most {}", latency(nanoseconds)),
        None => "p99 is unknown".to_owned(),
    };
    let failed = match requests.errors.saturating_add(requests.unsent) {
        0 => "none failed".to_owned(),
        failed => format!("{} failed or were not sent", human::share(failed, requests.scheduled)),
    };
    format!(
        "{} requests per second: {p99}, and {failed}.",
        rate(result.throughput.achieved_per_second).trim_end_matches("/s")
    )
}

fn numbers(result: &TrialResult) -> Markup {
    let requests = &result.requests;
    let p99 = result.response_time.percentiles.iter().find(|one| one.percentile == "99");
    let failed = requests.errors.saturating_add(requests.unsent);
    html! {
        dl.numbers {
            div { dt { "Throughput" } dd { (rate(result.throughput.achieved_per_second)) }
                dd.more { "slowest second " (rate(result.throughput.min_per_second)) ", fastest " (rate(result.throughput.max_per_second)) } }
            div { dt { "p99 of response time" }
                dd { (p99.and_then(redisbench_benchmark::measurement::latencies::percentile)
                    .or(result.response_time.p99_nanoseconds.map(latency)).unwrap_or_else(|| "unknown".to_owned())) }
                @if let Some((low, high)) = p99.and_then(|one| one.low_nanoseconds.zip(one.high_nanoseconds)) {
                    dd.more { "95 % confidence: " (latency(low)) " to " (latency(high)) }
                } }
            div { dt { "Errors and unsent" } dd { (human::share(failed, requests.scheduled)) }
                dd.more { "of " (counted(requests.scheduled, "request")) } }
        }
    }
}

/// The limit of the throughput, each reason with what to do, and the thresholds.
fn verdict(reading: &Reading, is_several: bool) -> Markup {
    let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
    let thresholds = match status {
        Some(status) => status.thresholds.clone(),
        None => reading.measurements.iter().flat_map(|one| one.thresholds.iter().cloned()).collect(),
    };
    let failed = thresholds.iter().filter(|one| one.outcome == ThresholdOutcome::Failed).count();
    let findings = reading.findings();
    html! {
        @if let Some(verdict) = reading.verdict() {
            // Of several trials, only a search has a limit.
            @if !is_several || status.is_some_and(|status| status.search.is_some()) {
                p { "Throughput: " (setup::limited_by(verdict.limited_by, verdict.component.as_deref())) ". "
                    (advice::next(verdict.limited_by)) }
            }
            @if findings.is_empty() { p { "There is no reason to doubt the numbers." } }
            ul.reasons {
                @for Finding { trials, reason } in findings.iter().take(FINDINGS) {
                    li {
                        h3 { (severity(reason.severity)) " " (format!("{:?}", reason.reason))
                            @if let Some(trials) = trials { ", " (trials) } }
                        p { (reason.message) }
                        p { strong { "What to do: " } (advice::about(reason.reason)) }
                    }
                }
            }
            @if let Some(more @ 1..) = findings.len().checked_sub(FINDINGS).map(|more| more as u64) {
                p { (counted(more, "more finding")) " " (are(more)) " in the full results." }
            }
        } @else {
            p { "There is no verdict." }
        }
        @if !thresholds.is_empty() {
            p { @if failed > 0 { span.bad { "✗ " (failed) " of " (counted(thresholds.len() as u64, "threshold")) " failed." } }
                @else { "No threshold failed." } }
            (table::table(&thresholds::grid(&thresholds)))
        }
    }
}

fn severity(value: VerdictValue) -> Markup {
    html! {
        @match value {
            VerdictValue::Valid => { b.good { "✓ Valid" } }
            VerdictValue::Degraded => { b.doubtful { "△ Degraded" } }
            VerdictValue::Invalid => { b.bad { "✗ Invalid" } }
        }
    }
}

fn details(shown: &Measurement, reading: &Reading) -> Result<Markup, ReportError> {
    let spec = spec(reading, shown);
    let standalone = spec.is_some_and(|spec| spec.targets.iter().all(|target| target.kind == Topology::Standalone));
    let mut result = shown.result.clone();
    worst_first(&mut result);
    Ok(html! {
        section id="time" { h2 { "Over time" } (overtime::section(shown)?) }
        section id="latency" { h2 { "Percentiles" } (curve::section(shown)?) }
        section id="tables" {
            h2 { "Tables" }
            (health(shown))
            @for chart in spread::charts(&result) { (chart.figure(|_| html! {})?) }
            @for grid in result::grids(&result, standalone) { (table::table(&grid)) }
            @for note in result::notes(&result) { p { (note) } }
        }
    })
}

fn spec<'a>(reading: &'a Reading, shown: &'a Measurement) -> Option<&'a RedisBenchmarkSpec> {
    shown.spec.as_deref().or(reading.object.as_ref().map(|object| &object.spec))
}

/// If there are more than a table holds, the omitted ones are the best.
fn worst_first(result: &mut TrialResult) {
    let shard = |shard: &ShardResult| {
        Reverse((shard.state == ShardOutcome::Lost, shard.p99_nanoseconds, shard.busiest_worker_percent))
    };
    let node = |node: &NodeResult| Reverse((node.errors, node.service_time.p99_nanoseconds, node.requests));
    if result.shards.len() > table::ROWS {
        result.shards.sort_by_key(shard);
    }
    if result.nodes.len() > table::ROWS {
        result.nodes.sort_by_key(node);
    }
    result.operations.sort_by_key(|operation| Reverse(operation.requests.scheduled));
}

/// The differences among shards and among nodes, and the health of the shards.
fn health(shown: &Measurement) -> Markup {
    let result = &shown.result;
    let shards = &result.shards;
    let range = |values: Vec<u64>| values.iter().copied().min().zip(values.iter().copied().max());
    let requests = range(shards.iter().map(|shard| shard.requests.scheduled).collect());
    let p99 = range(shards.iter().filter_map(|shard| shard.p99_nanoseconds).collect());
    let nodes = range(result.nodes.iter().map(|node| node.imbalance_percent).collect());
    let busiest = shards.iter().map(|shard| shard.busiest_worker_percent).max();
    let throttled = shards.iter().map(|shard| shard.throttled_milliseconds).max().unwrap_or(0);
    let lost = shards.iter().filter(|shard| shard.state == ShardOutcome::Lost).count();
    let [skew, clocks] =
        [shown.synchronization.start_skew_microseconds, shown.synchronization.clock_uncertainty_microseconds]
            .map(|microseconds| latency(microseconds.saturating_mul(1_000)));
    html! {
        ul {
            @if let Some((low, high)) = requests.filter(|_| shards.len() > 1) {
                li { (count(shards.len() as u64)) " shards with " (count(low)) " to " (count(high)) " requests each"
                    @if let Some((low, high)) = p99 { ", and a p99 of " (latency(low)) " to " (latency(high)) } "." }
                li { "They started within " (skew) " of each other; their clocks are known to " (clocks) "." }
            }
            @if let Some(busiest) = busiest {
                li { "The busiest worker ran for " (busiest) " % of the time"
                    @if throttled > 0 { ", and a shard was throttled for " (latency(throttled.saturating_mul(1_000_000))) } "." }
            }
            @if lost > 0 { li { span.bad { "✗ " (counted(lost as u64, "shard")) " " (are(lost as u64)) " lost." } } }
            @if let Some((low, high)) = nodes.filter(|_| result.nodes.len() > 1) {
                li { (count(result.nodes.len() as u64)) " nodes with " (low) " % to " (high) " % of the mean number of requests." }
            }
        }
    }
}

/// The manifest as YAML, and the versions.
fn manifest(reading: &Reading, shown: Option<&Measurement>) -> Result<Markup, ReportError> {
    let spec = reading.object.as_ref().map(|object| &object.spec).or(shown.and_then(|shown| shown.spec.as_deref()));
    let yaml = spec.map(serde_yaml::to_string).transpose()?;
    let versions = shown.map(|shown| &shown.versions);
    Ok(html! {
        @if let Some(yaml) = yaml {
            @let cut = human::shorten(&yaml, MANIFEST);
            p { "The " code { "spec" } " that ran, with its defaults. Secrets are only named." }
            div.scroll tabindex="0" role="group" aria-label="spec" { pre { code { (cut) } } }
        } @else { p { "The manifest was not recorded." } }
        @if let Some(versions) = versions {
            p { "redisbench " (versions.redisbench.as_deref().unwrap_or("of an unknown version"))
                @if !versions.servers.is_empty() { "; servers: " (versions.servers.join(", ")) } "." }
        }
        @if let Some(shown) = shown {
            p { "Run " code { (shown.run_id) } @if let Some(start) = &shown.trial.start_at { ", started at " (start.0) } "." }
        }
        p { "Report by redisbench " (env!("CARGO_PKG_VERSION")) "." }
    })
}

#[cfg(test)]
mod browser;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

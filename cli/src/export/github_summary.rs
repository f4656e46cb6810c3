//! Markdown for the summary of a workflow: the verdict, the numbers with their intervals, thresholds and comparisons.

use std::fmt::Write as _;

use redisbench_benchmark::api::status::{
    CacheResult, Latencies, Percentile, Requests, TrialResult, Verdict, VerdictValue,
};
use redisbench_benchmark::human;
use redisbench_benchmark::measurement::latencies;
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::conditions::{condition, find};

use super::error::ExportError;
use super::trials::{self, setting};
use crate::reading::{Finding, Reading};
use crate::render::setup::limited_by;

#[expect(clippy::unnecessary_wraps, reason = "other formats can fail")]
pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
    // Those of the lines of trials, if there are no full results.
    let measured = trials::known(reading).unwrap_or_default();
    let mut text = String::new();
    match reading.verdict() {
        Some(verdict) => headline(&mut text, reading, verdict, measured.len() > 1),
        None => {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "## {}: not measured\n", plain(reading.name()));
        }
    }
    if let Some(failed) = status.and_then(|status| find(status, condition::FAILED)).filter(|one| one.status == "True") {
        let _ = writeln!(text, "{}\n", plain(&failed.message));
    }
    numbers(&mut text, &measured);
    let thresholds = match status {
        Some(status) => status.thresholds.iter().collect::<Vec<_>>(),
        None => reading.measurements.iter().flat_map(|trial| &trial.thresholds).collect(),
    };
    if !thresholds.is_empty() {
        text.push_str("| threshold | outcome | observed |\n| --- | --- | --- |\n");
        for one in thresholds {
            let _ = writeln!(text, "| {} | **{:?}** | {} |", plain(&one.name), one.outcome, plain(&one.message));
        }
        text.push('\n');
    }
    if let Some(found) = status.and_then(|status| status.search.as_ref()) {
        let _ = writeln!(text, "{}\n", plain(&found.message));
    }
    let searches = status.map_or(&[][..], |status| &status.searches);
    for search in searches {
        let _ = writeln!(text, "- {}: {}", plain(&search.name()), plain(&search.result.message));
    }
    if !searches.is_empty() {
        text.push('\n');
    }
    let comparisons = status.map_or(&[][..], |status| &status.comparison);
    let recorded = reading.experiment.as_ref().map_or(&[][..], |all| &all.comparison);
    let comparisons = if comparisons.is_empty() { recorded } else { comparisons };
    for one in comparisons {
        let Some(metric) = one.metrics.first() else { continue };
        let interval = metric.low_millionths.zip(metric.high_millionths);
        let interval = interval.map(|(low, high)| format!(" ({} to {})", human::change(low), human::change(high)));
        let change = metric.ratio_millionths.map(human::change).unwrap_or_default();
        let _ = writeln!(
            text,
            "- {} against {}: **{:?}**, {:?} {change}{}",
            plain(&one.target),
            plain(&one.baseline),
            one.outcome,
            metric.metric,
            interval.unwrap_or_default()
        );
    }
    if !comparisons.is_empty() {
        text.push('\n');
    }
    if let Some(first) = reading.measurements.first() {
        let own = first.versions.redisbench.iter().map(|version| format!("redisbench {version}"));
        let versions: Vec<_> = own.chain(first.versions.servers.iter().cloned()).collect();
        if !versions.is_empty() {
            let _ = writeln!(text, "{}", plain(&versions.join(", ")));
        }
    }
    Ok(text.into_bytes())
}

fn headline(text: &mut String, reading: &Reading, verdict: &Verdict, is_several: bool) {
    let _ = writeln!(text, "## {}: {:?}\n", plain(reading.name()), verdict.value);
    // Several trials have no common limit.
    if !is_several {
        let _ = writeln!(text, "{}\n", plain(&limited_by(verdict.limited_by, verdict.component.as_deref())));
    }
    let findings = reading.findings();
    for Finding { trials, reason } in &findings {
        let severity = match reason.severity {
            VerdictValue::Valid => "note".to_owned(),
            worse => format!("**{worse:?}**"),
        };
        let trials = trials.iter().map(|trials| format!(", {}", plain(trials))).collect::<String>();
        let _ = writeln!(text, "- {severity} {:?}{trials}: {}", reason.reason, plain(&reason.message));
    }
    if !findings.is_empty() {
        text.push('\n');
    }
}

/// A row per trial, with its client-side caches and its client's processor time if there are any; of a single trial also one per operation.
fn numbers(text: &mut String, trials: &[Measurement]) {
    let Some(first) = trials.first() else { return };
    let percentiles: Vec<_> =
        first.result.response_time.percentiles.iter().map(|one| one.percentile.as_str()).collect();
    let with_caches = trials.iter().any(|trial| trial.result.cache.is_some());
    let with_cpu = trials.iter().any(|trial| !trial.result.clients.is_empty());
    let further = |result: Option<&TrialResult>| {
        let caches = with_caches.then(|| cells_of_cache(result.and_then(|result| result.cache.as_ref())));
        let client = result.and_then(|result| result.clients.first());
        let cpu = with_cpu.then(|| client.map(|client| human::latency(client.cpu_per_request_nanoseconds)));
        caches.into_iter().flatten().chain(cpu.map(Option::unwrap_or_default)).collect::<Vec<_>>()
    };
    let caches = with_caches.then_some(["cache hits", "invalidations"]).into_iter().flatten();
    let names = percentiles.iter().map(|percentile| format!("p{percentile}"));
    let names = names.chain(caches.chain(with_cpu.then_some("CPU/request")).map(str::to_owned));
    let (heads, lines): (String, String) = names.map(|name| (format!(" {name} |"), " ---: |")).unzip();
    let _ = writeln!(text, "| | rate | succeeded | errors |{heads}\n| --- | ---: | ---: | ---: |{lines}");
    for trial in trials {
        let name = setting(trial).unwrap_or_else(|| "all".to_owned());
        let result = &trial.result;
        let (rate, further) = (result.throughput.achieved_per_second, further(Some(result)));
        row(text, &name, rate, &result.requests, &result.response_time, &percentiles, &further);
    }
    if let ([only], [_, _, ..]) = (trials, first.result.operations.as_slice()) {
        for operation in &only.result.operations {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a rate in 64 bits")]
            let rate = only.result.rate_of(&operation.requests).round() as u64;
            let (requests, times) = (&operation.requests, &operation.response_time);
            row(text, &operation.name, rate, requests, times, &percentiles, &further(None));
        }
    }
    text.push('\n');
}

/// The cells of client-side caches, empty in a row without them.
fn cells_of_cache(cache: Option<&CacheResult>) -> [String; 2] {
    let cells = |cache: &CacheResult| {
        let reads = cache.hits.saturating_add(cache.misses);
        [human::share(cache.hits, reads), human::count(cache.invalidations)]
    };
    cache.map(cells).unwrap_or_default()
}

fn row(
    text: &mut String,
    name: &str,
    rate: u64,
    requests: &Requests,
    times: &Latencies,
    percentiles: &[&str],
    further: &[String],
) {
    let errors = human::share(requests.errors.saturating_add(requests.unsent), requests.scheduled);
    let _ =
        write!(text, "| {} | {} | {} | {errors} |", plain(name), human::rate(rate), human::count(requests.succeeded));
    for percentile in percentiles {
        let found = times.percentiles.iter().find(|one| one.percentile == *percentile);
        let _ = write!(text, " {} |", found.map(cell).unwrap_or_default());
    }
    for cell in further {
        let _ = write!(text, " {cell} |");
    }
    text.push('\n');
}

/// A percentile with its interval, or why it is unknown.
fn cell(found: &Percentile) -> String {
    let interval = found.low_nanoseconds.zip(found.high_nanoseconds);
    let interval = interval.map(|(low, high)| format!(" ({} to {})", human::latency(low), human::latency(high)));
    match (latencies::percentile(found), found.needed_requests) {
        (Some(value), _) => value + &interval.unwrap_or_default(),
        (None, Some(needed)) => format!("needs {} requests", human::count(needed)),
        (None, None) => String::new(),
    }
}

/// Text that Markdown leaves as it is, in a cell of a table too.
fn plain(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut plain = String::with_capacity(one_line.len());
    for character in one_line.chars() {
        match character {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '#' => plain.extend(['\\', character]),
            other => plain.push(other),
        }
    }
    plain
}

//! The trials of a result.

use std::borrow::Cow;

use redisbench_benchmark::api::status::{
    CacheResult, ClientResult, Latencies, LimitedBy, Percentile, Requests, Throughput, TrialLine, TrialResult,
    TrialStatus, Verdict,
};
use redisbench_benchmark::human;
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::conditions::{condition, find};

use super::error::ExportError;
use crate::reading::Reading;

/// All, at least one.
pub fn trials(reading: &Reading) -> Result<&[Measurement], ExportError> {
    let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
    match (reading.measurements.as_slice(), status) {
        ([], Some(status)) if !status.trials.is_empty() => Err(ExportError::NoResults),
        ([], Some(status)) => {
            let failed = find(status, condition::FAILED).filter(|failed| failed.status == "True");
            let message = failed.map(|failed| format!(", {}", failed.message)).unwrap_or_default();
            Err(ExportError::NotMeasured(format!(
                ": status.phase is {:?}{message}; fix the cause and run it again. The formats junit and github-summary, and \
                 the report, show such a run too",
                status.phase
            )))
        }
        ([], None) => Err(ExportError::NotMeasured(String::new())),
        (measured, _) => Ok(measured),
    }
}

/// Like [`trials`]; without full results, the figures that the status has of each trial.
pub fn known(reading: &Reading) -> Result<Cow<'_, [Measurement]>, ExportError> {
    let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
    let lines = status.map_or(&[][..], |status| &status.trials);
    let of = u32::try_from(lines.len()).unwrap_or(u32::MAX);
    match trials(reading) {
        Err(ExportError::NoResults) => Ok(lines.iter().filter_map(|line| of_line(line, of)).collect()),
        known => known.map(Cow::Borrowed),
    }
}

/// None if nothing was measured.
fn of_line(line: &TrialLine, of: u32) -> Option<Measurement> {
    let requests = line.requests?;
    let percentiles = [("50", line.p50_nanoseconds), ("99", line.p99_nanoseconds), ("99.9", line.p999_nanoseconds)];
    let percentile = |(percentile, nanoseconds): (&str, _)| Percentile {
        percentile: percentile.to_owned(),
        nanoseconds,
        ..Percentile::default()
    };
    let client = |cpu_per_request_nanoseconds| ClientResult { cpu_per_request_nanoseconds, ..ClientResult::default() };
    let result = TrialResult {
        requests: Requests {
            scheduled: requests.scheduled,
            succeeded: requests.succeeded,
            errors: requests.errors,
            unsent: requests.unsent,
            ..Requests::default()
        },
        throughput: Throughput { achieved_per_second: line.achieved_per_second?, ..Throughput::default() },
        response_time: Latencies {
            mean_nanoseconds: line.mean_nanoseconds,
            p50_nanoseconds: line.p50_nanoseconds,
            p99_nanoseconds: line.p99_nanoseconds,
            p999_nanoseconds: line.p999_nanoseconds,
            percentiles: percentiles.map(percentile).to_vec(),
            ..Latencies::default()
        },
        cache: line.cache.map(|cache| CacheResult {
            hits: cache.hits,
            misses: cache.misses,
            invalidations: cache.invalidations,
            ..CacheResult::default()
        }),
        clients: line.cpu_per_request_nanoseconds.map(client).into_iter().collect(),
        ..TrialResult::default()
    };
    let rate = line.search.as_ref().map(|step| human::exact_rate(step.rate_per_second));
    let parts: Vec<_> = rate.into_iter().chain(line.setting.parts(line.repeat, |field| field)).collect();
    let trial = TrialStatus {
        index: line.index,
        of,
        attempt: line.attempt,
        start_at: line.start_at.clone(),
        setting: (!parts.is_empty()).then(|| parts.join(", ")),
    };
    let verdict = Verdict {
        value: line.verdict?,
        reasons: Vec::new(),
        limited_by: line.limited_by.unwrap_or(LimitedBy::Unknown),
        component: None,
    };
    Some(Measurement::new(trial, result, verdict))
}

/// That of a result with one trial.
pub fn only(reading: &Reading) -> Result<&Measurement, ExportError> {
    match trials(reading)? {
        [one] => Ok(one),
        several => Err(ExportError::SeveralTrials(several.len())),
    }
}

/// Setting of one of several trials, for people; its number if it has none. None for a single trial.
pub fn setting(trial: &Measurement) -> Option<String> {
    let number = || format!("trial {}", trial.trial.index.saturating_add(1));
    (trial.trial.of > 1).then(|| trial.trial.setting.clone().unwrap_or_else(number))
}

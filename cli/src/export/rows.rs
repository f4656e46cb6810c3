//! A trial as a table: a row per second for all requests, and one per second and operation.

use jiff::Timestamp;
use redisbench_benchmark::api::status::Latencies;
use redisbench_benchmark::measurement::latencies::response_time;
use redisbench_benchmark::measurement::seconds::measured;
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::measurement::{NamedPart, Second};
use redisbench_wire::timeline::{Outcomes, SpanPart};
use serde::Serialize;

use super::error::ExportError;
use super::trials::trials;
use crate::reading::Reading;

/// Requests of a second. Unknown numbers are null.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row<'a> {
    pub benchmark: &'a str,
    pub run_id: &'a str,
    pub trial: u32,
    /// The setting that distinguishes the trial from others.
    pub setting: Option<&'a str>,
    /// None for all operations together.
    pub operation: Option<&'a str>,
    /// Its beginning, in milliseconds since the Unix epoch.
    pub unix_milliseconds: Option<i64>,
    /// Its beginning, in seconds since the start of the load.
    pub second: u32,
    /// Its length. Time before the last hour is kept by the minute.
    pub seconds: u32,
    /// Scheduled, and so on: see [`Outcomes`].
    pub scheduled: u64,
    pub succeeded: u64,
    pub errors: u64,
    pub unanswered: u64,
    pub unsent: u64,
    pub late: u64,
    /// None for operations of a result that has them only for all operations together.
    pub sent_bytes: Option<u64>,
    pub received_bytes: Option<u64>,
    /// Response time, rounded up by at most 3.2 %. Requests without an answer count as longer than any answer.
    pub mean_nanoseconds: Option<u64>,
    pub p50_nanoseconds: Option<u64>,
    pub p90_nanoseconds: Option<u64>,
    pub p95_nanoseconds: Option<u64>,
    pub p99_nanoseconds: Option<u64>,
    pub p999_nanoseconds: Option<u64>,
    pub max_nanoseconds: Option<u64>,
}

pub fn rows(reading: &Reading) -> Result<Vec<Row<'_>>, ExportError> {
    let mut rows = Vec::new();
    for trial in trials(reading)? {
        for second in seconds(trial)? {
            rows.push(Row {
                sent_bytes: Some(second.sent_bytes),
                received_bytes: Some(second.received_bytes),
                ..row(trial, second, None, &second.total)
            });
            let counted = trial.result.operations.iter().any(|operation| operation.bandwidth.is_some());
            rows.extend(second.operations.iter().map(|NamedPart { name, part }| Row {
                sent_bytes: counted.then_some(part.counts.sent_bytes),
                received_bytes: counted.then_some(part.counts.received_bytes),
                ..row(trial, second, Some(name), part)
            }));
        }
    }
    Ok(rows)
}

fn row<'a>(trial: &'a Measurement, second: &Second, operation: Option<&'a str>, part: &SpanPart) -> Row<'a> {
    let Outcomes { scheduled, succeeded, errors, unanswered, unsent, late, .. } = part.counts;
    let times = times(part);
    let began = start(trial).ok().map(|start| start.as_millisecond() + i64::from(second.second) * 1_000);
    Row {
        benchmark: &trial.benchmark,
        run_id: &trial.run_id,
        trial: trial.trial.index,
        setting: trial.trial.setting.as_deref(),
        operation,
        unix_milliseconds: began,
        second: second.second,
        seconds: second.seconds,
        scheduled,
        succeeded,
        errors,
        unanswered,
        unsent,
        late,
        sent_bytes: None,
        received_bytes: None,
        mean_nanoseconds: times.mean_nanoseconds,
        p50_nanoseconds: times.p50_nanoseconds,
        p90_nanoseconds: times.p90_nanoseconds,
        p95_nanoseconds: times.p95_nanoseconds,
        p99_nanoseconds: times.p99_nanoseconds,
        p999_nanoseconds: times.p999_nanoseconds,
        max_nanoseconds: times.max_nanoseconds,
    }
}

/// Response times of the requests of `part`, as in a result.
pub fn times(part: &SpanPart) -> Latencies {
    response_time(&measured(std::iter::once(part)), &[])
}

/// The seconds of `trial`, in order, without empty ones.
pub fn seconds(trial: &Measurement) -> Result<&[Second], ExportError> {
    if trial.seconds_left_out { Err(ExportError::NoSeconds(trial.trial.index)) } else { Ok(&trial.seconds) }
}

pub fn start(trial: &Measurement) -> Result<Timestamp, ExportError> {
    let start = trial.trial.start_at.as_ref().map(|start| start.0);
    start.ok_or(ExportError::NoStart(trial.trial.index))
}

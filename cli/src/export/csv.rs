//! The lines of `redis-benchmark --csv`: one per operation, every field in quotes, times in milliseconds. Unknown fields are empty.

use std::fmt::Write as _;

use redisbench_benchmark::api::status::Latencies;
use redisbench_wire::histogram::{EncodedHistogram, Kind};

use super::error::ExportError;
use super::milliseconds::milliseconds;
use super::trials::{known, setting};
use crate::reading::Reading;

const HEADS: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
                     \"p99_latency_ms\",\"max_latency_ms\"\n";

pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let mut text = HEADS.to_owned();
    for trial in known(reading)?.iter() {
        let setting = setting(trial).map(|setting| format!(" ({setting})")).unwrap_or_default();
        let histogram = |name: &str| {
            let named =
                trial.histograms.iter().flat_map(|all| &all.operations).find(|operation| operation.name == name);
            named.map(|named| &named.histograms.response)
        };
        for operation in &trial.result.operations {
            let rate = trial.result.rate_of(&operation.requests);
            let shortest = shortest(histogram(&operation.name))?;
            line(&mut text, &format!("{}{setting}", operation.name), rate, shortest, &operation.response_time);
        }
        // Without a breakdown there is only the total.
        if trial.result.operations.is_empty() {
            let shortest = shortest(trial.histograms.as_ref().map(|all| &all.total.response))?;
            line(
                &mut text,
                &format!("all{setting}"),
                trial.result.rate_of(&trial.result.requests),
                shortest,
                &trial.result.response_time,
            );
        }
    }
    Ok(text.into_bytes())
}

/// The shortest time in `histogram`, if there is one.
fn shortest(histogram: Option<&EncodedHistogram>) -> Result<Option<u64>, ExportError> {
    let histogram = histogram.map(|histogram| histogram.decode(Kind::Request)).transpose()?;
    Ok(histogram.filter(|times| !times.is_empty()).map(|times| times.min()))
}

fn line(text: &mut String, name: &str, rate: f64, shortest: Option<u64>, times: &Latencies) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\"{}\",\"{rate:.2}\"", name.replace('"', "\"\""));
    for nanoseconds in [
        times.mean_nanoseconds,
        shortest,
        times.p50_nanoseconds,
        times.p95_nanoseconds,
        times.p99_nanoseconds,
        times.max_nanoseconds,
    ] {
        let field = nanoseconds.map(|time| format!("{:.6}", milliseconds(time))).unwrap_or_default();
        let _ = write!(text, ",\"{field}\"");
    }
    text.push('\n');
}

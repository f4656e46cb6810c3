//! `OpenMetrics` text: counters and a histogram as they stood at the start and at the end of every second, such as for
//! `promtool tsdb create-blocks-from openmetrics`. No quantiles: they cannot be aggregated.

use std::fmt::Write as _;

use redisbench_benchmark::report::Measurement;
use redisbench_wire::timeline::{Outcomes, highest_in};

use super::error::ExportError;
use super::rows::{seconds, start};
use super::trials::trials;
use crate::reading::Reading;

/// Upper bounds of the buckets, in nanoseconds and as written: three per decade, as in the operator's metrics.
const BOUNDS: [(u64, &str); 20] = [
    (10_000, "1e-05"),
    (20_000, "2e-05"),
    (50_000, "5e-05"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1.0"),
    (2_000_000_000, "2.0"),
    (5_000_000_000, "5.0"),
    (10_000_000_000, "10.0"),
    (60_000_000_000, "60.0"),
];

/// A trial so far.
#[derive(Clone, Default)]
struct Sample {
    /// In seconds since the Unix epoch.
    at: String,
    counts: Outcomes,
    /// Sent and received.
    bytes: (u64, u64),
    /// Cumulative, as in [`BOUNDS`].
    buckets: [u64; BOUNDS.len()],
    /// Of all buckets.
    count: u64,
    nanoseconds: u128,
}

/// A family: its name without suffix, type, unit and help, and the lines of a trial.
type Family = (&'static str, &'static str, &'static str, &'static str, fn(&mut String, &str, &[Sample]));

/// A label of its own, and the count that it has.
type Series = (&'static str, fn(&Sample) -> u64);

const FAMILIES: [Family; 3] = [
    ("redisbench_requests", "counter", "", "Measured requests by outcome.", requests),
    ("redisbench_bytes", "counter", "bytes", "Bytes sent and received while measuring.", bytes),
    (
        "redisbench_response_time_seconds",
        "histogram",
        "seconds",
        "Response time of successful requests, rounded up by at most 3.2 %.",
        response_time,
    ),
];

pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let trials = trials(reading)?.iter().map(|trial| Ok((labels(trial), samples(trial)?)));
    let trials = trials.collect::<Result<Vec<_>, ExportError>>()?;
    let mut text = String::new();
    for (name, kind, unit, help, lines) in FAMILIES {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {help}");
        for (labels, samples) in &trials {
            lines(&mut text, labels, samples);
        }
    }
    text.push_str("# EOF\n");
    Ok(text.into_bytes())
}

fn labels(trial: &Measurement) -> String {
    let target = trial.spec.as_ref().and_then(|spec| spec.targets.first()).map_or("", |target| &target.name);
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!(
        "benchmark=\"{}\",target=\"{}\",trial=\"{}\"",
        escaped(&trial.benchmark),
        escaped(target),
        trial.trial.index
    )
}

fn samples(trial: &Measurement) -> Result<Vec<Sample>, ExportError> {
    let began = start(trial)?.as_millisecond();
    let instant = |second: i64| {
        let at = began + second * 1_000;
        format!("{}.{:03}", at / 1_000, at % 1_000)
    };
    let seconds = seconds(trial)?;
    let Some(first) = seconds.first() else { return Ok(Vec::new()) };
    let mut now = Sample { at: instant(first.second.into()), ..Sample::default() };
    // From 0, because Prometheus sees only increases.
    let mut samples = vec![now.clone()];
    for second in seconds {
        now.at = instant(i64::from(second.second) + i64::from(second.seconds));
        now.counts.add(&second.total.counts);
        now.bytes.0 = now.bytes.0.saturating_add(second.sent_bytes);
        now.bytes.1 = now.bytes.1.saturating_add(second.received_bytes);
        for (bucket, count) in second.total.response.iter() {
            let longest = highest_in(bucket);
            now.count = now.count.saturating_add(count);
            now.nanoseconds = now.nanoseconds.saturating_add(u128::from(longest) * u128::from(count));
            let reached = BOUNDS.iter().zip(&mut now.buckets).filter(|((bound, _), _)| longest <= *bound);
            reached.for_each(|(_, sum)| *sum = sum.saturating_add(count));
        }
        samples.push(now.clone());
    }
    Ok(samples)
}

fn requests(text: &mut String, labels: &str, samples: &[Sample]) {
    let outcomes: [Series; 3] = [
        ("outcome=\"succeeded\"", |at| at.counts.succeeded),
        ("outcome=\"error\"", |at| at.counts.errors),
        ("outcome=\"unsent\"", |at| at.counts.unsent),
    ];
    counter(text, "redisbench_requests_total", labels, &outcomes, samples);
}

fn bytes(text: &mut String, labels: &str, samples: &[Sample]) {
    let directions: [Series; 2] =
        [("direction=\"sent\"", |at| at.bytes.0), ("direction=\"received\"", |at| at.bytes.1)];
    counter(text, "redisbench_bytes_total", labels, &directions, samples);
}

/// One series after the other, as the format demands.
fn counter(text: &mut String, name: &str, labels: &str, all: &[Series], samples: &[Sample]) {
    for (label, count) in all {
        for sample in samples {
            let _ = writeln!(text, "{name}{{{labels},{label}}} {} {}", count(sample), sample.at);
        }
    }
}

fn response_time(text: &mut String, labels: &str, samples: &[Sample]) {
    const NAME: &str = "redisbench_response_time_seconds";
    for Sample { at, buckets, count, nanoseconds, .. } in samples {
        for ((_, bound), sum) in BOUNDS.iter().zip(buckets) {
            let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"{bound}\"}} {sum} {at}");
        }
        let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"+Inf\"}} {count} {at}");
        let _ = writeln!(text, "{NAME}_count{{{labels}}} {count} {at}");
        let _ = writeln!(text, "{NAME}_sum{{{labels}}} {} {at}", *nanoseconds as f64 / 1e9);
    }
}

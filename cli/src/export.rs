//! `export`: a finished benchmark in the formats of other tools. Each format is a pure function of what was read.

mod configuration;
mod csv;
mod distribution;
mod github_summary;
mod hgrm;
mod hlog;
mod jsonl;
mod junit;
mod memtier_json;
mod openmetrics;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
#[cfg(test)]
pub mod sample;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::conditions::{condition, find};
use redisbench_wire::histogram::HistogramError;

use crate::arguments::Source;
use crate::reading::{self, Reading};
use crate::render;

#[derive(Clone, Copy, Debug)]
pub struct Format {
    name: &'static str,
    /// For `--help`.
    about: &'static str,
    /// Makes the content of a file.
    write: fn(&Reading) -> Result<Vec<u8>, ExportError>,
}

const FORMATS: &[Format] = &[
    Format {
        name: "csv",
        about: "Lines of `redis-benchmark --csv`, one per operation; milliseconds",
        write: csv::write,
    },
    Format {
        name: "github-summary",
        about: "Markdown, such as for $GITHUB_STEP_SUMMARY",
        write: github_summary::write,
    },
    Format {
        name: "hgrm",
        about: "Percentiles of response time as HdrHistogram's plotter reads them; milliseconds",
        write: hgrm::write,
    },
    Format {
        name: "hlog",
        about: "HdrHistogram interval log of response time, one histogram per second; nanoseconds",
        write: hlog::write,
    },
    Format {
        name: "jsonl",
        about: "JSON lines: one per second and operation, and one per second for all",
        write: jsonl::write,
    },
    Format {
        name: "junit",
        about: "JUnit XML: the verdict, thresholds and verification as test cases",
        write: junit::write,
    },
    Format {
        name: "memtier-json",
        about: "As written by `memtier_benchmark --json-out-file`, never with credentials; milliseconds",
        write: memtier_json::write,
    },
    Format {
        name: "openmetrics",
        about: "Counters and histograms over time, to backfill Prometheus with promtool",
        write: openmetrics::write,
    },
    #[cfg(feature = "parquet")]
    Format { name: "parquet", about: "The rows of jsonl as columns", write: parquet::write },
];

impl Format {
    /// Parses the name of a format.
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about));
        PossibleValuesParser::new(values).try_map(|name| {
            FORMATS.iter().find(|format| format.name == name).copied().ok_or("is not a format of this program")
        })
    }
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// What to convert.
    #[command(flatten)]
    pub source: Source,
    /// The format
    #[arg(long, value_parser = Format::parser())]
    pub format: Format,
    /// Only the trial with this index, from 0, as in the names of its files
    #[arg(long, value_name = "INDEX")]
    pub trial: Option<u32>,
    /// Write to OUT instead of standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// Why a result has no file of a format. For people: says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("nothing was measured{0}")]
    NotMeasured(String),
    #[error("--trial {0}: there is no full result of it; there are: {1}")]
    NoSuchTrial(u32, String),
    #[error("this format has one trial, and there are {0}: choose one with --trial INDEX, from 0")]
    SeveralTrials(usize),
    #[error(
        "trial {0}: this format needs the seconds, which a saved object does not have, and a full result only within its \
         size limit; export NAME from the cluster, or the directory of `local --output-dir`"
    )]
    NoSeconds(u32),
    #[error(
        "trial {0}: this format needs the distribution of all requests, which is only in the full result; export NAME from \
         the cluster, or the directory of `local --output-dir`"
    )]
    NoDistribution(u32),
    #[error("trial {0} has no start instant, so its times are unknown")]
    NoStart(u32),
    #[error("failed to read a histogram of the result")]
    Histogram(#[from] HistogramError),
    #[error("failed to write {0}: {1}")]
    Write(&'static str, Box<dyn std::error::Error + Send + Sync>),
}

/// Converts a result and writes it.
///
/// # Errors
/// If the result cannot be read, or the output cannot be written.
pub async fn export(arguments: &ExportArguments) -> anyhow::Result<u8> {
    let reading = reading::read(&arguments.source).await?;
    let bytes = chosen(reading, arguments.trial).and_then(|reading| (arguments.format.write)(&reading));
    render::deliver(bytes, arguments.output.as_deref())
}

fn chosen(mut reading: Reading, trial: Option<u32>) -> Result<Reading, ExportError> {
    let Some(chosen) = trial else { return Ok(reading) };
    let all: Vec<_> = reading.measurements.iter().map(|one| one.trial.index.to_string()).collect();
    reading.measurements.retain(|one| one.trial.index == chosen);
    if reading.measurements.is_empty() {
        let known = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        return Err(ExportError::NoSuchTrial(chosen, known));
    }
    // These are of all trials.
    Ok(Reading { object: None, experiment: None, ..reading })
}

fn trials(reading: &Reading) -> Result<&[Measurement], ExportError> {
    if reading.measurements.is_empty() {
        let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
        let why = match status {
            Some(status) if !status.trials.is_empty() => Some(
                "; the object has no full results of its trials: give the directory of `local --output-dir` too".into(),
            ),
            Some(status) => {
                let failed = find(status, condition::FAILED).filter(|failed| failed.status == "True");
                let message = failed.map(|failed| format!(", {}", failed.message)).unwrap_or_default();
                Some(format!(
                    ": status.phase is {:?}{message}; fix the cause and run it again. The formats junit and github-summary, and \
                     the report, show such a run too",
                    status.phase
                ))
            }
            None => None,
        };
        return Err(ExportError::NotMeasured(why.unwrap_or_default()));
    }
    Ok(&reading.measurements)
}

fn only(reading: &Reading) -> Result<&Measurement, ExportError> {
    match trials(reading)? {
        [one] => Ok(one),
        several => Err(ExportError::SeveralTrials(several.len())),
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// Setting of one of several trials, for people; its number if it has none. None for a single trial.
fn setting(trial: &Measurement) -> Option<String> {
    let number = || format!("trial {}", trial.trial.index);
    (trial.trial.of > 1).then(|| trial.trial.setting.clone().unwrap_or_else(number))
}

#[cfg(test)]
pub mod tests;

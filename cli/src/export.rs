//! `export`: a finished benchmark in the formats of other tools. Each format is a pure function of what was read.

mod configuration;
mod csv;
mod distribution;
mod error;
mod github_summary;
mod hgrm;
mod hlog;
mod jsonl;
mod junit;
mod memtier_json;
mod milliseconds;
mod openmetrics;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
mod runs;
#[cfg(test)]
pub mod sample;
mod trials;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::arguments::Source;
use crate::reading::{self, Reading};
use crate::render;
use error::ExportError;

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
    /// The run to convert.
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

#[cfg(test)]
pub mod tests;

//! A finished benchmark as text: a table for people, or the object itself. Uses only the object, so that `local` and `run` print the same.

mod extras;
pub mod grid;
mod latencies;
mod paint;
pub mod result;
pub mod search;
pub mod setup;
pub mod thresholds;
pub mod topology;
pub mod trials;
mod verification;

use std::error::Error;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

use anyhow::Context as _;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::ComparisonResult;

use crate::arguments::Output;
use crate::exit::{GOOD, USAGE};
pub use grid::Grid;
pub use paint::{Paint, Style};

/// Prints `benchmark` to standard output.
pub fn print(benchmark: &RedisBenchmark, output: Output) -> anyhow::Result<()> {
    let text = match output {
        Output::Table => table(benchmark, Paint::for_stream(io::stdout().is_terminal())),
        Output::Json => {
            let mut text = serde_json::to_string_pretty(benchmark).context("failed to write the object as JSON")?;
            text.push('\n');
            text
        }
        Output::Yaml => serde_yaml::to_string(benchmark).context("failed to write the object as YAML")?,
    };
    write(text)
}

/// Writes `content` to standard output. A reader that stops early, such as `head`, is no error.
pub fn write(content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(content.as_ref()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to write to standard output"),
    }
}

/// Writes what was made to `file`, or to standard output. Prints why it could not be made. Returns the exit code.
///
/// # Errors
/// If it cannot be written.
pub fn deliver<E: Error + Send + Sync + 'static>(
    made: Result<impl AsRef<[u8]>, E>,
    file: Option<&Path>,
) -> anyhow::Result<u8> {
    match (made, file) {
        (Err(error), _) => {
            eprintln!("error: {:#}", anyhow::Error::new(error));
            return Ok(USAGE);
        }
        (Ok(content), None) => write(content)?,
        (Ok(content), Some(file)) => {
            std::fs::write(file, content).with_context(|| format!("failed to write {}", file.display()))?;
        }
    }
    Ok(GOOD)
}

/// The table for people. Most important things first.
pub fn table(benchmark: &RedisBenchmark, paint: Paint) -> String {
    let mut text = setup::headline(benchmark, paint);
    text.push_str(&setup::setup(benchmark, paint));
    let status = benchmark.status.as_ref();
    if let Some(measured) = status.and_then(|status| status.result.as_ref()) {
        text.push_str(&result::sections(benchmark, measured, paint));
    }
    if let Some(servers) = status.and_then(|status| status.topology.as_ref()) {
        text.push_str(&topology::topology(servers, paint));
    }
    if let Some(status) = status {
        if !status.thresholds.is_empty() {
            text.push_str(&thresholds::grid(&status.thresholds).text(paint));
        }
        match &status.search {
            Some(found) => text.push_str(&search::table(found, &status.trials, paint)),
            None if !status.searches.is_empty() => {
                text.push_str(&search::tables(&status.searches, &status.trials, paint));
            }
            None if status.trials.is_empty() => {}
            None => text.push_str(&trials::grid(&status.trials).text(paint)),
        }
        text.push_str(&trials::comparison(&status.comparison, status.comparison_left_out, paint));
        if !status.repeats.is_empty() {
            text.push_str(&trials::repeats(&status.repeats, status.repeats_left_out, paint));
        }
        text.push_str(&setup::artifacts(status, paint));
    }
    text
}

pub fn comparison(results: &[ComparisonResult], paint: Paint) -> String {
    trials::comparison(results, 0, paint)
}

#[cfg(test)]
mod tests;

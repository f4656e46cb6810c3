//! The table, for a terminal and for the documents.

mod floor;

use std::fmt::Write as _;

use crate::clients::Bench;
use crate::machine::Machine;
use crate::table::{Row, median};

/// A row, printed once measured.
pub fn line(row: &Row) -> String {
    let measured = match &row.outcome {
        Ok(measured) => measured.detail.clone(),
        Err(error) => format!("failed: {error}"),
    };
    format!("{}: {} {}\n    {measured}", row.name, value(row), row.verdict())
}

/// All rows, for a terminal.
pub fn table(rows: &[Row]) -> String {
    let cells: Vec<[String; 6]> = std::iter::once(HEADS.map(str::to_owned)).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let mut text = String::new();
    for row in &cells {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// The comparison with the floor, for a terminal.
pub fn floor(rows: &[Row]) -> String {
    let over = |row: &Row| Some(format!("{}: {} of the floor\n", row.name, number(median(&row.floor()?.ratios)?)));
    let missed = rows.iter().filter_map(floor::missed).map(|text| format!("\n{text}\n"));
    std::iter::once("\n".to_owned()).chain(rows.iter().filter_map(over)).chain(missed).collect()
}

/// The document.
pub fn document(machine: &Machine, bench: &Bench, rows: &[Row]) -> String {
    let markdown = |cells: [String; 6]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", " --- |".repeat(HEADS.len()));
    let table: String = rows.iter().map(|row| markdown(cells(row))).collect();
    let details: String = rows.iter().map(detail).collect();
    let length = if (bench.length - 1.0).abs() < f64::EPSILON {
        String::new()
    } else {
        format!(
            " The runs were shortened by the factor {}, so the figures vary more than those of full runs.",
            bench.length
        )
    };
    format!(
        "# Cost of the load generator\n\n\
         Measured by `make bench` on {date}.{length}\n\n{machine}\n\
         {heads}{rule}{table}\n\
         {floor}\
         ## How\n\n{HOW}\n\
         ## The samples of each figure\n\n\
         Medians; \"server\" is the server's own CPU time per request. Samples are in the order of \
         measurement.\n\n{details}",
        date = machine.date,
        machine = machine.list(),
        heads = markdown(HEADS.map(str::to_owned)),
        floor = floor::section(rows),
    )
}

const HEADS: [&str; 6] = ["what", "measured", "lowest to highest", "gate", "aim", "verdict"];

const HOW: &str = "\
- One worker, 50 connections, 100-byte values, 100,000 keys, unless a row states otherwise. P is the number of requests in
  flight per connection.
- Client and server each have their own processor (`taskset`) and use loopback. Ours is the bare engine
  (`loadgen/src/bin/drive.rs`) with all histograms: total, per operation, per node.
- CPU is the user and system time of the whole client process, from start to exit, divided by the requests that the server
  counted.
- Ratios come from pairs, ours and theirs in alternation, because a machine's speed drifts. The figure is the median of the
  pairs' ratios.
- The null server (`redisbench-loadgen null-server`) replies immediately and stores no keys. With it, the client is the limit;
  with redis-server, mostly the server is.
- With TLS, redis-server has a self-signed certificate with a P-256 key, which both clients trust.
- With 10,000 connections, the cost of connecting is subtracted for every client: the cost of a run with one request per
  connection.
- System calls (`strace -f -c`) and instructions (callgrind) are those of the whole process, as the difference between runs
  with two numbers of requests. The lowest of three counts is used, because a server that waits for its processor only adds
  to the work of a saturated worker. The open loop is behind its schedule (1M/s), so its batches are full too. At lower rates
  they are smaller, and a request costs more.
- Memory per connection is the peak resident memory (`VmHWM`) with 10,000 connections minus that with 1, divided by 9,999. It
  excludes the kernel's socket buffers.
";

fn cells(row: &Row) -> [String; 6] {
    let limit = |limit: Option<f64>| limit.map_or_else(String::new, |limit| with_unit(&limit.to_string(), row.unit));
    let samples = row.outcome.as_ref().map_or(&[][..], |measured| &measured.samples);
    [row.name.clone(), value(row), spread(samples), limit(row.gate), limit(row.aim), row.verdict().to_owned()]
}

fn spread(samples: &[f64]) -> String {
    match (samples.iter().copied().reduce(f64::min), samples.iter().copied().reduce(f64::max)) {
        (Some(low), Some(high)) if samples.len() > 1 => format!("{} to {}", number(low), number(high)),
        _ => String::new(),
    }
}

fn value(row: &Row) -> String {
    row.value().map_or_else(|| "-".to_owned(), |value| with_unit(&number(value), row.unit))
}

fn with_unit(number: &str, unit: &str) -> String {
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

fn detail(row: &Row) -> String {
    match &row.outcome {
        Err(error) => format!("- {}: failed: {error}\n", row.name),
        Ok(measured) if measured.samples.is_empty() => format!("- {}: {}.\n", row.name, measured.detail),
        Ok(measured) => {
            let samples: Vec<String> = measured.samples.iter().map(|sample| number(*sample)).collect();
            format!("- {}: {}. Samples: {}.\n", row.name, measured.detail, samples.join(", "))
        }
    }
}

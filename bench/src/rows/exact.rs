//! What can be counted: system calls and instructions. Each is the difference between two numbers of requests, so that
//! what a process does once is not in it.

use std::time::Duration;

use anyhow::Context as _;

use crate::clients::{Bench, Load, Operation, borrowed};
use crate::process::run;
use crate::servers::{Kind, Servers};
use crate::table::Measured;

const LIMIT: Duration = Duration::from_secs(300);
const PIPELINE: u32 = 16;
const REQUESTS: [u64; 2] = [100_000, 300_000];

/// System calls per 16 requests.
pub fn system_calls(bench: &Bench) -> anyhow::Result<Measured> {
    let closed = Load::closed(Operation::Get, PIPELINE, 0);
    let (per_request, detail) = marginal(bench, closed, |words| {
        let file = tempfile::NamedTempFile::new().context("failed to make a file for strace")?;
        let path = file.path().to_string_lossy().into_owned();
        let words = [&["strace", "-f", "-c", "-o", &path], words].concat();
        run(&words, &bench.client(), LIMIT)?;
        let text = std::fs::read_to_string(file.path()).context("failed to read what strace wrote")?;
        let total = text.lines().find(|line| line.ends_with(" total"));
        // % time, seconds, microseconds per call, calls.
        total.and_then(|line| line.split_whitespace().nth(3)?.parse().ok()).context("strace gave no total")
    })?;
    Ok(Measured { samples: vec![per_request * f64::from(PIPELINE)], detail: format!("system calls: {detail}") })
}

/// User instructions per request of a closed loop.
pub fn closed_instructions(bench: &Bench) -> anyhow::Result<Measured> {
    instructions(bench, Load::closed(Operation::Get, PIPELINE, 0))
}

/// User instructions per request of an open loop at 200k/s on a grid of 250 µs.
pub fn open_instructions(bench: &Bench) -> anyhow::Result<Measured> {
    instructions(bench, Load { rate: Some((200_000, 250)), ..Load::closed(Operation::Get, PIPELINE, 0) })
}

fn instructions(bench: &Bench, load: Load) -> anyhow::Result<Measured> {
    let (per_request, detail) = marginal(bench, load, |words| {
        let words = [&["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"], words].concat();
        let output = run(&words, &bench.client(), LIMIT)?.output;
        let line = output.lines().find_map(|line| line.split("Collected : ").nth(1));
        line.and_then(|count| count.trim().parse().ok()).with_context(|| format!("callgrind gave no count: {output}"))
    })?;
    Ok(Measured { samples: vec![per_request], detail: format!("instructions: {detail}") })
}

/// What `count` counts for each request more.
fn marginal(
    bench: &Bench,
    load: Load,
    count: impl Fn(&[&str]) -> anyhow::Result<u64>,
) -> anyhow::Result<(f64, String)> {
    let servers = Servers::start(bench, Kind::Null(1), &bench.server())?;
    let counted = |requests| {
        let words = bench.drive(&servers, &Load { requests, ..load })?;
        count(&borrowed(&words))
    };
    let [fewer, more] = REQUESTS;
    let (few, many) = (counted(fewer)?, counted(more)?);
    let per_request = (many as f64 - few as f64) / (more - fewer) as f64;
    Ok((per_request, format!("{few} for {fewer} requests, {many} for {more}")))
}

//! What can be counted: system calls and instructions. Each is the difference between two numbers of requests, so that
//! what a process does once is not in it.
//!
//! The lowest of three counts holds: it is asked what a saturated worker does, and a server that has to wait for its
//! processor only adds to that.

use std::time::Duration;

use anyhow::Context as _;

use crate::clients::{Bench, Load, Operation, borrowed};
use crate::process::run;
use crate::servers::{Kind, Servers};
use crate::table::Measured;

const LIMIT: Duration = Duration::from_secs(300);
const PIPELINE: u32 = 16;
/// Few enough that nothing is too late to be sent, however slow callgrind is.
const REQUESTS: [u64; 2] = [30_000, 90_000];
const TIMES: usize = 3;

/// System calls per 16 requests.
pub fn system_calls(bench: &Bench) -> anyhow::Result<Measured> {
    let closed = Load::closed(Operation::Get, PIPELINE, 0);
    let per_request = marginals(bench, closed, |words| {
        let file = tempfile::NamedTempFile::new().context("failed to make a file for strace")?;
        let path = file.path().to_string_lossy().into_owned();
        let words = [&["strace", "-f", "-c", "-o", &path], words].concat();
        run(&words, &bench.client(), LIMIT)?;
        let text = std::fs::read_to_string(file.path()).context("failed to read what strace wrote")?;
        let total = text.lines().find(|line| line.ends_with(" total"));
        // % time, seconds, microseconds per call, calls.
        total.and_then(|line| line.split_whitespace().nth(3)?.parse().ok()).context("strace gave no total")
    })?;
    Ok(lowest(per_request.iter().map(|calls| calls * f64::from(PIPELINE)).collect()))
}

/// User instructions per request of a closed loop.
pub fn closed_instructions(bench: &Bench) -> anyhow::Result<Measured> {
    Ok(lowest(instructions(bench, Load::closed(Operation::Get, PIPELINE, 0))?))
}

/// User instructions per request of an open loop that is behind its schedule, so that every batch is full here too.
pub fn open_instructions(bench: &Bench) -> anyhow::Result<Measured> {
    let load = Load { rate: Some((1_000_000, 250)), ..Load::closed(Operation::Get, PIPELINE, 0) };
    Ok(lowest(instructions(bench, load)?))
}

fn instructions(bench: &Bench, load: Load) -> anyhow::Result<Vec<f64>> {
    marginals(bench, load, |words| {
        let words = [&["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"], words].concat();
        let output = run(&words, &bench.client(), LIMIT)?.output;
        let line = output.lines().find_map(|line| line.split("Collected : ").nth(1));
        line.and_then(|count| count.trim().parse().ok()).with_context(|| format!("callgrind gave no count: {output}"))
    })
}

fn lowest(counts: Vec<f64>) -> Measured {
    let all: Vec<String> = counts.iter().map(|count| format!("{count:.3}")).collect();
    let detail = format!("the lowest of {}", all.join(", "));
    Measured { samples: counts.into_iter().reduce(f64::min).into_iter().collect(), detail }
}

/// What `count` counts for each request more, several times.
fn marginals(bench: &Bench, load: Load, count: impl Fn(&[&str]) -> anyhow::Result<u64>) -> anyhow::Result<Vec<f64>> {
    let servers = Servers::start(bench, Kind::Null(1), &bench.server())?;
    let counted = |requests| {
        let words = bench.drive(&servers, &Load { requests, ..load })?;
        count(&borrowed(&words))
    };
    let [fewer, more] = REQUESTS;
    let marginal = |_| Ok((counted(more)? as f64 - counted(fewer)? as f64) / (more - fewer) as f64);
    (0..TIMES).map(marginal).collect()
}

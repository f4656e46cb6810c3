//! Counts: system calls and instructions. Each is the difference between runs with two numbers of requests, which
//! excludes one-time work.
//!
//! Uses the lowest of three counts: the figure is that of a saturated worker, and a server that waits for its
//! processor only adds to it.

use std::time::Duration;

use anyhow::Context as _;

use crate::clients::{Bench, Load, Operation, borrowed};
use crate::process::run;
use crate::servers::{Kind, Servers};
use crate::table::{Floor, Measured};

const LIMIT: Duration = Duration::from_secs(300);
const PIPELINE: u32 = 16;
/// Few enough that no request is too late to be sent, even with a slow callgrind.
const REQUESTS: [u64; 2] = [30_000, 90_000];
const TIMES: usize = 3;

/// System calls per 16 requests, of ours and of the floor.
pub fn system_calls(bench: &Bench) -> anyhow::Result<Measured> {
    let closed = Load::closed(Operation::Get, PIPELINE, 0);
    let calls = |words: &dyn Fn(&Servers, &Load) -> anyhow::Result<Vec<String>>| {
        let per_request = marginals(bench, closed, words, |words| traced_calls(bench, words))?;
        anyhow::Ok(lowest(per_request.iter().map(|calls| calls * f64::from(PIPELINE)).collect()))
    };
    let mut measured = calls(&|servers, load| bench.drive(servers, load))?;
    let floor = calls(&|servers, load| bench.floor_words(servers, load))?;
    measured.detail = format!("{}; floor {}", measured.detail, floor.detail);
    let ratios = measured.samples.iter().zip(&floor.samples).map(|(ours, floor)| ours / floor).collect();
    measured.floor = Some(Floor { ratios, instead: floor.samples });
    Ok(measured)
}

fn traced_calls(bench: &Bench, words: &[&str]) -> anyhow::Result<u64> {
    let file = tempfile::NamedTempFile::new().context("failed to create a file for strace")?;
    let path = file.path().to_string_lossy().into_owned();
    let words = [&["strace", "-f", "-c", "-o", &path], words].concat();
    run(&words, &bench.client(), LIMIT)?;
    let text = std::fs::read_to_string(file.path()).context("failed to read strace's output")?;
    let total = text.lines().find(|line| line.ends_with(" total"));
    // % time, seconds, microseconds per call, calls.
    total.and_then(|line| line.split_whitespace().nth(3)?.parse().ok()).context("strace reported no total")
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
    let words = |servers: &Servers, load: &Load| bench.drive(servers, load);
    marginals(bench, load, words, |words| {
        let words = [&["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"], words].concat();
        let output = run(&words, &bench.client(), LIMIT)?.output;
        let line = output.lines().find_map(|line| line.split("Collected : ").nth(1));
        line.and_then(|count| count.trim().parse().ok()).with_context(|| format!("no count from callgrind: {output}"))
    })
}

fn lowest(counts: Vec<f64>) -> Measured {
    let all: Vec<String> = counts.iter().map(|count| format!("{count:.3}")).collect();
    let detail = format!("the lowest of {}", all.join(", "));
    Measured { samples: counts.into_iter().reduce(f64::min).into_iter().collect(), detail, floor: None }
}

/// Several samples of the increase of `count` per additional request.
fn marginals(
    bench: &Bench,
    load: Load,
    words: impl Fn(&Servers, &Load) -> anyhow::Result<Vec<String>>,
    count: impl Fn(&[&str]) -> anyhow::Result<u64>,
) -> anyhow::Result<Vec<f64>> {
    let servers = Servers::start(bench, Kind::Null(1), &bench.server())?;
    let counted = |requests| {
        let words = words(&servers, &Load { requests, ..load })?;
        count(&borrowed(&words))
    };
    let [fewer, more] = REQUESTS;
    let marginal = |_| Ok((counted(more)? as f64 - counted(fewer)? as f64) / (more - fewer) as f64);
    (0..TIMES).map(marginal).collect()
}

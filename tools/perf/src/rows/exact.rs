//! Counts: system calls and instructions. Each is the difference between runs with two numbers of requests, which
//! excludes one-time work.
//!
//! Uses the lowest of three counts: the figure is that of a saturated worker, and a server that waits for its
//! processor only adds to it.

use anyhow::Context as _;

use crate::bench::Bench;
use crate::clients::{Client, Load};
use crate::servers::{Kind, Servers};
use crate::table::{Floor, Measured};

pub const PIPELINE: u32 = 16;
/// Few enough that no request is too late to be sent, even with a slow callgrind.
const REQUESTS: [u64; 2] = [30_000, 90_000];
const TIMES: usize = 3;

/// System calls per 16 requests, of ours and of the floor.
pub fn system_calls(bench: &Bench, load: Load) -> anyhow::Result<Measured> {
    let calls = |client| {
        lowest(bench, client, load, f64::from(PIPELINE), "strace -f -c", |output| {
            // % time, seconds, microseconds per call, calls.
            output.lines().rfind(|line| line.ends_with(" total"))?.split_whitespace().nth(3)
        })
    };
    let (ours, floor) = (calls(Client::Ours)?, calls(Client::Floor)?);
    let ratios = ours.samples.iter().zip(&floor.samples).map(|(ours, floor)| ours / floor).collect();
    let detail = format!("{}; floor {}", ours.detail, floor.detail);
    Ok(Measured { detail, floor: Some(Floor { ratios, instead: floor.samples }), ..ours })
}

/// User instructions per request of ours.
pub fn instructions(bench: &Bench, load: Load) -> anyhow::Result<Measured> {
    let callgrind = "valgrind --tool=callgrind --callgrind-out-file=/dev/null";
    lowest(bench, Client::Ours, load, 1.0, callgrind, |output| {
        output.split("Collected : ").nth(1)?.split_whitespace().next()
    })
}

/// The lowest increase of the count for `batch` additional requests. `counted` finds the count in the output of `tool`.
fn lowest(
    bench: &Bench,
    client: Client,
    load: Load,
    batch: f64,
    tool: &str,
    counted: fn(&str) -> Option<&str>,
) -> anyhow::Result<Measured> {
    let servers = Servers::start(bench, Kind::Null(1))?;
    let count = |requests| {
        let output = bench.run(&format!("{tool} {}", client.line(&servers, &Load { requests, ..load })))?.output;
        let count = counted(&output).and_then(|count| count.parse::<f64>().ok());
        count.with_context(|| format!("no count from {tool}: {output}"))
    };
    let [fewer, more] = REQUESTS;
    let marginal = |_| Ok((count(more)? - count(fewer)?) * batch / (more - fewer) as f64);
    let counts = (0..TIMES).map(marginal).collect::<anyhow::Result<Vec<f64>>>()?;
    let all: Vec<String> = counts.iter().map(|count| format!("{count:.3}")).collect();
    let lowest = counts.into_iter().fold(f64::INFINITY, f64::min);
    Ok(Measured { samples: vec![lowest], detail: format!("the lowest of {}", all.join(", ")), floor: None })
}

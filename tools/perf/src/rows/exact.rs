//! Counts: system calls and instructions. Each is the difference between runs with two numbers of requests, which
//! excludes one-time work.
//!
//! Uses the lowest of five counts of each: the figure is that of a saturated worker, and a server that waits for its
//! processor only adds to a count.

use anyhow::Context as _;

use crate::bench::Bench;
use crate::clients::{Client, Load};
use crate::servers::{Kind, Servers};
use crate::table::{Floor, Measured};

pub const PIPELINE: u32 = 16;
/// Few enough that no request is too late to be sent, even with a slow callgrind.
const REQUESTS: [u64; 2] = [30_000, 90_000];
const TIMES: usize = 5;

/// System calls per 16 requests, of ours and of the floor.
pub fn system_calls(bench: &Bench, load: Load) -> anyhow::Result<Measured> {
    let calls = |client| {
        let (loads, share) = (REQUESTS.map(|requests| Load { requests, ..load }), per_request(f64::from(PIPELINE)));
        lowest(bench, client, loads, share, "strace -f -c", |output| {
            // % time, seconds, microseconds per call, calls.
            output.lines().rfind(|line| line.ends_with(" total"))?.split_whitespace().nth(3)
        })
    };
    let (ours, floor) = (calls(Client::Ours)?, calls(Client::Floor)?);
    let ratios = ours.samples.iter().zip(&floor.samples).map(|(ours, floor)| ours / floor).collect();
    let detail = format!("{}; floor {}", ours.detail, floor.detail);
    Ok(Measured { detail, floor: Some(Floor { ratios, instead: floor.samples }), ..ours })
}

const CALLGRIND: &str = "valgrind --tool=callgrind --callgrind-out-file=/dev/null";

/// The count in the output of callgrind.
fn collected(output: &str) -> Option<&str> {
    output.split("Collected : ").nth(1)?.split_whitespace().next()
}

/// User instructions per request of ours.
pub fn instructions(bench: &Bench, load: Load) -> anyhow::Result<Measured> {
    lowest(
        bench,
        Client::Ours,
        REQUESTS.map(|requests| Load { requests, ..load }),
        per_request(1.0),
        CALLGRIND,
        collected,
    )
}

/// User instructions per live snapshot, of the worker and of the thread that merges and encodes it, after a load with all histograms.
pub fn snapshot_instructions(bench: &Bench, load: Load) -> anyhow::Result<Measured> {
    const SNAPSHOTS: [u32; 2] = [10, 60];
    let [fewer, more] = SNAPSHOTS;
    let loads = SNAPSHOTS.map(|snapshots_at_end| Load { requests: REQUESTS[0], snapshots_at_end, ..load });
    lowest(bench, Client::Ours, loads, 1.0 / f64::from(more - fewer), CALLGRIND, collected)
}

/// The share of `batch` requests in the difference between two loads.
fn per_request(batch: f64) -> f64 {
    let [fewer, more] = REQUESTS;
    batch / (more - fewer) as f64
}

/// The increase from the lowest count of the first load to that of the second, times `share`. `counted` finds the count in the output of
/// `tool`.
fn lowest(
    bench: &Bench,
    client: Client,
    [fewer, more]: [Load; 2],
    share: f64,
    tool: &str,
    counted: fn(&str) -> Option<&str>,
) -> anyhow::Result<Measured> {
    let servers = Servers::start(bench, Kind::Null(1))?;
    let count = |load| {
        let output = bench.run(&format!("{tool} {}", client.line(&servers, load)))?.output;
        let count = counted(&output).and_then(|count| count.parse::<f64>().ok());
        count.with_context(|| format!("no count from {tool}: {output}"))
    };
    let (mut of_fewer, mut of_more) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        of_fewer.push(count(&fewer)?);
        of_more.push(count(&more)?);
    }
    let least = |counts: &[f64]| counts.iter().copied().fold(f64::INFINITY, f64::min);
    let figure = (least(&of_more) - least(&of_fewer)) * share;
    let all = |counts: &[f64]| counts.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
    let detail = format!("the lowest of {}, minus the lowest of {}", all(&of_more), all(&of_fewer));
    Ok(Measured { samples: vec![figure], detail, floor: None })
}

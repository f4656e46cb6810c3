//! Ten thousand connections in one process.

use anyhow::Context as _;

use super::against::pairs;
use crate::clients::{Bench, Cost, Load, Operation};
use crate::servers::{Kind, Servers};
use crate::table::Measured;

const MANY: u32 = 10_000;

/// Processor time against redis-benchmark, both making their connections too.
pub fn many(bench: &Bench) -> anyhow::Result<Measured> {
    let load = Load { connections: MANY, ..Load::closed(Operation::Get, 1, bench.requests(1_000_000)) };
    let servers = Servers::start(bench, Kind::Redis, &bench.server())?;
    bench.preload(&servers)?;
    let ours = || bench.ours(&servers, &load, &bench.client());
    let theirs = || bench.theirs(&servers, &load);
    pairs(bench, ["ours", "redis-benchmark"], ours, theirs)
}

/// The most resident memory of a process with ten thousand connections, less that of one with a single connection, for
/// each of the others.
pub fn memory(bench: &Bench, pipeline: u32) -> anyhow::Result<Measured> {
    // Every connection is to have been full several times.
    let requests = bench.requests(200_000).max(u64::from(4 * MANY * pipeline));
    let servers = Servers::start(bench, Kind::Null(1), &bench.server())?;
    let peak = |connections| {
        let load = Load { connections, ..Load::closed(Operation::Get, pipeline, requests) };
        bench.ours(&servers, &load, &bench.client()).and_then(|cost| resident_kib(&cost))
    };
    let mut measured = Measured::default();
    for _ in 0..bench.pairs {
        let (one, all) = (peak(1)?, peak(MANY)?);
        measured.samples.push((all - one) / f64::from(MANY - 1));
        measured.detail = format!("{one:.0} KiB with 1 connection, {all:.0} KiB with {MANY}, histograms and all");
    }
    Ok(measured)
}

fn resident_kib(cost: &Cost) -> anyhow::Result<f64> {
    let rest = cost.output.split("at most ").nth(1).and_then(|rest| rest.split(' ').next());
    rest.and_then(|number| number.parse().ok()).with_context(|| format!("no memory told of in: {}", cost.output))
}

//! Ten thousand connections in one process.

use std::fmt::Write as _;

use anyhow::Context as _;

use super::against;
use super::rounds::Rounds;
use crate::clients::{Bench, Cost, Load, Operation};
use crate::servers::{Kind, Servers};
use crate::table::Measured;

const MANY: u32 = 10_000;

/// CPU time against redis-benchmark. Subtracts the cost of connecting from all clients: that of a run with one request
/// per connection.
pub fn many(bench: &Bench) -> anyhow::Result<Measured> {
    let load = Load { connections: MANY, ..Load::closed(Operation::Get, 1, bench.requests(500_000)) };
    // Even in a short measurement, connecting must be by far the smaller part, because it is subtracted.
    let load = Load { requests: load.requests.max(u64::from(20 * MANY)), ..load };
    let short = Load { requests: MANY.into(), ..load };
    let servers = Servers::start(bench, Kind::Redis, &bench.server())?;
    bench.preload(&servers)?;
    let once: anyhow::Result<Vec<_>> =
        against::turns(bench, &servers, &short).into_iter().map(|(_, mut turn)| turn()).collect();
    let mut rounds = Rounds::run(bench, against::turns(bench, &servers, &load))?;
    let parts = rounds.without(&once?);
    let parts: Vec<String> = parts.iter().map(|part| format!("{:.1} %", part * 100.0)).collect();
    let mut measured = against::compared(&rounds);
    let _ = write!(measured.detail, "; connecting took {} of each run and is subtracted", parts.join(", "));
    Ok(measured)
}

/// Peak resident memory per connection: of a process with ten thousand connections minus that of one with a single
/// connection.
pub fn memory(bench: &Bench, pipeline: u32) -> anyhow::Result<Measured> {
    // Every connection should have been full several times.
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
    rest.and_then(|number| number.parse().ok()).with_context(|| format!("no memory reported in: {}", cost.output))
}

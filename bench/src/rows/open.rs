//! The open loop, which sleeps between the instants of its grid.

use super::against::absolute;
use crate::clients::{Bench, Load, Operation};
use crate::servers::{Kind, Servers};
use crate::table::Measured;

const RATE: u64 = 20_000;

/// Processor time per request at a fixed rate, in microseconds.
pub fn at_a_rate(bench: &Bench, grid_microseconds: u64, pipeline: u32) -> anyhow::Result<Measured> {
    let closed = Load::closed(Operation::Get, pipeline, bench.requests(5 * RATE));
    let load = Load { rate: Some((RATE, grid_microseconds)), ..closed };
    let servers = Servers::start(bench, Kind::Redis, &bench.server())?;
    bench.preload(&servers)?;
    let costs: anyhow::Result<Vec<_>> =
        (0..bench.pairs).map(|_| bench.ours(&servers, &load, &bench.client())).collect();
    let costs = costs?;
    Ok(Measured { samples: costs.iter().map(|cost| cost.client).collect(), detail: absolute(&costs) })
}

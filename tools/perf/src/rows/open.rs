//! The open loop, which sleeps between the instants of its grid.

use super::rounds::Rounds;
use crate::clients::{Bench, Load, Operation};
use crate::servers::{Kind, Servers};
use crate::table::Measured;

const RATE: u64 = 20_000;

/// CPU time per request at a fixed rate, in microseconds.
pub fn at_a_rate(bench: &Bench, grid_microseconds: u64, pipeline: u32) -> anyhow::Result<Measured> {
    let closed = Load::closed(Operation::Get, pipeline, bench.requests(5 * RATE));
    let load = Load { rate: Some((RATE, grid_microseconds)), ..closed };
    let servers = Servers::start(bench, Kind::Redis, &bench.server())?;
    bench.preload(&servers)?;
    let rounds = Rounds::run(
        bench,
        vec![
            ("ours", Box::new(|| bench.ours(&servers, &load, &bench.client()))),
            ("floor", Box::new(|| bench.floor(&servers, &load))),
        ],
    )?;
    Ok(Measured { samples: rounds.client(0), detail: rounds.detail(), floor: Some(rounds.floor(0, 1, None)) })
}

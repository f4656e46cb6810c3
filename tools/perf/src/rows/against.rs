//! Ratios: the same load by several clients, or against two targets, in alternation.

use super::rounds::{Rounds, Turn};
use crate::clients::{Bench, Load, Operation};
use crate::servers::{Kind, Servers};
use crate::table::Measured;

/// Ours against redis-benchmark, with the floor.
pub fn redis_benchmark(bench: &Bench, kind: Kind, operation: Operation, pipeline: u32) -> anyhow::Result<Measured> {
    // About three seconds for ours, and four for theirs.
    let base = match (kind, pipeline) {
        (Kind::Null(_), 1) => 400_000,
        (Kind::Null(_), 16) => 5_000_000,
        (Kind::Null(_), _) => 12_000_000,
        (_, 1) => 300_000,
        (_, 16) => 2_000_000,
        (_, _) => 4_000_000,
    };
    let load = Load::closed(operation, pipeline, bench.requests(base));
    let servers = Servers::start(bench, kind, &bench.server())?;
    if kind != Kind::Null(1) {
        bench.preload(&servers)?;
    }
    clients(bench, &servers, &load)
}

/// The three clients with the same load.
pub fn clients(bench: &Bench, servers: &Servers, load: &Load) -> anyhow::Result<Measured> {
    let rounds = Rounds::run(bench, turns(bench, servers, load))?;
    Ok(compared(&rounds))
}

/// Ours, theirs, and the floor, which has no TLS.
pub fn turns<'a>(bench: &'a Bench, servers: &'a Servers, load: &'a Load) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = vec![
        ("ours", Box::new(|| bench.ours(servers, load, &bench.client()))),
        ("redis-benchmark", Box::new(|| bench.theirs(servers, load))),
    ];
    if servers.kind() != Kind::Tls {
        turns.push(("floor", Box::new(|| bench.floor(servers, load))));
    }
    turns
}

/// The figures of the rounds of [`turns`].
pub fn compared(rounds: &Rounds) -> Measured {
    let floor = (rounds.len() > 2).then(|| rounds.floor(0, 2, Some(1)));
    Measured { samples: rounds.ratios(0, 1), detail: rounds.detail(), floor }
}

/// A cluster against one server, with the same total connections and requests in flight.
pub fn standalone(bench: &Bench) -> anyhow::Result<Measured> {
    let load = Load::closed(Operation::Get, 16, bench.requests(2_000_000));
    let one = Servers::start(bench, Kind::Redis, &bench.server())?;
    let three = Servers::start(bench, Kind::Cluster, &bench.server())?;
    bench.preload(&one)?;
    bench.preload(&three)?;
    let rounds = Rounds::run(
        bench,
        vec![
            ("cluster", Box::new(|| bench.ours(&three, &load, &bench.client()))),
            ("standalone", Box::new(|| bench.ours(&one, &load, &bench.client()))),
            ("floor, cluster", Box::new(|| bench.floor(&three, &load))),
            ("floor, standalone", Box::new(|| bench.floor(&one, &load))),
        ],
    )?;
    let floor = Some(rounds.floor(0, 2, Some(3)));
    Ok(Measured { samples: rounds.ratios(0, 1), detail: rounds.detail(), floor })
}

//! Ratios: the same load by two clients, or against two targets, in turn.

use crate::clients::{Bench, Cost, Load, Operation};
use crate::servers::{Kind, Servers};
use crate::table::{Measured, median};

/// Ours against redis-benchmark.
pub fn redis_benchmark(bench: &Bench, kind: Kind, operation: Operation, pipeline: u32) -> anyhow::Result<Measured> {
    // About two seconds of ours, and four of theirs.
    let base = match (kind, pipeline) {
        (Kind::Null(_), 1) => 600_000,
        (Kind::Null(_), 16) => 6_000_000,
        (Kind::Null(_), _) => 16_000_000,
        (_, 1) => 400_000,
        (_, 16) => 2_500_000,
        (_, _) => 5_000_000,
    };
    let load = Load::closed(operation, pipeline, bench.requests(base));
    let servers = Servers::start(bench, kind, &bench.server())?;
    if kind != Kind::Null(1) {
        bench.preload(&servers)?;
    }
    let ours = || bench.ours(&servers, &load, &bench.client());
    let theirs = || bench.theirs(&servers, &load);
    pairs(bench, ["ours", "redis-benchmark"], ours, theirs)
}

/// A cluster against one server, with as many connections and requests in flight in all.
pub fn standalone(bench: &Bench) -> anyhow::Result<Measured> {
    let load = Load::closed(Operation::Get, 16, bench.requests(2_500_000));
    let one = Servers::start(bench, Kind::Redis, &bench.server())?;
    let three = Servers::start(bench, Kind::Cluster, &bench.server())?;
    bench.preload(&one)?;
    bench.preload(&three)?;
    let cluster = || bench.ours(&three, &load, &bench.client());
    let standalone = || bench.ours(&one, &load, &bench.client());
    pairs(bench, ["cluster", "standalone"], cluster, standalone)
}

/// A B A B: each pair's ratio is a sample.
pub fn pairs(
    bench: &Bench,
    names: [&str; 2],
    mut first: impl FnMut() -> anyhow::Result<Cost>,
    mut second: impl FnMut() -> anyhow::Result<Cost>,
) -> anyhow::Result<Measured> {
    let mut costs: [Vec<Cost>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..bench.pairs {
        costs[0].push(first()?);
        costs[1].push(second()?);
    }
    let samples = costs[0].iter().zip(&costs[1]).map(|(first, second)| first.client / second.client).collect();
    let detail = names.iter().zip(&costs).map(|(name, costs)| format!("{name} {}", absolute(costs)));
    Ok(Measured { samples, detail: detail.collect::<Vec<_>>().join("; ") })
}

/// Medians in their own units.
pub fn absolute(costs: &[Cost]) -> String {
    let of = |field: fn(&Cost) -> f64| median(&costs.iter().map(field).collect::<Vec<_>>()).unwrap_or(0.0);
    format!(
        "{:.3} µs at {:.0}k/s (server {:.3} µs)",
        of(|cost| cost.client),
        of(|cost| cost.rate) / 1e3,
        of(|cost| cost.server)
    )
}

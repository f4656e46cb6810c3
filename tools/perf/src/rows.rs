//! The rows of the table: what is measured, and the gates.

mod exact;

use std::fmt::Write as _;

use anyhow::Context as _;
use redisbench_statistics::summary::median;

use crate::bench::Bench;
use crate::clients::{Client, Load, preload, preload_for};
use crate::report;
use crate::rounds::{Rounds, Turn};
use crate::servers::{Kind, Servers};
use crate::table::{Measured, Row};

/// Measures the rows whose name contains `only`, and prints each. With `exact` only those that are counted, not timed.
pub fn measure(bench: &Bench, only: &str, exact: bool) -> Vec<Row> {
    let mut table = Table { bench, only, rows: Vec::new() };
    if !exact {
        table.against_redis_benchmark();
    }
    table.counted();
    if !exact {
        table.others();
    }
    table.rows
}

struct Table<'a> {
    bench: &'a Bench,
    only: &'a str,
    rows: Vec<Row>,
}

impl Table<'_> {
    /// Measures a row if its name is selected.
    fn row(
        &mut self,
        name: &str,
        unit: &'static str,
        gate_and_aim: Option<(f64, f64)>,
        measure: impl FnOnce(&Bench) -> anyhow::Result<Measured>,
    ) {
        if name.contains(self.only) {
            let outcome = measure(self.bench).map_err(|error| format!("{error:#}"));
            let row = Row { name: name.to_owned(), unit, gate_and_aim, outcome };
            println!("{}", report::line(&row));
            self.rows.push(row);
        }
    }

    fn against_redis_benchmark(&mut self) {
        // Requests for about three seconds of ours, and four of theirs.
        let null = [(1, 400_000, 0.52, 0.46), (16, 5_000_000, 0.45, 0.40), (64, 12_000_000, 0.36, 0.31)];
        let redis = [(1, 300_000, 0.68, 0.62), (16, 2_000_000, 0.60, 0.50), (64, 4_000_000, 0.55, 0.42)];
        for (kind, server, rows) in [(Kind::Null(1), "null server", null), (Kind::Redis, "redis-server", redis)] {
            for (pipeline, requests, gate, aim) in rows {
                for operation in ["get", "set"] {
                    let operation_name = operation.to_uppercase();
                    let name =
                        format!("CPU per request against redis-benchmark, {server}, {operation_name}, P={pipeline}");
                    let measure = |bench: &Bench| against(bench, kind, Load::closed(operation, pipeline, requests));
                    self.row(&name, "", Some((gate, aim)), measure);
                }
            }
        }
    }

    /// The load at a rate is behind its schedule, so that every batch is full there too.
    fn counted(&mut self) {
        let closed = Load::closed("get", exact::PIPELINE, 0);
        let open = Load { rate: Some((1_000_000, 250)), ..closed };
        let name = "system calls per batch when saturated, GET, P=16";
        self.row(name, "", Some((2.1, 2.03)), |bench| exact::system_calls(bench, closed));
        let name = "user instructions per request, GET, P=16, closed loop";
        self.row(name, "", Some((300.0, 200.0)), |bench| exact::instructions(bench, closed));
        let name = "user instructions per request, GET, P=16, open loop with all histograms";
        self.row(name, "", Some((450.0, 350.0)), |bench| exact::instructions(bench, open));
        let name = "user instructions per live snapshot, encoded";
        self.row(name, "", None, |bench| exact::snapshot_instructions(bench, open));
    }

    fn others(&mut self) {
        let name = "CPU per request, three-primary cluster against standalone, GET, P=16";
        self.row(name, "", Some((1.35, 1.15)), cluster_against_standalone);
        for (pipeline, requests, gate, aim) in [(1, 300_000, 0.9, 0.75), (16, 2_000_000, 0.8, 0.6)] {
            let name = format!("CPU per request against redis-benchmark --tls, redis-server, GET, P={pipeline}");
            let measure = |bench: &Bench| against(bench, Kind::Tls, Load::closed("get", pipeline, requests));
            self.row(&name, "", Some((gate, aim)), measure);
        }
        for (pipeline, gate, aim) in [(1, 1.0, 0.25), (64, 2.5, 1.5)] {
            let name = format!("resident memory per connection at 10,000 connections, P={pipeline}");
            self.row(&name, "KiB", Some((gate, aim)), |bench| memory(bench, pipeline));
        }
        let name = "CPU per request against redis-benchmark, redis-server, GET, P=1, 10,000 connections";
        self.row(name, "", Some((0.55, 0.45)), many_connections);
        for (grid, label, gate, aim) in [(250, "250 µs", 15.0, 9.0), (1000, "1 ms", 7.0, 3.0)] {
            for pipeline in [1, 16] {
                let name = format!("CPU per request, open loop at 20k/s on a grid of {label}, GET, P={pipeline}");
                self.row(&name, "µs", Some((gate, aim)), |bench| at_a_rate(bench, grid, pipeline));
            }
        }
        self.row("CPU per request, two workers against one, null server, GET, P=16", "", None, two_workers);
        for operation in ["set", "get"] {
            for mebibytes in [4, 16] {
                let operation_name = operation.to_uppercase();
                let name = format!("CPU per byte, values of {mebibytes} MiB against 1 MiB, {operation_name}, P=1");
                self.row(&name, "", Some((2.0, 1.25)), |bench| large_values(bench, operation, mebibytes));
            }
        }
        self.live_snapshots();
    }

    fn live_snapshots(&mut self) {
        for (operations, label) in [(1, "1 operation"), (64, "64 operations")] {
            let name = format!("live snapshots: longest slice, during which a worker sends nothing, {label}");
            self.row(&name, "µs", Some((LATE_BY_SNAPSHOTS, 50.0)), |bench| longest_slice(bench, operations));
        }
        let name = "live snapshots, 500 per second: delay of sends, open loop at 20k/s, p99 beyond that without";
        self.row(name, "µs", Some((LATE_BY_SNAPSHOTS, 50.0)), delay_by_snapshots);
    }
}

/// Servers that have all keys.
fn loaded(bench: &Bench, kind: Kind) -> anyhow::Result<Servers> {
    let servers = Servers::start(bench, kind)?;
    if !matches!(kind, Kind::Null(_)) {
        preload(bench, &servers)?;
    }
    Ok(servers)
}

/// Ours, theirs, and the floor, which has no TLS.
fn turns<'a>(servers: &'a Servers, load: &Load) -> Vec<Turn<'a>> {
    let mut clients = vec![Client::Ours, Client::RedisBenchmark, Client::Floor];
    clients.retain(|client| *client != Client::Floor || servers.kind != Kind::Tls);
    clients.into_iter().map(|client| (client.name(), client, servers, *load)).collect()
}

/// The figures of the rounds of [`turns`].
fn compared(turns: &[Turn<'_>], rounds: &Rounds) -> Measured {
    rounds.measured(Some(1), (turns.len() > 2).then_some((2, Some(1))))
}

/// Ours against redis-benchmark, with the same load.
fn against(bench: &Bench, kind: Kind, load: Load) -> anyhow::Result<Measured> {
    let servers = loaded(bench, kind)?;
    let turns = turns(&servers, &Load { requests: bench.requests(load.requests), ..load });
    Ok(compared(&turns, &Rounds::run(bench, &turns)?))
}

/// A cluster against one server, with the same total connections and requests in flight.
fn cluster_against_standalone(bench: &Bench) -> anyhow::Result<Measured> {
    let load = Load::closed("get", 16, bench.requests(2_000_000));
    let (one, three) = (loaded(bench, Kind::Redis)?, loaded(bench, Kind::Cluster)?);
    let turns = [
        ("cluster", Client::Ours, &three, load),
        ("standalone", Client::Ours, &one, load),
        ("floor, cluster", Client::Floor, &three, load),
        ("floor, standalone", Client::Floor, &one, load),
    ];
    Ok(Rounds::run(bench, &turns)?.measured(Some(1), Some((2, Some(3)))))
}

const MANY: u32 = 10_000;

/// Ours against redis-benchmark with ten thousand connections. Subtracts the cost of connecting from all clients: that of a
/// run with one request per connection, in the same round.
fn many_connections(bench: &Bench) -> anyhow::Result<Measured> {
    // Even in a short measurement, connecting must be by far the smaller part, because it is subtracted.
    let requests = bench.requests(1_500_000).max(u64::from(20 * MANY));
    let load = Load { connections: MANY, ..Load::closed("get", 1, requests) };
    let servers = loaded(bench, Kind::Redis)?;
    let (long, short) = (turns(&servers, &load), turns(&servers, &Load { requests: MANY.into(), ..load }));
    let mut rounds = Rounds::run(bench, &[&long[..], &short].concat())?;
    let parts: Vec<String> = rounds.without_starts().iter().map(|part| format!("{:.1} %", part * 100.0)).collect();
    let mut measured = compared(&long, &rounds);
    let _ = write!(measured.detail, "; connecting took {} of each run and is subtracted", parts.join(", "));
    Ok(measured)
}

/// Peak resident memory per connection: of a process with ten thousand connections minus that of one with a single
/// connection.
fn memory(bench: &Bench, pipeline: u32) -> anyhow::Result<Measured> {
    // Every connection should have been full several times.
    let requests = bench.requests(200_000).max(u64::from(4 * MANY * pipeline));
    let servers = loaded(bench, Kind::Null(1))?;
    let peak = |connections| {
        let load = Load { connections, ..Load::closed("get", pipeline, requests) };
        let output = Client::Ours.cost(bench, &servers, &load)?.output;
        let kib = output.split("at most ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        kib.with_context(|| format!("no memory reported in: {output}"))
    };
    let mut measured = Measured::default();
    for _ in 0..bench.pairs {
        let (one, all) = (peak(1)?, peak(MANY)?);
        measured.samples.push((all - one) / f64::from(MANY - 1));
        measured.detail = format!("{one:.0} KiB with 1 connection, {all:.0} KiB with {MANY}, histograms and all");
    }
    Ok(measured)
}

/// CPU time per request of the open loop, which sleeps between the instants of its grid, in microseconds.
fn at_a_rate(bench: &Bench, grid_microseconds: u64, pipeline: u32) -> anyhow::Result<Measured> {
    const RATE: u64 = 20_000;
    let closed = Load::closed("get", pipeline, bench.requests(5 * RATE));
    let load = Load { rate: Some((RATE, grid_microseconds)), ..closed };
    let servers = loaded(bench, Kind::Redis)?;
    let turns = [Client::Ours, Client::Floor].map(|client| (client.name(), client, &servers, load));
    Ok(Rounds::run(bench, &turns)?.measured(None, Some((1, None))))
}

/// Workers share nothing, so a request should cost the same with two workers as with one. With four processors or more, the
/// rates are conclusive too: two workers and two threads of the null server then have one each.
fn two_workers(bench: &Bench) -> anyhow::Result<Measured> {
    let (server_cpu, note) = if std::thread::available_parallelism().is_ok_and(|processors| processors.get() >= 4) {
        ("2-3", "two processors for the workers, two for the server")
    } else {
        let note = "worker and server threads share two processors, so that the rates cannot show how two workers scale: \
                    only that a request costs them no more";
        ("0-1", note)
    };
    let mut bench = bench.clone();
    (bench.client_cpu, bench.server_cpu) = ("0-1".to_owned(), server_cpu.to_owned());
    let one = Load::closed("get", 16, bench.requests(6_000_000));
    let servers = loaded(&bench, Kind::Null(2))?;
    let two = Load { workers: 2, ..one };
    let turns = [("two workers", Client::Ours, &servers, two), ("one worker", Client::Ours, &servers, one)];
    let mut measured = Rounds::run(&bench, &turns)?.measured(Some(1), None);
    let _ = write!(measured.detail, "; {note}");
    Ok(measured)
}

/// CPU time per byte with values of `mebibytes`, as a ratio to values of 1 MiB. If a value were copied again for every piece that a
/// socket takes or gives, the time would grow with the square of its size.
fn large_values(bench: &Bench, operation: &'static str, mebibytes: u32) -> anyhow::Result<Measured> {
    /// MiB of values in a run.
    const ALL: u64 = 4096;
    let load = |mebibytes: u32| Load {
        connections: 4,
        value_bytes: mebibytes << 20,
        keys: 4,
        ..Load::closed(operation, 1, (bench.scaled(ALL) / u64::from(mebibytes)).max(8))
    };
    let start = |mebibytes: u32| {
        let servers = Servers::start(bench, Kind::Redis)?;
        preload_for(bench, &servers, &Load { requests: 8, ..load(mebibytes) })?;
        anyhow::Ok(servers)
    };
    let (large, small) = (start(mebibytes)?, start(1)?);
    let turns = [("large", Client::Ours, &large, load(mebibytes)), ("1 MiB", Client::Ours, &small, load(1))];
    let mut measured = Rounds::run(bench, &turns)?.measured(Some(1), None);
    measured.samples.iter_mut().for_each(|ratio| *ratio /= f64::from(mebibytes));
    Ok(measured)
}

/// The most that live snapshots may delay a send, in microseconds.
const LATE_BY_SNAPSHOTS: f64 = 100.0;

/// A load cannot show this on a machine that delays sends more than snapshots do, so slices are timed without one.
fn longest_slice(bench: &Bench, operations: u16) -> anyhow::Result<Measured> {
    let line = format!("redisbench-slices --operations {operations}");
    let outputs = (0..bench.pairs).map(|_| Ok(bench.run(&line)?.output)).collect::<anyhow::Result<Vec<_>>>()?;
    let longest = |output: &String| output.strip_prefix("longest slice: ")?.split(' ').next()?.parse().ok();
    let samples = outputs.iter().map(|output| longest(output).with_context(|| format!("no slice in: {output}")));
    let detail = outputs.first().map_or("", |output| output.trim()).to_owned();
    Ok(Measured { samples: samples.collect::<anyhow::Result<_>>()?, detail, floor: None })
}

/// How much later sends are with live snapshots than without, at p99, in microseconds; each pair of short runs is a sample. With 500
/// snapshots per second, slices as long as the limit would delay more than one send in a hundred. The machine itself dominates
/// higher quantiles.
fn delay_by_snapshots(bench: &Bench) -> anyhow::Result<Measured> {
    const RATE: u64 = 20_000;
    let closed = Load::closed("get", 1, bench.requests(2 * RATE));
    // Another thread than the worker merges and encodes them. If it had the worker's processor, the scheduler would delay requests.
    let load = Load { rate: Some((RATE, 250)), snapshot_cpu: Some(bench.server_cpu.parse()?), ..closed };
    let servers = loaded(bench, Kind::Null(1))?;
    let late = |snapshots| {
        let output = Client::Ours.cost(bench, &servers, &Load { snapshots, ..load })?.output;
        late_by(&output, "p99").with_context(|| format!("no lateness reported in: {output}"))
    };
    let pairs: Vec<(f64, f64)> =
        (0..4 * bench.pairs).map(|_| Ok((late(500)?, late(0)?))).collect::<anyhow::Result<_>>()?;
    let (with, without): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    Ok(Measured {
        samples: pairs.iter().map(|(with, without)| with - without).collect(),
        detail: format!("with snapshots: median {:.0} µs; without: median {:.0} µs", median(&with), median(&without)),
        floor: None,
    })
}

/// A figure of the lateness that ours prints, in microseconds.
fn late_by(output: &str, figure: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| line.strip_prefix("sent late by: "))?;
    let mut figures = line.split(", ").filter_map(|part| part.split_once(' '));
    figures.find(|(name, _)| *name == figure)?.1.strip_suffix(" us")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_read_from_what_ours_prints() {
        let output = "1 requests\nsent late by: p50 1 us, p99 2 us, p99.99 30 us, longest 400 us\n";
        let figures = ["p99", "p99.99", "longest", "p75"].map(|figure| late_by(output, figure));
        assert_eq!(figures, [Some(2.0), Some(30.0), Some(400.0), None]);
    }
}

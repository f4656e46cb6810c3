//! The report of each generator, next to the exact latency of callers.

use super::{LENGTH, RATE, Told};
use crate::machine::Machine;

/// A generator, printed once measured.
pub fn line(told: &Told) -> String {
    format!("{}: {}", told.name, cells(told).join(" | "))
}

/// The document.
pub fn document(machine: &Machine, all: &[Told]) -> String {
    let table: String = all.iter().map(|told| format!("| {} | {} |\n", told.name, cells(told).join(" | "))).collect();
    let commands: String = all
        .iter()
        .map(|told| format!("- {} ({}): {}\n  `{}`\n", told.name, told.version, told.note, told.command))
        .collect();
    let rho: Vec<String> = all.iter().filter_map(|told| Some(format!("{} {:.3}", told.name, rho(told)?))).collect();
    format!(
        "# Load generators during a stall\n\nMeasured by `make bench-stall` on {}.\n\n{}\n{HOW}\n\
         {HEADS}{table}\nrho for the p99: {}.\n\n## Commands\n\n{commands}\n{OTHERS}",
        machine.date,
        machine.list(),
        rho.join(", ")
    )
}

const HEADS: &str = "\
| generator | p50 | p99 | p99.9 | max | mean | requests answered | exact p99 | exact p99.9 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

const HOW: &str = "\
redis-server is stopped (SIGSTOP) for S = 500 ms, 4 s into a run of T = 10 s at 20,000 GETs per second over 50 connections, one
request in flight on each. Milliseconds, as reported by each generator; a dash is a value that it does not report.

Exact is the latency for callers, counted from when a request was due: for quantile q, S - (1-q) T (1-rho). rho is the scheduled rate
divided by the rate at which the server processed the backlog afterwards, from redis-server's own counts in the same run. With a
server that processes the whole backlog at once (rho = 0), p99 would be 400 ms and p99.9 490 ms. A generator that counts from the
send sees the stop 50 times, once per connection, in 200,000 requests.
";

const OTHERS: &str = "\
Others were not available in autumn 2026 from the sources that `make` uses: memtier_benchmark and valkey-benchmark are not in
Debian 12, cachecannon is not on crates.io, and the Go proxy did not provide redis-benchmark-go.
";

fn cells(told: &Told) -> [String; 8] {
    let number = |milliseconds: Option<f64>| {
        milliseconds.map_or_else(
            || "-".to_owned(),
            |value| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") },
        )
    };
    let reported = &told.reported;
    let due = (RATE * LENGTH) as f64;
    let exact = |quantile| {
        let drain = told.drain.as_ref()?;
        Some(drain.quantile(quantile, due)? * 1000.0)
    };
    let requests = if told.drain.is_some() {
        format!("{} of {}", told.requests, RATE * LENGTH)
    } else {
        told.requests.to_string()
    };
    [
        number(reported.p50),
        number(reported.p99),
        number(reported.p999),
        number(reported.max),
        number(reported.mean),
        requests,
        number(exact(0.99)),
        number(exact(0.999)),
    ]
}

fn rho(told: &Told) -> Option<f64> {
    told.drain.as_ref()?.rho(0.01 * (RATE * LENGTH) as f64)
}

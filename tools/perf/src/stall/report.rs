//! The report of each generator, next to the exact latency of callers.

use super::load::{LENGTH, RATE};
use super::run::Run;
use crate::bench::Bench;
use crate::machine::Machine;
use crate::markdown;

/// A generator, printed once measured.
pub fn line(run: &Run) -> String {
    cells(run).join(" | ")
}

pub fn document(machine: &Machine, bench: &Bench, runs: &[Run]) -> String {
    let heads = ["generator", "p50", "p99", "p99.9", "max", "mean", "requests answered", "exact p99", "exact p99.9"];
    let rho = |run: &Run| Some(format!("{} {:.3}", run.generator.name, run.drain.as_ref()?.rho(0.01 * DUE)?));
    let command = |run: &Run| {
        let (generator, line) = (&run.generator, shown(&run.generator.line));
        format!("- {} ({}): {}\n  `{line}`\n", generator.name, run.version, generator.note)
    };
    format!(
        "{}{HOW}\n{}\nrho for the p99: {}.\n\n## Commands\n\n{}\n{OTHERS}",
        machine.header(bench, "Load generators during a stall", "bench-stall"),
        markdown::table(heads, runs.iter().map(cells)),
        runs.iter().filter_map(rho).collect::<Vec<_>>().join(", "),
        runs.iter().map(command).collect::<String>(),
    )
}

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

/// Requests due during a run.
const DUE: f64 = (RATE * LENGTH) as f64;

fn cells(run: &Run) -> [String; 9] {
    let number = |milliseconds: Option<f64>| match milliseconds {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.1}"),
    };
    let reported = &run.reported;
    let exact = |quantile| number(run.drain.as_ref().and_then(|drain| Some(drain.quantile(quantile, DUE)? * 1000.0)));
    let of = if run.drain.is_some() { format!(" of {DUE}") } else { String::new() };
    [
        run.generator.name.to_owned(),
        number(reported.p50),
        number(reported.p99),
        number(reported.p999),
        number(reported.max),
        number(reported.mean),
        format!("{}{of}", run.requests),
        exact(0.99),
        exact(0.999),
    ]
}

/// A command line as one would type it: without the program's directory, and with the default port.
fn shown(line: &str) -> String {
    let (program, rest) = line.split_once(' ').unwrap_or((line, ""));
    let word = |word: &str, last: &str| match word.strip_prefix("127.0.0.1:") {
        Some(_) => "127.0.0.1:6379".to_owned(),
        None if last == "-p" => "6379".to_owned(),
        None if last == "-f" => word.rsplit('/').next().unwrap_or(word).to_owned(),
        None => word.to_owned(),
    };
    let words: Vec<&str> = rest.split(' ').collect();
    let before = std::iter::once("").chain(words.iter().copied());
    let rest: Vec<String> = words.iter().zip(before).map(|(this, last)| word(this, last)).collect();
    format!("{} {}", program.rsplit('/').next().unwrap_or(program), rest.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        assert_eq!(shown("/x/redis-benchmark -p 1234 \"GET a\""), "redis-benchmark -p 6379 \"GET a\"");
        assert_eq!(shown("kubectl-redisbench local -f /tmp/1/fred.yaml"), "kubectl-redisbench local -f fred.yaml");
        assert_eq!(shown("redisbench-drive 127.0.0.1:1234 --get 100"), "redisbench-drive 127.0.0.1:6379 --get 100");
    }
}

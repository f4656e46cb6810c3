//! The throughput of libraries in a closed loop, beside that of a program that only calls them.

use std::path::Path;

use anyhow::Context as _;
use redisbench_statistics::comparison::{Estimate, Question, Trial, compare, order};
use redisbench_statistics::summary::median;
use redisbench_statistics::{Confidence, Direction};
use redisbench_testkit::status::number;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::local;
use crate::markdown;
use crate::servers::{Kind, Servers};

/// The names of a library: on the command line and as a client's, and its type in a manifest.
const LIBRARIES: [(&str, &str); 2] = [("redis-rs", "RedisRs"), ("fred", "Fred")];

/// Callers or tasks, on one connection.
const CALLERS: u32 = 64;

/// Seconds of a closed loop, and requests that take the plain program about as long.
const SECONDS: f64 = 5.0;
const REQUESTS: u64 = 500_000;

/// Seconds after which a run is stopped.
const LIMIT: u32 = 120;

const PLAIN: usize = 0;
const OURS: usize = 1;

/// A library's throughputs.
struct Beside {
    name: &'static str,
    trials: Vec<Trial>,
    /// Ours over the plain program's.
    estimate: Estimate,
}

/// Measures all libraries, prints each run, and returns the table with its explanation.
pub fn text(bench: &Bench) -> anyhow::Result<String> {
    let servers = Servers::start(bench, Kind::Redis)?;
    let folder = tempfile::tempdir().context("failed to create a directory for manifests")?;
    let file = folder.path().join("closed-loop.yaml");
    let measure = |(name, kind): (&'static str, &str)| {
        let manifest = local::reads(servers.port(), &load(name, kind, bench.length));
        std::fs::write(&file, manifest.to_string()).context("failed to write a manifest")?;
        let mut trials = Vec::new();
        for place in order(2, bench.pairs as usize) {
            let (program, rate) = if place.subject == PLAIN {
                ("plain program", plain(bench, name, servers.port()))
            } else {
                ("closed loop", closed_loop(bench, &file))
            };
            let rate = rate.with_context(|| format!("{name}, {program}, pair {}", place.pass + 1))?;
            println!("{name} | pair {} | {program} | {rate:.0} requests per second", place.pass + 1);
            trials.push(Trial { place, values: vec![Some(rate)] });
        }
        Beside::of(name, trials)
    };
    let all: Vec<Beside> = LIBRARIES.into_iter().map(measure).collect::<anyhow::Result<_>>()?;
    Ok(format!("{HOW}\n{}", table(&all)))
}

const HOW: &str = "\
A second source for the throughput of a closed loop: `redisbench-plain` calls a library by its own `get` from 64 tasks, and measures only
the time of all requests. The closed loop is `kubectl redisbench local` with 64 callers. Both have one connection, one thread and
100-byte values, and one processor beside that of redis-server; they ran in pairs, in turns. On its processor, the closed loop also draws
keys, records every request and reports to its conductor. It is expected to be slower by that.

The libraries' own benchmarks are not that second source. fred's `bin/benchmark` uses names of fred 9 and its `auto_pipeline`, which 10.1
does not have, so it does not compile with the library that is measured here. Those of redis-rs make one call after the other, or 1,000 at
once, and Criterion reports the time of such a batch, which is no closed loop. `redisbench-plain` has the loop of fred's benchmark for
both libraries: tasks that share a client, and call it until all requests are made.
";

fn table(all: &[Beside]) -> String {
    let row = |one: &Beside| {
        let rate = |subject| format!("{:.0}", one.median(subject));
        let Estimate { ratio, interval, .. } = &one.estimate;
        let unknown = || "-".to_owned();
        [
            one.name.to_owned(),
            rate(OURS),
            rate(PLAIN),
            ratio.map_or_else(unknown, |ratio| format!("{ratio:.3}")),
            interval.map_or_else(unknown, |interval| format!("{:.3} to {:.3}", interval.lower, interval.upper)),
            (one.trials.len() / 2).to_string(),
        ]
    };
    let heads = ["library", "closed loop, requests/s", "plain program, requests/s", "ratio", "95 % interval", "pairs"];
    markdown::table(heads, all.iter().map(row))
}

impl Beside {
    fn of(name: &'static str, trials: Vec<Trial>) -> anyhow::Result<Self> {
        let question = Question {
            metrics: &[Direction::HigherIsBetter],
            primary: 0,
            confidence: Confidence::USUAL,
            minimum_effect: 0.02,
            seed: 0,
        };
        let found = compare(&question, PLAIN, &trials).pop();
        let estimate = found.and_then(|found| found.metrics.first().copied()).context("there is no pair")?;
        Ok(Self { name, trials, estimate })
    }

    /// Requests per second.
    fn median(&self, subject: usize) -> f64 {
        let of_subject = self.trials.iter().filter(|trial| trial.place.subject == subject);
        median(&of_subject.flat_map(|trial| trial.values.iter().flatten().copied()).collect::<Vec<_>>())
    }
}

/// Requests per second of the plain program.
fn plain(bench: &Bench, library: &str, port: u16) -> anyhow::Result<f64> {
    let requests = bench.requests(REQUESTS);
    let options = format!("--library {library} --port {port} --tasks {CALLERS} --requests {requests}");
    let output = bench.run(&format!("redisbench-plain {options}"))?.output;
    let rate = output.lines().find_map(|line| line.strip_prefix("requests per second: ")?.trim().parse().ok());
    rate.with_context(|| format!("it printed no rate: {output}"))
}

/// Requests per second of the closed loop in `file`.
fn closed_loop(bench: &Bench, file: &Path) -> anyhow::Result<f64> {
    rate_of(&local::run(bench, &bench.client_cpu, file, "", LIMIT)?["status"])
}

fn rate_of(status: &Value) -> anyhow::Result<f64> {
    let (verdict, result) = (&status["verdict"], &status["result"]);
    anyhow::ensure!(verdict["value"] != "Invalid", "its verdict is Invalid: {}", verdict["reasons"]);
    let errors = number(&result["requests"]["errors"]);
    anyhow::ensure!(errors == 0, "{errors} requests failed");
    let rate = result["throughput"]["achievedPerSecond"].as_u64().filter(|rate| *rate > 0);
    Ok(rate.context("it has no throughput")? as f64)
}

fn load(name: &str, kind: &str, length: f64) -> Value {
    json!({
        "type": "ClosedLoop",
        "connections": 1,
        "pipeline": CALLERS,
        "clients": [{"name": name, "type": kind}],
        "warmup": "1s",
        "duration": format!("{:.0}s", (SECONDS * length).max(1.0)),
    })
}

#[cfg(test)]
mod tests {
    use redisbench_statistics::comparison::Place;

    use super::*;

    #[test]
    fn pairs_make_a_ratio_with_its_interval() {
        let trial = |place: Place| {
            let rate = if place.subject == OURS { 80_000.0 } else { 100_000.0 };
            Trial { place, values: vec![Some(rate + 100.0 * place.pass as f64)] }
        };
        let beside = Beside::of("fred", order(2, 3).into_iter().map(trial).collect()).unwrap();
        let text = table(&[beside]);
        assert!(text.ends_with("\n| fred | 80100 | 100100 | 0.800 | 0.800 to 0.801 | 3 |\n"), "{text}");
        assert!(Beside::of("fred", Vec::new()).is_err());
    }

    #[test]
    fn only_a_rate_without_errors_is_usable() {
        let status = |verdict: &str, errors: u64| {
            json!({"verdict": {"value": verdict, "reasons": [{"message": "busy"}]},
                "result": {"requests": {"errors": errors}, "throughput": {"achievedPerSecond": 9}}})
        };
        assert!((rate_of(&status("Degraded", 0)).unwrap() - 9.0).abs() < f64::EPSILON);
        let refused = |status: &Value| format!("{:#}", rate_of(status).unwrap_err());
        assert!(refused(&status("Invalid", 0)).contains("busy"));
        assert_eq!(refused(&status("Valid", 2)), "2 requests failed");
        assert_eq!(refused(&json!({})), "it has no throughput");
    }
}

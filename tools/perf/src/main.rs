//! `redisbench-perf`: the load generator's cost per request, compared with redis-benchmark, its gates and the bare
//! system calls. All runs use loopback and are bounded in time.
//!
//! Ratios come from pairs, ours and theirs in alternation, because a machine's speed drifts. The figure is the median
//! of the pairs' ratios. Also whether comparisons of client libraries can be trusted, and the tables of other benchmarks beside ours.

mod bench;
mod clients;
mod comparison;
mod libraries;
mod local;
mod machine;
mod markdown;
mod page;
mod profile;
mod report;
mod rounds;
mod rows;
mod seeds;
mod servers;
mod stall;
mod storm;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use bench::Bench;

/// Measures the load generator's cost and checks it against its gates.
///
/// Exit codes: 0: all measured gates are met and promises kept. 1: at least one is not. 2: a measurement failed.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    instead: Option<Instead>,
    /// Measure only rows whose name contains TEXT
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Measure only counts, not times: system calls and instructions. Needs no idle machine
    #[arg(long)]
    exact: bool,
    #[command(flatten)]
    bench: Bench,
}

/// Other measurements.
#[derive(Debug, Subcommand)]
enum Instead {
    /// Profile the CPU time by function group and system call, and compare it with the floor
    Profile {
        /// Write the stacks of one profile to FILE, for a flame graph
        #[arg(long, value_name = "FILE")]
        stacks: Option<PathBuf>,
    },
    /// Compare load generators on a server that stalls for half a second
    Stall {
        /// Path of resp-benchmark, to measure it too
        #[arg(long, value_name = "FILE")]
        resp_benchmark: Option<PathBuf>,
    },
    /// Check attempts to connect and the return of the load on a server that stops for ten seconds
    Storm {
        /// Number of shards
        #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=200))]
        shards: u32,
    },
    /// Compare client libraries with themselves, and count how often a difference is called
    Itself(libraries::Options),
    /// Compare the client libraries of two examples, and two of them with a plain program
    Libraries,
    /// Remake the tables of the documents that examples/seeds repeats
    Seeds(seeds::Options),
}

fn main() -> ExitCode {
    match perf(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns true if all measured gates are met and promises kept.
fn perf(arguments: &Arguments) -> anyhow::Result<bool> {
    // For ten thousand connections, also of the children.
    let open_files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: open_files.maximum, ..open_files })
        .context("failed to raise the limit of open files")?;
    let bench = &arguments.bench;
    match &arguments.instead {
        None => table(bench, &arguments.only, arguments.exact),
        Some(Instead::Profile { stacks }) => profile::profile(bench, stacks.as_deref()).map(|()| true),
        Some(Instead::Stall { resp_benchmark }) => stall::stall(bench, resp_benchmark.as_deref()).map(|()| true),
        Some(Instead::Storm { shards }) => storm::storm(bench, *shards),
        Some(Instead::Itself(options)) => libraries::against_itself(bench, options),
        Some(Instead::Libraries) => libraries::compare(bench).map(|()| true),
        Some(Instead::Seeds(options)) => seeds::remake(bench, options).map(|()| true),
    }
}

fn table(bench: &Bench, only: &str, exact: bool) -> anyhow::Result<bool> {
    let tools = [
        machine::COMMIT,
        machine::COMPILER,
        machine::REDIS_SERVER,
        ("redis-benchmark", "redis-benchmark --version"),
        ("callgrind", "valgrind --version"),
        ("strace", "strace --version"),
    ];
    let machine = machine::Machine::look(bench, &tools)?;
    let rows = rows::measure(bench, only, exact);
    anyhow::ensure!(!rows.is_empty(), "--only {only:?}: no row's name contains it");
    println!("\n{}", report::summary(&rows));
    bench.write(|| report::document(&machine, bench, &rows))?;
    if exact {
        // The format of test runners, which `make test` sums.
        let failed = rows.iter().filter(|row| !row.is_met() || row.outcome.is_err()).count();
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        println!("test result: {verdict}. {} passed; {failed} failed", rows.len() - failed);
    }
    if let Some((row, error)) = rows.iter().find_map(|row| Some((row, row.outcome.as_ref().err()?))) {
        anyhow::bail!("failed to measure {}: {error}", row.name);
    }
    Ok(rows.iter().all(table::Row::is_met))
}

//! `redisbench-perf`: the load generator's cost per request, compared with redis-benchmark, its gates and the bare
//! system calls. All runs use loopback and are bounded in time.
//!
//! Ratios come from pairs, ours and theirs in alternation, because a machine's speed drifts. The figure is the median
//! of the pairs' ratios.

mod clients;
mod machine;
mod process;
mod profile;
mod report;
mod rows;
mod servers;
mod stall;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use clients::Bench;
use machine::Machine;
use table::Row;

/// Measures the load generator's cost and checks it against its gates.
///
/// Exit codes: 0: all measured gates are met. 1: at least one is not. 2: a measurement failed.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    instead: Option<Instead>,
    /// Number of pairs of runs per ratio, and of runs per figure
    #[arg(long, value_name = "N", default_value_t = 5, global = true, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Length of the runs: 1 is 2 to 5 s each; 0.02 is enough for a smoke test
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, global = true)]
    length: f64,
    /// Measure only rows whose name contains TEXT
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Measure only counts, not times: system calls and instructions. Needs no idle machine
    #[arg(long)]
    exact: bool,
    /// Write the table to this file
    #[arg(long, value_name = "FILE", global = true)]
    write: Option<PathBuf>,
    /// Processor for the clients
    #[arg(long, value_name = "CPU", default_value_t = 0, global = true)]
    client_cpu: usize,
    /// Processor for the servers
    #[arg(long, value_name = "CPU", default_value_t = 1, global = true)]
    server_cpu: usize,
    /// Directory with redisbench-loadgen, redisbench-floor and redisbench-drive [default: this program's directory]
    #[arg(long, value_name = "DIR", global = true)]
    programs: Option<PathBuf>,
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
}

fn main() -> ExitCode {
    match bench(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns true if all measured gates are met.
fn bench(arguments: &Arguments) -> anyhow::Result<bool> {
    anyhow::ensure!(
        arguments.length.is_finite() && arguments.length > 0.0,
        "--length {}: must be above 0",
        arguments.length
    );
    process::raise_open_files().context("failed to raise the limit of open files")?;
    let own = std::env::current_exe().context("failed to find this program")?;
    let beside = own.parent().unwrap_or(Path::new("."));
    let programs =
        arguments.programs.as_deref().unwrap_or(beside).canonicalize().context("failed to find --programs")?;
    let bench = Bench {
        programs,
        pairs: arguments.pairs,
        length: arguments.length,
        client_cpu: arguments.client_cpu,
        server_cpu: arguments.server_cpu,
    };
    let write = arguments.write.as_deref();
    match &arguments.instead {
        Some(Instead::Profile { stacks }) => return profile::profile(&bench, write, stacks.as_deref()).map(|()| true),
        Some(Instead::Stall { resp_benchmark }) => {
            return stall::stall(&bench, write, resp_benchmark.as_deref()).map(|()| true);
        }
        None => {}
    }
    table(arguments, &bench)
}

/// The table of gates.
fn table(arguments: &Arguments, bench: &Bench) -> anyhow::Result<bool> {
    let tools = [
        machine::COMMIT,
        machine::COMPILER,
        machine::REDIS_SERVER,
        machine::REDIS_BENCHMARK,
        machine::CALLGRIND,
        machine::STRACE,
    ];
    let machine = Machine::look(bench, &tools)?;
    println!("{machine}");
    let mut rows: Vec<Row> = Vec::new();
    for plan in rows::all() {
        if !plan.name.contains(&arguments.only) || (arguments.exact && !plan.is_exact) {
            continue;
        }
        let row = plan.perform(bench);
        println!("{}", report::line(&row));
        rows.push(row);
    }
    anyhow::ensure!(!rows.is_empty(), "--only {:?}: no row's name contains it", arguments.only);
    println!("\n{}{}", report::table(&rows), report::floor(&rows));
    if let Some(path) = arguments.write.as_deref() {
        let text = report::document(&machine, bench, &rows);
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
        println!("written to {}", path.display());
    }
    if arguments.exact {
        // The format of test runners, which `make test` sums.
        let failed = rows.iter().filter(|row| !row.is_met() || row.trouble().is_some()).count();
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        println!("test result: {verdict}. {} passed; {failed} failed", rows.len() - failed);
    }
    if let Some(failed) = rows.iter().find_map(Row::trouble) {
        anyhow::bail!("{failed} measurements failed");
    }
    Ok(rows.iter().all(Row::is_met))
}

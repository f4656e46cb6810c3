//! `redisbench-soak`: runs local benchmarks one after another, with real processes and random faults from a seed. Stops at the first run
//! that violates an invariant, and keeps its directory.

mod evidence;
mod fault;
mod inject;
mod network;
mod oracle;
mod processes;
mod run;
mod scenario;
mod servers;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;

use network::Network;
use scenario::{Means, Scenario};
use table::Table;

/// Runs local benchmarks under random faults, and checks the outcome of every request.
///
/// Exit code 0: no violation. 1: a run violated an invariant. Its directory is kept, and its number repeats it.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Time limit in minutes
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "runs")]
    minutes: u64,
    /// Number of runs, instead of a time limit
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// Seed; together with its number, it determines a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The number of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    run: u64,
    /// Print the runs without performing them
    #[arg(long, requires = "runs")]
    dry_run: bool,
    /// Directory of kubectl-redisbench and redisbench-loadgen [default: that of this program]
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Keep the directories of all runs, not only of one with a violation
    #[arg(long)]
    keep_all: bool,
    /// Where to keep the directories [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match soak(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns true if no invariant was violated.
fn soak(arguments: &Arguments) -> anyhow::Result<bool> {
    let own = std::env::current_exe().context("failed to find this program")?;
    let beside = own.parent().unwrap_or(Path::new("."));
    let programs =
        arguments.programs.as_deref().unwrap_or(beside).canonicalize().context("failed to find --programs")?;
    let mut network = Network::enter().unwrap_or_else(|error| {
        println!("network faults are disabled: {error:#}; they need root, iproute2 and nftables");
        Network::default()
    });
    let means = Means { network: network.own, clocks: network::has_clocks() };
    let until = Instant::now() + Duration::from_secs(arguments.minutes * 60);
    let mut table = Table::default();
    let mut number = arguments.run;
    let goes_on = |number: u64| match arguments.runs {
        Some(runs) => number < arguments.run + runs,
        None => Instant::now() < until,
    };
    println!("seed {}, {means:?}, programs in {}", arguments.seed, programs.display());
    while goes_on(number) {
        let scenario = Scenario::draw(arguments.seed, number, means);
        if arguments.dry_run {
            println!("{number}: {}: {scenario:?}", scenario.describe());
            number += 1;
            continue;
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix("redisbench-soak-");
        let place = match &arguments.keep {
            Some(keep) => std::fs::create_dir_all(keep).and_then(|()| builder.tempdir_in(keep)),
            None => builder.tempdir(),
        }
        .context("failed to create a directory")?;
        let evidence = run::perform(&scenario, &programs, place.path(), &mut network)
            .with_context(|| format!("failed to perform run {number} of seed {}", arguments.seed))?;
        let violations = oracle::judge(&scenario, &evidence);
        println!("{}", table.add(&scenario, &evidence, &violations));
        let kept = (arguments.keep_all || !violations.is_empty()).then(|| place.keep());
        if let (Some(kept), false) = (kept, violations.is_empty()) {
            println!("run {number} of seed {} violates invariants:", arguments.seed);
            for violation in &violations {
                println!("  {violation}");
            }
            println!("kept in {}", kept.display());
            println!("repeat with: redisbench-soak --seed {} --run {number} --runs 1", arguments.seed);
            println!("{table}");
            return Ok(false);
        }
        number += 1;
    }
    if !arguments.dry_run {
        println!("{table}");
    }
    Ok(true)
}

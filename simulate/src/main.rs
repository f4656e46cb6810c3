//! `redisbench-simulate`: runs seeds, and shows the trace of the first that fails.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Parser;
use redisbench_simulate::simulate;

/// Simulates operators and shards under faults, on virtual time.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Seeds to run, as first..last; the last is run too.
    #[arg(long, default_value = "1..2000", value_parser = seeds, conflicts_with = "seed")]
    seeds: (u64, u64),
    /// The one seed to run.
    #[arg(long)]
    seed: Option<u64>,
    /// Shows everything that happened, whether it fails or not.
    #[arg(long, requires = "seed")]
    trace: bool,
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("{text}: seeds are named as first..last, such as 1..2000");
    let (first, last) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim_start_matches('=').parse().map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    if first <= last { Ok((first, last)) } else { Err(wrong()) }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (first, last) = arguments.seed.map_or(arguments.seeds, |seed| (seed, seed));
    let began = Instant::now();
    let mut endings = BTreeMap::<String, u64>::new();
    let (mut calls, mut writes, mut faults) = (0, 0, 0);
    for seed in first..=last {
        let report = simulate(seed).context("failed to make a runtime")?;
        if report.violation.is_some() || arguments.trace {
            report.trace.iter().for_each(|line| println!("{line}"));
        }
        if let Some(violation) = report.violation {
            let run = seed - first + 1;
            bail!("seed {seed}, the {run}. of {first}..{last}, breaks an invariant: {violation}");
        }
        *endings.entry(report.ending).or_default() += 1;
        calls += report.calls;
        writes += report.writes;
        faults += report.faults;
    }
    let run = last - first + 1;
    let took = began.elapsed().as_secs_f64();
    println!(
        "{run} seeds in {took:.1} s, {:.0} per second; {faults} faults, {calls} calls to shards, {writes} writes",
        run as f64 / took.max(0.001)
    );
    for (ending, count) in endings {
        println!("{count:>8} {ending}");
    }
    Ok(())
}

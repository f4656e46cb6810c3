//! `redisbench-simulate`: runs seeds on all cores, and shows the trace of the lowest that fails.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Parser;
use redisbench_simulate::{Report, simulate, simulate_all};
use redisbench_testkit::counts::Counts;

/// Simulates operators and shards under faults, on virtual time.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Seeds to run, as first..last, both included.
    #[arg(long, default_value = "1..2000", value_parser = seeds, conflicts_with = "seed")]
    seeds: (u64, u64),
    /// The only seed to run.
    #[arg(long)]
    seed: Option<u64>,
    /// Prints all events of the seed, whether it fails or not.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Runs all seeds even if some fail, and lists the failed ones.
    #[arg(long)]
    all: bool,
    /// Number of parallel simulations; by default the number of cores.
    #[arg(long)]
    jobs: Option<NonZero<usize>>,
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("{text}: seeds must be first..last, such as 1..2000");
    let (first, last) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim_start_matches('=').parse().map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    if first <= last { Ok((first, last)) } else { Err(wrong()) }
}

#[derive(Default)]
struct Sum {
    failed: BTreeMap<u64, String>,
    run: u64,
    calls: u64,
    writes: u64,
    endings: Counts,
    events: Counts,
}

impl Sum {
    fn add(&mut self, seed: u64, report: Report) {
        self.run += 1;
        self.calls += report.calls;
        self.writes += report.writes;
        self.endings.add(report.ending, 1);
        self.events.merge(report.events);
        self.failed.extend(report.violation.map(|violation| (seed, violation)));
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (first, last) = arguments.seed.map_or(arguments.seeds, |seed| (seed, seed));
    if arguments.trace {
        return show(first).map(drop);
    }
    let began = Instant::now();
    let jobs = arguments.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
    let sum = Mutex::new(Sum::default());
    simulate_all(first..=last, jobs, |seed, report| {
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add(seed, report);
        arguments.all || sum.failed.is_empty()
    })
    .context("failed to create a runtime")?;
    let Sum { failed, run, calls, writes, endings, events } = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = began.elapsed().as_secs_f64();
    let per_second = run as f64 / seconds.max(0.001);
    println!("{run} seeds in {seconds:.1} s, {per_second:.0} per second; {calls} calls to shards, {writes} writes");
    print!("events:\n{events}endings:\n{endings}");
    let Some((&seed, violation)) = failed.first_key_value() else { return Ok(()) };
    if arguments.all {
        for (seed, violation) in &failed {
            println!("seed {seed}: {violation}");
        }
        bail!("{} of {run} seeds violate an invariant", failed.len());
    }
    if show(seed)?.as_ref() != Some(violation) {
        bail!("seed {seed} violates an invariant, but does not replay: {violation}");
    }
    bail!("seed {seed}, the {}. of {first}..{last}, violates an invariant: {violation}", seed - first + 1);
}

/// Replays `seed` with its trace. Returns the violated invariant.
fn show(seed: u64) -> anyhow::Result<Option<String>> {
    let report = simulate(seed, true).context("failed to create a runtime")?;
    report.trace.iter().for_each(|line| println!("{line}"));
    println!("{}", report.ending);
    Ok(report.violation)
}

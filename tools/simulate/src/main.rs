//! `redisbench-simulate`: runs seeds on all cores, and shows the trace of the lowest that fails.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use clap::Parser;
use redisbench_simulate::simulate;

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

/// The outcomes of many seeds.
#[derive(Default)]
struct Sum {
    failed: BTreeMap<u64, String>,
    run: u64,
    calls: u64,
    writes: u64,
    endings: BTreeMap<String, u64>,
    events: BTreeMap<&'static str, u64>,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.failed.extend(other.failed);
        self.run += other.run;
        self.calls += other.calls;
        self.writes += other.writes;
        for (ending, count) in other.endings {
            *self.endings.entry(ending).or_default() += count;
        }
        for (event, count) in other.events {
            *self.events.entry(event).or_default() += count;
        }
    }

    fn print(&self, seconds: f64) {
        let per_second = self.run as f64 / seconds.max(0.001);
        println!(
            "{} seeds in {seconds:.1} s, {per_second:.0} per second; {} calls to shards, {} writes",
            self.run, self.calls, self.writes
        );
        println!("events:");
        for (event, count) in &self.events {
            println!("{count:>9} {event}");
        }
        println!("endings:");
        for (ending, count) in &self.endings {
            println!("{count:>9} {ending}");
        }
    }
}

/// Runs seeds from `next` up to `end`, which is lowered to a failing seed unless `all` is set.
fn work(next: &AtomicU64, end: &AtomicU64, all: bool) -> anyhow::Result<Sum> {
    let mut sum = Sum::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed > end.load(Ordering::Relaxed) {
            return Ok(sum);
        }
        let report = simulate(seed, false).context("failed to create a runtime")?;
        sum.run += 1;
        sum.calls += report.calls;
        sum.writes += report.writes;
        *sum.endings.entry(report.ending).or_default() += 1;
        for (event, count) in report.events {
            *sum.events.entry(event).or_default() += count;
        }
        if let Some(violation) = report.violation {
            sum.failed.insert(seed, violation);
            if !all {
                end.fetch_min(seed, Ordering::Relaxed);
            }
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (first, last) = arguments.seed.map_or(arguments.seeds, |seed| (seed, seed));
    if let (true, Some(seed)) = (arguments.trace, arguments.seed) {
        return show(seed).map(drop);
    }
    let began = Instant::now();
    let jobs = arguments.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
    let (next, end) = (AtomicU64::new(first), AtomicU64::new(last));
    let mut sum = Sum::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| work(&next, &end, arguments.all))).collect();
        for worker in workers {
            sum.add(worker.join().map_err(|_| anyhow!("a simulation panicked; see the message above"))??);
        }
        anyhow::Ok(())
    })?;
    sum.print(began.elapsed().as_secs_f64());
    let Some((&seed, violation)) = sum.failed.first_key_value() else { return Ok(()) };
    if arguments.all {
        sum.failed.iter().for_each(|(seed, violation)| println!("seed {seed}: {violation}"));
        bail!("{} of {} seeds violate an invariant", sum.failed.len(), sum.run);
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

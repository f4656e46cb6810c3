//! A client against itself: real comparisons in which nothing differs, and how many of them call a difference.

mod report;
mod run;

use std::iter;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;

use super::page::{self, PAGE};
use crate::bench::{Bench, all_cpus};
use crate::machine::{COMMIT, COMPILER, Machine, REDIS_SERVER};
use report::Report;
use run::Run;

/// Settings of the comparisons of a client with itself.
#[derive(Debug, Args)]
pub struct Options {
    /// Number of comparisons
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    comparisons: u32,
    /// Comparisons at a time. Each mostly waits for the start of its next trial
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
    at_once: u32,
    /// Start no comparison after this many minutes
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=600))]
    minutes: u32,
}

/// Makes the comparisons, and prints and writes how many of them called a difference. Returns whether these are no more than promised.
pub fn against_itself(bench: &Bench, options: &Options) -> anyhow::Result<bool> {
    let machine = Machine::look(bench, &[COMMIT, COMPILER, REDIS_SERVER])?;
    let begin = Instant::now();
    let runs = options.compare(bench)?;
    let minutes = begin.elapsed().as_secs_f64() / 60.0;
    let report = Report(&runs);
    let tables = report.tables();
    println!("\n{tables}\n{} comparisons in {minutes:.1} minutes", runs.len());
    let failed = report.failed();
    // More could be those that would have called a difference.
    anyhow::ensure!(
        failed.len() * 10 <= runs.len(),
        "{} of {} comparisons are not usable, more than a tenth, so nothing is written; the first: {}",
        failed.len(),
        runs.len(),
        failed.first().map(String::as_str).unwrap_or_default()
    );
    let fewer = if runs.len() < options.comparisons as usize {
        format!("The time limit of {} minutes ended it after {} of them. ", options.minutes, runs.len())
    } else {
        String::new()
    };
    let measured = machine.measured(bench, page::ITSELF.target);
    let (count, at_once) = (options.comparisons, options.at_once);
    let text = format!(
        "{measured}\n{count} comparisons, each of one client under two names: every difference that they call is false. {fewer}\
         {at_once} ran at a\ntime, {minutes:.0} minutes in all, so they disturbed one another.\n\n{HOW}\n{tables}"
    );
    bench.rewrite(|old| PAGE.with(old, &page::ITSELF, &text))?;
    Ok(report.is_kept())
}

const HOW: &str = "\
`kubectl redisbench local --with-redis` makes each as for any user: five pairs of trials in turns, and a confidence of 95 %. A trial in
an open loop has 1,000 GETs at 3,000 per second over two connections; in a closed loop, 10,000 GETs from 8 callers over one. The
requested metric may err in 5 % of all comparisons, and the others may err in 5 % together. A metric is unknown if a trial has too few
requests for it. Intervals are exact (Clopper-Pearson), 95 %. The comparisons cover the clients of the second table, in turns, and no
other: not deadpool, not the connection manager and cluster client of redis-rs, and no driver. The promise is that of all clients
together, because the comparisons of one client are too few to judge it alone.
";

impl Options {
    /// Makes the comparisons, several at a time, until the time limit.
    fn compare(&self, bench: &Bench) -> anyhow::Result<Vec<Run>> {
        let cpus = all_cpus()?;
        let folder = tempfile::tempdir().context("failed to create a directory for manifests")?;
        let deadline = Instant::now() + Duration::from_secs(60 * u64::from(self.minutes));
        let next = AtomicU32::new(0);
        let one = || {
            let number = next.fetch_add(1, Relaxed);
            if number >= self.comparisons || Instant::now() >= deadline {
                return None;
            }
            let run = Run::make(bench, &cpus, folder.path(), number);
            println!("{}/{} | {run}", number + 1, self.comparisons);
            Some(run)
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.at_once.min(self.comparisons))
                .map(|_| scope.spawn(|| iter::from_fn(&one).collect::<Vec<_>>()))
                .collect();
            let mut runs = Vec::new();
            for worker in workers {
                runs.extend(worker.join().map_err(|_| anyhow::anyhow!("a comparison panicked"))?);
            }
            Ok(runs)
        })
    }
}

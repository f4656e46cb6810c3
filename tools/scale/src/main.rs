//! `redisbench-scale`: what one operator costs with many shards, and whether its results are exact.
//!
//! The operator and the control plane are real. KWOK plays the nodes. The farm plays the shards' containers: the load generator's own
//! control side over HTTPS, with a load that is computed, so the truth is known.

mod bench;
mod driver;
mod farm;
mod fault;
mod load;
mod operator;
mod page;
mod plot;
mod slow;
mod targets;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use kube::{Client, Config};
use redisbench_benchmark::conductor::SNAPSHOTS_PER_SECOND;
use redisbench_loadgen::control::raise_open_files;
use redisbench_testkit::servers::RedisServer;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::bench::{Ended, Shape};
use crate::farm::Farm;
use crate::fault::Faults;
use crate::operator::{Calls, Operator};

/// Measures the operator with many shards. Run it by `make bench-scale`.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Shards of each benchmark.
    #[arg(long, default_value_t = 200)]
    shards: u32,
    /// Benchmarks at once.
    #[arg(long, default_value_t = 1)]
    benchmarks: u32,
    /// Length of the measurement, in seconds. The warm-up takes 5 s more.
    #[arg(long, default_value_t = 20)]
    duration: u64,
    #[command(flatten)]
    faults: Faults,
    /// The operator's program.
    #[arg(long)]
    operator: PathBuf,
    /// The operator's option; the page has rows of its default alone.
    #[arg(long, default_value_t = SNAPSHOTS_PER_SECOND, conflicts_with = "write")]
    snapshots_per_second: u32,
    /// Directory of the control plane's files.
    #[arg(long, env = "E2E_RUN")]
    plane: PathBuf,
    /// The page that gets the row of this measurement, and the plot beside it.
    #[arg(long)]
    write: Option<PathBuf>,
    /// Fail unless the counts are exact, the load of deleted benchmarks stops in time, and the targets of docs/evidence/scale.md are met.
    /// Needs an otherwise idle machine.
    #[arg(long)]
    check: bool,
    /// Like --check, without the targets.
    #[arg(long, conflicts_with = "check")]
    exact: bool,
    /// The longest that all may take, in seconds.
    #[arg(long, default_value_t = 1_500)]
    limit: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    raise_open_files().context("failed to raise the limit of open files")?;
    // The shards look at it before they are ready; their load is computed.
    let redis = RedisServer::start(&["--maxclients", "20000"]);
    let config = Config::infer().await.context("failed to read KUBECONFIG")?;
    let client = Client::try_from(config).context("failed to create a client")?;
    let mut kubeconfig = arguments.plane.join("operator.conf");
    if arguments.faults.slow_api > 0 {
        kubeconfig = slow::delayed(&kubeconfig, Duration::from_millis(arguments.faults.slow_api)).await?;
    }
    let snapshots = arguments.snapshots_per_second;
    let operator = RefCell::new(Operator::start(&arguments.operator, &arguments.plane, &kubeconfig, snapshots)?);
    let shape = Shape {
        shards: arguments.shards,
        benchmarks: arguments.benchmarks,
        duration: arguments.duration,
        faults: arguments.faults,
        target: redis.address(),
    };
    let farm = Farm::new(client.clone()).run();
    let (progress, _) = watch::channel(0);
    let began = Instant::now();
    let cpu_before = operator.borrow().cpu_seconds()?;
    let calls_before = operator.borrow().calls().unwrap_or_default();
    let alive = async {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let checked = operator.borrow_mut().check();
            if let Err(error) = checked {
                return error;
            }
        }
    };
    let ended = tokio::select! {
        ended = bench::run(client.clone(), shape, &operator, &progress) => ended?,
        farm = farm => bail!("the farm ended: {farm:?}"),
        error = alive => return Err(error),
        () = tokio::time::sleep(Duration::from_secs(arguments.limit)) => {
            bail!("{} of {} benchmarks ended within {} s", *progress.borrow(), shape.benchmarks, arguments.limit)
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    let operator = operator.borrow();
    let cost = Cost {
        seconds,
        cpu: operator.cpu_seconds()? - cpu_before,
        peak_memory: operator.peak_memory()?,
        calls: operator.calls()?,
        calls_before,
        seconds_without: operator.seconds_without,
    };
    let line = line(shape, &cost, &ended);
    print!("{}", table(&line));
    let differences: Vec<&String> = ended.iter().flat_map(|one| &one.differences).collect();
    for difference in differences.iter().take(20) {
        println!("differs: {difference}");
    }
    if let Some(path) = &arguments.write {
        let page = std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
        let page = page::with_row(&page, &line).with_context(|| format!("{} has no table of scale", path.display()))?;
        let plot = plot::svg(&page::points(&page));
        std::fs::write(path, page).with_context(|| format!("failed to write {}", path.display()))?;
        std::fs::write(path.with_extension("svg"), plot).context("failed to write the plot")?;
    }
    let missed = if arguments.check { targets::missed(shape, &line) } else { Vec::new() };
    for target in &missed {
        println!("missed: {target}");
    }
    println!("{line}");
    if (arguments.check || arguments.exact) && !differences.is_empty() {
        bail!("{} differences between the results and the truth", differences.len());
    }
    ensure!(missed.is_empty(), "the operator missed {} of its targets", missed.len());
    Ok(())
}

/// The operator's cost from the first benchmark to the last result.
struct Cost {
    seconds: f64,
    cpu: f64,
    peak_memory: u64,
    calls: Calls,
    calls_before: Calls,
    seconds_without: Option<f64>,
}

/// The worst of all benchmarks.
fn worst(ended: &[Ended], of: impl Fn(&Ended) -> f64) -> f64 {
    ended.iter().map(of).fold(0.0, f64::max)
}

/// The worst of those that have it.
fn worst_of_some(ended: &[Ended], of: impl Fn(&Ended) -> Option<f64>) -> Option<f64> {
    ended.iter().filter_map(of).reduce(f64::max)
}

fn line(shape: Shape, cost: &Cost, ended: &[Ended]) -> Value {
    let skew = |one: &Ended| {
        let starts = || one.truth.starts.values().copied();
        starts().max().zip(starts().min()).map_or(0.0, |(last, first)| (last - first) as f64 / 1e3)
    };
    let rounded = |value: f64| (value * 1e3).round() / 1e3;
    let differences: usize = ended.iter().map(|one| one.differences.len()).sum();
    let calls = cost.calls.number - cost.calls_before.number;
    json!({
        "shards": shape.shards,
        "benchmarks": shape.benchmarks,
        "duration": shape.duration,
        "fault": shape.faults.name(),
        "unreachable": shape.faults.unreachable,
        "slowApiMilliseconds": shape.faults.slow_api,
        "phases": ended.iter().map(|one| format!("{:?}", one.phase)).collect::<std::collections::BTreeSet<_>>(),
        "operatorCpuCores": rounded(cost.cpu / cost.seconds),
        "operatorCpuSeconds": rounded(cost.cpu),
        "operatorPeakMemoryBytes": cost.peak_memory,
        "apiCallsPerSecond": rounded(calls as f64 / cost.seconds),
        "bytesWritten": cost.calls.written - cost.calls_before.written,
        "seconds": rounded(cost.seconds),
        "secondsToArmed": rounded(worst(ended, |one| one.seconds_to_armed)),
        "secondsToStart": rounded(worst(ended, |one| one.seconds_to_start)),
        "startSkewMicroseconds": rounded(worst(ended, skew)),
        "oldestSnapshotSeconds": rounded(worst(ended, |one| one.truth.oldest_snapshot as f64 / 1e9)),
        "snapshots": ended.iter().map(|one| one.truth.snapshots).sum::<u64>(),
        "secondsToResult": worst_of_some(ended, |one| one.seconds_to_result).map(rounded),
        "secondsWithoutOperator": cost.seconds_without.map(rounded),
        "secondsToStop": worst_of_some(ended, |one| one.seconds_to_stop).map(rounded),
        "differences": differences,
        "countsExact": shape.faults.delete.is_none().then_some(differences == 0),
    })
}

fn table(line: &Value) -> String {
    let mut table = String::from("| what | measured |\n| --- | --- |\n");
    for (name, value) in line.as_object().into_iter().flatten() {
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| {name} | {value} |");
    }
    table
}

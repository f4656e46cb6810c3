//! `list`: one line per benchmark.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use jiff::Timestamp;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::human;

use crate::cluster::Cluster;
use crate::exit::GOOD;
use crate::render::{self, Grid, Paint};

/// Prints the benchmarks of the namespace, or of all.
pub async fn list(cluster: &Cluster, all: bool) -> anyhow::Result<u8> {
    let mut benchmarks = cluster.list(all).await?;
    if benchmarks.is_empty() {
        let place = if all { "any namespace".to_owned() } else { format!("namespace {}", cluster.namespace) };
        eprintln!("no benchmarks in {place}");
        return Ok(GOOD);
    }
    benchmarks.sort_by_key(|one| (one.metadata.namespace.clone(), one.metadata.name.clone()));
    let text = table(&benchmarks, all, Timestamp::now(), Paint::for_stream(io::stdout().is_terminal()));
    render::write(text)?;
    Ok(GOOD)
}

pub(super) fn table(benchmarks: &[RedisBenchmark], all: bool, now: Timestamp, paint: Paint) -> String {
    let place = if all { &["namespace"][..] } else { &[] };
    let heads = [place, &["phase", "rate", "p99", "errors", "verdict", "age"]].concat();
    let mut grid = Grid::new("Benchmark", &heads).left(1);
    if all {
        grid = grid.left(2);
    }
    for benchmark in benchmarks {
        let status = benchmark.status.clone().unwrap_or_default();
        let summary = status.summary.unwrap_or_default();
        let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let created = benchmark.metadata.creation_timestamp.as_ref().map(|created| created.0);
        let age = created.and_then(|created| Duration::try_from(now.duration_since(created)).ok()).map(human::seconds);
        let mut row = vec![benchmark.metadata.name.clone().unwrap_or_default()];
        row.extend(all.then(|| benchmark.metadata.namespace.clone().unwrap_or_default()));
        row.push(format!("{:?}", status.phase));
        row.extend([summary.rate, summary.p99, summary.errors, summary.verdict, age].map(known));
        grid.row(row);
    }
    grid.text(paint).trim_start_matches('\n').to_owned()
}

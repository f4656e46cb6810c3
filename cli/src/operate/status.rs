//! `status`: a benchmark as it is now.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use jiff::Timestamp;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Progress;

use crate::arguments::{Output, ShowArguments};
use crate::cluster::Cluster;
use crate::exit::GOOD;
use crate::progress::{self, rows};
use crate::render::{self, Grid, Paint};

/// Prints the present state of a benchmark.
pub async fn status(cluster: &Cluster, arguments: &ShowArguments) -> anyhow::Result<u8> {
    let benchmark = cluster.get(&arguments.name).await?;
    match arguments.output {
        Output::Table => {
            render::write(text(&benchmark, Timestamp::now(), Paint::for_stream(io::stdout().is_terminal())))?;
        }
        output => render::print(&benchmark, output)?,
    }
    Ok(GOOD)
}

/// The tables of a result as far as there is one, the progress, and the conditions.
pub(super) fn text(benchmark: &RedisBenchmark, now: Timestamp, paint: Paint) -> String {
    let mut text = render::table(benchmark, paint);
    let Some(status) = &benchmark.status else { return text + "\nno operator has picked it up yet\n" };
    if !status.phase.is_terminal() {
        let _ = writeln!(text, "\n{}", progress::line(&benchmark.spec, status, now));
        text.extend(progress::reasons(status).iter().map(|reason| format!("  {reason}\n")));
        text.extend(status.progress.iter().map(|progress| tables(progress, paint)));
    }
    let mut grid = Grid::new("Condition", &["status", "reason", "message"]).left(1).left(2).left(3);
    for condition in &status.conditions {
        let message = condition.message.lines().next().unwrap_or_default();
        grid.row([condition.type_.as_str(), &condition.status, &condition.reason, message]);
    }
    text + &grid.text(paint)
}

/// Shards and nodes, as far as the status lists them.
fn tables(progress: &Progress, paint: Paint) -> String {
    let mut shards = Grid::new("shard", &rows::SHARD_HEADS);
    progress.shards.iter().for_each(|shard| shards.row(rows::shard(shard)));
    let mut nodes = Grid::new(&rows::nodes_head(progress.nodes_left_out), &rows::NODE_HEADS);
    progress.nodes.iter().for_each(|node| nodes.row(rows::node(node)));
    let tables = [(shards, progress.shards.is_empty()), (nodes, progress.nodes.is_empty())];
    tables.iter().filter(|(_, empty)| !empty).map(|(grid, _)| grid.text(paint)).collect()
}

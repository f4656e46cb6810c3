//! Differences between nodes and between shards. These plots have all of them, and the tables the worst.

use std::cmp::Reverse;

use redisbench_benchmark::api::status::TrialResult;

use super::chart::{Axis, Chart, Mark, Role, Scale, Shape};
use crate::render::Grid;

/// The most values with a dot each.
const DOTS: usize = 60;

/// Requests of the nodes, and p99 of the shards; none of a single one.
pub fn charts(result: &TrialResult) -> Vec<Chart> {
    let nodes = result.nodes.iter().map(|node| (node.address.clone(), node.imbalance_percent));
    let shards = result.shards.iter();
    let shards = shards.filter_map(|shard| Some((format!("shard {}", shard.index), shard.p99_nanoseconds?)));
    let nodes = chart("nodes", "Requests of each node", "percent of the mean", Scale::Percent, nodes.collect());
    let shards = chart("shards", "p99 of each shard", "p99 of response time", Scale::Latency, shards.collect());
    [nodes, shards].into_iter().flatten().collect()
}

fn chart(id: &str, title: &str, axis: &str, scale: Scale, mut values: Vec<(String, u64)>) -> Option<Chart> {
    let last = values.len().checked_sub(1).filter(|last| *last > 0)?;
    values.sort_by_key(|(_, value)| Reverse(*value));
    let points: Vec<_> = (1_u32..).map(f64::from).zip(values.iter().map(|(_, value)| scale.place(*value))).collect();
    let x = Axis::counted("highest first", 0.5..values.len() as f64 + 0.5);
    let mut marks = vec![Mark::Line(Role::First, points.clone())];
    if points.len() <= DOTS {
        marks.extend(points.into_iter().map(|point| Mark::Dot(Role::First, Shape::Circle, point)));
    }
    let mut grid = Grid::new(title, &["which", axis]).left(1);
    for (name, nth) in [("highest", 0), ("median", last / 2), ("lowest", last)] {
        let (of, value) = &values[nth];
        grid.row([name.to_owned(), of.clone(), scale.text(*value)]);
    }
    Some(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!("All {}, sorted. A flat line means that they are even.", values.len()),
        x,
        y: scale.axis(axis, values.iter().map(|(_, value)| *value)),
        marks,
        legend: Vec::new(),
        table: grid,
    })
}

//! Tables of latencies.

use redisbench_benchmark::api::status::Latencies;
use redisbench_benchmark::human::latency;
use redisbench_benchmark::measurement::latencies;

use super::grid::{Cell, Grid};
use super::paint::Style;

/// A table of latencies of the same percentiles.
pub fn latency_rows(title: &str, rows: &[(&str, &Latencies)]) -> Grid {
    let asked = rows.first().map(|(_, latencies)| asked(latencies)).unwrap_or_default();
    let mut grid = latency_grid(title, &asked);
    for (name, latencies) in rows {
        grid.row(latency_row(name, latencies, &asked));
    }
    grid
}

/// The percentiles of `latencies`.
pub fn asked(latencies: &Latencies) -> Vec<&str> {
    latencies.percentiles.iter().map(|one| one.percentile.as_str()).collect()
}

/// A table whose columns are the percentiles that are `asked`, and those of every table.
pub fn latency_grid(title: &str, asked: &[&str]) -> Grid {
    let heads: Vec<String> = asked.iter().map(|percentile| format!("p{percentile}")).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).chain(["max", "mean"]).collect();
    Grid::new(title, &heads)
}

pub fn latency_row(name: &str, latencies: &Latencies, asked: &[&str]) -> Vec<Cell> {
    let mut row = vec![Cell::from(name)];
    row.extend(asked.iter().map(|percentile| quantile(latencies, percentile)));
    row.push(known(latencies.max_nanoseconds));
    row.push(known(latencies.mean_nanoseconds));
    row
}

fn quantile(latencies: &Latencies, percentile: &str) -> Cell {
    match latencies.percentiles.iter().find(|one| one.percentile == percentile) {
        Some(found) => {
            let style = if found.more_than_nanoseconds.is_some() { Style::Bad } else { Style::Plain };
            latencies::percentile(found).map_or_else(|| known(None), |text| Cell::styled(text, style))
        }
        // A shortened status has only these percentiles.
        None => known(match percentile {
            "50" => latencies.p50_nanoseconds,
            "90" => latencies.p90_nanoseconds,
            "95" => latencies.p95_nanoseconds,
            "99" => latencies.p99_nanoseconds,
            "99.9" => latencies.p999_nanoseconds,
            "99.99" => latencies.p9999_nanoseconds,
            _ => None,
        }),
    }
}

pub fn known(nanoseconds: Option<u64>) -> Cell {
    Cell::known(nanoseconds.map(latency))
}

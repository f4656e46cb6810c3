//! Plots of a sweep: throughput and p99 over the first swept field, with a series for each setting of the others. Fields that change
//! together with the first are not named.

use std::collections::{BTreeMap, BTreeSet};

use redisbench_benchmark::api::status::{CellResult, TrialLine};
use redisbench_benchmark::human::{are, shorten};

use super::chart::{Axis, Chart, Mark, Role, Scale};
use crate::render::{Grid, trials};

/// The most places on the axis.
const PLACES: usize = 40;

/// The most bytes of a label.
const LABEL: usize = 16;

#[derive(Clone, Copy)]
pub enum Metric {
    Throughput,
    P99,
}

/// A mean with its interval; of a single trial its value alone.
pub type Value = (u64, Option<(u64, u64)>);

impl Metric {
    pub fn of(self, line: &TrialLine, cells: &[CellResult]) -> Option<Value> {
        let cell = cells.iter().find(|cell| cell.cell == line.cell);
        let spread = cell.and_then(|cell| match self {
            Self::Throughput => {
                cell.throughput.map(|all| (all.mean_per_second, (all.low_per_second, all.high_per_second)))
            }
            Self::P99 => cell.p99.map(|all| (all.mean_nanoseconds, (all.low_nanoseconds, all.high_nanoseconds))),
        });
        let alone = match self {
            Self::Throughput => line.achieved_per_second,
            Self::P99 => line.p99_nanoseconds,
        };
        // One of several repeats stands for none.
        let alone = alone.filter(|_| line.repeat.is_none()).map(|value| (value, None));
        spread.map(|(mean, interval)| (mean, Some(interval))).or(alone)
    }

    pub fn scale(self) -> Scale {
        match self {
            Self::Throughput => Scale::Rate,
            Self::P99 => Scale::Latency,
        }
    }

    /// Identity, title, and name of the axis.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Throughput => ["sweep-throughput", "Throughput", "requests per second"],
            Self::P99 => ["sweep-p99", "p99 of response time", "p99 of response time"],
        }
    }
}

/// The cells of a sweep, by the value of the first field and by the setting of the others.
struct Cells<'a> {
    field: &'a str,
    places: Vec<&'a str>,
    series: Vec<(String, Vec<(usize, &'a TrialLine)>)>,
}

impl<'a> Cells<'a> {
    /// None without a sweep.
    fn of(lines: &'a [TrialLine]) -> Option<Self> {
        let field = lines.first()?.setting.parameters.keys().next()?;
        // In the order of the cells, which is that of the lists.
        let mut by_cell: BTreeMap<u32, &TrialLine> = BTreeMap::new();
        for line in lines {
            by_cell.entry(line.cell).or_insert(line);
        }
        let follows = |other: &String| follows(by_cell.values().copied(), field, other);
        let followers: BTreeSet<&String> = lines.iter().flat_map(|line| line.setting.parameters.keys()).collect();
        let followers: BTreeSet<&String> = followers.into_iter().filter(|other| follows(other)).collect();
        let mut cells = Self { field, places: Vec::new(), series: Vec::new() };
        for line in by_cell.into_values() {
            let Some(value) = line.setting.parameters.get(field) else { continue };
            let place = cells.places.iter().position(|known| known == value).unwrap_or_else(|| {
                cells.places.push(value);
                cells.places.len() - 1
            });
            let mut setting = line.setting.clone();
            setting.parameters.retain(|other, _| !followers.contains(other));
            let name = setting.parts(None, trials::last_step).join(", ");
            match cells.series.iter_mut().find(|(known, _)| *known == name) {
                Some((_, lines)) => lines.push((place, line)),
                None => cells.series.push((name, vec![(place, line)])),
            }
        }
        Some(cells)
    }
}

/// Returns whether `other` has one value for each value of `field`, as in rows of fields that change together. True of `field` itself.
fn follows<'a>(lines: impl Iterator<Item = &'a TrialLine>, field: &String, other: &String) -> bool {
    let mut known = BTreeMap::new();
    lines.into_iter().all(|line| {
        let (value, own) = (line.setting.parameters.get(field), line.setting.parameters.get(other));
        *known.entry(value).or_insert(own) == own
    })
}

/// None without a sweep of several values, and none of a metric that no trial has.
pub fn charts(lines: &[TrialLine], cells: &[CellResult]) -> Vec<Chart> {
    let swept = Cells::of(lines).filter(|swept| (2..=PLACES).contains(&swept.places.len()));
    swept.map_or_else(Vec::new, |swept| {
        [Metric::Throughput, Metric::P99].into_iter().filter_map(|metric| chart(metric, &swept, cells)).collect()
    })
}

fn chart(metric: Metric, swept: &Cells<'_>, cells: &[CellResult]) -> Option<Chart> {
    let field = trials::last_step(swept.field);
    let ([id, what, axis], scale) = (metric.names(), metric.scale());
    let title = format!("{what} by {field}");
    let mut grid = Grid::new(&title, &["series", "value", "from", "to"]).left(1);
    let (mut marks, mut values) = (Vec::new(), Vec::new());
    for ((name, lines), role) in swept.series.iter().zip(Role::SERIES) {
        let known = lines.iter().filter_map(|(place, line)| Some((*place, metric.of(line, cells)?)));
        let mut line = Vec::new();
        for (place, (value, interval)) in known {
            let (low, high) = interval.unwrap_or((value, value));
            values.extend([low.max(1), value, high]);
            let ends = [low, value, high].map(|value| (place as f64, scale.place(value)));
            line.push(ends[1]);
            marks.push(Mark::Interval(role, ends));
            let end = |end: u64| interval.map_or_else(|| "-".to_owned(), |_| scale.text(end));
            grid.row([swept.places[place].to_owned(), name.clone(), scale.text(value), end(low), end(high)]);
        }
        marks.push(Mark::Line(role, line));
    }
    let several = swept.series.len() > 1;
    let more = swept.series.len().saturating_sub(Role::SERIES.len()) as u64;
    let verb = are(more);
    let more = if more > 0 { format!(" {more} more series {verb} in the table of trials.") } else { String::new() };
    let names = swept.series.iter().map(|(name, _)| name.clone());
    (!values.is_empty()).then(|| Chart {
        id: id.to_owned(),
        title,
        description: format!(
            "Dots are means over repeats with the 95 % confidence interval of the mean; without repeats, single trials, of which no \
             interval is known.{more}"
        ),
        x: Axis::names(field, swept.places.iter().map(|place| shorten(place, LABEL).into_owned())),
        y: scale.axis(axis, values),
        marks,
        legend: if several { Role::SERIES.into_iter().zip(names).collect() } else { Vec::new() },
        table: grid,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Lines of cells with these values of the fields a, b and c, with a throughput and without a p99.
    fn lines(cells: &[[&str; 3]]) -> Vec<TrialLine> {
        let line = |(cell, [a, b, c]): (u32, &[&str; 3])| -> TrialLine {
            let parameters = json!({"load.a": a, "load.b": b, "load.c": c});
            let line = json!({
                "index": cell, "cell": cell, "state": "Completed", "attempt": 1, "achievedPerSecond": 5, "parameters": parameters
            });
            serde_json::from_value(line).unwrap()
        };
        (0..).zip(cells).map(line).collect()
    }

    /// The names of the series of such cells.
    fn series(cells: &[[&str; 3]]) -> Vec<(String, usize)> {
        Cells::of(&lines(cells)).unwrap().series.into_iter().map(|(name, points)| (name, points.len())).collect()
    }

    #[test]
    fn fields_that_change_together_are_one_series() {
        assert_eq!(series(&[["1", "10", "x"], ["2", "20", "y"], ["3", "20", "x"]]), [(String::new(), 3)]);
        // In combination with another field.
        assert_eq!(
            series(&[["1", "10", "x"], ["1", "10", "y"], ["2", "20", "x"], ["2", "20", "y"]]),
            [("c=x".to_owned(), 2), ("c=y".to_owned(), 2)]
        );
        assert_eq!(
            series(&[["1", "10", "x"], ["1", "20", "x"], ["2", "10", "x"]]),
            [("b=10".to_owned(), 2), ("b=20".to_owned(), 1)]
        );
    }
    #[test]
    fn a_metric_that_no_trial_has_is_not_drawn() {
        let charts = charts(&lines(&[["1", "10", "x"], ["2", "20", "x"]]), &[]);
        assert_eq!(charts.iter().map(|chart| chart.id.as_str()).collect::<Vec<_>>(), ["sweep-throughput"]);
    }
}

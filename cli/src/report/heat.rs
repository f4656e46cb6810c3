//! The heat map: requests by time and response time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use redisbench_benchmark::human::{count, latency};
use redisbench_wire::histogram::HIGHEST_NANOSECONDS;
use redisbench_wire::timeline::{bucket, highest_in, lowest_in};
use serde_json::json;

use super::chart::{Axis, Chart, ChartError, Frame};
use super::intervals::Interval;
use super::timeline::{self, Events};
use crate::render::Grid;

/// The most cells in each direction.
pub const COLUMNS: u32 = 600;
const ROWS: usize = 60;

/// The most columns of its table.
const TABLE_COLUMNS: usize = 10;

/// Shades, from few to many requests.
const SHADES: u32 = 8;

/// Counts of succeeded requests by time and response time. Their sum is the number of succeeded requests of its intervals.
#[derive(Clone, Debug)]
pub struct HeatMap {
    columns: Vec<Column>,
    /// The shortest and the longest response time of each row, in nanoseconds. Above the last one are those beyond a histogram's range.
    rows: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct Column {
    from: u32,
    to: u32,
    counts: BTreeMap<usize, u64>,
}

impl HeatMap {
    /// None if no request succeeded.
    pub fn new(intervals: &[Interval]) -> Option<Self> {
        let used = || intervals.iter().flat_map(|interval| interval.response.iter().map(|(bucket, _)| bucket));
        let overflow = bucket(HIGHEST_NANOSECONDS) + 1;
        let beyond = |interval: &Interval| interval.counts.succeeded.saturating_sub(interval.response.count());
        let overflows = intervals.iter().any(|interval| beyond(interval) > 0);
        let first = used().min().or(overflows.then_some(overflow))?;
        let last = used().max().unwrap_or(first).max(if overflows { overflow } else { 0 });
        // Buckets per row. They are nearly logarithmic, so rows are.
        let merged = (1..=last + 1).find(|merged| last / merged - first / merged < ROWS)?;
        let (first, last) = (first / merged, last / merged);
        let column = |interval: &Interval| {
            let mut counts = BTreeMap::new();
            for (bucket, times) in interval.response.iter().chain([(overflow, beyond(interval))]) {
                if times > 0 {
                    *counts.entry(bucket / merged - first).or_insert(0) += times;
                }
            }
            Column { from: interval.from, to: interval.to, counts }
        };
        let row = |row: usize| (lowest_in(row * merged), highest_in((row + 1) * merged - 1));
        Some(Self { columns: intervals.iter().map(column).collect(), rows: (first..=last).map(row).collect() })
    }

    #[cfg(test)]
    pub fn sum(&self) -> u64 {
        self.columns.iter().flat_map(|column| column.counts.values()).sum()
    }

    #[cfg(test)]
    pub fn size(&self) -> (usize, usize) {
        (self.columns.len(), self.rows.len())
    }

    fn most(&self) -> u64 {
        self.columns.iter().flat_map(|column| column.counts.values()).copied().max().unwrap_or(1)
    }

    /// The plot, with the counts of all cells as JSON.
    pub fn figure(&self, events: &Events) -> Result<Markup, ChartError> {
        let ends = self.rows.first().zip(self.rows.last());
        let ends = ends.map(|(first, last)| [edges(*first).start, edges(*last).end]).unwrap_or_default();
        let from = self.columns.first().map_or(0, |column| column.from);
        let to = self.columns.last().map_or(1, |column| column.to);
        let mut y = Axis::latency("response time", [1_000]);
        y.range = ends[0]..ends[1];
        y.ticks = Axis::latency("", ends.map(|end| to_nanoseconds(10_f64.powf(end)))).ticks;
        y.ticks.retain(|(place, _)| y.range.contains(place));
        let chart = Chart {
            id: "heat".into(),
            title: "Response time over time, all requests".into(),
            description: format!(
                "Each cell counts the succeeded requests of one interval whose response time lies between its edges; \
                 the stronger its colour, the more, from 1 to {} on a logarithmic scale. All cells add up to the succeeded requests.",
                count(self.most())
            ),
            x: timeline::axis(from, to),
            y,
            marks: events.marks(),
            legend: Vec::new(),
            table: self.table(),
        };
        let most = self.most();
        let figure = chart.figure(|frame| self.cells(frame, most, from..to, ends[0]..ends[1]))?;
        // Numbers only.
        Ok(html! {
            (figure)
            ol.shades aria-label="Requests in a cell" {
                @for shade in 0..SHADES {
                    li { span class={ "swatch h" (shade) } {} (count(fewest(shade, most))) }
                }
            }
            script type="application/json" id="heat-counts" { (PreEscaped(self.json())) }
        })
    }

    /// One path for each shade, with the neighbouring cells of a column as one rectangle.
    fn cells(&self, frame: &Frame, most: u64, times: Range<u32>, latencies: Range<f64>) -> Markup {
        let mut paths = vec![String::new(); SHADES as usize];
        let x = |second: u32| place(f64::from(second - times.start) / f64::from(times.end - times.start), &frame.x);
        let y = |logarithm: f64| {
            let share = (logarithm - latencies.start) / (latencies.end - latencies.start);
            place(1.0 - share, &frame.y)
        };
        for column in &self.columns {
            let (left, right) = (x(column.from), x(column.to));
            let mut cells = column.counts.iter().map(|(row, times)| (*row, shade(*times, most))).peekable();
            while let Some((lowest, shade)) = cells.next() {
                let mut highest = lowest;
                while cells.next_if_eq(&(highest + 1, shade)).is_some() {
                    highest += 1;
                }
                let (Some(low), Some(high)) = (self.rows.get(lowest), self.rows.get(highest)) else { continue };
                let (bottom, top) = (y(edges(*low).start), y(edges(*high).end));
                if let Some(path) = paths.get_mut(shade as usize) {
                    let _ = write!(path, "M{left} {bottom}H{right}V{top}H{left}z");
                }
            }
        }
        html! {
            g shape-rendering="crispEdges" {
                @for (shade, path) in paths.iter().enumerate() {
                    @if !path.is_empty() { path class={ "h" (shade) } d=(path) {} }
                }
            }
        }
    }

    /// The counts of all cells: for each interval its rows and their counts, in turn.
    fn json(&self) -> String {
        let counts = |column: &Column| -> Vec<u64> {
            column.counts.iter().flat_map(|(row, times)| [*row as u64, *times]).collect()
        };
        json!({
            "seconds": self.columns.iter().map(|column| [column.from, column.to]).collect::<Vec<_>>(),
            "nanoseconds": self.rows,
            "rowsAndCounts": self.columns.iter().map(counts).collect::<Vec<_>>(),
        })
        .to_string()
    }

    /// The rows, with the columns merged into a few.
    fn table(&self) -> Grid {
        let together = self.columns.len().div_ceil(TABLE_COLUMNS).max(1);
        let groups: Vec<&[Column]> = self.columns.chunks(together).collect();
        let heads: Vec<String> = groups
            .iter()
            .filter_map(|group| group.first().zip(group.last()))
            .map(|(first, last)| format!("{} to {} s", first.from, last.to))
            .collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let mut grid = Grid::new("Succeeded requests by response time and time", &heads);
        for (row, (low, high)) in self.rows.iter().enumerate().rev() {
            let sum = |group: &&[Column]| group.iter().filter_map(|column| column.counts.get(&row)).sum::<u64>();
            let cells = groups.iter().map(|group| count(sum(group)));
            grid.row(std::iter::once(format!("{} to {}", latency(*low), latency(*high))).chain(cells));
        }
        grid
    }
}

/// The logarithms of a row's edges. Zero has none, so a row that begins there is drawn from half of its end.
fn edges((low, high): (u64, u64)) -> Range<f64> {
    let end = high as f64 + 1.0;
    let start = if low == 0 { end / 2.0 } else { low as f64 };
    start.log10()..end.log10()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive latency")]
fn to_nanoseconds(value: f64) -> u64 {
    value.round() as u64
}

#[allow(clippy::cast_possible_truncation, reason = "within the drawing")]
fn place(share: f64, pixels: &Range<i32>) -> i32 {
    pixels.start + (share * f64::from(pixels.end - pixels.start)).round() as i32
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the shades")]
fn shade(times: u64, most: u64) -> u32 {
    let share = (times as f64).ln() / (most as f64).ln().max(f64::MIN_POSITIVE);
    ((share * f64::from(SHADES)) as u32).min(SHADES - 1)
}

/// The fewest requests of a shade.
fn fewest(shade: u32, most: u64) -> u64 {
    to_nanoseconds((most as f64).powf(f64::from(shade) / f64::from(SHADES)).ceil())
}

#[cfg(test)]
mod tests {
    use redisbench_wire::timeline::{Coarse, Outcomes};

    use super::*;

    fn interval(from: u32, latencies: &[(u64, u64)], overflow: u64) -> Interval {
        let mut response = Coarse::default();
        for (nanoseconds, times) in latencies {
            response.record(*nanoseconds, *times);
        }
        let succeeded = latencies.iter().map(|(_, times)| times).sum::<u64>() + overflow;
        let counts = Outcomes { succeeded, overflow, ..Outcomes::default() };
        Interval { from, to: from + 1, counts, response: response.buckets(), ..Interval::default() }
    }

    #[test]
    fn its_cells_hold_every_request() {
        let wide = interval(7, &[(0, 3), (100, 1), (5_000, 20), (1_000_000, 4), (HIGHEST_NANOSECONDS, 2)], 5);
        for intervals in [vec![wide.clone()], vec![interval(0, &[(90_000, 8)], 0), interval(1, &[], 0), wide]] {
            let map = HeatMap::new(&intervals).unwrap();
            assert_eq!(map.sum(), intervals.iter().map(|interval| interval.counts.succeeded).sum::<u64>());
            assert!(map.size().1 <= ROWS && map.size().0 == intervals.len());
        }
        assert!(HeatMap::new(&[interval(0, &[], 0)]).is_none());
        assert_eq!(HeatMap::new(&[interval(0, &[], 2)]).unwrap().sum(), 2);
    }
}

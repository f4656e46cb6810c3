//! Throughput, latency and errors over time, with the target's outages and changes.

use std::ops::Range;

use maud::{Markup, html};
use redisbench_benchmark::api::status::{StageResult, Synchronization, TrialResult};
use redisbench_benchmark::human::{count, latency, rate};
use redisbench_benchmark::measurement::seconds::quantile_of;
use redisbench_benchmark::quantile::Quantile;
use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::measurement::Second;

use super::chart::{Axis, Chart, ChartError, Mark, Role, Scale};
use super::heat::{self, HeatMap};
use super::intervals::{Interval, intervals};
use super::table;
use super::timeline::{Events, axis};
use crate::render::{Grid, topology};

/// The most points of a series.
const POINTS: u32 = 600;

/// The most rows of the tables.
const TABLE_ROWS: u32 = 60;

const QUANTILES: [(Quantile, Role); 3] =
    [(Quantile::P50, Role::First), (Quantile::P99, Role::Second), (Quantile::P999, Role::Third)];

/// The section. Says why it is empty, if it is.
pub fn section(measurement: &Measurement) -> Result<Markup, ChartError> {
    let points = intervals(&measurement.seconds, POINTS);
    let rows = intervals(&measurement.seconds, TABLE_ROWS);
    let events = Events::new(&measurement.topology, &measurement.synchronization);
    let whole = whole(&measurement.seconds, &measurement.synchronization);
    let rates = [POINTS, TABLE_ROWS].map(|most| intervals(whole, most));
    let map = HeatMap::new(&intervals(&measurement.seconds, heat::COLUMNS));
    Ok(html! {
        @if !events.is_empty() {
            p { "Shaded stretches are outages, and vertical lines are changes of the target's servers." }
        }
        @if points.is_empty() {
            p { "The seconds of the measurement are only in the full result: see "
                code { "local --output-dir" } " and " code { "status.artifacts" } "." }
        } @else {
            (throughput(&rates, span(&points), &measurement.result, &events).figure(|_| html! {})?)
            @match quantiles(&points, &rows, &events) {
                Some(chart) => { (chart.figure(|_| html! {})?) }
                None => { p { "There were too few requests for percentiles of the response time over time." } }
            }
            @if let Some(map) = &map { (map.figure(&events)?) }
            @if points.iter().any(|interval| failed(interval) > 0) {
                (failures(&points, &rows, &events).figure(|_| html! {})?)
            }
        }
        @if !events.is_empty() { p { "Times below count from the start of the measurement, after the warm-up." } }
        @for grid in topology::grids(&measurement.topology) { (table::table(&grid)) }
    })
}

fn span(points: &[Interval]) -> Axis {
    axis(points.first().map_or(0, |first| first.from), points.last().map_or(1, |last| last.to))
}

/// The seconds that were measured from their beginning to their end; all, if there is none.
fn whole<'a>(seconds: &'a [Second], synchronization: &Synchronization) -> &'a [Second] {
    let begin = synchronization.warmup_milliseconds;
    let end = begin + synchronization.common_window_milliseconds;
    let milliseconds = |second: u32| u64::from(second) * 1_000;
    let first = seconds.partition_point(|second| milliseconds(second.second) < begin);
    let last = seconds.partition_point(|second| milliseconds(second.second.saturating_add(second.seconds)) <= end);
    seconds.get(first..last).filter(|whole| !whole.is_empty()).unwrap_or(seconds)
}

/// The requested rate; none in a closed loop.
fn target(result: &TrialResult, x: &Axis) -> Option<Vec<(f64, f64)>> {
    let Range { start, end } = x.range;
    if result.stages.is_empty() {
        let rate = result.throughput.target_per_second? as f64;
        return Some(vec![(start, rate), (end, rate)]);
    }
    let stages = result.stages.iter().flat_map(|StageResult { from_milliseconds, to_milliseconds, rate, .. }| {
        let [from, to] = [*from_milliseconds, *to_milliseconds].map(|at| at as f64 / 1e3);
        let slope = (rate.to as f64 - rate.from as f64) / (to - from).max(f64::MIN_POSITIVE);
        [from, to].map(|at| at.clamp(start, end)).map(|at| (at, rate.from as f64 + slope * (at - from)))
    });
    Some(stages.collect())
}

fn throughput([points, rows]: &[Vec<Interval>; 2], x: Axis, result: &TrialResult, events: &Events) -> Chart {
    let line = points.iter().map(|point| (point.middle(), point.rate()));
    let fastest: Vec<_> = points.iter().map(|point| (point.middle(), point.fastest)).collect();
    let slowest: Vec<_> = points.iter().map(|point| (point.middle(), point.slowest)).collect();
    let target = target(result, &x);
    let highest = fastest.iter().chain(target.iter().flatten()).map(|(_, rate)| *rate).fold(0.0, f64::max);
    let merged = points.iter().any(|point| point.to - point.from > 1);
    let mut marks = events.marks();
    if merged {
        marks.push(Mark::Band(Role::First, fastest, slowest));
    }
    marks.push(Mark::Line(Role::First, line.collect()));
    let mut legend = vec![(Role::First, "succeeded".to_owned())];
    if let Some(target) = target {
        marks.push(Mark::Line(Role::Fourth, target));
        legend.push((Role::Fourth, "requested".to_owned()));
    }
    let band = if merged { " The band reaches from the slowest to the fastest second of each interval." } else { "" };
    let mut grid = Grid::new("Throughput over time", &["succeeded", "slowest second", "fastest second"]);
    for row in rows {
        grid.row([name(row), rate(round(row.rate())), rate(round(row.slowest)), rate(round(row.fastest))]);
    }
    Chart {
        id: "throughput".into(),
        title: "Throughput over time".into(),
        description: format!(
            "Succeeded requests per second, in {}, without seconds that were measured only in part.{band}",
            lengths(points)
        ),
        x,
        y: Axis::rate("requests per second", highest),
        marks,
        legend,
        table: grid,
    }
}

/// None if no interval had enough requests for any of them.
fn quantiles(points: &[Interval], rows: &[Interval], events: &Events) -> Option<Chart> {
    let mut marks = events.marks();
    let mut values = Vec::new();
    for (quantile, role) in QUANTILES {
        let known = points.iter().map(|point| (point.middle(), quantile_of(&point.response, quantile)));
        // A line for each stretch of intervals with enough requests.
        let mut line = Vec::new();
        for (at, value) in known.chain([(0.0, None)]) {
            match value {
                Some(value) => {
                    values.push(value);
                    line.push((at, Scale::Latency.place(value)));
                }
                None if line.is_empty() => {}
                None => marks.push(Mark::Line(role, std::mem::take(&mut line))),
            }
        }
    }
    let heads = QUANTILES.map(|(quantile, _)| quantile.name());
    let mut grid =
        Grid::new("Response time over time", &[heads[0].as_str(), heads[1].as_str(), heads[2].as_str(), "succeeded"]);
    for row in rows {
        let known =
            QUANTILES.map(|(quantile, _)| quantile_of(&row.response, quantile).map_or_else(|| "-".to_owned(), latency));
        grid.row([name(row)].into_iter().chain(known).chain([count(row.counts.succeeded)]));
    }
    (!values.is_empty()).then(|| Chart {
        id: "quantiles".into(),
        title: "Response time over time".into(),
        description: format!(
            "Percentiles of the response time of succeeded requests, in {}, each from the histogram of its interval and rounded up by at \
             most 3.2 %. Where a line is missing, there were too few requests for it.",
            lengths(points)
        ),
        x: span(points),
        y: Axis::latency("response time", values),
        marks,
        legend: QUANTILES.map(|(quantile, role)| (role, quantile.name())).to_vec(),
        table: grid,
    })
}

fn failed(interval: &Interval) -> u64 {
    interval.counts.errors.saturating_add(interval.counts.unsent)
}

fn failures(points: &[Interval], rows: &[Interval], events: &Events) -> Chart {
    let per_second = |count: u64, point: &Interval| count as f64 / f64::from((point.to - point.from).max(1));
    let line = |of: fn(&Interval) -> u64| -> Vec<_> {
        points.iter().map(|point| (point.middle(), per_second(of(point), point))).collect()
    };
    let (errors, unsent) = (line(|point| point.counts.errors), line(|point| point.counts.unsent));
    let highest = errors.iter().chain(&unsent).map(|(_, rate)| *rate).fold(0.0, f64::max);
    let mut marks = events.marks();
    marks.extend([Mark::Line(Role::Event, errors), Mark::Line(Role::Second, unsent)]);
    let mut grid = Grid::new("Errors over time", &["errors", "of these unanswered", "unsent"]);
    for row in rows.iter().filter(|row| failed(row) > 0) {
        grid.row([name(row), count(row.counts.errors), count(row.counts.unanswered), count(row.counts.unsent)]);
    }
    Chart {
        id: "errors".into(),
        title: "Errors over time".into(),
        description: format!("Errors and unsent requests per second, in {}.", lengths(points)),
        x: span(points),
        y: Axis::rate("requests per second", highest),
        marks,
        legend: vec![(Role::Event, "errors".to_owned()), (Role::Second, "unsent".to_owned())],
        table: grid,
    }
}

fn name(interval: &Interval) -> String {
    format!("{} to {} s", interval.from, interval.to)
}

fn lengths(points: &[Interval]) -> String {
    let longest = points.iter().map(|point| point.to - point.from).max().unwrap_or(1);
    if longest == 1 { "intervals of one second".to_owned() } else { format!("intervals of up to {longest} s") }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
fn round(rate: f64) -> u64 {
    rate.round() as u64
}

#[cfg(test)]
mod tests {
    use super::super::sample::{SMALL, measurement};
    use super::*;

    #[test]
    fn seconds_measured_in_part_have_no_rate() {
        let mut sample = measurement(SMALL, 0, "sample");
        let all = sample.seconds.len();
        let (first, last) = (sample.seconds[0].second, sample.seconds[all - 1].second);
        let mut whole_of = |warmup, window| {
            sample.synchronization.warmup_milliseconds = warmup;
            sample.synchronization.common_window_milliseconds = window;
            let whole = whole(&sample.seconds, &sample.synchronization);
            (whole[0].second, whole[whole.len() - 1].second)
        };
        assert_eq!(whole_of(2_000, 60_000), (first, last));
        assert_eq!(whole_of(2_001, 59_998), (first + 1, last - 1));
        assert_eq!(whole_of(2_500, 400), (first, last));
    }
}

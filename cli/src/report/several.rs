//! Several trials: a search, a sweep, repeats and a comparison.

use std::collections::BTreeMap;

use maud::{Markup, html};
use redisbench_benchmark::api::status::{
    CellResult, CellSearch, ComparisonOutcome, ComparisonResult, LimitedBy, SearchResult, StepOutcome, TrialLine,
};
use redisbench_benchmark::human::{are, change, counted, latency};
use redisbench_benchmark::report::Measurement;

use super::chart::{Axis, Chart, Mark, Role, Shape};
use super::curve::{self, Curve};
use super::error::ReportError;
use super::sweep::{self, Metric};
use super::table;
use crate::reading::Reading;
use crate::render::{Grid, Paint, search, trials};

/// The most plots of one kind.
const PLOTS: usize = 6;

/// The summaries of several trials.
#[derive(Debug, Default)]
struct Several<'a> {
    trials: &'a [TrialLine],
    cells: Vec<CellResult>,
    comparison: &'a [ComparisonResult],
    search: Option<&'a SearchResult>,
    searches: &'a [CellSearch],
}

impl<'a> Several<'a> {
    /// The experiment has the whole lists.
    fn of(reading: &'a Reading) -> Self {
        let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
        let mut several = status.map_or_else(Self::default, |status| Self {
            trials: &status.trials,
            cells: status.repeats.clone(),
            comparison: &status.comparison,
            search: status.search.as_ref(),
            searches: &status.searches,
        });
        if let Some(experiment) = &reading.experiment {
            several.trials = &experiment.trials;
            several.cells = experiment.cells.iter().map(|cell| cell.result.clone()).collect();
            several.comparison = &experiment.comparison;
        }
        several
    }

    /// The highest throughput; the lowest p99 if all trials met the same rate. None if cells have different tests, or nothing was measured.
    fn best(&self) -> Option<String> {
        let has_rates = |line: &TrialLine| line.setting.parameters.keys().any(|field| field.contains("rate"));
        let is_paced = self.trials.iter().all(|line| line.limited_by == Some(LimitedBy::Rate) && !has_rates(line));
        let metric = if is_paced { Metric::P99 } else { Metric::Throughput };
        let known = self.trials.iter().filter_map(|line| Some((metric.of(line, &self.cells)?, line)));
        let ((value, interval), line) = if is_paced {
            known.min_by_key(|((p99, _), _)| *p99)?
        } else {
            known.max_by_key(|((throughput, _), _)| *throughput)?
        };
        if self.trials.iter().any(|other| other.setting.preset != line.setting.preset) {
            return None;
        }
        let only = self.trials.iter().all(|other| other.cell == line.cell);
        let what = match (is_paced, only) {
            (true, true) => "The requested rate was met. p99".to_owned(),
            (true, false) => format!("All trials met the requested rate. Lowest p99, with {}", name(line)),
            (false, true) => "Throughput".to_owned(),
            (false, false) => format!("Highest throughput, with {}", name(line)),
        };
        let text = |value: u64| metric.scale().text(value);
        let interval = match interval {
            Some((low, high)) => format!("mean of its trials, {} to {} with 95 % confidence", text(low), text(high)),
            None => "of a single trial".to_owned(),
        };
        Some(format!("{what}: {} ({interval}).", text(value)))
    }
}

/// The results of several trials in sentences; none for a single trial.
pub fn answers(reading: &Reading) -> Vec<String> {
    let several = Several::of(reading);
    if let Some(found) = several.search {
        return vec![format!("Highest rate: {}.", search::answer(found, Paint::for_stream(false)))];
    }
    if several.comparison.is_empty() && !several.searches.is_empty() {
        let plain = Paint::for_stream(false);
        let of_one =
            |one: &CellSearch| format!("Highest rate, {}: {}.", one.name(), search::answer(&one.result, plain));
        return several.searches.iter().map(of_one).collect();
    }
    if several.comparison.is_empty() {
        return several.best().into_iter().collect();
    }
    several.comparison.iter().take(PLOTS).map(answer).collect()
}

/// The outcome of a comparison, with the metrics behind it.
fn answer(result: &ComparisonResult) -> String {
    let what = match result.outcome {
        ComparisonOutcome::Faster => "faster",
        ComparisonOutcome::Slower => "slower",
        ComparisonOutcome::NoDifference => "no difference that matters",
        ComparisonOutcome::Inconclusive => "undecided, more trials are needed",
    };
    let decisive = result.metrics.iter().filter(|metric| metric.outcome == result.outcome).filter_map(|metric| {
        let interval = metric.low_millionths.zip(metric.high_millionths);
        let interval =
            interval.map(|(low, high)| format!(" ({} to {})", change(low), change(high))).unwrap_or_default();
        Some(format!("{} {}{interval}", trials::metric_name(metric.metric), change(metric.ratio_millionths?)))
    });
    let decisive: Vec<String> = decisive.collect();
    let colon = if decisive.is_empty() { "" } else { ": " };
    format!("{}: {what}{colon}{}.", trials::comparison_title(result), decisive.join(", "))
}

/// The section; none for a single trial.
pub fn section(reading: &Reading) -> Result<Option<Markup>, ReportError> {
    let several = Several::of(reading);
    if several.trials.is_empty() {
        return Ok(None);
    }
    Ok(Some(html! {
        @if let Some(found) = several.search {
            (table::table(&search::bracket(found)))
            @for note in search::notes(found) { p { (note) } }
            (steps(several.trials).figure(|_| html! {})?)
        } @else if !several.searches.is_empty() {
            (table::table(&search::all(several.searches)))
            @for note in search::notes_of_all(several.searches) { p { (note) } }
            (table::table(&search::steps(several.trials)))
        } @else {
            (table::table(&trials::grid(several.trials)))
        }
        @for (nth, result) in several.comparison.iter().take(PLOTS).enumerate() {
            @if let Some(chart) = comparison(nth, result) { (chart.figure(|_| html! {})?) }
            @else { (table::table(&trials::comparison_grid(result))) }
            p { (trials::basis(result)) "." @if let Some(caution) = &result.caution { " " strong { "Caution: " } (caution) } }
        }
        @for result in several.comparison.iter().skip(PLOTS).take(PLOTS) { (table::table(&trials::comparison_grid(result))) }
        @if several.comparison.len() > 2 * PLOTS {
            p { (trials::more((several.comparison.len() - 2 * PLOTS) as u64, "comparison").trim_end()) "." }
        }
        @if !several.cells.is_empty() { (table::table(&trials::repeats_grid(&several.cells))) }
        @if let Some(operations) = trials::operations_grid(&several.cells) { (table::table(&operations)) }
        @if let Some(costs) = trials::costs_grid(&several.cells) { (table::table(&costs)) }
        @if several.search.is_none() && several.searches.is_empty() {
            @for chart in sweep::charts(several.trials, &several.cells) { (chart.figure(|_| html! {})?) }
        }
        @if let Some(chart) = curves(&reading.measurements, several.trials)? { (chart.figure(|_| html! {})?) }
    }))
}

/// The offered rate of each step, with its outcome as a shape.
fn steps(lines: &[TrialLine]) -> Chart {
    let mut marks = Vec::new();
    let mut highest = 0.0_f64;
    for line in lines {
        let Some(step) = &line.search else { continue };
        let offered = step.rate_per_second as f64;
        highest = highest.max(offered);
        let (role, shape) = match step.outcome {
            StepOutcome::Passed => (Role::Third, Shape::Circle),
            StepOutcome::Failed => (Role::Event, Shape::Cross),
            StepOutcome::Unusable => (Role::Unsure, Shape::Triangle),
        };
        marks.push(Mark::Dot(role, shape, (f64::from(line.index) + 1.0, offered)));
    }
    let last = lines.last().map_or(1.0, |line| f64::from(line.index) + 1.0);
    Chart {
        id: "steps".into(),
        title: "Steps of the search".into(),
        description: "The offered rate of each step. Circles passed, crosses failed, triangles were inconclusive."
            .into(),
        x: Axis::counted("step", 0.5..last + 0.5),
        y: Axis::rate("requests per second", highest),
        marks,
        legend: Vec::new(),
        table: search::steps(lines),
    }
}

/// The interval of each metric's difference; none if no metric has one.
fn comparison(nth: usize, result: &ComparisonResult) -> Option<Chart> {
    let percent = |millionths: u64| (millionths as f64 - 1e6) / 1e4;
    let known: Vec<_> = result
        .metrics
        .iter()
        .filter_map(|metric| {
            let (low, high) = metric.low_millionths.zip(metric.high_millionths)?;
            Some((metric.metric, metric.ratio_millionths?, low, high))
        })
        .collect();
    let lowest = known.iter().map(|(.., low, _)| percent(*low)).fold(0.0, f64::min);
    let highest = known.iter().map(|(.., high)| percent(*high)).fold(0.0, f64::max);
    let room = ((highest - lowest) * 0.05).max(0.1);
    let marks = (0_u32..).zip(&known).map(|(at, (_, ratio, low, high))| {
        Mark::Interval(Role::First, [*low, *ratio, *high].map(|millionths| (percent(millionths), f64::from(at))))
    });
    let mut marks: Vec<_> = marks.collect();
    marks.push(Mark::Line(Role::Unsure, vec![(0.0, -0.5), (0.0, known.len() as f64 - 0.5)]));
    (!known.is_empty()).then(|| Chart {
        id: format!("comparison-{nth}"),
        title: trials::comparison_title(result),
        description: "The difference to the baseline with its confidence interval. If an interval contains 0, the difference may be \
                      chance. More is better for the throughput, less for the others."
            .into(),
        x: Axis::linear("difference in percent", lowest - room..highest + room, |percent| {
            if percent == 0.0 { "0".to_owned() } else { format!("{percent:+}") }
        }),
        y: Axis::names("", known.iter().map(|(metric, ..)| trials::metric_name(*metric).to_owned())),
        marks,
        legend: Vec::new(),
        table: trials::comparison_grid(result),
    })
}

/// The curve of each cell over the requests of all its trials, with the band between them; none for a single trial.
fn curves(measurements: &[Measurement], lines: &[TrialLine]) -> Result<Option<Chart>, ReportError> {
    let mut by_cell: BTreeMap<u32, (&TrialLine, Vec<&Measurement>)> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.search.is_none()) {
        if let Some(measurement) = measurements.iter().find(|one| one.trial.index == line.index) {
            by_cell.entry(line.cell).or_insert_with(|| (line, Vec::new())).1.push(measurement);
        }
    }
    let all = by_cell.len();
    let (mut marks, mut legend, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut grid = Grid::new("Response time by percentile of each cell", &["trials", "p50", "p99", "p99.9"]);
    for ((line, trials), role) in by_cell.into_values().zip(Role::SERIES) {
        let Some(together) = Curve::new(trials.iter().copied())? else { continue };
        if trials.len() > 1 {
            let each = trials.iter().map(|trial| Curve::new([*trial])).collect::<Result<Option<Vec<_>>, _>>()?;
            let each = each.unwrap_or_default();
            values.extend(each.iter().flat_map(Curve::values));
            marks.push(Curve::between(role, &each));
        }
        values.extend(together.values());
        marks.extend(together.lines(role));
        let name = name(line);
        grid.row(
            [name.clone(), trials.len().to_string()].into_iter().chain(
                ["50", "99", "99.9"].map(|percent| together.at(percent).map_or_else(|| "-".to_owned(), latency)),
            ),
        );
        legend.push((role, name));
    }
    if legend.is_empty() || measurements.len() < 2 {
        return Ok(None);
    }
    let more = all.saturating_sub(Role::SERIES.len());
    let more = match more as u64 {
        0 => String::new(),
        more => format!(" {} {} not shown.", counted(more, "more cell"), are(more)),
    };
    legend.push((Role::Unsure, "more than the number of requests supports".to_owned()));
    Ok(Some(Chart {
        id: "curves".into(),
        title: "Response time by percentile of each cell".into(),
        description: format!(
            "Over the requests of all trials of a cell together. The band reaches from the lowest to the highest trial.{more}"
        ),
        x: curve::axis(),
        y: Axis::latency("response time", values),
        marks,
        legend,
        table: grid,
    }))
}

/// The name of a cell, from the settings that set it apart.
pub fn name(line: &TrialLine) -> String {
    let names = line.setting.parts(None, trials::last_step);
    if names.is_empty() { format!("cell {}", line.cell + 1) } else { names.join(", ") }
}

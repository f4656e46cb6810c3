//! Latency by percentile.

use std::collections::BTreeSet;

use maud::{Markup, html};
use redisbench_benchmark::api::status::{GeneratorShare, Percentile, TrialResult};
use redisbench_benchmark::human::latency;
use redisbench_benchmark::measurement::latencies::{self, CurvePoint};
use redisbench_benchmark::quantile::Quantile;
use redisbench_benchmark::report::measurement::{HistogramSet, Histograms, Measurement};
use redisbench_benchmark::report::repeats::Together;
use redisbench_wire::histogram::HistogramError;

use super::chart::{Axis, Chart, Mark, Role, Scale};
use super::error::ReportError;
use crate::render::Grid;

/// The most points of a curve.
const POINTS: u32 = 180;

/// Nines of the last point: 99.9999 %.
const NINES: f64 = 6.0;

/// Evenly spaced on the axis, and the percentiles that `also` names.
fn quantiles(also: &[Percentile]) -> Vec<Quantile> {
    let place = |nth: u32| 10_f64.powf(-NINES * f64::from(nth) / f64::from(POINTS));
    let even = (1..=POINTS).filter_map(|nth| Quantile::of_millionths(round(1e6 * (1.0 - place(nth)))));
    let asked = also.iter().filter_map(|one| Quantile::of_percent(&one.percentile));
    let all: BTreeSet<Quantile> = even.chain(asked).chain(Quantile::USUAL).collect();
    all.into_iter().filter(|quantile| quantile.millionths() < 1_000_000).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a million")]
fn round(millionths: f64) -> u32 {
    millionths.round() as u32
}

/// The place of a quantile: the number of its nines.
fn nines(quantile: Quantile) -> f64 {
    -(1.0 - f64::from(quantile.millionths()) / 1e6).log10()
}

/// The curve of one or several trials together.
#[derive(Clone, Debug)]
pub struct Curve(Vec<CurvePoint>);

impl Curve {
    /// None without a trial that has what it takes: its full result.
    pub fn new<'a>(trials: impl IntoIterator<Item = &'a Measurement>) -> Result<Option<Self>, HistogramError> {
        let mut together = Together::default();
        let mut asked = None;
        for trial in trials {
            let Some(histograms) = &trial.histograms else { return Ok(None) };
            let requests = &trial.result.requests;
            // A status has only the histogram of succeeded requests.
            if requests.errors > requests.unanswered && histograms.total.error_replies.is_none() {
                return Ok(None);
            }
            together.add(trial)?;
            asked = Some(&trial.result.response_time.percentiles);
        }
        let Some(asked) = asked else { return Ok(None) };
        let known = |point: &CurvePoint| point.at_rank.is_some() || point.percentile.more_than_nanoseconds.is_some();
        let points: Vec<_> = together.curve(&quantiles(asked)).into_iter().filter(known).collect();
        Ok((!points.is_empty()).then_some(Self(points)))
    }

    /// The value of a percentile; none if it is unknown.
    pub fn at(&self, percent: &str) -> Option<u64> {
        let quantile = Quantile::of_percent(percent)?;
        self.0.iter().find(|point| point.quantile == quantile)?.percentile.nanoseconds
    }

    pub fn values(&self) -> impl Iterator<Item = u64> {
        self.0.iter().filter_map(|point| point.at_rank)
    }

    /// Solid where the number of requests supports it, broken elsewhere.
    pub fn lines(&self, role: Role) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut line: Vec<(f64, f64)> = Vec::new();
        let mut is_sure = true;
        for point in &self.0 {
            let Some(value) = point.at_rank else { break };
            let at = (nines(point.quantile), Scale::Latency.place(value));
            let sure = point.percentile.nanoseconds.is_some();
            if sure != is_sure {
                let joint = line.last().copied();
                marks.push(Mark::Line(if is_sure { role } else { Role::Unsure }, std::mem::take(&mut line)));
                line.extend(joint);
                is_sure = sure;
            }
            line.push(at);
        }
        marks.push(Mark::Line(if is_sure { role } else { Role::Unsure }, line));
        marks.retain(|mark| !matches!(mark, Mark::Line(_, points) if points.len() < 2));
        marks
    }

    fn band(&self, role: Role) -> Mark {
        let ends = |point: &CurvePoint| {
            let (low, high) = (point.percentile.low_nanoseconds?, point.percentile.high_nanoseconds?);
            Some((nines(point.quantile), Scale::Latency.place(low), Scale::Latency.place(high)))
        };
        let ends: Vec<_> = self.0.iter().filter_map(ends).collect();
        let upper = ends.iter().map(|(x, _, high)| (*x, *high)).collect();
        let lower = ends.iter().map(|(x, low, _)| (*x, *low)).collect();
        Mark::Band(role, upper, lower)
    }

    /// Between the lowest and the highest of several curves, over the points that all have.
    pub fn between(role: Role, curves: &[Self]) -> Mark {
        let known = |curve: &Self| -> BTreeSet<Quantile> {
            curve.0.iter().filter(|point| point.percentile.nanoseconds.is_some()).map(|point| point.quantile).collect()
        };
        let common = curves.iter().map(known).reduce(|a, b| a.intersection(&b).copied().collect()).unwrap_or_default();
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        for quantile in common {
            let values = || {
                let of = |curve: &Self| {
                    curve.0.iter().find(|point| point.quantile == quantile).and_then(|point| point.at_rank)
                };
                curves.iter().filter_map(of)
            };
            if let Some((low, high)) = values().min().zip(values().max()) {
                upper.push((nines(quantile), Scale::Latency.place(high)));
                lower.push((nines(quantile), Scale::Latency.place(low)));
            }
        }
        Mark::Band(role, upper, lower)
    }
}

pub fn axis() -> Axis {
    let ticks = ["50", "90", "99", "99.9", "99.99", "99.999"];
    let tick = |percent: &str| Some((nines(Quantile::of_percent(percent)?), format!("{percent} %")));
    let mut ticks: Vec<_> = ticks.into_iter().filter_map(tick).collect();
    // It has five decimals.
    ticks.extend(Quantile::of_millionths(999_999).map(|last| (nines(last), "99.9999 %".to_owned())));
    Axis { name: "percentile".into(), range: 0.0..NINES + 0.1, ticks }
}

/// The curve of a trial with its intervals, its service time, and the load generator's part. A sentence if there is none.
pub fn section(measurement: &Measurement) -> Result<Markup, ReportError> {
    let Some(curve) = Curve::new([measurement])? else {
        return Ok(html! { p { "The distribution of response time is only in the full result." } });
    };
    let mut marks = vec![curve.band(Role::First)];
    let mut values: Vec<u64> = curve.values().collect();
    let mut legend = vec![(Role::First, "response time, with 95 % confidence interval".to_owned())];
    if let Some(service) = service(measurement)? {
        values.extend(service.values());
        marks.extend(service.lines(Role::Second));
        legend.push((Role::Second, "service time".to_owned()));
    }
    marks.extend(curve.lines(Role::First));
    let shares = || measurement.result.generator_share.iter().filter(|share| share.is_known());
    marks.extend(shares().filter_map(own_part));
    values.extend(shares().map(without_own_part));
    if shares().next().is_some() {
        legend.push((Role::Fourth, "the load generator's part of p50, p99 and p99.9".to_owned()));
    }
    legend.push((Role::Unsure, "more than the number of requests supports".to_owned()));
    Ok(chart(measurement, marks, legend, values).figure(|_| html! {})?)
}

fn chart(measurement: &Measurement, marks: Vec<Mark>, legend: Vec<(Role, String)>, values: Vec<u64>) -> Chart {
    let mut grid = Grid::new("Response time by percentile", &["value", "from", "to", "load generator's part"]);
    for one in &measurement.result.response_time.percentiles {
        let share = measurement.result.generator_share.iter().find(|share| share.percentile == one.percentile);
        let known = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), latency);
        grid.row([
            format!("p{}", one.percentile),
            latencies::percentile(one).unwrap_or_else(|| "too few requests".to_owned()),
            known(one.low_nanoseconds),
            known(one.high_nanoseconds),
            share.filter(|share| share.is_known()).map_or_else(|| "-".to_owned(), own_time),
        ]);
    }
    let censored = {
        let requests = &measurement.result.requests;
        requests.unanswered + requests.unsent + requests.in_flight + requests.unknown
    };
    let end =
        if censored > 0 { " It ends where requests had no answer: they count as longer than any other." } else { "" };
    Chart {
        id: "percentiles".into(),
        title: "Response time by percentile".into(),
        description: format!(
            "How long the given share of all requests took at most. Both axes are logarithmic: each step to the right is a tenth of the \
             requests before.{end}"
        ),
        x: axis(),
        y: Axis::latency("latency", values),
        marks,
        legend,
        table: grid,
    }
}

/// The service time of succeeded requests; none in a closed loop.
fn service(measurement: &Measurement) -> Result<Option<Curve>, HistogramError> {
    let Some(histograms) = &measurement.histograms else { return Ok(None) };
    let Some(service) = &histograms.total.service else { return Ok(None) };
    let mut alone = Measurement::new(measurement.trial.clone(), TrialResult::default(), measurement.verdict.clone());
    alone.histograms = Some(Histograms {
        total: HistogramSet { response: service.clone(), service: None, error_replies: None },
        operations: Vec::new(),
        operations_left_out: true,
        nodes: Vec::new(),
        nodes_left_out: true,
    });
    Curve::new([&alone])
}

/// The load generator's part, as far as it is known.
fn own(share: &GeneratorShare) -> u64 {
    share.sending_nanoseconds.saturating_add(share.reading_nanoseconds.unwrap_or(0))
}

fn own_time(share: &GeneratorShare) -> String {
    let at_least = if share.reading_nanoseconds.is_none() { "at least " } else { "" };
    format!("{at_least}{}", latency(own(share)))
}

/// At least a hundredth of the whole, because the axis has no zero.
fn without_own_part(share: &GeneratorShare) -> u64 {
    share.of_nanoseconds.saturating_sub(own(share)).max(share.of_nanoseconds / 100)
}

fn own_part(share: &GeneratorShare) -> Option<Mark> {
    let x = nines(Quantile::of_percent(&share.percentile)?);
    let [without, with] = [without_own_part(share), share.of_nanoseconds].map(|value| (x, Scale::Latency.place(value)));
    Some(Mark::Interval(Role::Fourth, [without, with, with]))
}

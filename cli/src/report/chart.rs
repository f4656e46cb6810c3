//! Plots as SVG, drawn by `plotters`. Its attributes name a role's colour in light mode; the page's style sheet replaces it by the reader's.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingAreaErrorKind, IntoDrawingArea as _};
use plotters::element::{Circle, Cross, PathElement, Polygon, Rectangle, TriangleMarker};
use plotters::style::{Color as _, IntoFont as _, RGBColor, TRANSPARENT};
use redisbench_benchmark::human::{latency, rate};

use super::table;
use crate::render::Grid;

/// Twice the size on a screen, because coordinates are whole numbers.
const WIDTH: u32 = 1600;
const HEIGHT: u32 = 640;
const FONT: u32 = 32;
/// The width of a character, rounded up.
const CHARACTER: u32 = 20;
const THICK: u32 = 4;
const BAR: u32 = 7;

const INK: RGBColor = RGBColor(0x1C, 0x1C, 0x1E);
const MESH: RGBColor = RGBColor(0xD8, 0xD8, 0xDC);

const RIGHT: u32 = 72;
/// Room for the labels of the vertical axis and its name, beyond which long labels get more.
const LEFT: u32 = 190;

/// The opacity of a band, below which its lines stay visible.
const BAND: f64 = 0.22;

/// The meaning of a mark. Each has a colour and a dash pattern, so colour is never the only sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    First,
    Second,
    Third,
    Fourth,
    Fifth,
    Sixth,
    /// A value that the number of requests does not support.
    Unsure,
    /// Outages, changes and errors.
    Event,
}

/// Each role with its colour in light mode (Okabe and Ito's, darkened to a contrast of 3), in dark mode, and its dashes.
const ROLES: [(Role, RGBColor, &str, &str); 8] = [
    (Role::First, RGBColor(0x00, 0x5F, 0xA3), "#6cb8f5", "none"),
    (Role::Second, RGBColor(0xB8, 0x4A, 0x00), "#ff9d52", "22 8"),
    (Role::Third, RGBColor(0x00, 0x7A, 0x59), "#3fd6a6", "6 7"),
    (Role::Fourth, RGBColor(0x9C, 0x3D, 0x78), "#f09bcb", "26 7 6 7"),
    (Role::Fifth, RGBColor(0x6B, 0x5B, 0x00), "#e6cf4d", "12 6"),
    (Role::Sixth, RGBColor(0x4B, 0x4B, 0x8F), "#b3b3ff", "26 6 6 6 6 6"),
    (Role::Unsure, RGBColor(0x6E, 0x6E, 0x73), "#a1a1a6", "3 9"),
    (Role::Event, RGBColor(0xB0, 0x00, 0x20), "#ff6b81", "none"),
];

impl Role {
    pub const SERIES: [Self; 6] = [Self::First, Self::Second, Self::Third, Self::Fourth, Self::Fifth, Self::Sixth];

    fn color(self) -> RGBColor {
        ROLES.iter().find(|(role, ..)| *role == self).map_or(INK, |(_, color, ..)| *color)
    }
}

/// The rules that give the roles the reader's colours.
pub fn style() -> String {
    let mut light = format!(":root{{--ink:{};--mesh:{}", hex(INK), hex(MESH));
    let mut dark = String::from("@media screen and (prefers-color-scheme:dark){:root{--ink:#f2f2f7;--mesh:#3a3a3e");
    let mut rules = String::new();
    for (name, color) in [("ink", INK), ("mesh", MESH)] {
        replace(&mut rules, name, &hex(color));
    }
    for (index, (_, color, in_the_dark, dashes)) in ROLES.iter().enumerate() {
        let (name, color) = (format!("r{index}"), hex(*color));
        let _ = write!(light, ";--{name}:{color}");
        let _ = write!(dark, ";--{name}:{in_the_dark}");
        replace(&mut rules, &name, &color);
        // Only lines between values: an interval in dashes would look like several.
        let _ =
            write!(rules, "svg polyline[stroke=\"{color}\"][stroke-width=\"{THICK}\"]{{stroke-dasharray:{dashes}}}");
    }
    format!("{light}}}{dark}}}}}{rules}")
}

fn replace(rules: &mut String, name: &str, color: &str) {
    let _ =
        write!(rules, "svg [stroke=\"{color}\"]{{stroke:var(--{name})}}svg [fill=\"{color}\"]{{fill:var(--{name})}}");
}

fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// A failure to draw. Not expected: the drawing is a string in memory.
#[derive(Debug, thiserror::Error)]
#[error("failed to draw a plot")]
pub struct ChartError(#[from] DrawingAreaErrorKind<io::Error>);

/// An axis. A logarithmic one has the decadic logarithms of its values.
#[derive(Clone, Debug)]
pub struct Axis {
    pub name: String,
    pub range: Range<f64>,
    /// Places and their labels.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A logarithmic axis of latencies in nanoseconds.
    pub fn latency(name: &str, values: impl IntoIterator<Item = u64>) -> Self {
        let (low, high) = ends(values.into_iter().filter(|value| *value > 0).map(|value| (value as f64).log10()));
        // Room for the line's width, and for a range of one value.
        let range = low - 0.05..high.max(low + 0.3) + 0.05;
        let steps: &[f64] = if range.end - range.start < 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = (0..13).flat_map(|decade| steps.iter().map(move |step| 10_f64.powi(decade) * step));
        let ticks = decades.filter(|value| range.contains(&value.log10()));
        Self {
            name: name.to_owned(),
            ticks: ticks.map(|value| (value.log10(), latency(whole(value)))).collect(),
            range,
        }
    }

    /// A linear axis of requests per second from 0.
    pub fn rate(name: &str, highest: f64) -> Self {
        Self::from_zero(name, highest, rate)
    }

    /// At least to 5, so that its places are whole numbers.
    fn from_zero(name: &str, highest: f64, label: impl Fn(u64) -> String) -> Self {
        Self::linear(name, 0.0..highest.max(5.0) * 1.05, |value| label(whole(value)))
    }

    pub fn linear(name: &str, range: Range<f64>, label: impl Fn(f64) -> String) -> Self {
        Self::spaced(name, range, 0.0, label)
    }

    /// A linear axis of whole numbers.
    pub fn counted(name: &str, range: Range<f64>) -> Self {
        Self::spaced(name, range, 1.0, |number| format!("{number}"))
    }

    /// With places that are at least `least` apart.
    fn spaced(name: &str, range: Range<f64>, least: f64, label: impl Fn(f64) -> String) -> Self {
        let length = (range.end - range.start).max(f64::MIN_POSITIVE);
        let decade = 10_f64.powf((length / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade).into_iter().find(|step| length / step <= 6.5);
        let step = step.unwrap_or(length).max(least);
        let first = (range.start / step).ceil();
        // Rounded, because a multiple of a decimal fraction may have many digits.
        let place = |nth: i32| ((first + f64::from(nth)) * step * 1e6).round() / 1e6;
        let places = (0..8).map(place).filter(|place| *place <= range.end);
        Self { name: name.to_owned(), ticks: places.map(|place| (place, label(place))).collect(), range }
    }

    /// An axis of names, at 0, 1, 2 and so on.
    pub fn names(name: &str, names: impl IntoIterator<Item = String>) -> Self {
        let ticks: Vec<_> = (0_u32..).map(f64::from).zip(names).collect();
        Self { name: name.to_owned(), range: -0.5..(ticks.len() as f64) - 0.5, ticks }
    }

    /// The width of its longest label.
    fn label_width(&self) -> u32 {
        let longest = self.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        u32::try_from(longest).unwrap_or(u32::MAX).saturating_mul(CHARACTER)
    }

    /// The same with every nth label, so that they do not overlap within `width`.
    fn thinned(mut self, width: u32) -> Self {
        let fit = (width / self.label_width().max(1)).max(1) as usize;
        let step = self.ticks.len().div_ceil(fit).max(1);
        self.ticks = self.ticks.into_iter().step_by(step).collect();
        self
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range.clone()).map(place, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let ticks: &[_] = if hint.weight().allow_light_points() { &[] } else { &self.ticks };
        ticks.iter().map(|(place, _)| *place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, place: &f64) -> String {
        let nearest = self.ticks.iter().find(|(tick, _)| (tick - place).abs() < 1e-9);
        nearest.map(|(_, label)| label.clone()).unwrap_or_default()
    }
}

/// Kind of the values on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Requests per second, from 0.
    Rate,
    /// Percent, from 0.
    Percent,
    /// Nanoseconds, logarithmic.
    Latency,
}

impl Scale {
    pub fn axis(self, name: &str, values: impl IntoIterator<Item = u64>) -> Axis {
        match self {
            Self::Rate | Self::Percent => {
                let highest = values.into_iter().max().unwrap_or(0) as f64;
                Axis::from_zero(name, highest, |value| self.text(value))
            }
            Self::Latency => Axis::latency(name, values),
        }
    }

    pub fn place(self, value: u64) -> f64 {
        match self {
            Self::Rate | Self::Percent => value as f64,
            Self::Latency => (value.max(1) as f64).log10(),
        }
    }

    pub fn text(self, value: u64) -> String {
        match self {
            Self::Rate => rate(value),
            Self::Percent => format!("{value} %"),
            Self::Latency => latency(value),
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

type Point = (f64, f64);

/// Something drawn between the axes, in their units.
#[derive(Clone, Debug)]
pub enum Mark {
    Line(Role, Vec<Point>),
    /// The area between two lines, the upper one first.
    Band(Role, Vec<Point>, Vec<Point>),
    /// An interval with a dot at its value: the low end, the value, and the high end.
    Interval(Role, [Point; 3]),
    /// A stretch of x over the whole height.
    Stretch(Range<f64>),
    /// A place of x over the whole height.
    Place(f64),
    Dot(Role, Shape, Point),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Circle,
    Cross,
    Triangle,
}

/// The area between the axes, in the drawing's units.
#[derive(Clone, Debug)]
pub struct Frame {
    pub x: Range<i32>,
    pub y: Range<i32>,
}

#[derive(Debug)]
pub struct Chart {
    pub id: String,
    pub title: String,
    /// Describes it for those who do not see it too.
    pub description: String,
    pub x: Axis,
    pub y: Axis,
    pub marks: Vec<Mark>,
    pub legend: Vec<(Role, String)>,
    /// The same in numbers.
    pub table: Grid,
}

impl Chart {
    /// The plot with title, description, legend and table. `below` draws what is below the marks.
    pub fn figure(&self, below: impl FnOnce(&Frame) -> Markup) -> Result<Markup, ChartError> {
        let (svg, frame) = self.draw()?;
        // The root element is our own.
        let inner = svg.split_once('>').map_or("", |(_, inner)| inner);
        let inner = inner.rsplit_once("</svg>").map_or(inner, |(inner, _)| inner);
        let (title, description) = (format!("{}-title", self.id), format!("{}-text", self.id));
        Ok(html! {
            figure id=(self.id) {
                figcaption {
                    h3 { (self.title) }
                    p { (self.description) }
                }
                @if !self.legend.is_empty() {
                    ul.legend {
                        @for (role, name) in &self.legend {
                            li { (sample(*role)) " " (name) }
                        }
                    }
                }
                div.scroll tabindex="0" role="group" aria-label=(self.title) {
                    svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-labelledby=(format!("{title} {description}")) {
                        title id=(title) { (self.title) }
                        desc id=(description) { (self.description) }
                        (below(&frame))
                        (PreEscaped(inner))
                    }
                }
                details {
                    summary { "Table: " (self.title) }
                    (table::table(&self.table))
                }
            }
        })
    }

    fn draw(&self) -> Result<(String, Frame), ChartError> {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        // Half of the width, so that something is left to see.
        let left = LEFT.max(self.y.label_width() + CHARACTER).min(WIDTH / 2);
        let x = self.x.clone().thinned(WIDTH - left - RIGHT);
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .margin_right(RIGHT)
            .x_label_area_size(96)
            .y_label_area_size(left)
            .build_cartesian_2d(x, self.y.clone())?;
        chart
            .configure_mesh()
            .x_desc(self.x.name.as_str())
            .y_desc(self.y.name.as_str())
            .label_style(("sans-serif", FONT).into_font().color(&INK))
            .axis_style(INK.stroke_width(2))
            .bold_line_style(MESH.stroke_width(2))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(8)
            .draw()?;
        let bottom = self.y.range.start;
        let top = self.y.range.end;
        let line = |role: Role| role.color().stroke_width(THICK);
        for mark in &self.marks {
            match mark {
                // A line of one point would not be seen.
                Mark::Line(role, points) if points.len() == 1 => {
                    chart.draw_series([Circle::new(points[0], 6, role.color().filled())])?;
                }
                Mark::Line(role, points) => {
                    chart.draw_series([PathElement::new(points.clone(), line(*role))])?;
                }
                Mark::Band(role, upper, lower) => {
                    let around: Vec<Point> = upper.iter().chain(lower.iter().rev()).copied().collect();
                    chart.draw_series([Polygon::new(around, role.color().mix(BAND))])?;
                }
                Mark::Interval(role, [low, value, high]) => {
                    let bar = role.color().stroke_width(BAR);
                    chart.draw_series([PathElement::new(vec![*low, *high], bar)])?;
                    chart.draw_series([Circle::new(*value, 9, role.color().filled())])?;
                }
                Mark::Stretch(Range { start, end }) => {
                    let (start, end) = (start.max(self.x.range.start), end.min(self.x.range.end));
                    if start < end {
                        let style = Role::Event.color().mix(BAND).filled();
                        chart.draw_series([Rectangle::new([(start, bottom), (end, top)], style)])?;
                    }
                }
                Mark::Place(x) if !self.x.range.contains(x) => {}
                Mark::Place(x) => {
                    chart.draw_series([PathElement::new(
                        vec![(*x, bottom), (*x, top)],
                        Role::Event.color().stroke_width(3),
                    )])?;
                }
                Mark::Dot(role, Shape::Circle, at) => {
                    chart.draw_series([Circle::new(*at, 9, role.color().filled())])?;
                }
                Mark::Dot(role, Shape::Cross, at) => {
                    chart.draw_series([Cross::new(*at, 9, line(*role))])?;
                }
                Mark::Dot(role, Shape::Triangle, at) => {
                    chart.draw_series([TriangleMarker::new(*at, 12, role.color().filled())])?;
                }
            }
        }
        let (x, y) = chart.plotting_area().get_pixel_range();
        root.present()?;
        drop(chart);
        drop(root);
        Ok((svg, Frame { x, y }))
    }
}

/// A piece of a role's line, for the legend.
fn sample(role: Role) -> Markup {
    html! {
        svg.sample viewBox="0 0 80 20" aria-hidden="true" {
            polyline points="0,10 80,10" fill="none" stroke=(hex(role.color())) stroke-width=(THICK) {}
        }
    }
}

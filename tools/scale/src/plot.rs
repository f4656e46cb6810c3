//! Memory and processor time against the number of shards, as SVG.

use std::fmt::Write as _;

/// A measurement of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub shards: f64,
    pub cores: f64,
    pub mebibytes: f64,
}

/// Size of a plot without its labels, and the room for these.
const WIDTH: f64 = 280.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 44.0;
const RIGHT: f64 = 24.0;

/// An axis from 0 to a round number.
struct Axis {
    step: f64,
    steps: f64,
}

impl Axis {
    /// An axis of up to five steps of 1, 2 or 5 times a power of ten, and at least 0.01.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let most = values.fold(0.0, f64::max);
        let mut step = 0.01;
        for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
            if step * 5.0 >= most {
                break;
            }
            step *= factor;
        }
        Self { step, steps: (most / step).ceil().max(1.0) }
    }

    /// The place of `value`, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        value / (self.step * self.steps)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (0..=5_u8).map(f64::from).filter(move |tick| *tick <= self.steps).map(move |tick| tick * self.step)
    }
}

/// Both plots, side by side.
pub fn svg(points: &[Point]) -> String {
    let panel = LEFT + WIDTH + RIGHT;
    let (width, height) = (2.0 * panel, TOP + HEIGHT + BOTTOM);
    let size = format!("viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\"");
    let mut svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {size} role=\"img\" ");
    svg += "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n";
    svg += "<title>Peak memory and processor time of the operator against the number of shards</title>\n";
    // Pages may be dark.
    svg += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    let of = |value: fn(&Point) -> f64| points.iter().map(|point| (point.shards, value(point))).collect::<Vec<_>>();
    plot(&mut svg, LEFT, ("peak memory, MiB", 0), &of(|point| point.mebibytes));
    plot(&mut svg, LEFT + panel, ("processor time, cores", 2), &of(|point| point.cores));
    svg + "</svg>\n"
}

/// Adds a plot at `left`, with values of so many decimals.
fn plot(svg: &mut String, left: f64, (title, decimals): (&str, usize), points: &[(f64, f64)]) {
    let across = Axis::of(points.iter().map(|point| point.0));
    let up = Axis::of(points.iter().map(|point| point.1));
    let x = |shards: f64| left + across.place(shards) * WIDTH;
    let y = |value: f64| TOP + (1.0 - up.place(value)) * HEIGHT;
    let (bottom, middle) = (TOP + HEIGHT, left + WIDTH / 2.0);
    let mut line = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    line(format!("<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{title}</text>", TOP - 16.0));
    for tick in up.ticks() {
        let (end, at) = (left - 6.0, y(tick));
        line(format!("<path d=\"M{left} {at:.1}h{WIDTH}\" stroke=\"#ddd\"/>"));
        line(format!("<text x=\"{end}\" y=\"{:.1}\" text-anchor=\"end\">{tick:.decimals$}</text>", at + 4.0));
    }
    for tick in across.ticks() {
        let (at, below) = (x(tick), bottom + 16.0);
        line(format!("<path d=\"M{at:.1} {bottom}v4\" stroke=\"#333\"/>"));
        line(format!("<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{tick:.0}</text>"));
    }
    line(format!("<path d=\"M{left} {bottom}h{WIDTH}\" stroke=\"#333\"/>"));
    line(format!("<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">shards</text>", bottom + 34.0));
    let mut course = String::new();
    for (at, (shards, value)) in points.iter().enumerate() {
        let (x, y) = (x(*shards), y(*value));
        // Writing to a String cannot fail.
        let _ = write!(course, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
        line(format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#06c\"/>"));
    }
    line(format!("<path d=\"{course}\" fill=\"none\" stroke=\"#06c\" stroke-width=\"1.5\"/>"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64]) -> Vec<String> {
        Axis::of(values.iter().copied()).ticks().map(|tick| format!("{tick:.2}")).collect()
    }

    #[test]
    fn axes_end_at_a_round_number() {
        assert_eq!(ticks(&[0.199, 0.05]), ["0.00", "0.05", "0.10", "0.15", "0.20"]);
        assert_eq!(ticks(&[187.3]), ["0.00", "50.00", "100.00", "150.00", "200.00"]);
        assert_eq!(ticks(&[16.0, 5_000.0]), ["0.00", "1000.00", "2000.00", "3000.00", "4000.00", "5000.00"]);
        assert_eq!(ticks(&[]), ["0.00", "0.01"]);
    }

    #[test]
    fn points_are_where_their_numbers_say() {
        let point = |shards, cores, mebibytes| Point { shards, cores, mebibytes };
        let svg = svg(&[point(1_000.0, 0.1, 100.0), point(2_000.0, 0.2, 150.0)]);
        // Half and all of the width, and two thirds and all of the height from above.
        for place in [
            "cx=\"196.0\" cy=\"100.0\"",
            "cx=\"336.0\" cy=\"40.0\"",
            "cx=\"556.0\" cy=\"130.0\"",
            "cx=\"696.0\" cy=\"40.0\"",
        ] {
            assert!(svg.contains(place), "{place}: {svg}");
        }
        assert!(svg.contains("d=\"M196.0 100.0L336.0 40.0\""), "{svg}");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    }

    #[test]
    fn a_page_without_rows_has_empty_plots() {
        let svg = svg(&[]);
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<circle"), "{svg}");
    }
}

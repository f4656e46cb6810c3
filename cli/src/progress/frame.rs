//! One frame of the view. Pure: model and size determine it.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Cell, Chart, Dataset, GraphType, LineGauge, Paragraph, Row, Table, Wrap};
use redisbench_benchmark::api::status::{NodeProgress, Progress, ShardProgress, VerdictValue};
use redisbench_benchmark::human::{latency, rate, seconds};

use super::model::{Model, ProgressPoint};
use super::reason::Reason;
use super::rows::{self, NODE_HEADS, SHARD_HEADS};

/// The least width for two plots or tables side by side.
const WIDE: u16 = 80;
/// The least height of a plot: its title, a row of points, and the axis with its labels.
const PLOT: u16 = 4;
/// The least height for the line of the servers.
const HIGH: u16 = 16;
/// The most rows of the state, which may be a long message.
const STATE: u16 = 3;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BUSY_PERCENT: u32 = 90;

/// Draws `model` on the whole area of `frame`.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let state = Paragraph::new(title(model)).wrap(Wrap { trim: true });
    let width = usize::from(area.width.max(1));
    let rows = (model.name.chars().count() + 3 + model.state.chars().count()).div_ceil(width);
    let numbers = numbers(model, area);
    let reasons: Vec<Line<'_>> = model.reasons.iter().map(reason).collect();
    let head = u16::try_from(rows).unwrap_or(STATE).clamp(1, STATE) + 1 + height(numbers.len());
    let notes = height(model.notes.len()).min(area.height.saturating_sub(head + PLOT));
    let left = area.height.saturating_sub(head + notes);
    // Reasons wrap: each takes two rows if there is room.
    let reasons_rows = (2 * height(reasons.len())).min(left / 3);
    let left = left - reasons_rows;
    // Heads without a row say nothing.
    let tables = Some(tables_rows(&model.progress, area.width).min(left.saturating_sub(PLOT))).filter(|rows| *rows > 1);
    let [state_area, gauge, numbers_area, reasons_area, plots, tables_area, notes_area] = Layout::vertical([
        Constraint::Length(head - 1 - height(numbers.len())),
        Constraint::Length(1),
        Constraint::Length(height(numbers.len())),
        Constraint::Length(reasons_rows),
        Constraint::Min(0),
        Constraint::Length(tables.unwrap_or(0)),
        Constraint::Length(notes),
    ])
    .areas(area);
    frame.render_widget(state, state_area);
    let percent = if model.is_open_ended { 0 } else { model.progress.percent.min(100) };
    let label = if model.is_open_ended { String::new() } else { format!("{percent:>3} %") };
    let bar = LineGauge::default()
        .ratio(f64::from(percent) / 100.0)
        .label(label)
        .filled_style(Style::new().fg(Color::Green))
        .unfilled_style(DIM);
    frame.render_widget(bar, gauge);
    frame.render_widget(Paragraph::new(numbers), numbers_area);
    frame.render_widget(Paragraph::new(reasons).wrap(Wrap { trim: true }), reasons_area);
    draw_plots(model, frame, plots);
    draw_tables(model, frame, tables_area);
    let hidden = model.notes.len().saturating_sub(usize::from(notes));
    let notes: Vec<Line<'_>> = model.notes.iter().skip(hidden).map(|note| Line::styled(note.as_str(), DIM)).collect();
    frame.render_widget(Paragraph::new(notes), notes_area);
}

fn height(rows: usize) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX)
}

fn title(model: &Model) -> Line<'_> {
    Line::from(vec![Span::styled(model.name.as_str(), BOLD), Span::raw("   "), Span::raw(model.state.as_str())])
}

/// Rate, errors and percentiles of the last seconds: in one line, or in two on a narrow terminal. Another line has the rates of client-side
/// caches. Empty before the load.
fn numbers(model: &Model, area: Rect) -> Vec<Line<'static>> {
    if !model.is_running {
        return Vec::new();
    }
    let progress = &model.progress;
    let known = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), latency);
    let errors = model.errors.clone().unwrap_or_else(|| "-".to_owned());
    let counts = [("rate", rate(progress.achieved_per_second)), ("errors", errors)];
    let quantiles =
        [("p50", progress.p50_nanoseconds), ("p99", progress.p99_nanoseconds), ("p99.9", progress.p999_nanoseconds)];
    let quantiles = quantiles.map(|(name, value)| (name, known(value)));
    let per_second = |name, value: Option<u64>| Some((name, rate(value?)));
    let caches = [
        per_second("hits", progress.cache_hits_per_second),
        per_second("invalidations", progress.invalidations_per_second),
    ];
    let caches: Vec<_> = caches.into_iter().flatten().collect();
    let caches = (!caches.is_empty()).then(|| labelled(&caches));
    let servers =
        model.topology.as_ref().filter(|_| area.height >= HIGH).map(|servers| Line::styled(servers.clone(), DIM));
    let numbers = if area.width < WIDE {
        vec![labelled(&counts), labelled(&quantiles)]
    } else {
        vec![labelled(&counts.into_iter().chain(quantiles).collect::<Vec<_>>())]
    };
    numbers.into_iter().chain(caches).chain(servers).collect()
}

fn labelled(parts: &[(&'static str, String)]) -> Line<'static> {
    let mut spans = Vec::new();
    for (name, value) in parts {
        if !spans.is_empty() {
            spans.push(Span::raw("  "));
        }
        spans.extend([Span::styled(format!("{name} "), DIM), Span::styled(value.clone(), BOLD)]);
    }
    Line::from(spans)
}

/// The severity is a word too, for terminals without colours.
fn reason(Reason { severity, name, message }: &Reason) -> Line<'_> {
    let colour = if *severity == VerdictValue::Invalid { Color::Red } else { Color::Yellow };
    Line::from(vec![Span::styled(format!("{severity:?} {name}: "), BOLD.fg(colour)), Span::raw(message.as_str())])
}

fn draw_plots(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if area.height < PLOT || model.points.len() < 2 {
        return;
    }
    let rates: Vec<_> = model.points.iter().map(|point| at(point, point.per_second)).collect();
    let p99: Vec<_> = model.points.iter().filter_map(|point| Some(at(point, point.p99?))).collect();
    let both = p99.len() > 1 && (area.width >= WIDE || area.height >= 2 * PLOT);
    let halves = [Constraint::Fill(1), Constraint::Fill(u16::from(both))];
    let [first, second] = if area.width >= WIDE {
        Layout::horizontal(halves).spacing(2).areas(area)
    } else {
        Layout::vertical(halves).areas(area)
    };
    plot("rate", rate, &rates, frame, first);
    if both {
        plot("p99 of the last seconds", latency, &p99, frame, second);
    }
}

fn at(point: &ProgressPoint, value: u64) -> (f64, f64) {
    (point.second.into(), value as f64)
}

/// A curve over the time of the trial, from zero.
fn plot(title: &'static str, text: fn(u64) -> String, points: &[(f64, f64)], frame: &mut Frame<'_>, area: Rect) {
    let [from, to] = [points.first(), points.last()].map(|point| point.map_or(0.0, |(second, _)| *second));
    let highest = points.iter().fold(1.0, |most: f64, (_, value)| most.max(*value));
    let time = |second: f64| seconds(std::time::Duration::from_secs_f64(second));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was an integer")]
    let top = text(highest as u64);
    let curve = Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Style::new().fg(Color::Cyan))
        .data(points);
    let chart = Chart::new(vec![curve])
        .block(Block::new().title(Line::styled(title, DIM)))
        .x_axis(Axis::default().bounds([from, to.max(from + 1.0)]).labels([time(from), time(to)]).style(DIM))
        .y_axis(Axis::default().bounds([0.0, highest]).labels(["0".to_owned(), top]).style(DIM));
    frame.render_widget(chart, area);
}

/// Rows that both tables take, each with its heads.
fn tables_rows(progress: &Progress, width: u16) -> u16 {
    let rows = |listed: usize| if listed == 0 { 0 } else { height(listed) + 1 };
    let (shards, nodes) = (rows(progress.shards.len()), rows(progress.nodes.len()));
    if width >= WIDE { shards.max(nodes) } else { shards + nodes }
}

fn draw_tables(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let Progress { shards, nodes, nodes_left_out, .. } = &model.progress;
    let rows = |listed: usize| Constraint::Max(if listed == 0 { 0 } else { height(listed) + 1 });
    let [left, right] = if area.width < WIDE {
        Layout::vertical([rows(shards.len()), rows(nodes.len())]).areas(area)
    } else {
        let fill = Constraint::Fill(u16::from(!nodes.is_empty()));
        Layout::horizontal([Constraint::Fill(1), fill]).spacing(2).areas(area)
    };
    if !shards.is_empty() {
        let of = format!("shard of {}", model.shards);
        let widths = [
            Constraint::Min(9),
            Constraint::Length(8),
            Constraint::Length(6),
            Constraint::Length(5),
            Constraint::Length(6),
        ];
        frame.render_widget(table(of, SHARD_HEADS, shards.iter().map(shard), widths), left);
    }
    if !nodes.is_empty() {
        let head = rows::nodes_head(*nodes_left_out);
        let widths = [Constraint::Min(12), Constraint::Length(8), Constraint::Length(6), Constraint::Length(8)];
        frame.render_widget(table(head, NODE_HEADS, nodes.iter().map(node), widths), right);
    }
}

fn table<'a, const HEADS: usize, const COLUMNS: usize>(
    title: String,
    heads: [&'static str; HEADS],
    rows: impl Iterator<Item = Row<'a>>,
    widths: [Constraint; COLUMNS],
) -> Table<'a> {
    Table::new(rows, widths)
        .header(Row::new(std::iter::once(Cell::from(title)).chain(heads.map(Cell::from))).style(DIM))
}

fn shard(shard: &ShardProgress) -> Row<'static> {
    let bad = shard.lost || shard.unreachable || shard.busiest_worker_percent >= BUSY_PERCENT;
    row(rows::shard(shard), bad)
}

fn node(node: &NodeProgress) -> Row<'static> {
    row(rows::node(node), node.errors > 0)
}

fn row<const COLUMNS: usize>(cells: [String; COLUMNS], bad: bool) -> Row<'static> {
    Row::new(cells).style(if bad { Style::new().fg(Color::Yellow) } else { Style::new() })
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(model: &Model, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(model, frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(row).collect()
    }

    fn running() -> Model {
        let shard = |index| ShardProgress {
            index,
            lost: index == 1,
            achieved_per_second: 2_500,
            failed_requests: 7,
            busiest_worker_percent: 41,
            ..ShardProgress::default()
        };
        let node = |port: u32| NodeProgress {
            address: format!("10.0.0.1:{port}"),
            requests_per_second: 1_700,
            errors: 0,
            p99_nanoseconds: Some(1_450_000),
        };
        let points =
            (0..20).map(|second| ProgressPoint { second, per_second: 5_000 + u64::from(second), p99: Some(1_000_000) });
        Model {
            name: "cart".to_owned(),
            state: "Running   20s of 1m05s   1 of 2 shards lost".to_owned(),
            progress: Progress {
                percent: 30,
                achieved_per_second: 5_000,
                p50_nanoseconds: Some(312_000),
                p99_nanoseconds: Some(1_450_000),
                measuring: true,
                shards: (0..2).map(shard).collect(),
                nodes: (7000..7003).map(node).collect(),
                ..Progress::default()
            },
            is_running: true,
            errors: Some("14 (0.010 %)".to_owned()),
            shards: 2,
            topology: Some("3 primaries, 0 replicas, 0 changes, 0 outages".to_owned()),
            reasons: vec![Reason {
                severity: VerdictValue::Invalid,
                name: "ShardLost".to_owned(),
                message: "1 of 2 shards are lost".to_owned(),
            }],
            points: points.collect(),
            ..Model::default()
        }
    }

    #[test]
    fn the_smallest_terminal_has_the_numbers_the_reasons_and_a_plot() {
        let text = drawn(&running(), 40, 12).join("\n");
        for part in
            ["cart", "20s of 1m05s", "30 %", "rate 5.00k/s", "errors 14", "p50 312 µs", "p99 1.45 ms", "p99.9 -"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(text.contains("Invalid ShardLost:"), "{text}");
        let text = drawn(&running(), 40, 10).join("\n");
        assert!(text.contains("rate 5.00k/s") && text.contains("Invalid ShardLost:"), "{text}");
        assert!(text.contains(|symbol| ('\u{2801}'..='\u{28ff}').contains(&symbol)), "no curve in\n{text}");
    }

    #[test]
    fn client_side_caches_have_a_line_of_their_own() {
        let mut model = running();
        (model.progress.cache_hits_per_second, model.progress.invalidations_per_second) = (Some(812_000), Some(0));
        for (width, height) in [(40, 12), (80, 24)] {
            let rows = drawn(&model, width, height);
            assert!(rows.iter().any(|row| row == "hits 812k/s  invalidations 0/s"), "{rows:?}");
        }
    }

    #[test]
    fn a_load_whose_end_is_unknown_has_no_percentage() {
        let model = Model { is_open_ended: true, errors: None, ..running() };
        let text = drawn(&model, 40, 12).join("\n");
        assert!(text.contains("rate 5.00k/s") && !text.contains("0 %"), "{text}");
    }

    #[test]
    fn a_usual_terminal_has_tables_and_both_plots() {
        let rows = drawn(&running(), 80, 24);
        let text = rows.join("\n");
        for part in
            ["rate 5.00k/s  errors 14 (0.010 %)  p50 312 µs  p99 1.45 ms  p99.9 -", "p99 of the last seconds", "19s"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let row =
            |part: &str| rows.iter().find(|row| row.starts_with(part)).unwrap_or_else(|| panic!("{part} in\n{text}"));
        assert!(row("shard of 2").contains("busy") && row("shard of 2").contains("node"), "{text}");
        assert!(row("1 lost").contains("2.50k/s") && row("1 lost").contains("10.0.0.1:7001"), "{text}");
    }

    #[test]
    fn every_size_is_drawn() {
        let preparing = Model {
            name: "cart".to_owned(),
            state: "Preparing   ".to_owned() + &"waiting ".repeat(90),
            ..Model::default()
        };
        for model in [running(), preparing, Model::default()] {
            for (width, height) in [(1, 1), (10, 3), (40, 10), (79, 40), (80, 24), (200, 60), (400, 5)] {
                assert_eq!(drawn(&model, width, height).len(), usize::from(height));
            }
        }
    }

    #[test]
    fn a_wide_terminal_has_everything() {
        let mut model = running();
        model.note("aborting: keeping the partial result");
        let text = drawn(&model, 200, 60).join("\n");
        for part in [
            "3 primaries",
            "10.0.0.1:7002",
            "aborting",
            "5.02k/s",
            "1.00 ms",
            "Invalid ShardLost: 1 of 2 shards are lost",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}

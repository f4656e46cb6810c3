//! The live view as a picture for the docs: the cells of a frame as SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use redisbench_benchmark::api::RedisBenchmark;
use serde_json::json;

use super::frame;
use super::model::Model;

/// Width and height of a cell in pixels.
const CELL: (u16, u16) = (8, 16);
/// From the top of a cell to the line that letters stand on.
const BASELINE: u16 = 12;
/// Around all cells.
const MARGIN: u16 = 12;

/// The symbol without dots. The others follow: their bits are their dots.
const BRAILLE: char = '\u{2800}';
/// Column and row of each bit's dot.
const DOTS: [(u16, u16); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];

/// Of a dark terminal.
fn hex(color: Color) -> &'static str {
    match color {
        Color::Reset => "#e5e5ea",
        Color::Green => "#30d158",
        Color::Yellow => "#ffd60a",
        Color::Red => "#ff6961",
        Color::Cyan => "#64d2ff",
        other => panic!("{other:?} has no value here"),
    }
}

/// The dots of a braille symbol; none of other symbols.
fn dots(cell: &Cell) -> Option<u32> {
    let symbol = cell.symbol().chars().next()?;
    u32::from(symbol).checked_sub(u32::from(BRAILLE)).filter(|dots| *dots < 256)
}

/// The look that cells must share to be drawn together.
fn look(cell: &Cell) -> (Color, Modifier, bool) {
    (cell.fg, cell.modifier, dots(cell).is_some())
}

fn svg(buffer: &Buffer, title: &str) -> String {
    let area = buffer.area;
    let [width, height] = [area.width * CELL.0, area.height * CELL.1].map(|length| length + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\" \
         xml:space=\"preserve\">\n<title>{title}</title>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1c1c1e\"/>\n"
    );
    for y in 0..area.height {
        let row: Vec<&Cell> = (0..area.width).map(|x| &buffer[(x, y)]).collect();
        let mut x = 0;
        for run in row.chunk_by(|one, next| look(one) == look(next)) {
            let place = (MARGIN + x * CELL.0, MARGIN + y * CELL.1);
            if dots(run[0]).is_some() {
                draw_dots(&mut svg, run, place);
            } else {
                draw_text(&mut svg, run, place);
            }
            x += u16::try_from(run.len()).unwrap();
        }
    }
    svg + "</svg>\n"
}

/// Fonts seldom have braille symbols as wide as their letters.
fn draw_dots(svg: &mut String, run: &[&Cell], (left, top): (u16, u16)) {
    let mut path = String::new();
    for (nth, cell) in (0..).zip(run) {
        let bits = dots(cell).unwrap();
        for (_, (column, row)) in DOTS.into_iter().enumerate().filter(|(bit, _)| (bits >> bit) & 1 == 1) {
            let _ = write!(path, "M{} {}h0", left + nth * CELL.0 + 2 + 4 * column, top + 2 + 4 * row);
        }
    }
    if !path.is_empty() {
        let stroke = hex(run[0].fg);
        let _ = writeln!(svg, "<path d=\"{path}\" stroke=\"{stroke}\" stroke-width=\"3\" stroke-linecap=\"round\"/>");
    }
}

fn draw_text(svg: &mut String, run: &[&Cell], (left, top): (u16, u16)) {
    let text: String = run.iter().map(|cell| cell.symbol()).collect();
    let shown = text.trim_matches(' ');
    if shown.is_empty() {
        return;
    }
    let cells = |text: &str| u16::try_from(text.chars().count()).unwrap() * CELL.0;
    let blank = cells(&text) - cells(text.trim_start_matches(' '));
    let modifier = run[0].modifier;
    let weight = if modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    let opacity = if modifier.contains(Modifier::DIM) { " fill-opacity=\"0.6\"" } else { "" };
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" textLength=\"{}\" fill=\"{}\"{weight}{opacity}>{}</text>",
        left + blank,
        top + BASELINE,
        cells(shown),
        hex(run[0].fg),
        shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    );
}

/// A cluster a minute after a failover.
fn benchmark(second: u32) -> RedisBenchmark {
    let noise = second * 7_919 % 97;
    let (rate, p99) = match second {
        68..75 => (34_000 + 100 * noise, 8_400_000 + 10_000 * noise),
        _ => (49_800 + 4 * noise, 1_300_000 + 3_000 * noise),
    };
    let shard = |index: u32| {
        json!({"index": index, "achievedPerSecond": rate / 4, "failedRequests": 460, "busiestWorkerPercent": 47 - 3 * index,
            "runQueuePercent": 1})
    };
    let node = |nth: u32, p99: u32| json!({"address": format!("10.0.0.{nth}:6379"), "requestsPerSecond": rate / 3, "errors": 0, "p99Nanoseconds": p99});
    serde_json::from_value(json!({
        "apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark", "metadata": {"name": "cart-cache"},
        "spec": {
            "targets": [{"name": "redis", "type": "Cluster", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
            "load": {"type": "OpenLoop", "openLoop": {"rate": 50_000}, "warmup": "10s", "duration": "5m"},
        },
        "status": {
            "phase": "Running",
            "trial": {"index": 0, "of": 1, "attempt": 1, "startAt": "1970-01-01T00:00:00.000000Z"},
            "shards": {"desired": 4, "armed": 0, "running": 4, "finished": 0, "lost": 0, "unreachable": 0},
            "summary": {"errors": "1,840 (0.028 %)"},
            "topology": {
                "primaries": 3, "replicas": 3,
                "changes": [{"milliseconds": 69_200, "what": "BecamePrimary", "node": "10.0.0.4:6379"}],
                "unavailability": [{"startMilliseconds": 68_000, "lengthMilliseconds": 1_240, "slots": 5_461,
                    "ranges": ["0-5460"], "node": "10.0.0.1:6379"}],
            },
            "progress": {
                "percent": second * 100 / 310, "achievedPerSecond": rate, "p50Nanoseconds": 412_000, "p99Nanoseconds": p99,
                "p999Nanoseconds": 2 * p99, "measuring": true, "shards": (0..4).map(shard).collect::<Vec<_>>(),
                "nodes": [node(4, 1_710_000), node(2, 1_350_000), node(3, 1_320_000)],
                "reasons": [{"reason": "Unavailable", "severity": "Degraded",
                    "message": "no replies for 1.24 s from 10.0.0.1:6379 (slots 0-5460)"}],
            },
        },
    }))
    .unwrap()
}

fn picture(width: u16, height: u16) -> String {
    let mut model = Model::default();
    for second in 0..=130 {
        model.update(&benchmark(second), Timestamp::from_second(second.into()).unwrap());
    }
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|area| frame::draw(&model, area)).unwrap();
    svg(terminal.backend().buffer(), &format!("redisbench watch in a terminal of {width} x {height}"))
}

/// `make test-report UPDATE=1` writes them.
#[test]
fn the_pictures_of_the_docs_are_fresh() {
    for (name, width, height) in [("watch.svg", 100, 30), ("watch-narrow.svg", 40, 16)] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images").join(name);
        let picture = picture(width, height);
        for part in ["cart-cache", "Running", "2m10s of 5m10s", "Degraded Unavailable:"] {
            assert!(picture.contains(part), "no {part} in {name}");
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, &picture).unwrap();
        }
        let committed = fs::read_to_string(&file).unwrap_or_default();
        assert!(committed == picture, "docs/images/{name} is stale: run `make test-report UPDATE=1`");
    }
}

#[test]
fn letters_keep_their_cells_and_braille_becomes_dots() {
    let picture = svg(&Buffer::with_lines(["  R&B <1 \u{2803}"]), "a title");
    assert!(
        picture.contains("<text x=\"28\" y=\"24\" textLength=\"48\" fill=\"#e5e5ea\">R&amp;B &lt;1</text>"),
        "{picture}"
    );
    // The tenth cell: two dots in the left column.
    assert!(picture.contains("<path d=\"M86 14h0M86 18h0\" stroke=\"#e5e5ea\""), "{picture}");
}

//! Topology changes of the target, if any.

use std::fmt::Write as _;

use redisbench_benchmark::api::status::{TopologyChange, TopologyStatus, Unavailability};
use redisbench_benchmark::human::{count, latency};

use super::grid::{Cell, Grid};
use super::paint::{Paint, Style};

/// The tables of [`grids`], and how much they omit.
pub fn topology(status: &TopologyStatus, paint: Paint) -> String {
    let mut text: String = grids(status).iter().map(|grid| grid.text(paint)).collect();
    if status.left_out > 0 {
        let _ = writeln!(text, "{} more entries are only in the artifacts.", count(status.left_out));
    }
    text
}

/// Tables of the outages and of the changes. None if there were none.
pub fn grids(status: &TopologyStatus) -> Vec<Grid> {
    let mut grids = Vec::new();
    if !status.unavailability.is_empty() {
        let mut grid = Grid::new("Unavailable", &["from", "for", "slots", "node"]).left(3).left(4);
        status.unavailability.iter().for_each(|time| grid.row(unavailable(time)));
        grids.push(grid);
    }
    if !status.changes.is_empty() {
        let mut grid = Grid::new("Changes", &["at", "node", "slots"]).left(2).left(3);
        status.changes.iter().for_each(|change| grid.row(changed(change)));
        grids.push(grid);
    }
    grids
}

fn unavailable(time: &Unavailability) -> Vec<Cell> {
    let what = match (time.reads_only, time.lasting) {
        (false, false) => "no replies",
        (true, false) => "no reads",
        (false, true) => "no replies, until the end",
        (true, true) => "no reads, until the end",
    };
    vec![
        Cell::from(what),
        Cell::from(at(time.start_milliseconds)),
        Cell::styled(latency(time.length_milliseconds.saturating_mul(1_000_000)), Style::Bad),
        Cell::from(slots(time.slots, &time.ranges)),
        Cell::from(time.node.as_str()),
    ]
}

fn changed(change: &TopologyChange) -> Vec<Cell> {
    let node = match &change.from {
        Some(from) => format!("{from} to {}", change.node),
        None => change.node.clone(),
    };
    vec![
        Cell::from(format!("{:?}", change.what)),
        Cell::from(at(change.milliseconds)),
        Cell::from(node),
        Cell::from(slots(change.slots, &change.ranges)),
    ]
}

/// A time relative to the start of the measurement.
fn at(milliseconds: i64) -> String {
    let (sign, length) = (if milliseconds < 0 { "-" } else { "" }, milliseconds.unsigned_abs());
    format!("{sign}{}.{:03} s", length / 1000, length % 1000)
}

fn slots(number: Option<u32>, ranges: &[String]) -> String {
    match number {
        None => "all".to_owned(),
        Some(0) => "0".to_owned(),
        Some(number) => format!("{}: {}", count(number.into()), ranges.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_and_changes_are_listed() {
        let status = serde_json::from_value(json!({
            "primaries": 3, "replicas": 1,
            "changes": [{"milliseconds": 3412, "what": "SlotsMoved", "node": "b:1", "from": "a:1", "slots": 10,
                "ranges": ["0-9"]}],
            "unavailability": [{"startMilliseconds": -20, "lengthMilliseconds": 1200, "slots": 5461, "ranges": ["0-5460"],
                "node": "a:1"}],
        }));
        let text = topology(&status.unwrap(), Paint::for_stream(false));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["no replies -0.020 s 1.20 s 5,461: 0-5460 a:1", "SlotsMoved 3.412 s a:1 to b:1 10: 0-9"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(topology(&TopologyStatus::default(), Paint::for_stream(false)), "");
    }
}

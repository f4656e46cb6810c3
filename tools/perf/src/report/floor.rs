//! Compares ours with the bare system calls, and explains missed gates.

use super::{number, spread, value, with_unit};
use crate::table::{Row, median};

/// The upper limit of our cost over the floor, and the desired one.
const LIMIT: f64 = 1.15;
const AIM: f64 = 1.05;

/// The number of runs required to call a gate below all floors out of reach.
const ENOUGH: usize = 5;

const HEADS: [&str; 7] =
    ["what", "ours over the floor", "lowest to highest", "verdict", "the floor's figure", "lowest to highest", "gate"];

/// The section in Markdown. Empty if no row has a floor.
pub fn section(rows: &[Row]) -> String {
    let cells: Vec<String> = rows.iter().filter_map(cells).map(|cells| line(&cells)).collect();
    if cells.is_empty() {
        return String::new();
    }
    let (heads, rule) = (line(&HEADS.map(str::to_owned)), format!("|{}\n", " --- |".repeat(HEADS.len())));
    let missed: String = rows.iter().filter_map(missed).map(|text| format!("- {text}\n")).collect();
    let missed = if missed.is_empty() {
        String::new()
    } else {
        format!(
            "\n### Missed gates\n\n{missed}\nThe part of a gate above the floor is for all work other than the system calls.\n"
        )
    };
    format!("## Comparison with bare system calls\n\n{INTRODUCTION}\n{heads}{rule}{}{missed}\n", cells.concat())
}

const INTRODUCTION: &str = "\
The floor (`redisbench-floor`) does the minimum of any client: per batch, one receive and one send of prepared bytes, always with the
same key, and one wait for all batches that are ready. It draws no keys, decodes no replies and measures no latency. In an open loop,
it sends at the same instants and receives replies as they arrive. In a cluster, all of its batches are full, unlike those of random
keys, so its cost there is lower than that of any real client. It ran in the same rounds as ours, in its place. Ours should cost at
most 1.15 times the floor, ideally 1.05; the build does not enforce this. No client with these system calls can meet a gate below the
floor's figure on this machine.
";

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn cells(row: &Row) -> Option<[String; 7]> {
    let floor = row.floor()?;
    let (over, instead) = (median(&floor.ratios)?, median(&floor.instead)?);
    let verdict = match over {
        over if over <= AIM => "at most 1.05",
        over if over <= LIMIT => "at most 1.15",
        _ => "above 1.15",
    };
    Some([
        row.name.clone(),
        number(over),
        spread(&floor.ratios),
        verdict.to_owned(),
        with_unit(&number(instead), row.unit),
        spread(&floor.instead),
        row.gate.map_or_else(String::new, |gate| with_unit(&gate.to_string(), row.unit)),
    ])
}

/// The explanation of a missed gate.
pub fn missed(row: &Row) -> Option<String> {
    let (gate, measured) = (row.gate?, row.value()?);
    if row.is_met() {
        return None;
    }
    let head = format!(
        "{}: {}, {:.0} % above its gate of {}.",
        row.name,
        value(row),
        (measured / gate - 1.0) * 100.0,
        with_unit(&gate.to_string(), row.unit)
    );
    let Some((floor, instead)) = row.floor().and_then(|floor| Some((floor, median(&floor.instead)?))) else {
        return Some(format!("{head} No floor was measured for it."));
    };
    let (room, over) = (gate / instead, measured / instead);
    let lowest = floor.instead.iter().copied().fold(f64::INFINITY, f64::min);
    let leaves = format!("The gate allows {} over the floor", percent(room));
    let verdict = match room {
        room if room < 1.0 && floor.instead.len() < ENOUGH => {
            "The gate is below that, but there are too few runs to conclude more".to_owned()
        }
        _ if gate < lowest => "The gate is below all of that: no load generator can meet it on this machine".to_owned(),
        room if room < 1.0 => "The gate is below the median of that: no load generator can reliably meet it on this \
                               machine"
            .to_owned(),
        room if room < AIM => format!("{leaves}, which is little; ours needs {}", percent(over)),
        _ => format!("{leaves}; ours needs {}", percent(over)),
    };
    let spread = if floor.instead.len() > 1 { format!(" ({})", spread(&floor.instead)) } else { String::new() };
    let bare = with_unit(&number(instead), row.unit);
    Some(format!("{head} The bare system calls alone: {bare}{spread}. {verdict}."))
}

fn percent(over: f64) -> String {
    format!("{:.0} %", (over - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Floor, Measured};

    fn row(figure: f64, gate: f64, floor: Option<f64>) -> Row {
        let floor = floor.map(|instead| Floor { ratios: vec![figure / instead], instead: vec![instead] });
        let measured = Measured { samples: vec![figure], detail: String::new(), floor };
        Row { name: "row".into(), unit: "", gate: Some(gate), aim: None, outcome: Ok(measured) }
    }

    #[test]
    fn a_missed_gate_is_held_against_the_floor() {
        assert_eq!(missed(&row(0.44, 0.45, Some(0.4))), None);
        let several = |samples: &[f64]| {
            let mut row = row(0.50, 0.45, Some(0.47));
            row.outcome.as_mut().unwrap().floor.as_mut().unwrap().instead = samples.to_vec();
            missed(&row).unwrap()
        };
        let below = several(&[0.46, 0.46, 0.47, 0.48, 0.48]);
        let head = "row: 0.500, 11 % above its gate of 0.45. The bare system calls alone: 0.470 (0.460 to 0.480).";
        assert!(below.starts_with(head) && below.contains("no load generator can meet it on this machine"), "{below}");
        let straddled = several(&[0.44, 0.46, 0.47, 0.48, 0.48]);
        assert!(straddled.contains("The gate is below the median of that"), "{straddled}");
        assert!(several(&[0.47]).contains("too few runs to conclude more"));
        let little = missed(&row(0.50, 0.45, Some(0.44))).unwrap();
        assert!(little.contains("allows 2 % over the floor, which is little; ours needs 14 %"), "{little}");
        let room = missed(&row(0.50, 0.45, Some(0.40))).unwrap();
        assert!(room.contains("allows 12 % over the floor; ours needs 25 %"), "{room}");
        assert!(missed(&row(0.50, 0.45, None)).unwrap().ends_with("No floor was measured for it."));
    }

    #[test]
    fn rows_without_a_floor_are_not_in_the_table() {
        assert_eq!(section(&[row(0.44, 0.45, None)]), "");
        let text = section(&[row(0.44, 0.45, Some(0.4)), row(0.44, 0.45, None)]);
        assert!(text.contains("| row | 1.100 |  | at most 1.15 | 0.400 |  | 0.45 |\n\n"), "{text}");
        assert!(!text.contains("Missed gates"));
    }
}

//! Compares ours with the bare system calls, and explains missed gates.

use redisbench_statistics::summary::median;

use super::figures::{number, spread, value, with_unit};
use crate::markdown;
use crate::table::Row;

/// The upper limit of our cost over the floor, and the desired one.
const LIMIT: f64 = 1.15;
const AIM: f64 = 1.05;

/// The number of runs required to call a gate below all floors out of reach.
const ENOUGH: usize = 5;

pub const INTRODUCTION: &str = "\
## Comparison with bare system calls

The floor (`redisbench-floor`) does the minimum of any client: per batch, one receive and one send of prepared bytes, always with the
same key, and one wait for all batches that are ready. It draws no keys, decodes no replies and measures no latency. In an open loop,
it sends at the same instants and receives replies as they arrive. In a cluster, all of its batches are full, unlike those of random
keys, so its cost there is lower than that of any real client. It ran in the same rounds as ours, in its place. Ours should cost at
most 1.15 times the floor, ideally 1.05; the build does not enforce this. No client with these system calls can meet a gate below the
floor's figure on this machine.
";

/// The table of rows with a floor, and the missed gates. Empty if no row has a floor.
pub fn table(rows: &[Row]) -> String {
    let heads = [
        "what",
        "ours over the floor",
        "lowest to highest",
        "verdict",
        "the floor's figure",
        "lowest to highest",
        "gate",
    ];
    if !rows.iter().any(|row| row.floor().is_some()) {
        return String::new();
    }
    let table = markdown::table(heads, rows.iter().filter_map(cells));
    let missed: String = rows.iter().filter_map(missed).map(|text| format!("- {text}\n")).collect();
    if missed.is_empty() {
        return table;
    }
    format!(
        "{table}\n### Missed gates\n\n{missed}\nThe part of a gate above the floor is for all work other than the system calls.\n"
    )
}

fn cells(row: &Row) -> Option<[String; 7]> {
    let floor = row.floor()?;
    let over = median(&floor.ratios);
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
        with_unit(&number(median(&floor.instead)), row.unit),
        spread(&floor.instead),
        row.gate_and_aim.map_or_else(String::new, |(gate, _)| with_unit(&gate.to_string(), row.unit)),
    ])
}

fn missed(row: &Row) -> Option<String> {
    let ((gate, _), measured) = (row.gate_and_aim?, row.value()?);
    if row.is_met() {
        return None;
    }
    let percent = |over: f64| format!("{:.0} %", (over - 1.0) * 100.0);
    let of = with_unit(&gate.to_string(), row.unit);
    let head = format!("{}: {}, {} above its gate of {of}.", row.name, value(row), percent(measured / gate));
    let Some(floor) = row.floor() else {
        return Some(format!("{head} No floor was measured for it."));
    };
    let instead = median(&floor.instead);
    let lowest = floor.instead.iter().copied().fold(f64::INFINITY, f64::min);
    let (room, over) = (gate / instead, percent(measured / instead));
    let verdict = if room < 1.0 && floor.instead.len() < ENOUGH {
        "The gate is below that, but there are too few runs to conclude more".to_owned()
    } else if gate < lowest {
        "The gate is below all of that: no load generator can meet it on this machine".to_owned()
    } else if room < 1.0 {
        "The gate is below the median of that: no load generator can reliably meet it on this machine".to_owned()
    } else {
        let little = if room < AIM { ", which is little" } else { "" };
        format!("The gate allows {} over the floor{little}; ours needs {over}", percent(room))
    };
    let spread = if floor.instead.len() > 1 { format!(" ({})", spread(&floor.instead)) } else { String::new() };
    let bare = with_unit(&number(instead), row.unit);
    Some(format!("{head} The bare system calls alone: {bare}{spread}. {verdict}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Floor, Measured};

    fn row(figure: f64, gate: f64, floor: &[f64]) -> Row {
        let ratios = floor.iter().map(|instead| figure / instead).collect();
        let floor = (!floor.is_empty()).then(|| Floor { ratios, instead: floor.to_vec() });
        let measured = Measured { samples: vec![figure], detail: String::new(), floor };
        Row { name: "row".into(), unit: "", gate_and_aim: Some((gate, 0.0)), outcome: Ok(measured) }
    }

    #[test]
    fn a_missed_gate_is_held_against_the_floor() {
        assert_eq!(missed(&row(0.44, 0.45, &[0.4])), None);
        let head = "row: 0.500, 11 % above its gate of 0.45. The bare system calls alone: 0.470 (0.460 to 0.480).";
        for (floor, text) in [
            (&[0.46, 0.46, 0.47, 0.48, 0.48][..], head),
            (&[0.46, 0.46, 0.47, 0.48, 0.48], "no load generator can meet it on this machine"),
            (&[0.44, 0.46, 0.47, 0.48, 0.48], "The gate is below the median of that"),
            (&[0.47], "too few runs to conclude more"),
            (&[0.44], "allows 2 % over the floor, which is little; ours needs 14 %"),
            (&[0.40], "allows 12 % over the floor; ours needs 25 %"),
            (&[], "No floor was measured for it."),
        ] {
            let missed = missed(&row(0.50, 0.45, floor)).unwrap();
            assert!(missed.contains(text), "{missed}");
        }
    }

    #[test]
    fn rows_without_a_floor_are_not_in_the_table() {
        assert_eq!(table(&[row(0.44, 0.45, &[])]), "");
        let text = table(&[row(0.44, 0.45, &[0.4]), row(0.44, 0.45, &[])]);
        assert!(text.ends_with("| row | 1.100 |  | at most 1.15 | 0.400 |  | 0.45 |\n"), "{text}");
    }
}

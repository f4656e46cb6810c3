//! Several trials: a row for each.

use redisbench_benchmark::api::preset::PRESETS;
use redisbench_benchmark::api::status::{TrialLine, TrialOutcome, VerdictValue};
use redisbench_benchmark::people::{count, latency, rate, share};

use super::grid::{Cell, Grid};
use super::paint::{Paint, Style};

/// The table of the trials that are over.
pub fn table(trials: &[TrialLine], paint: Paint) -> String {
    let with_presets = trials.iter().any(|trial| trial.preset.is_some());
    let with_misses = trials.iter().any(|trial| trial.misses > Some(0) || takes(trial));
    let mut heads = Vec::new();
    if with_presets {
        heads.push("test");
    }
    heads.extend(["rate", "p50", "p99", "succeeded", "errors", "unsent"]);
    if with_misses {
        heads.push("misses");
    }
    heads.push("verdict");
    let mut grid = Grid::new("Trial", &heads);
    if with_presets {
        grid = grid.left(1);
    }
    grid = grid.left(heads.len());
    for trial in trials {
        let mut row = vec![Cell::from((trial.index + 1).to_string())];
        if with_presets {
            row.push(Cell::from(trial.preset.clone().unwrap_or_default()));
        }
        let requests = trial.requests.unwrap_or_default();
        row.push(known(trial.achieved_per_second.map(rate)));
        row.push(known(trial.p50_nanoseconds.map(latency)));
        row.push(known(trial.p99_nanoseconds.map(latency)));
        row.push(Cell::from(count(requests.succeeded)));
        row.extend([requests.errors, requests.unsent].map(bad_unless_zero));
        if with_misses {
            row.push(known(trial.misses.map(|misses| share(misses, requests.succeeded))));
        }
        row.push(verdict(trial));
        grid.row(row);
    }
    grid.text(paint)
}

fn known(text: Option<String>) -> Cell {
    Cell::from(text.unwrap_or_else(|| "-".to_owned()))
}

fn bad_unless_zero(number: u64) -> Cell {
    Cell::styled(count(number), if number == 0 { Style::Plain } else { Style::Bad })
}

/// Whether each of its requests takes something away, and may find nothing left: then none left is worth saying too.
fn takes(trial: &TrialLine) -> bool {
    PRESETS.iter().any(|preset| preset.takes() && trial.preset.as_deref() == Some(preset.name))
}

fn verdict(trial: &TrialLine) -> Cell {
    match (trial.state, trial.verdict) {
        (TrialOutcome::Completed, Some(VerdictValue::Valid)) => Cell::styled("Valid", Style::Good),
        (TrialOutcome::Completed, Some(VerdictValue::Degraded)) => Cell::styled("Degraded", Style::Doubtful),
        (TrialOutcome::Completed, Some(VerdictValue::Invalid)) => Cell::styled("Invalid", Style::Bad),
        (state, _) => Cell::styled(format!("{state:?}"), Style::Bad),
    }
}

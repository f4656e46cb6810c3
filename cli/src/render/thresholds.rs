//! Thresholds and their outcomes.

use redisbench_benchmark::api::status::{ThresholdOutcome, ThresholdStatus};

use super::grid::{Cell, Grid};
use super::paint::Style;

pub fn grid(thresholds: &[ThresholdStatus]) -> Grid {
    let several = thresholds.iter().any(|threshold| threshold.trial.is_some());
    let mut heads = vec![""];
    if several {
        heads.push("trial");
    }
    heads.push("observed");
    let mut grid = Grid::new("Threshold", &heads).left(1).left(heads.len());
    for threshold in thresholds {
        let (word, style) = match threshold.outcome {
            ThresholdOutcome::Pending => ("pending", Style::Dim),
            ThresholdOutcome::Passed => ("passed", Style::Good),
            ThresholdOutcome::NotJudged => ("not judged", Style::Doubtful),
            ThresholdOutcome::Failed => ("failed", Style::Bad),
        };
        let mut row = vec![Cell::from(threshold.name.as_str()), Cell::styled(word, style)];
        if several {
            row.push(Cell::from(threshold.trial.map(|trial| (trial + 1).to_string()).unwrap_or_default()));
        }
        row.push(Cell::from(threshold.message.as_str()));
        grid.row(row);
    }
    grid
}

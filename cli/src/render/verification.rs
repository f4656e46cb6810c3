//! Results of verifying the target's replies.

use redisbench_benchmark::api::status::VerificationResult;
use redisbench_benchmark::human::{count, latency};

use super::grid::{Cell, Grid};
use super::paint::Style;

/// A table of the counts, followed by the findings.
pub fn grids(found: &VerificationResult) -> Vec<Grid> {
    let plain = |number: u64| Cell::from(count(number));
    let wrong = |number: u64| Cell::unless_zero(number, Style::Bad);
    let heads = [
        "checked",
        "corrupt",
        "wrong replies",
        "lost writes",
        "lost keys",
        "indeterminate",
        "ambiguous writes",
        "read at the end",
        "unread",
    ];
    let mut grid = Grid::new("Verification", &heads);
    let counts = &found.counts;
    grid.row([
        Cell::from(format!("{:?}", found.mode)),
        plain(counts.checked),
        wrong(counts.corrupt),
        wrong(counts.mismatched),
        wrong(counts.lost_writes),
        wrong(counts.lost_keys),
        plain(counts.indeterminate),
        plain(counts.ambiguous_writes),
        plain(counts.read_keys),
        Cell::unless_zero(counts.unread_keys, Style::Doubtful),
    ]);
    let mut grids = vec![grid];
    if !found.findings.is_empty() {
        let mut grid = Grid::new("Findings", &["what", "expected", "seen", "after", "shard", "node"]).left(1);
        for finding in &found.findings {
            let after = latency(finding.after_start_milliseconds.saturating_mul(1_000_000));
            grid.row([
                Cell::from(finding.key.as_str()),
                Cell::from(format!("{:?}", finding.kind)),
                Cell::from(finding.expected.as_str()),
                Cell::from(finding.seen.as_str()),
                Cell::from(after),
                Cell::from(finding.shard.to_string()),
                Cell::from(finding.node.as_str()),
            ]);
        }
        grids.push(grid);
    }
    grids
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::api::status::FindingResult;
    use redisbench_wire::plan::Verify;
    use redisbench_wire::snapshot::{FindingKind, VerificationCounts};

    use super::super::paint::Paint;
    use super::*;

    #[test]
    fn counts_stand_above_what_is_wrong() {
        let found = VerificationResult {
            mode: Verify::Values,
            counts: VerificationCounts {
                checked: 60_000,
                lost_writes: 306,
                ambiguous_writes: 1,
                read_keys: 20_000,
                ..VerificationCounts::default()
            },
            findings: vec![FindingResult {
                kind: FindingKind::LostWrite,
                key: "rb:00017".into(),
                expected: "2".into(),
                seen: "1".into(),
                node: "10.0.0.3:6379".into(),
                shard: 1,
                after_start_milliseconds: 12_345,
            }],
        };
        let text: String = grids(&found).iter().map(|grid| grid.text(Paint::none())).collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        let lines: Vec<_> = text.lines().map(words).collect();
        assert_eq!(lines[2], "Values 60,000 0 0 306 0 0 1 20,000 0", "{text}");
        assert_eq!(lines[5], "rb:00017 LostWrite 2 1 12.3 s 1 10.0.0.3:6379", "{text}");
    }
}

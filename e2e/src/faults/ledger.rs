//! One row per fault, printed and saved beside the cluster.

use std::fs::OpenOptions;
use std::io::Write as _;

use anyhow::{Context, Result};

use crate::cluster::Cluster;

const HEAD: &str = "\
| fault | promised | observed: scheduled = succeeded + errors + unsent + unknown | verdict | recovered after | objects left | events | test |
| --- | --- | --- | --- | --- | --- | --- | --- |
";

/// A row of the table of faults.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub fault: String,
    /// The expected behaviour of the product.
    pub promised: String,
    /// The outcomes of the requests.
    pub observed: String,
    /// The verdict, or its substitute.
    pub verdict: String,
    /// Recovery time from the end of the fault.
    pub recovered: String,
    /// Remaining objects of the run.
    pub left: String,
    pub events: String,
    pub test: String,
}

impl Ledger {
    /// Prints the row, and appends it to `faults.md` in the directory of `E2E_CACHE`.
    pub fn keep(&self) -> Result<()> {
        let row = self.row();
        println!("{row}");
        let file = Cluster::get().cache().join("faults.md");
        let mut open = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .with_context(|| format!("failed to open {}", file.display()))?;
        // In one write, because other tests append too.
        let head = if open.metadata()?.len() == 0 { HEAD } else { "" };
        open.write_all(format!("{head}{row}\n").as_bytes())?;
        Ok(())
    }

    fn row(&self) -> String {
        let cells = [
            &self.fault,
            &self.promised,
            &self.observed,
            &self.verdict,
            &self.recovered,
            &self.left,
            &self.events,
            &self.test,
        ];
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "/").replace('\n', " ")).collect();
        format!("| {} |", cells.join(" | "))
    }
}

//! One row per fault: printed, and kept beside the cluster.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::cluster::Cluster;

const HEAD: &str = "\
| fault | promised | observed: scheduled = succeeded + errors + unsent + unknown | verdict | recovered after | objects left | events | test |
| --- | --- | --- | --- | --- | --- | --- | --- |
";

/// A row of the table of faults.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// What was done.
    pub fault: String,
    /// What the product promises.
    pub promised: String,
    /// Where the requests went.
    pub observed: String,
    /// The verdict, or what stands in its place.
    pub verdict: String,
    /// From the fault's end.
    pub recovered: String,
    /// Of the run's objects.
    pub left: String,
    /// What was told.
    pub events: String,
    /// The test that saw it.
    pub test: String,
}

impl Ledger {
    /// Prints the row, and appends it to `faults.md` in the folder of `E2E_CACHE`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&self) -> Result<()> {
        let row = self.row();
        println!("{row}");
        let file = Self::file();
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

    fn file() -> PathBuf {
        Cluster::get().cache().join("faults.md")
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

//! The tables of the documents that `examples/seeds` repeats, made again on this machine: their figures beside ours.

mod claims;
mod fred;
mod manifest;
mod page;
mod proxy;
mod rates;

use std::time::Instant;

use clap::Args;

use crate::bench::{Bench, all_cpus};
use crate::machine::{COMMIT, COMPILER, Machine, REDIS_SERVER, Tool};
use crate::page::Part;
pub use page::PAGE;

const HAPROXY: Tool = ("HAProxy", "haproxy -v");

/// Settings of the remade tables.
#[derive(Debug, Args)]
pub struct Options {
    /// Remake only the tables of documents whose name contains TEXT
    #[arg(long = "only", value_name = "TEXT", default_value = "")]
    documents: String,
}

/// A part of the page, and what measures it on the processors it is given.
struct Table {
    part: &'static Part,
    measure: fn(&Bench, &str) -> anyhow::Result<String>,
}

const TABLES: [Table; 3] = [
    Table { part: &page::RATES, measure: rates::tables },
    Table { part: &page::FRED, measure: fred::tables },
    Table { part: &page::PROXY, measure: proxy::tables },
];

/// Remakes the tables, and prints and writes each as soon as it is measured. Those that fail do not stop the others.
pub fn remake(bench: &Bench, options: &Options) -> anyhow::Result<()> {
    let cpus = all_cpus()?;
    let chosen: Vec<Table> =
        TABLES.into_iter().filter(|table| table.part.heading.contains(options.documents.as_str())).collect();
    anyhow::ensure!(!chosen.is_empty(), "--only {:?}: no document's name contains it", options.documents);
    let mut failed = Ok(());
    for table in chosen {
        if let Err(error) = table.remake(bench, &cpus) {
            eprintln!("error: {}: {error:#}", table.part.heading);
            failed = Err(error.context(table.part.heading));
        }
    }
    failed
}

impl Table {
    fn remake(&self, bench: &Bench, cpus: &str) -> anyhow::Result<()> {
        let machine = Machine::look(bench, &[COMMIT, COMPILER, REDIS_SERVER, HAPROXY])?;
        println!("{}: some minutes", self.part.heading);
        let begin = Instant::now();
        let tables = (self.measure)(bench, cpus)?;
        let minutes = begin.elapsed().as_secs_f64() / 60.0;
        println!("{tables}\n{minutes:.1} minutes");
        let measured = machine.measured(bench, self.part.target);
        let text = format!("{measured}- time: {minutes:.0} minutes\n\n{tables}");
        bench.rewrite(|old| PAGE.with(old, self.part, &text))
    }
}

//! The machine and programs of a measurement.

use std::fmt::Write as _;

use redisbench_testkit::evidence;

use crate::bench::Bench;

/// The machine and the programs, when the measurement began.
#[derive(Clone, Debug)]
pub struct Machine {
    date: String,
    /// As a list in Markdown.
    facts: String,
}

/// A program, and the command that prints its version.
pub type Tool = (&'static str, &'static str);

pub const COMMIT: Tool = ("commit", "git describe --always --abbrev=12 --dirty");
pub const COMPILER: Tool = ("compiler", "rustc --version");
pub const REDIS_SERVER: Tool = ("redis-server", "redis-server --version");

impl Machine {
    /// Describes this machine and `tools`, and prints it.
    pub fn look(bench: &Bench, tools: &[Tool]) -> anyhow::Result<Self> {
        let mut facts = evidence::machine();
        for (name, line) in tools {
            let _ = writeln!(facts, "- {name}: {}", version(bench, line)?);
        }
        println!("{facts}");
        Ok(Self { date: evidence::today(), facts })
    }

    /// The beginning of a document by `make target`.
    pub fn header(&self, bench: &Bench, title: &str, target: &str) -> String {
        format!("# {title}\n\n{}\n", self.measured(bench, target))
    }

    /// The date and the machine of a measurement by `make target`.
    pub fn measured(&self, bench: &Bench, target: &str) -> String {
        let length = if (bench.length - 1.0).abs() < f64::EPSILON {
            String::new()
        } else {
            format!(
                " The runs were shortened by the factor {}, so the figures vary more than those of full runs.",
                bench.length
            )
        };
        format!("Measured by `make {target}` on {}.{length}\n\n{}", self.date, self.facts)
    }
}

/// The first line that the command `line` prints.
pub fn version(bench: &Bench, line: &str) -> anyhow::Result<String> {
    Ok(bench.run(line)?.output.lines().next().unwrap_or_default().trim().to_owned())
}

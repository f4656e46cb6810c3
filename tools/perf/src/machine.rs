//! The machine and programs of a measurement.

use std::fmt::Write as _;

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
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let info = read("/proc/cpuinfo");
        let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
        let model = model.trim_start_matches([' ', '\t', ':']);
        let virtual_machine = if info.contains(" hypervisor") { ", a virtual machine" } else { "" };
        let memory = read("/proc/meminfo");
        // The first number is the total, in KiB.
        let gib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0.0) / f64::from(1 << 20);
        let load: Vec<_> = read("/proc/loadavg").split_whitespace().take(3).map(str::to_owned).collect();
        let mut facts = format!(
            "- machine: {processors} x {model}{virtual_machine}, {gib:.0} GiB of memory\n- kernel: {}\n- load before: {}\n",
            read("/proc/sys/kernel/osrelease").trim(),
            load.join(" ")
        );
        for (name, line) in tools {
            let _ = writeln!(facts, "- {name}: {}", version(bench, line)?);
        }
        println!("{facts}");
        Ok(Self { date: jiff::Timestamp::now().to_string().chars().take(10).collect(), facts })
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

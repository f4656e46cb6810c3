//! The machine and programs of a measurement.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;

use crate::clients::Bench;
use crate::process::run;

/// The machine and the programs.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The date.
    pub date: String,
    facts: Vec<(&'static str, String)>,
}

/// A program, and its arguments to print its version.
pub type Tool = (&'static str, &'static [&'static str]);

/// The measured commit.
pub const COMMIT: Tool = ("commit", &["git", "describe", "--always", "--abbrev=12", "--dirty"]);
/// The compiler.
pub const COMPILER: Tool = ("compiler", &["rustc", "--version"]);
/// The server.
pub const REDIS_SERVER: Tool = ("redis-server", &["redis-server", "--version"]);
/// The other client.
pub const REDIS_BENCHMARK: Tool = ("redis-benchmark", &["redis-benchmark", "--version"]);
/// Counts instructions.
pub const CALLGRIND: Tool = ("callgrind", &["valgrind", "--version"]);
/// Counts system calls.
pub const STRACE: Tool = ("strace", &["strace", "--version"]);
/// Samples.
pub const PERF: Tool = ("perf", &["perf", "--version"]);

impl Machine {
    /// Describes this machine and `tools`.
    ///
    /// # Errors
    /// If a required program or processor is missing.
    pub fn look(bench: &Bench, tools: &[Tool]) -> anyhow::Result<Self> {
        let processors = std::thread::available_parallelism().context("failed to count the processors")?.get();
        anyhow::ensure!(
            bench.client_cpu < processors && bench.server_cpu < processors,
            "client on processor {} and server on {}: there are {processors}, from 0",
            bench.client_cpu,
            bench.server_cpu
        );
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
        let model = model.trim_start_matches([' ', '\t', ':']);
        let virtual_machine = if info.contains(" hypervisor") { ", a virtual machine" } else { "" };
        let memory = read("/proc/meminfo");
        let kib =
            memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
        let gib = kib.unwrap_or(0.0) / f64::from(1 << 20);
        let load = read("/proc/loadavg");
        let mut facts = vec![
            ("machine", format!("{processors} x {model}{virtual_machine}, {gib:.0} GiB of memory")),
            ("kernel", read("/proc/sys/kernel/osrelease").trim().to_owned()),
            ("load before", load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")),
        ];
        for (name, words) in tools {
            facts.push((name, version(words)?));
        }
        Ok(Self { date: jiff::Timestamp::now().to_string().chars().take(10).collect(), facts })
    }

    /// As a list in Markdown.
    pub fn list(&self) -> String {
        self.facts.iter().map(|(name, fact)| format!("- {name}: {fact}\n")).collect()
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts.iter().try_for_each(|(name, fact)| writeln!(formatter, "{name}: {fact}"))
    }
}

/// The first line of a program's version output.
fn version(words: &[&str]) -> anyhow::Result<String> {
    let ended = run(words, "0", Duration::from_secs(10))?;
    Ok(ended.output.lines().next().unwrap_or_default().trim().to_owned())
}

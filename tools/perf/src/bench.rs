//! The settings of all measurements, and programs that run under them.

use std::env;
use std::io::ErrorKind;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;

/// Seconds after which a program is killed. Longer than any run on a slow machine.
const LIMIT: u32 = 300;

/// Settings of all measurements.
#[derive(Clone, Debug, Args)]
pub struct Bench {
    /// Number of pairs of runs per ratio, and of runs per figure
    #[arg(long, value_name = "N", default_value_t = 5, global = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: u32,
    /// Length of the runs: 1 is 2 to 5 s each; 0.02 is enough for a smoke test
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, global = true, value_parser = length)]
    pub length: f64,
    /// Write the results to this file
    #[arg(long, value_name = "FILE", global = true)]
    write: Option<PathBuf>,
    /// Processor for the clients
    #[arg(long, value_name = "CPU", default_value = "0", global = true)]
    pub client_cpu: String,
    /// Processor for the servers
    #[arg(long, value_name = "CPU", default_value = "1", global = true)]
    pub server_cpu: String,
    /// Directory with redisbench-loadgen, redisbench-floor, redisbench-drive and redisbench-slices [default: this program's directory]
    #[arg(long, value_name = "DIR", global = true)]
    programs: Option<PathBuf>,
}

fn length(text: &str) -> Result<f64, String> {
    let length = text.parse().ok().filter(|length: &f64| length.is_finite() && *length > 0.0);
    length.ok_or_else(|| "must be a number above 0".to_owned())
}

/// A program that has exited successfully.
#[derive(Debug)]
pub struct Ended {
    /// User and system time of the whole process, its threads and children included.
    pub cpu: Duration,
    pub wall: Duration,
    /// Its standard output, followed by its standard error.
    pub output: String,
}

impl Bench {
    /// `base` requests, scaled by the length of this measurement.
    pub fn requests(&self, base: u64) -> u64 {
        self.scaled(base).max(1000)
    }

    /// `base` scaled by the length of this measurement.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be above 0")]
    pub fn scaled(&self, base: u64) -> u64 {
        (base as f64 * self.length) as u64
    }

    /// A command of the words of `line`, as a shell splits them, on the processors `cpus` (in taskset's format). Our own
    /// programs need no path.
    pub fn command(&self, line: &str, cpus: &str) -> anyhow::Result<Command> {
        let own = env::current_exe().context("failed to find this program")?;
        let programs = self.programs.as_deref().or(own.parent()).unwrap_or(Path::new("."));
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(iter::once(programs.to_owned()).chain(env::split_paths(&others)));
        let mut command = Command::new("taskset");
        command.args(["-c", cpus]).args(shlex::split(line).with_context(|| format!("open quote in {line}"))?);
        command.env("PATH", path.context("failed to add --programs to PATH")?).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs the command `line` on the clients' processor until it exits. No other child may end meanwhile.
    pub fn run(&self, line: &str) -> anyhow::Result<Ended> {
        let limited = format!("timeout --foreground --signal=KILL {LIMIT} {line}");
        let (begin, before) = (Instant::now(), cpu_of_children());
        let output =
            self.command(&limited, &self.client_cpu)?.output().with_context(|| format!("failed to run {line}"))?;
        let (wall, cpu) = (begin.elapsed(), cpu_of_children().saturating_sub(before));
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        anyhow::ensure!(
            output.status.success(),
            "{} (137 is a timeout of {LIMIT} s) of: {line}\n{text}",
            output.status
        );
        Ok(Ended { cpu, wall, output: text })
    }

    /// Writes the document if `--write` was given.
    pub fn write(&self, document: impl FnOnce() -> String) -> anyhow::Result<()> {
        let Some(path) = &self.write else { return Ok(()) };
        std::fs::write(path, document()).with_context(|| format!("failed to write {}", path.display()))?;
        println!("written to {}", path.display());
        Ok(())
    }

    /// Like [`Self::write`], for a document of several measurements: `change` gets its old text, which is empty if there is none.
    pub fn rewrite(&self, change: impl FnOnce(&str) -> String) -> anyhow::Result<()> {
        let Some(path) = &self.write else { return Ok(()) };
        let old = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("failed to read {}", path.display()))?,
        };
        self.write(|| change(&old))
    }
}

/// The processors that this process may use, in taskset's format.
pub fn all_cpus() -> anyhow::Result<String> {
    let status = std::fs::read_to_string("/proc/self/status").context("failed to read the allowed processors")?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(line.context("the kernel does not report the allowed processors")?.trim().to_owned())
}

/// User and system time of all children that have ended, and of theirs.
fn cpu_of_children() -> Duration {
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for writing. The call cannot fail for this constant.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let [seconds, microseconds] =
        [usage.ru_utime.tv_sec + usage.ru_stime.tv_sec, usage.ru_utime.tv_usec + usage.ru_stime.tv_usec];
    Duration::from_secs(seconds.unsigned_abs()) + Duration::from_micros(microseconds.unsigned_abs())
}

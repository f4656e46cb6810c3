//! The operator under test: a process, its cost, and its calls to the API server.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use redisbench_testkit::processes::Running;
use serde_json::Value;

/// Ticks per second of the times in `/proc/PID/stat`, on every Linux of today.
const TICKS: f64 = 100.0;

pub struct Operator {
    command: Command,
    process: Running,
    audit: PathBuf,
    /// Processor time and peak memory of the processes that were killed.
    before: (f64, u64),
    /// Seconds without an operator that held the Lease, once it was killed.
    pub seconds_without: Option<f64>,
}

/// The operator's calls to the API server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    pub number: u64,
    /// Bytes of the objects that it wrote, as JSON.
    pub written: u64,
}

impl Operator {
    /// Starts `program` with `kubeconfig` against the control plane whose files are in `plane`. It asks for `snapshots` per second.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &Path, plane: &Path, kubeconfig: &Path, snapshots: u32) -> Result<Self> {
        let key = plane.join("master-key");
        fs::write(&key, [7; 32]).context("failed to write the master key")?;
        let log = File::create(plane.join("logs/operator.log")).context("failed to create the operator's log")?;
        let mut command = Command::new(program);
        command
            .args(["run", "--namespace", "redisbench-system", "--loadgen-image", "loadgen:scale"])
            .args(["--metrics-address", "127.0.0.1:8080", "--pod-name", "operator", "--master-key-file"])
            .arg(key)
            .args(["--snapshots-per-second", &snapshots.to_string()])
            .env("KUBECONFIG", kubeconfig)
            // As in the chart's Deployment, so that the measured memory is that of an installed operator.
            .env("MALLOC_ARENA_MAX", "2")
            .stdout(log.try_clone().context("failed to share the operator's log")?)
            .stderr(Stdio::from(log));
        let child = command.spawn().with_context(|| format!("failed to start {}", program.display()))?;
        let process = Running(child);
        Ok(Self { command, process, audit: plane.join("logs/audit.log"), before: (0.0, 0), seconds_without: None })
    }

    /// Kills the process with SIGKILL and starts it again at once, under the same name, as a kubelet does with a container.
    ///
    /// # Errors
    /// If it had ended, or cannot be started again.
    pub fn restart(&mut self) -> Result<()> {
        self.check()?;
        self.before = (self.cpu_seconds()?, self.peak_memory()?);
        self.process.0.kill().context("failed to kill the operator")?;
        self.process.0.wait().context("failed to wait for the operator")?;
        self.process.0 = self.command.spawn().context("failed to start the operator again")?;
        Ok(())
    }

    /// # Errors
    /// If it has exited.
    pub fn check(&mut self) -> Result<()> {
        match self.process.0.try_wait().context("failed to wait for the operator")? {
            Some(status) => bail!("the operator ended: {status}"),
            None => Ok(()),
        }
    }

    fn file(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.process.0.id());
        fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))
    }

    /// Processor time so far, in seconds, with that of the processes that were killed.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let stat = self.file("stat")?;
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok());
        let (user, system) = ticks(11).zip(ticks(12)).context("/proc/PID/stat has no processor times")?;
        Ok(self.before.0 + (user + system) / TICKS)
    }

    /// The highest resident memory of a process so far, in bytes.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn peak_memory(&self) -> Result<u64> {
        let status = self.file("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        let peak = kib.context("/proc/PID/status has no VmHWM")? << 10;
        Ok(peak.max(self.before.1))
    }

    /// The operator's calls so far, from the API server's audit log. Watches count when they end.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn calls(&self) -> Result<Calls> {
        let log = File::open(&self.audit).context("failed to open the audit log")?;
        let mut calls = Calls::default();
        for line in BufReader::new(log).lines() {
            let line = line.context("failed to read the audit log")?;
            // The API server may be writing the last line.
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            calls.number += 1;
            if let Some(object) = event.get("requestObject") {
                calls.written += object.to_string().len() as u64;
            }
        }
        Ok(calls)
    }
}

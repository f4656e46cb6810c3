//! Runs `kubectl` and `helm` with a timeout. Errors include their output.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redisbench_testkit::processes::{SIGINT, signal};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::cluster::{Cluster, repository};

const LIMIT: Duration = Duration::from_secs(180);

/// Runs `kubectl` with the arguments; returns its standard output.
pub async fn kubectl<S: AsRef<OsStr>>(arguments: &[S]) -> Result<String> {
    run("kubectl", arguments, "").await
}

/// Like [`kubectl`], with standard input.
pub async fn kubectl_with_input<S: AsRef<OsStr>>(arguments: &[S], input: &str) -> Result<String> {
    run("kubectl", arguments, input).await
}

/// Runs `helm` with the arguments; returns its standard output.
pub async fn helm<S: AsRef<OsStr>>(arguments: &[S]) -> Result<String> {
    run("helm", arguments, "").await
}

async fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S], input: &str) -> Result<String> {
    let mut command = Command::new(Cluster::get().program(program));
    command.args(arguments);
    let mut running = Running::start(command)?;
    running.write(input).await?;
    let line = running.line.clone();
    let ended = running.ended().await?;
    ensure!(ended.code == 0, "`{line}` failed: {}", ended.errors.trim());
    Ok(ended.output)
}

#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Its command line, for errors.
    line: String,
}

#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub output: String,
    pub errors: String,
}

impl Running {
    /// Starts `command` on the cluster. Killed on drop.
    pub fn start(mut command: Command) -> Result<Self> {
        let words = std::iter::once(command.as_std().get_program()).chain(command.as_std().get_args());
        let line = words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
        let child = command
            .env("KUBECONFIG", &Cluster::get().kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {line}"))?;
        Ok(Self { child, line })
    }

    /// Writes its whole standard input.
    pub async fn write(&mut self, input: &str) -> Result<()> {
        let mut stdin = self.child.stdin.take().context("no standard input")?;
        stdin.write_all(input.as_bytes()).await.with_context(|| format!("failed to write to {}", self.line))
    }

    /// Starts `kubectl redisbench` with the arguments and standard input. `kubectl` finds the built program as its plugin.
    pub async fn plugin(arguments: &[&str], input: &str) -> Result<Self> {
        let mut command = Command::new(Cluster::get().program("kubectl"));
        command.arg("redisbench").args(arguments).env("PATH", path_with_plugin()?);
        let mut running = Self::start(command)?;
        running.write(input).await?;
        Ok(running)
    }

    /// Sends the signal of Ctrl-C. By then `kubectl` has replaced itself by its plugin.
    pub fn interrupt(&self) -> Result<()> {
        let pid = self.child.id().with_context(|| format!("{} has exited", self.line))?;
        ensure!(signal(pid.cast_signed(), SIGINT), "failed to interrupt {}", self.line);
        Ok(())
    }

    pub async fn ended(self) -> Result<Ended> {
        let output = tokio::time::timeout(LIMIT, self.child.wait_with_output())
            .await
            .with_context(|| format!("{} took more than {LIMIT:?}", self.line))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ended {
            code: output.status.code().with_context(|| format!("{} was killed", self.line))?,
            output: text(&output.stdout),
            errors: text(&output.stderr),
        })
    }
}

/// `PATH` with the built plugin.
pub fn path_with_plugin() -> Result<OsString> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from);
    let built = env::var_os("BIN_DIR").map_or_else(|| target.join("release"), PathBuf::from);
    ensure!(
        built.join("kubectl-redisbench").is_file(),
        "no kubectl-redisbench in {}: `make test-e2e` builds it first",
        built.display()
    );
    let path = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(std::iter::once(built).chain(env::split_paths(&path)))?)
}

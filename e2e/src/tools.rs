//! Runs `kubectl` and `helm` with a timeout. Errors include their output.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::cluster::{Cluster, repository};

const LIMIT: Duration = Duration::from_secs(180);

/// Runs `kubectl` with the arguments; returns its standard output.
pub async fn kubectl<S: AsRef<OsStr>>(arguments: &[S]) -> Result<String> {
    run("kubectl", arguments, None).await
}

/// Like [`kubectl`], with standard input.
pub async fn kubectl_with_input<S: AsRef<OsStr>>(arguments: &[S], input: &str) -> Result<String> {
    run("kubectl", arguments, Some(input)).await
}

/// Runs `helm` with the arguments; returns its standard output.
pub async fn helm<S: AsRef<OsStr>>(arguments: &[S]) -> Result<String> {
    run("helm", arguments, None).await
}

async fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S], input: Option<&str>) -> Result<String> {
    let shown = arguments.iter().map(|a| a.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ");
    let cluster = Cluster::get();
    let mut child = Command::new(cluster.program(program))
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig())
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("failed to start {program}"))?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        stdin.write_all(input.as_bytes()).await.with_context(|| format!("failed to write to {program}"))?;
    }
    let output = tokio::time::timeout(LIMIT, child.wait_with_output())
        .await
        .with_context(|| format!("`{program} {shown}` took more than {LIMIT:?}"))??;
    if !output.status.success() {
        bail!("`{program} {shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A running `kubectl redisbench ...`: `kubectl` finds the built program as its plugin.
#[derive(Debug)]
pub struct Plugin(Child);

/// The outcome of a [`Plugin`].
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub output: String,
    pub errors: String,
}

impl Plugin {
    /// Starts it with the arguments and standard input.
    pub async fn start(arguments: &[&str], input: &str) -> Result<Self> {
        let cluster = Cluster::get();
        let mut child = Command::new(cluster.program("kubectl"))
            .arg("redisbench")
            .args(arguments)
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("PATH", path_with_plugin()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("failed to start kubectl")?;
        let mut stdin = child.stdin.take().context("no standard input")?;
        stdin.write_all(input.as_bytes()).await.context("failed to write to kubectl redisbench")?;
        Ok(Self(child))
    }

    /// Sends the signal of Ctrl-C. By then `kubectl` has replaced itself by its plugin.
    pub async fn interrupt(&self) -> Result<()> {
        let pid = self.0.id().context("kubectl redisbench has exited")?.to_string();
        let status = Command::new("kill").args(["-INT", &pid]).status().await?;
        ensure!(status.success(), "failed to interrupt kubectl redisbench");
        Ok(())
    }

    /// Waits for its end.
    pub async fn ended(self) -> Result<Ended> {
        let output = tokio::time::timeout(LIMIT, self.0.wait_with_output())
            .await
            .with_context(|| format!("kubectl redisbench took more than {LIMIT:?}"))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ended {
            code: output.status.code().context("kubectl redisbench was killed")?,
            output: text(&output.stdout),
            errors: text(&output.stderr),
        })
    }
}

fn path_with_plugin() -> Result<OsString> {
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

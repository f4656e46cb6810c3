//! Running `kubectl` and `helm` with a time limit, and what they said in every error.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::cluster::Cluster;

const LIMIT: Duration = Duration::from_secs(180);

/// Runs `kubectl` with the arguments; returns its standard output.
///
/// # Errors
/// If it cannot be started, fails, or takes longer than three minutes.
pub async fn kubectl<S: AsRef<OsStr>>(arguments: &[S]) -> Result<String> {
    run("kubectl", arguments, None).await
}

/// Like [`kubectl`], with standard input.
///
/// # Errors
/// As [`kubectl`].
pub async fn kubectl_with_input<S: AsRef<OsStr>>(arguments: &[S], input: &str) -> Result<String> {
    run("kubectl", arguments, Some(input)).await
}

/// Runs `helm` with the arguments; returns its standard output.
///
/// # Errors
/// As [`kubectl`].
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

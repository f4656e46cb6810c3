//! A null server as a child process.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::child::{Child, describe};

/// Timeout for the start; it listens at once.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
const STOP: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum NullServerStartError {
    #[error("failed to create a directory for the null server")]
    Directory(#[source] io::Error),
    #[error("failed to start the null server: {}", .0.display())]
    Start(PathBuf, #[source] io::Error),
    #[error("the null server exited with {status}; its output:\n{output}")]
    Ended { status: String, output: String },
    #[error("timed out after {} s waiting for the null server to listen", PATIENCE.as_secs())]
    Patience,
}

#[derive(Clone, Copy, Debug)]
pub struct NullServerOptions {
    /// Primaries of a cluster; 0 is a standalone server.
    pub nodes: u16,
    /// The length of the value in replies to GET.
    pub value_bytes: u32,
    pub threads: usize,
}

/// A running null server. Ends on drop.
#[derive(Debug)]
pub struct NullServerProcess {
    process: Child,
    addresses: Vec<SocketAddr>,
    _directory: TempDir,
}

impl NullServerProcess {
    pub async fn start(program: &Path, options: NullServerOptions) -> Result<Self, NullServerStartError> {
        let directory = tempfile::Builder::new().prefix("redisbench-null-").tempdir();
        let directory = directory.map_err(NullServerStartError::Directory)?;
        let file = directory.path().join("addresses");
        let arguments = [
            ["--listen", "127.0.0.1:0"],
            ["--port-file", &file.to_string_lossy()],
            ["--value-bytes", &options.value_bytes.min(1 << 20).to_string()],
            ["--threads", &options.threads.to_string()],
            ["--cluster", &options.nodes.to_string()],
        ];
        let words: Vec<String> =
            std::iter::once("null-server").chain(arguments.into_iter().flatten()).map(str::to_owned).collect();
        let start = Child::start(program, &words, b"").await;
        let mut process = start.map_err(|error| NullServerStartError::Start(program.to_owned(), error))?;
        let listening = async {
            loop {
                if let Ok(text) = tokio::fs::read_to_string(&file).await {
                    return text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>();
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let addresses = tokio::select! {
            addresses = tokio::time::timeout(PATIENCE, listening) => addresses.map_err(|_| NullServerStartError::Patience)?,
            ended = process.wait() => {
                let status = ended.map_or_else(|error| error.to_string(), describe);
                return Err(NullServerStartError::Ended { status, output: process.last_words().await });
            }
        };
        Ok(Self { process, addresses, _directory: directory })
    }

    /// `host:port` of each node.
    pub fn endpoints(&self) -> Vec<String> {
        self.addresses.iter().map(ToString::to_string).collect()
    }

    /// CPU time of its threads; 0 if the kernel does not report it.
    pub fn cpu(&self) -> Duration {
        let tasks = format!("/proc/{}/task", self.process.id().unwrap_or_default());
        let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
        let nanoseconds = tasks.filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }

    pub async fn stop(mut self) {
        self.process.stop(STOP).await;
    }
}

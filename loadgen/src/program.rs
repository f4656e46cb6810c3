//! The subcommand that runs a shard: its options and its log. Each program names the drivers that it has.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use redisbench_wire::{LogFormat, every_interface, exit, limits};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};
use tracing_subscriber::EnvFilter;

use crate::control::driver::Spawn;
use crate::control::{Credential, CredentialError, Identity, Mounts, ProcessLimits, Settings, run};
use crate::engine::available_workers;

/// The options of the subcommand `shard`.
#[derive(Debug, Args)]
pub struct ShardArguments {
    /// The run's ID
    #[arg(long, env = "REDISBENCH_RUN", value_name = "ID")]
    run: String,
    /// This shard's index, from 0
    #[arg(long, env = "JOB_COMPLETION_INDEX", value_name = "N")]
    index: u32,
    /// ID of this process, such as the pod's UID
    #[arg(long, env = "REDISBENCH_INCARNATION", value_name = "UID")]
    incarnation: String,
    /// Name of the machine, such as the Kubernetes node
    #[arg(long, env = "REDISBENCH_HOST", value_name = "NAME", default_value = "")]
    host: String,
    /// Address of the control API; port 0 uses a free port [default: port 7379 on all IPv6 and IPv4 addresses]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Directory with the run's token, tls.crt and tls.key
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/redisbench/identity")]
    identity: PathBuf,
    /// Directory with a folder for each target, 0 for the first: username (optional), password, ca.crt, tls.crt and
    /// tls.key, and a folder `sentinel` with those of its sentinels; only those that the plan requires are read
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/redisbench/targets")]
    targets: PathBuf,
    /// Directory with the file values, whose lines are values; read only if the plan requires it
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/redisbench/data")]
    data: PathBuf,
    /// Maximum number of worker threads [default: the processors allowed by the cgroup's limit and the affinity]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Exit after this time without a plan and without a call
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    idle_limit: u32,
    /// After SIGTERM, stop the load and keep what was measured for this time; 0 exits at once
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    stay: u32,
    /// Write the listening address to this file once the port is open
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,
    /// Format of the log on stderr
    #[arg(long, default_value = "text", value_parser = log_format())]
    log_format: LogFormat,
}

fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new(LogFormat::NAMES).try_map(|name| LogFormat::named(&name).ok_or("unknown log format"))
}

const DEFAULT_PORT: u16 = 7379;

impl ShardArguments {
    /// Runs a shard with the drivers of `spawn` until it ends, and returns its exit code.
    pub fn run(self, spawn: Spawn) -> ExitCode {
        log_to_stderr(self.log_format);
        match block_on(self.serve(spawn)) {
            Ok(code) => ExitCode::from(code),
            Err(failure) => {
                error!(error = format!("{failure:#}"), "failed to set up the shard");
                ExitCode::from(if failure.is::<CredentialError>() { exit::REFUSED } else { exit::INTERNAL })
            }
        }
    }

    async fn serve(self, spawn: Spawn) -> anyhow::Result<u8> {
        // Install the handlers before publishing the address, so that a client that waits for the address can signal.
        let terminated = terminated()?;
        let credential = Credential::read(&self.identity).context("failed to read the run's credential")?;
        let listener = listen(self.listen).await?;
        let address = listener.local_addr().context("failed to read the listening address")?;
        if let Some(path) = &self.port_file {
            write_addresses(path, &[address]).with_context(|| format!("failed to write {}", path.display()))?;
        }
        let seconds = |count: u32| Duration::from_secs(count.into());
        let workers = self.workers.unwrap_or_else(available_workers).clamp(1, limits::WORKERS);
        info!(%address, run = self.run, shard = self.index, workers, "waiting for a plan");
        let settings = Settings {
            identity: Identity { run: self.run, index: self.index, incarnation: self.incarnation, host: self.host },
            mounts: Mounts { targets: self.targets },
            data: self.data,
            workers,
            limits: ProcessLimits { idle: seconds(self.idle_limit), leaving: seconds(self.stay) },
            spawn,
        };
        Ok(run(settings, credential, listener, terminated).await.code())
    }
}

fn log_to_stderr(format: LogFormat) {
    let filter = EnvFilter::try_from_env("REDISBENCH_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}

/// Runs on this thread alone: the cold side must not compete with the engine's workers.
///
/// # Errors
/// Those of `work`, or of starting the runtime.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("failed to start the runtime")?.block_on(work)
}

/// Resolves on SIGTERM or SIGINT.
///
/// # Errors
/// Fails if the handlers cannot be installed.
pub fn terminated() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Listens on the given address, or on all interfaces.
async fn listen(address: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    let addresses = address.map_or_else(|| every_interface(DEFAULT_PORT).to_vec(), |address| vec![address]);
    let tried = || addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    TcpListener::bind(&addresses[..]).await.with_context(|| format!("failed to listen on {}", tried()))
}

/// Writes `addresses`, one per line. Renames a complete file into place, because another process may be polling for it.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_addresses(path: &Path, addresses: &[SocketAddr]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    std::fs::write(&part, addresses.iter().map(|address| format!("{address}\n")).collect::<String>())?;
    std::fs::rename(&part, path)
}

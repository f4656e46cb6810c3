//! The command line of the load generator. The library implements the shard.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use redisbench_loadgen::control::{
    Credential, CredentialError, Identity, Mounts, Settings, exit, raise_open_files, run,
};
use redisbench_loadgen::engine::available_workers;
use redisbench_loadgen::null_server::{NullServer, NullServerConfig};
use redisbench_wire::{every_interface, limits};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};
use tracing_subscriber::EnvFilter;

/// The load generator of redisbench.
#[derive(Debug, Parser)]
#[command(name = "redisbench-loadgen", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one shard of a benchmark: wait for a plan, prepare, start on request, and keep the result until it is
    /// collected.
    ///
    /// Exit codes: 0: released. 64: bad plan, credential or target. 70: internal error. 75: stopped before the result
    /// was collected.
    Shard(Box<Shard>),
    /// Serve a Redis that does no work: it replies to every command immediately with a reply of the right type, and
    /// stores no keys. Use it to measure the limits of a load generator. Exits on SIGTERM and SIGINT.
    NullServer(Null),
    /// Print the version.
    Version,
}

#[derive(Debug, Args)]
struct Shard {
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
    /// Directory with the target's username (optional) and password; read only if the plan requires authentication
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/redisbench/target")]
    target_credentials: PathBuf,
    /// Directory with ca.crt, tls.crt and tls.key for TLS to the target; only those that the plan requires are read
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/redisbench/target-tls")]
    target_tls: PathBuf,
    /// Directory with the sentinels' own username (optional), password, ca.crt, tls.crt and tls.key; only those that the
    /// plan requires are read
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/redisbench/sentinel")]
    sentinel_secrets: PathBuf,
    /// Maximum number of worker threads [default: the processors allowed by the cgroup's limit and the affinity]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Write the listening address to this file once the port is open
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,
    /// Format of the log on stderr
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
}

#[derive(Debug, Args)]
struct Null {
    /// Listening address; port 0 uses a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7378")]
    listen: SocketAddr,
    /// Size of the value in replies to GET and similar commands
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    value_bytes: u32,
    /// Serving threads; connections are distributed round-robin
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Act as a Redis Cluster with N primaries, on consecutive ports from --listen, or on free ports if it is 0
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=64))]
    cluster: u16,
    /// Write the listening addresses to this file, one per line, once the ports are open
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

const DEFAULT_PORT: u16 = 7379;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Version => match writeln!(io::stdout(), "redisbench-loadgen {}", env!("CARGO_PKG_VERSION")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Command::NullServer(arguments) => match block_on(null_server(&arguments)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("error: {failure:#}");
                ExitCode::FAILURE
            }
        },
        Command::Shard(arguments) => {
            log_to_stderr(arguments.log_format);
            match block_on(serve(*arguments)) {
                Ok(code) => ExitCode::from(code),
                Err(failure) => {
                    error!(error = format!("{failure:#}"), "failed to set up the shard");
                    ExitCode::from(if failure.is::<CredentialError>() { exit::REFUSED } else { exit::INTERNAL })
                }
            }
        }
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
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("failed to start the runtime")?.block_on(work)
}

/// Serves until a signal to terminate. This thread only waits.
async fn null_server(arguments: &Null) -> anyhow::Result<()> {
    let terminated = terminated()?;
    raise_open_files().context("failed to raise the limit of open files")?;
    let server = NullServer::start(&NullServerConfig {
        listen: arguments.listen,
        cluster_nodes: arguments.cluster,
        value_bytes: arguments.value_bytes as usize,
        threads: arguments.threads.into(),
    })?;
    if let Some(path) = &arguments.port_file {
        write_addresses(path, server.addresses()).with_context(|| format!("failed to write {}", path.display()))?;
    }
    for address in server.addresses() {
        writeln!(io::stdout(), "serving on {address}").context("failed to write to standard output")?;
    }
    terminated.await;
    Ok(())
}

/// Resolves on SIGTERM or SIGINT.
fn terminated() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn serve(arguments: Shard) -> anyhow::Result<u8> {
    // Install the handlers before publishing the address, so that a client that waits for the address can signal.
    let terminated = terminated()?;
    let credential = Credential::read(&arguments.identity).context("failed to read the run's credential")?;
    let listener = listen(arguments.listen).await?;
    let address = listener.local_addr().context("failed to read the listening address")?;
    if let Some(path) = &arguments.port_file {
        write_addresses(path, &[address]).with_context(|| format!("failed to write {}", path.display()))?;
    }
    let workers = arguments.workers.unwrap_or_else(available_workers).clamp(1, limits::WORKERS);
    info!(%address, run = arguments.run, shard = arguments.index, workers, "waiting for a plan");
    let settings = Settings {
        identity: Identity {
            run: arguments.run,
            index: arguments.index,
            incarnation: arguments.incarnation,
            host: arguments.host,
        },
        mounts: Mounts {
            credentials: arguments.target_credentials,
            tls: arguments.target_tls,
            sentinels: arguments.sentinel_secrets,
        },
        workers,
    };
    Ok(run(settings, credential, listener, terminated).await.code())
}

/// Listens on the given address, or on all interfaces.
async fn listen(address: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    let addresses = address.map_or_else(|| every_interface(DEFAULT_PORT).to_vec(), |address| vec![address]);
    let tried = || addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    TcpListener::bind(&addresses[..]).await.with_context(|| format!("failed to listen on {}", tried()))
}

/// Renames a complete file into place, because another process may be polling for it.
fn write_addresses(path: &Path, addresses: &[SocketAddr]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    std::fs::write(&part, addresses.iter().map(|address| format!("{address}\n")).collect::<String>())?;
    std::fs::rename(&part, path)
}

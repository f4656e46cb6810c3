//! The command line of the load generator. The library implements the shard.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use redisbench_loadgen::control::driver::{self, Spawn};
use redisbench_loadgen::control::raise_open_files;
use redisbench_loadgen::null_server::{NullServer, NullServerConfig};
use redisbench_loadgen::program::{ShardArguments, block_on, terminated, write_addresses};

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
    /// was collected. 76: stopped by a limit after a start.
    Shard(Box<ShardArguments>),
    /// Serve a Redis that does no work: it replies to every command immediately with a reply of the right type, and
    /// stores no keys. Use it to measure the limits of a load generator. Exits on SIGTERM and SIGINT.
    NullServer(Null),
    /// Print the version.
    Version,
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
        Command::Shard(arguments) => arguments.run(Spawn::new(driver::engine)),
    }
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

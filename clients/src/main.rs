//! The load generator with client libraries: a shard like that of `redisbench-loadgen`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use redisbench_clients::conformance::ConformanceArguments;
use redisbench_clients::drivers::{Declared, Drivers, Patience};
use redisbench_loadgen::control::driver::Spawn;
use redisbench_loadgen::program::ShardArguments;
use redisbench_wire::exit;

/// The load generator of redisbench for client libraries.
#[derive(Debug, Parser)]
#[command(name = "redisbench-clients", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one shard of a benchmark, through the client that its plan names.
    ///
    /// Other options and exit codes are those of `redisbench-loadgen shard`.
    Shard(Box<ClientShardArguments>),
    /// Check that a driver keeps the contract of docs/drivers.md.
    ///
    /// Runs its command against a redis-server of its own.
    Conformance(ConformanceArguments),
    /// Print the version.
    Version,
}

#[derive(Debug, Args)]
struct ClientShardArguments {
    #[command(flatten)]
    shard: ShardArguments,
    /// A driver that a plan may name; repeatable. The shard starts COMMAND, a program with its arguments, when a trial needs
    /// it; without COMMAND the driver is started elsewhere
    #[arg(long, value_name = "NAME[=COMMAND]")]
    driver: Vec<Declared>,
    /// Directory in which each driver has a socket, NAME.sock, and its files of credentials
    #[arg(long, value_name = "DIRECTORY", default_value = "/run/redisbench")]
    sockets: PathBuf,
}

impl ClientShardArguments {
    fn run(self) -> ExitCode {
        let Self { shard, driver, sockets } = self;
        match Drivers::listen(&sockets, driver, Patience::default()) {
            Ok(drivers) => {
                shard.run(Spawn::new(move |config, events| redisbench_clients::spawn(config, &drivers, events)))
            }
            Err(error) => {
                let _ = writeln!(io::stderr(), "failed to listen for drivers in {}: {error}", sockets.display());
                ExitCode::from(exit::INTERNAL)
            }
        }
    }
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Shard(arguments) => arguments.run(),
        Command::Conformance(arguments) => arguments.run(),
        Command::Version => match writeln!(io::stdout(), "redisbench-clients {}", env!("CARGO_PKG_VERSION")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
    }
}

//! The load generator with client libraries: a shard like that of `redisbench-loadgen`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use redisbench_clients::conformance::ConformanceArguments;
use redisbench_loadgen::control::driver::Spawn;
use redisbench_loadgen::program::ShardArguments;

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
    /// Options and exit codes are those of `redisbench-loadgen shard`.
    Shard(Box<ShardArguments>),
    /// Check that a driver keeps the contract of docs/drivers.md.
    ///
    /// Runs its command against a redis-server of its own.
    Conformance(ConformanceArguments),
    /// Print the version.
    Version,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Shard(arguments) => arguments.run(Spawn::new(redisbench_clients::spawn)),
        Command::Conformance(arguments) => arguments.run(),
        Command::Version => match writeln!(io::stdout(), "redisbench-clients {}", env!("CARGO_PKG_VERSION")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
    }
}

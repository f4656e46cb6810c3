//! The command line: all commands.

use clap::{Parser, Subcommand};

use crate::arguments::{LocalArguments, RunArguments, ValidateArguments};
use crate::export::ExportArguments;

/// Load-test Redis: run a RedisBenchmark manifest locally or on a cluster, and print its merged result.
#[derive(Debug, Parser)]
#[command(name = "kubectl-redisbench", bin_name = "kubectl redisbench", version, propagate_version = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a manifest locally, without a cluster, with child processes as shards
    ///
    /// Exit codes: 0: completed and the verdict is not Invalid. 1: Invalid, Failed or Aborted. 2: invalid manifest or usage. 3: `verify`
    /// found lost data or wrong replies. 4: a threshold failed, or a search missed its objective. 5: a threshold could not be judged.
    ///
    /// Ctrl-C aborts the benchmark and prints the partial result. A second Ctrl-C exits immediately.
    Local(LocalArguments),
    /// Apply a manifest to the cluster, wait until the benchmark finishes, and print the result
    ///
    /// Exit codes as for local. Ctrl-C aborts the benchmark after a confirmation.
    Run(RunArguments),
    /// Convert a finished benchmark's result into a format that other tools read
    ///
    /// The result is read from the cluster by NAME, or from files: an object saved with `-o json` or `-o yaml`, full results of
    /// `local --output-dir`, or that directory. Unknown numbers, such as quantiles of too few requests, stay empty.
    ///
    /// Exit codes: 0: written. 1: the cluster could not be read, or the file not be written. 2: not a finished result, or it lacks what the
    /// format needs.
    Export(ExportArguments),
    /// Check manifests without running them, and print all errors
    ///
    /// Exit codes: 0: all are valid. 2: at least one is invalid.
    Validate(ValidateArguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}

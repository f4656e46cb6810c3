//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Load-test Redis: run a RedisBenchmark manifest here or on a cluster, and read its merged result.
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
    /// Run a manifest on this machine, without a cluster: shards are child processes
    ///
    /// Exit code 0: complete, and the verdict is not Invalid. 1: Invalid, Failed or Aborted. 2: bad manifest or usage. 3: `verify` found lost
    /// data or wrong answers. 4: a threshold failed, or a search missed its objective. 5: a threshold was not judged.
    ///
    /// Ctrl-C aborts the benchmark and prints what was measured; a second one stops at once.
    Local(LocalArguments),
    /// Apply a manifest to the cluster, follow it to its end and print the result
    ///
    /// Exit codes as for local. Ctrl-C asks before it aborts the benchmark.
    Run(RunArguments),
    /// Say what is wrong with manifests, without running them
    ///
    /// Exit code 0: all are good. 2: at least one is not.
    Validate(ValidateArguments),
}

/// Arguments of `local`.
#[derive(Debug, Args)]
pub struct LocalArguments {
    /// The manifest; - is standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Start throwaway servers in place of the manifest's targets: a redis-server, a cluster of three primaries, or a server
    /// with sentinels, with the replicas, databases, users and TLS that the manifest needs
    #[arg(long)]
    pub with_redis: bool,
    /// Run the load against a server that does no work, for 10 s at most, and say how much this machine's load
    /// generator can do at most: requests per second, CPU per request, and the p99 that is its own
    #[arg(long, conflicts_with = "with_redis")]
    pub baseline: bool,
    /// Write what the verdict is made from to this file, for the tests of the verdict. Of several trials, the last one's
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "baseline")]
    pub evidence: Option<PathBuf>,
    /// Save the full result of every trial in DIR, as NAME-trial-0.json and so on: every histogram, every second, every shard.
    /// Several trials have NAME-experiment.json too. A DIR that has NAME-trial-0.json is refused
    #[arg(long, value_name = "DIR", conflicts_with = "baseline")]
    pub output_dir: Option<PathBuf>,
    /// Use this many shards in place of the manifest's spec.shards.count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub shards: Option<u32>,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Read the Secret NAME from the files in DIR, one per key; repeatable. Secrets in the manifest need none of this
    #[arg(long, value_name = "NAME=DIR", value_parser = secret_directory)]
    pub secret: Vec<(String, PathBuf)>,
    /// The load generator [default: redisbench-loadgen beside this program, else from PATH]
    #[arg(long, value_name = "PATH")]
    pub loadgen: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The manifest; - is standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// The namespace [default: the manifest's, else that of the kubeconfig's context]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// The kubeconfig's context [default: the current one]
    #[arg(long)]
    pub context: Option<String>,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArguments {
    /// A manifest; repeatable; - is standard input
    #[arg(short, long, value_name = "FILE", required = true, num_args = 1..)]
    pub file: Vec<PathBuf>,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Table,
    /// The finished object, spec and status
    Json,
    /// The finished object, spec and status
    Yaml,
}

fn secret_directory(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, directory)) if !name.is_empty() && !directory.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(directory)))
        }
        _ => Err("write NAME=DIR: the Secret's name and a directory with one file per key".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn secrets_are_directories() {
        assert_eq!(secret_directory("a=/b=c"), Ok(("a".to_owned(), PathBuf::from("/b=c"))));
        assert!(secret_directory("a").is_err());
        assert!(secret_directory("=b").is_err());
    }
}

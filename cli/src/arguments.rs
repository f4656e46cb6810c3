//! The arguments of the commands, and the name of the program.

mod cluster;
mod output;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};

use crate::credentials::Confidential;
use crate::flags::Flags;
#[cfg(feature = "cluster")]
pub use cluster::{AbortArguments, LogsArguments, ShowArguments, WatchArguments};
pub use cluster::{ClusterArguments, ClusterCommand, CompareArguments, ExplainArguments, VersionArguments};
pub use output::Output;

/// Arguments of `local`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct LocalArguments {
    #[command(flatten)]
    pub flags: Flags,
    /// The manifest, or - for standard input; instead of flags for target and load
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print the manifest that the flags make, without passwords, and exit. Without this, it is printed before the run
    #[arg(long, conflicts_with_all = ["file", "baseline", "output_dir"])]
    pub print_manifest: bool,
    /// Start throwaway servers in place of the manifest's targets: a redis-server, a cluster of three primaries, or a server
    /// with sentinels, with the replicas, databases, users and TLS that the manifest requires
    #[arg(long)]
    pub with_redis: bool,
    /// Measure the load generator itself: run the load for up to 10 s against a server that does no work, and print the maximum
    /// rate, the CPU time per request and the load generator's own p99
    #[arg(long, conflicts_with = "with_redis")]
    pub baseline: bool,
    /// Write the verdict's input to FILE, for the tests of the verdict. With several trials, that of the last one
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "baseline")]
    pub evidence: Option<PathBuf>,
    /// Save the full result of every trial in DIR, as NAME-trial-0.json and so on: all histograms, seconds and shards.
    /// Several trials also have NAME-experiment.json. Fails if DIR has results of an earlier run
    #[arg(long, value_name = "DIR", conflicts_with = "baseline")]
    pub output_dir: Option<PathBuf>,
    /// Number of shards; overrides spec.shards.count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub shards: Option<u32>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Read the Secret NAME from DIR, which has a file per key; repeatable. Not needed for Secrets in the manifest
    #[arg(long, value_name = "NAME=DIR", value_parser = secret_directory)]
    pub secret: Vec<(String, PathBuf)>,
    /// The program, with its arguments, of the driver NAME in load.clients; repeatable. Each shard starts it
    #[arg(long, value_name = "NAME=COMMAND", value_parser = driver)]
    pub driver: Vec<(String, String)>,
    /// Print lines instead of the live view
    #[arg(long)]
    pub plain: bool,
    /// The load generator's program [default: redisbench-loadgen in this program's directory, else on PATH;
    /// redisbench-clients with load.clients]
    #[arg(long, value_name = "PATH")]
    pub loadgen: Option<PathBuf>,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// Translate the command line of redis-benchmark, valkey-benchmark or `memtier_benchmark`
    #[arg(long, value_name = "'TOOL OPTIONS'")]
    pub from: Option<Confidential>,
    /// Name of the benchmark
    #[arg(long, default_value = NAME)]
    pub name: String,
    /// Number of shards
    #[arg(long, value_name = "N")]
    pub shards: Option<u32>,
    /// Write to FILE [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub force: bool,
    #[command(flatten)]
    pub flags: Flags,
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
pub struct CompletionArguments {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The manifest, or - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Print lines instead of the live view
    #[arg(long)]
    pub plain: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// A finished benchmark: a name on the cluster, or files.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("run").args(["name", "file"]).required(true))]
pub struct Source {
    /// Name of a finished benchmark on the cluster
    pub name: Option<String>,
    /// A saved object, a full result, or a directory of `local --output-dir`; repeatable
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["namespace", "context"])]
    pub file: Vec<PathBuf>,
    /// Where NAME is.
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// The run to report.
    #[command(flatten)]
    pub source: Source,
    /// Details of the trial with this index, from 0, as in the names of its files [default: the last one]
    #[arg(long, value_name = "INDEX")]
    pub trial: Option<u32>,
    /// Write to OUT, such as report.html, instead of standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArguments {
    /// A manifest, or - for standard input; repeatable
    #[arg(short, long, value_name = "FILE", required = true, num_args = 1..)]
    pub file: Vec<PathBuf>,
}

/// Name of a benchmark from flags.
pub const NAME: &str = "benchmark";

/// The program's name as a plugin.
pub const AS_PLUGIN: &str = "kubectl redisbench";
/// The program's name for use without kubectl.
pub const ALONE: &str = "redisbench";

/// The words with which the user started this program, for messages: a plugin of kubectl, or `redisbench` under that name.
pub fn program() -> &'static str {
    name_of(std::env::args_os().next().as_deref())
}

/// The same by the first word of the command line.
pub fn name_of(word: Option<&OsStr>) -> &'static str {
    let file = word.and_then(|word| Path::new(word).file_name());
    if file.is_some_and(|file| file == ALONE) { ALONE } else { AS_PLUGIN }
}

fn secret_directory(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, directory)) if !name.is_empty() && !directory.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(directory)))
        }
        _ => Err("expected NAME=DIR: the Secret's name and a directory with a file per key".to_owned()),
    }
}

fn driver(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, command)) if !name.is_empty() && !command.trim().is_empty() => {
            Ok((name.to_owned(), command.to_owned()))
        }
        _ => Err("expected NAME=COMMAND: the driver's name in load.clients, and its program with arguments".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_the_file() {
        for (word, name) in [
            ("redisbench", ALONE),
            ("/usr/local/bin/redisbench", ALONE),
            ("kubectl-redisbench", AS_PLUGIN),
            ("target/debug/other", AS_PLUGIN),
        ] {
            assert_eq!(name_of(Some(OsStr::new(word))), name, "{word}");
        }
    }

    #[test]
    fn secrets_are_directories() {
        assert_eq!(secret_directory("a=/b=c"), Ok(("a".to_owned(), PathBuf::from("/b=c"))));
        assert!(secret_directory("a").is_err());
        assert!(secret_directory("=b").is_err());
    }

    #[test]
    fn drivers_are_commands() {
        assert_eq!(driver("go=./go --x=1"), Ok(("go".to_owned(), "./go --x=1".to_owned())));
        assert!(driver("go").is_err() && driver("=./go").is_err() && driver("go= ").is_err());
    }
}

//! The arguments of the commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `local`.
#[derive(Debug, Args)]
pub struct LocalArguments {
    /// The manifest, or - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
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
    /// Several trials also have NAME-experiment.json. Fails if DIR already has NAME-trial-0.json or NAME-experiment.json
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
    /// The load generator's program [default: redisbench-loadgen in this program's directory, else on PATH]
    #[arg(long, value_name = "PATH")]
    pub loadgen: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The manifest, or - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Namespace [default: the manifest's, else the kubeconfig context's]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Kubeconfig context [default: the current context]
    #[arg(long)]
    pub context: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// A finished benchmark: a name on the cluster, or files.
#[derive(Debug, Args)]
pub struct Source {
    /// Name of a finished benchmark on the cluster
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    pub name: Option<String>,
    /// A saved object, a full result, or a directory of `local --output-dir`; repeatable
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Namespace of NAME [default: the kubeconfig context's]
    #[arg(short, long, conflicts_with = "file")]
    pub namespace: Option<String>,
    /// Kubeconfig context [default: the current context]
    #[arg(long, conflicts_with = "file")]
    pub context: Option<String>,
}

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArguments {
    /// A manifest, or - for standard input; repeatable
    #[arg(short, long, value_name = "FILE", required = true, num_args = 1..)]
    pub file: Vec<PathBuf>,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Tables for reading
    Table,
    /// The finished object with spec and status, as JSON
    Json,
    /// The finished object with spec and status, as YAML
    Yaml,
}

fn secret_directory(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, directory)) if !name.is_empty() && !directory.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(directory)))
        }
        _ => Err("expected NAME=DIR: the Secret's name and a directory with a file per key".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_directories() {
        assert_eq!(secret_directory("a=/b=c"), Ok(("a".to_owned(), PathBuf::from("/b=c"))));
        assert!(secret_directory("a").is_err());
        assert!(secret_directory("=b").is_err());
    }
}

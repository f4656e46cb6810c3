//! Commands for benchmarks on a cluster.

use clap::{Args, Subcommand};

use super::output::Output;

/// Which cluster and namespace.
#[derive(Debug, Args)]
pub struct ClusterArguments {
    /// Namespace [default: that of the manifest, if there is one, else the kubeconfig context's]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Kubeconfig context [default: the current context]
    #[arg(long)]
    pub context: Option<String>,
}

/// Commands that need a cluster, besides `run`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// List the benchmarks of a namespace, or with -A of all
    List(ListArguments),
    /// Show a benchmark as it is now: progress, conditions, thresholds, and the result so far
    Status(ShowArguments),
    /// Follow a benchmark to its end, and print its result
    ///
    /// Exit codes as for local. Ctrl-C stops following; the benchmark continues.
    Watch(WatchArguments),
    /// Print the result of a finished benchmark
    ///
    /// Exit codes as for local; 2 also if it has not finished.
    Result(ShowArguments),
    /// Print the logs of a benchmark's shards, while these exist
    Logs(LogsArguments),
    /// Abort a benchmark, keep what was measured, and wait until it has stopped
    ///
    /// Exit codes: 0: aborted. 1: it had finished before, or this program failed. 2: there is no terminal to ask on, and no --yes.
    Abort(AbortArguments),
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// List all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// Arguments of `status` and `result`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The benchmark
    pub name: String,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct WatchArguments {
    #[command(flatten)]
    pub show: ShowArguments,
    /// Print lines instead of the live view
    #[arg(long)]
    pub plain: bool,
}

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub struct LogsArguments {
    /// The benchmark
    pub name: String,
    /// Only the shard with this index [default: all]
    #[arg(long, value_name = "INDEX")]
    pub shard: Option<u32>,
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// Arguments of `abort`.
#[derive(Debug, Args)]
pub struct AbortArguments {
    /// The benchmark
    pub name: String,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Print lines instead of the live view
    #[arg(long)]
    pub plain: bool,
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The run to compare with: a finished benchmark, a file with one, as `result -o json` prints it, or a directory of
    /// `local --output-dir`
    pub baseline: String,
    /// The run to compare: like BASELINE
    #[arg(value_name = "NAME")]
    pub subject: String,
    /// Accept a slowdown of up to PERCENT, such as between two machines of a CI service: exit with 4 only if the whole interval is
    /// beyond it, and with 0 if the whole interval is within it
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..100))]
    pub tolerance: u32,
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// A reason of a verdict or a condition, a phase, a condition, or an exit code [default: list all]
    pub name: Option<String>,
}

/// Arguments of `version`.
#[derive(Debug, Args)]
pub struct VersionArguments {
    #[command(flatten)]
    pub cluster: ClusterArguments,
}

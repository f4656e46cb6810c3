//! The command line. Every option can be set by an environment variable too, as its help says.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::telemetry::LogFormat;

/// Runs load tests of Redis on Kubernetes, as each RedisBenchmark says.
#[derive(Debug, Parser)]
#[command(name = "redisbench-operator", version, about)]
pub struct Options {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch for every RedisBenchmark and run it.
    Run(Box<RunOptions>),
    /// Print the custom resource definition as YAML.
    Crd,
    /// Print the version.
    Version,
}

/// Options of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// The operator's own namespace, where its Lease lives.
    #[arg(long, env = "REDISBENCH_NAMESPACE")]
    pub namespace: String,

    /// File with at least 32 random bytes, the same for all replicas: the key from which the credential of each run is
    /// derived.
    #[arg(long, env = "REDISBENCH_MASTER_KEY_FILE")]
    pub master_key_file: PathBuf,

    /// Image of the load generator.
    #[arg(long, env = "REDISBENCH_LOADGEN_IMAGE")]
    pub loadgen_image: String,

    /// When nodes pull the load generator's image: `Always`, `IfNotPresent` or `Never`.
    #[arg(long, env = "REDISBENCH_LOADGEN_IMAGE_PULL_POLICY", default_value = "IfNotPresent",
          value_parser = ["Always", "IfNotPresent", "Never"])]
    pub loadgen_image_pull_policy: String,

    /// Namespaces to watch, separated by commas; none means all.
    #[arg(long, env = "REDISBENCH_WATCH_NAMESPACES", value_delimiter = ',')]
    pub watch_namespaces: Vec<String>,

    /// Address of /metrics, /healthz and /readyz. Default: port 8080 of every interface, IPv6 and IPv4.
    #[arg(long, env = "REDISBENCH_METRICS_ADDRESS")]
    pub metrics_address: Option<SocketAddr>,

    /// Name of the Lease that chooses the leader among replicas.
    #[arg(long, env = "REDISBENCH_LEASE_NAME", default_value = "redisbench-operator")]
    pub lease_name: String,

    /// This replica's name in the Lease and in events, different for each; by default the host's name, which on
    /// Kubernetes is the pod's.
    #[arg(long, env = "POD_NAME")]
    pub pod_name: Option<String>,

    /// How log lines look.
    #[arg(long, env = "REDISBENCH_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

impl RunOptions {
    /// The watched namespaces, each once; none stands for all of them.
    pub fn scopes(&self) -> Vec<Option<String>> {
        let mut named: Vec<_> =
            self.watch_namespaces.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        named.sort();
        named.dedup();
        if named.is_empty() { vec![None] } else { named.into_iter().map(Some).collect() }
    }
}

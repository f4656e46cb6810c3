//! The command line. Every option can be set by an environment variable too, as its help says.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use k8s_openapi::api::core::v1::ResourceRequirements;
use redisbench_benchmark::conductor::SNAPSHOTS_PER_SECOND;
use redisbench_wire::LogFormat;

/// Runs load tests of Redis on Kubernetes, as defined by RedisBenchmark objects.
#[derive(Debug, Parser)]
#[command(name = "redisbench-operator", version, about)]
pub struct Options {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch RedisBenchmark objects and run them.
    Run(Box<RunOptions>),
    /// Print the custom resource definition as YAML.
    Crd,
    /// Print the version.
    Version,
}

/// Options of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// The operator's own namespace, which contains its Lease.
    #[arg(long, env = "REDISBENCH_NAMESPACE")]
    pub namespace: String,

    /// File with the master key: at least 32 random bytes, the same for all replicas. Each run's credential is derived
    /// from it.
    #[arg(long, env = "REDISBENCH_MASTER_KEY_FILE")]
    pub master_key_file: PathBuf,

    /// Image of the load generator.
    #[arg(long, env = "REDISBENCH_LOADGEN_IMAGE")]
    pub loadgen_image: String,

    /// Image of the load generator with client libraries, for benchmarks with `load.clients`. Default: the load generator's,
    /// which refuses them.
    #[arg(long, env = "REDISBENCH_CLIENTS_IMAGE")]
    pub clients_image: Option<String>,

    /// Image of a driver, for benchmarks with clients of type `Driver`; repeatable, or separated by commas. Requires
    /// `--clients-image`, whose shards use it.
    #[arg(long = "driver-image", env = "REDISBENCH_DRIVER_IMAGES", value_name = "NAME=IMAGE", value_delimiter = ',',
          value_parser = driver_image, requires = "clients_image")]
    pub driver_images: Vec<(String, String)>,

    /// Resources of a driver's container, as JSON. Default: 1 CPU and 256Mi.
    #[arg(long, env = "REDISBENCH_DRIVER_RESOURCES", value_name = "JSON", value_parser = resources)]
    pub driver_resources: Option<ResourceRequirements>,

    /// Pull policy of the load generator's image: `Always`, `IfNotPresent` or `Never`.
    #[arg(long, env = "REDISBENCH_LOADGEN_IMAGE_PULL_POLICY", default_value = "IfNotPresent",
          value_parser = ["Always", "IfNotPresent", "Never"])]
    pub loadgen_image_pull_policy: String,

    /// Namespaces to watch, separated by commas. Default: all.
    #[arg(long, env = "REDISBENCH_WATCH_NAMESPACES", value_delimiter = ',')]
    pub watch_namespaces: Vec<String>,

    /// Listen address of /metrics, /healthz and /readyz. Default: port 8080 on all interfaces, IPv6 and IPv4.
    #[arg(long, env = "REDISBENCH_METRICS_ADDRESS")]
    pub metrics_address: Option<SocketAddr>,

    /// Number of finished benchmarks that keep series in /metrics, the newest. 0: only unfinished ones have series.
    #[arg(long, env = "REDISBENCH_METRICS_FINISHED_BENCHMARKS", default_value_t = 20)]
    pub metrics_finished_benchmarks: usize,

    /// Snapshots per second of running shards, over all benchmarks; at least 2000. More shards than that are asked less than once a
    /// second each. A snapshot takes 0.1 to 0.2 ms of processor time.
    #[arg(long, env = "REDISBENCH_SNAPSHOTS_PER_SECOND", default_value_t = SNAPSHOTS_PER_SECOND,
          value_parser = clap::value_parser!(u32).range(i64::from(SNAPSHOTS_PER_SECOND)..=20_000))]
    pub snapshots_per_second: u32,

    /// Name of the Lease for leader election.
    #[arg(long, env = "REDISBENCH_LEASE_NAME", default_value = "redisbench-operator")]
    pub lease_name: String,

    /// Unique name of this replica in the Lease and in events. Default: the host name, which is the pod's name on
    /// Kubernetes.
    #[arg(long, env = "POD_NAME")]
    pub pod_name: Option<String>,

    /// Log format.
    #[arg(long, env = "REDISBENCH_LOG_FORMAT", default_value = "text", value_parser = log_format())]
    pub log_format: LogFormat,
}

fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new(LogFormat::NAMES).try_map(|name| LogFormat::named(&name).ok_or("unknown log format"))
}

fn driver_image(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, image)) if !name.is_empty() && !image.is_empty() => Ok((name.to_owned(), image.to_owned())),
        _ => Err("expected NAME=IMAGE".to_owned()),
    }
}

fn resources(text: &str) -> Result<ResourceRequirements, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drivers_need_the_image_of_the_shards_that_use_them() {
        let parsed = |more: &[&str]| {
            let own = ["x", "run", "--namespace=n", "--master-key-file=k", "--loadgen-image=l", "--driver-image=go=g"];
            Options::try_parse_from([&own[..], more].concat())
        };
        assert!(parsed(&["--clients-image=c"]).is_ok());
        assert!(parsed(&[]).unwrap_err().to_string().contains("--clients-image"));
    }

    /// Specs are checked with the default, so a lower rate could keep a warm-up from ever settling.
    #[test]
    fn no_fewer_snapshots_than_specs_are_checked_with() {
        let parsed = |rate: &str| {
            let own = ["x", "run", "--namespace=n", "--master-key-file=k", "--loadgen-image=l"];
            Options::try_parse_from([&own[..], &["--snapshots-per-second", rate]].concat())
        };
        assert!(parsed("2000").is_ok() && parsed("20000").is_ok());
        assert!(parsed("1999").unwrap_err().to_string().contains("2000..=20000"));
    }

    #[test]
    fn drivers_have_images_and_resources() {
        assert_eq!(driver_image("go=r:5000/go:1"), Ok(("go".to_owned(), "r:5000/go:1".to_owned())));
        assert!(driver_image("go").is_err() && driver_image("=go").is_err() && driver_image("go=").is_err());
        let limits = json!({"limits": {"cpu": "2"}});
        assert_eq!(json!(resources(&limits.to_string()).unwrap()), limits);
        assert!(resources("cpu").is_err());
    }
}

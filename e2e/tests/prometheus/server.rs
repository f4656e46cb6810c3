//! A Prometheus that scrapes the operator through the API server.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redisbench_e2e::cluster::{Cluster, SYSTEM, repository};
use redisbench_e2e::tools::Running;
use redisbench_e2e::wait;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The Service of the operator's metrics.
const SERVICE: &str = "redisbench-redisbench-operator-metrics:metrics";

/// Prometheus with the chart's rules. Stops when dropped.
pub struct Prometheus {
    url: String,
    _server: Child,
    _proxy: Child,
}

impl Prometheus {
    /// Starts it with its data in `folder`, and waits for its first scrape.
    pub async fn start(folder: &Path) -> Result<Self> {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder)?;
        let (proxy, api_server) = proxy().await?;
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [repository().join("charts/redisbench-operator/rules.yaml")],
            "scrape_configs": [{
                "job_name": "redisbench",
                "honor_labels": true,
                "metrics_path": format!("/api/v1/namespaces/{SYSTEM}/services/{SERVICE}/proxy/metrics"),
                "scrape_native_histograms": true,
                "always_scrape_classic_histograms": true,
                "static_configs": [{"targets": [api_server]}],
            }],
        });
        // JSON is YAML.
        std::fs::write(folder.join("prometheus.yml"), config.to_string())?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = std::fs::File::create(folder.join("log"))?;
        let server = Command::new(program("prometheus"))
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("failed to start Prometheus: `make test-integrations` builds it")?;
        let prometheus = Self { url: format!("http://127.0.0.1:{port}"), _server: server, _proxy: proxy };
        wait::answer("scraped", Duration::from_secs(30), || async {
            let up = prometheus.query("up == 1").await?;
            Ok((!up.is_empty()).then_some(()))
        })
        .await?;
        Ok(prometheus)
    }

    /// The samples that `query` returns now.
    pub async fn query(&self, query: &str) -> Result<Vec<Value>> {
        self.ask(&["instant"], query).await
    }

    /// The samples that `query` returned at this time.
    pub async fn query_at(&self, query: &str, time: u64) -> Result<Vec<Value>> {
        self.ask(&["instant", &format!("--time={time}")], query).await
    }

    /// The series that `query` returns for each second between these times.
    pub async fn query_range(&self, query: &str, from: u64, to: u64) -> Result<Vec<Value>> {
        self.ask(&["range", "--step=1s", &format!("--start={from}"), &format!("--end={to}")], query).await
    }

    async fn ask(&self, how: &[&str], query: &str) -> Result<Vec<Value>> {
        let arguments = [&["query", "--format=json"], how, &[&self.url, query]].concat();
        let output = promtool(&arguments, "").await?;
        serde_json::from_str(&output).with_context(|| format!("{query} returned {output}"))
    }

    /// The value of the only sample that `query` returns.
    pub async fn value(&self, query: &str) -> Result<f64> {
        let samples = self.query(query).await?;
        ensure!(samples.len() == 1, "{query} returned {samples:?}");
        samples[0]["value"][1].as_str().context("no value")?.parse().context("no number")
    }
}

/// Runs `promtool`; returns its standard output.
pub async fn promtool(arguments: &[&str], input: &str) -> Result<String> {
    let mut command = Command::new(program("promtool"));
    command.args(arguments);
    let mut running = Running::start(command)?;
    running.write(input).await?;
    let ended = running.ended().await?;
    ensure!(ended.code == 0, "promtool {arguments:?} failed: {}{}", ended.output, ended.errors);
    Ok(ended.output)
}

/// Of the cluster's own cache, because no other cluster has Prometheus.
fn program(name: &str) -> PathBuf {
    Cluster::get().cache().join("bin").join(name)
}

/// `kubectl proxy`, and its address.
async fn proxy() -> Result<(Child, String)> {
    let cluster = Cluster::get();
    let mut child = Command::new(cluster.program("kubectl"))
        .args(["proxy", "--port=0"])
        .env("KUBECONFIG", &cluster.kubeconfig)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("failed to start kubectl proxy")?;
    let output = child.stdout.take().context("no standard output")?;
    let line = BufReader::new(output).lines().next_line().await?.context("kubectl proxy has ended")?;
    let address = line.rsplit(' ').next().context("no address")?.to_owned();
    Ok((child, address))
}

//! A real Prometheus scrapes the operator, and every panel of the chart's dashboards shows data.
//!
//! `make test-integrations` runs this, and draws the dashboards from the answers that it leaves; see `e2e/README.md`.

mod server;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use redisbench_e2e::cluster::{Cluster, repository};
use redisbench_e2e::json::{count, list};
use redisbench_e2e::metrics::Scrape;
use redisbench_e2e::{Benchmark, redis, run_within, wait};
use serde_json::{Map, Value, json};
use server::{Prometheus, promtool};
use tokio::sync::Mutex;

const BENCHMARK: &str = "shown";
/// Two trials of 15 s, with preparation and collection.
const LIMIT: Duration = Duration::from_secs(180);

const DASHBOARDS: [&str; 2] = ["benchmark", "fleet"];

#[test]
fn every_panel_shows_data() {
    run_within(LIMIT + Duration::from_secs(120), |namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let prometheus = Prometheus::start(&Cluster::get().cache().join("prometheus")).await?;
        let began = now()?;
        // Has errors, checked replies, operations, caches, reconnects, and thresholds per node: everything that a panel shows.
        let spec = json!({
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"], "protocol": "RESP3"}],
            "workload": {
                "operations": [
                    {"name": "get", "weight": 80, "command": "GET __key__"},
                    {"name": "set", "weight": 15, "command": "SET __key__ __data__"},
                    {"name": "wrong", "weight": 5, "command": "LPUSH __key__ __data__"},
                ],
                "keys": {"count": 100},
                "caching": {"type": "Default", "scope": "Shard"},
            },
            // Caches answer most reads, and the p99 of an operation's last seconds needs some hundreds of requests.
            "load": {"openLoop": {"rate": 4000}, "duration": "15s", "connectionLifetime": {"requests": 100}},
            "repeats": {"count": 2},
            "verify": {"mode": "Replies"},
            "thresholds": [{"name": "nodes", "metric": "ServiceTime", "quantile": "0.99", "max": "10s", "eachNode": true,
                "abortOnFail": true}],
        });
        let benchmark = Benchmark::create(&namespace, BENCHMARK, &spec).await?;

        let queries = queries(&namespace.name)?;
        ensure!(queries.len() > 50, "only {} queries", queries.len());
        let missing = Mutex::new(queries.clone());
        let shown = wait::answer("shown by every panel", LIMIT, || async {
            let mut missing = missing.lock().await;
            let mut still = Vec::new();
            for query in missing.iter() {
                if prometheus.query(&query.expression).await?.is_empty() {
                    still.push(query.clone());
                }
            }
            *missing = still;
            Ok(missing.is_empty().then_some(()))
        })
        .await;
        let missing: Vec<String> = missing.into_inner().iter().map(Query::line).collect();
        ensure!(shown.is_ok(), "{shown:?}:\n{}", missing.join("\n"));

        let object = benchmark.succeeded(LIMIT).await?;
        check_result(&prometheus, &namespace.name, &object).await?;
        let scrape = Scrape::take().await?;
        let complaints = promtool(&["check", "metrics"], &scrape.text).await?;
        ensure!(complaints.is_empty(), "promtool check metrics: {complaints}");
        keep_answers(&prometheus, &queries, began, now()?).await
    });
}

/// Seconds since the epoch.
fn now() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

/// A query of a panel, as Grafana would send it for the benchmark.
#[derive(Clone)]
struct Query {
    dashboard: &'static str,
    /// The panel and the query in it.
    place: String,
    title: String,
    expression: String,
    /// Of one time, not over time.
    instant: bool,
}

impl Query {
    fn line(&self) -> String {
        format!("{}, {}: {}", self.dashboard, self.title, self.expression)
    }
}

fn dashboard(name: &str) -> Result<Value> {
    let path = repository().join(format!("charts/redisbench-operator/dashboards/{name}.json"));
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

/// The queries of all panels.
fn queries(namespace: &str) -> Result<Vec<Query>> {
    let mut found = Vec::new();
    for name in DASHBOARDS {
        for panel in list(&dashboard(name)?, "/panels") {
            for target in list(panel, "/targets") {
                let mut expression = target["expr"].as_str().unwrap_or_default().to_owned();
                for (variable, value) in
                    [("$namespace", namespace), ("$benchmark", BENCHMARK), ("$trial", ".*"), ("$__rate_interval", "5s")]
                {
                    expression = expression.replace(variable, value);
                }
                ensure!(!expression.is_empty() && !expression.contains('$'), "{name}: {panel}");
                found.push(Query {
                    dashboard: name,
                    place: format!("{}/{}", panel["id"], target["refId"].as_str().unwrap_or_default()),
                    title: panel["title"].to_string(),
                    expression,
                    instant: target["instant"] == true,
                });
            }
        }
    }
    Ok(found)
}

/// Writes each dashboard with the answers to its queries, for `e2e/grafana/draw.sh`.
async fn keep_answers(prometheus: &Prometheus, queries: &[Query], from: u64, to: u64) -> Result<()> {
    let folder = Cluster::get().cache().join("prometheus/answers");
    std::fs::create_dir_all(&folder)?;
    for name in DASHBOARDS {
        let mut answers = Map::new();
        for query in queries.iter().filter(|query| query.dashboard == name) {
            let answer = if query.instant {
                prometheus.query_at(&query.expression, to).await?
            } else {
                prometheus.query_range(&query.expression, from, to).await?
            };
            answers.insert(query.place.clone(), answer.into());
        }
        let drawing = json!({"dashboard": dashboard(name)?, "from": from, "to": to, "answers": answers});
        std::fs::write(folder.join(format!("{name}.json")), drawing.to_string())?;
    }
    Ok(())
}

/// Checks Prometheus' numbers against the status.
async fn check_result(prometheus: &Prometheus, namespace: &str, object: &Value) -> Result<()> {
    for (trial, line) in list(object, "/status/trials").iter().enumerate() {
        let labels = format!("namespace=\"{namespace}\",benchmark=\"{BENCHMARK}\",trial=\"{trial}\"");
        let succeeded = count(line, "/requests/succeeded")? as f64;
        for query in [
            format!("redisbench_requests_total{{{labels},outcome=\"succeeded\"}}"),
            format!("histogram_count(redisbench_response_time_seconds{{{labels}}})"),
            format!("redisbench_response_time_seconds_bucket{{{labels},le=\"+Inf\"}}"),
        ] {
            let value = prometheus.value(&query).await?;
            ensure!((value - succeeded).abs() < 0.5, "{query} is {value}, and the status has {succeeded}");
        }
        let errors = prometheus.value(&format!("sum(redisbench_errors_total{{{labels}}})")).await?;
        let failed = count(line, "/requests/errors")? as f64;
        ensure!((errors - failed).abs() < 0.5, "{errors} errors of all kinds, and the status has {failed}");
        // Native buckets are at most 9 % wide, and one request in 20 has another latency in the status: errors count there.
        let median =
            prometheus.value(&format!("redisbench_result_response_time_seconds{{{labels},percentile=\"50\"}}")).await?;
        let native = format!("histogram_quantile(0.5, redisbench_response_time_seconds{{{labels}}})");
        let native = prometheus.value(&native).await?;
        ensure!(
            (0.8..1.25).contains(&(native / median)),
            "the median is {native} s in buckets, {median} s in the result"
        );
    }
    // No counter of a trial ever went back.
    for metric in ["redisbench_requests_total", "redisbench_errors_total", "redisbench_bytes_total"] {
        let resets = format!("max(resets({metric}{{namespace=\"{namespace}\"}}[10m]))");
        let resets = prometheus.value(&resets).await?;
        ensure!(resets == 0.0, "{metric} was reset {resets} times");
    }
    Ok(())
}

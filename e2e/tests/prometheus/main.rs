//! A real Prometheus scrapes the operator, and every panel of the chart's dashboards shows data.
//!
//! `make test-integrations` runs this; see `e2e/README.md`.

mod server;

use std::time::Duration;

use anyhow::{Result, ensure};
use redisbench_e2e::cluster::{Cluster, repository};
use redisbench_e2e::json::{count, list};
use redisbench_e2e::metrics::Scrape;
use redisbench_e2e::{Benchmark, redis, run_within, wait};
use serde_json::{Value, json};
use server::{Prometheus, promtool};
use tokio::sync::Mutex;

const BENCHMARK: &str = "shown";
/// Two trials of 15 s, with preparation and collection.
const LIMIT: Duration = Duration::from_secs(180);

#[test]
fn every_panel_shows_data() {
    run_within(LIMIT + Duration::from_secs(120), |namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let prometheus = Prometheus::start(&Cluster::get().cache().join("prometheus")).await?;
        // Has errors, checked replies, operations, and thresholds per node: everything that a panel shows.
        let spec = json!({
            "workload": {"operations": [
                {"name": "get", "weight": 80, "command": "GET __key__"},
                {"name": "set", "weight": 15, "command": "SET __key__ __data__"},
                {"name": "wrong", "weight": 5, "command": "LPUSH __key__ __data__"},
            ]},
            "load": {"duration": "15s"},
            "repeats": {"count": 2},
            "verify": {"mode": "Replies"},
            "thresholds": [{"name": "nodes", "metric": "ServiceTime", "quantile": "0.99", "max": "10s", "eachNode": true,
                "abortOnFail": true}],
        });
        let benchmark = Benchmark::create(&namespace, BENCHMARK, &spec).await?;

        let missing = Mutex::new(panels(&namespace.name)?);
        let all = missing.lock().await.len();
        ensure!(all > 50, "only {all} queries");
        let shown = wait::answer("shown by every panel", LIMIT, || async {
            let mut missing = missing.lock().await;
            let mut still = Vec::new();
            for panel in missing.iter() {
                if prometheus.query(&panel.1).await?.is_empty() {
                    still.push(panel.clone());
                }
            }
            *missing = still;
            Ok(missing.is_empty().then_some(()))
        })
        .await;
        ensure!(shown.is_ok(), "{shown:?}: {:#?}", missing.lock().await);

        let object = benchmark.succeeded(LIMIT).await?;
        check_result(&prometheus, &namespace.name, &object).await?;
        let scrape = Scrape::take().await?;
        let complaints = promtool(&["check", "metrics"], &scrape.text).await?;
        ensure!(complaints.is_empty(), "promtool check metrics: {complaints}");
        Ok(())
    });
}

/// The queries of all panels with their titles, as Grafana would send them for the benchmark.
fn panels(namespace: &str) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for name in ["benchmark", "fleet"] {
        let path = repository().join(format!("charts/redisbench-operator/dashboards/{name}.json"));
        let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        for panel in list(&dashboard, "/panels") {
            for target in list(panel, "/targets") {
                let mut query = target["expr"].as_str().unwrap_or_default().to_owned();
                for (variable, value) in
                    [("$namespace", namespace), ("$benchmark", BENCHMARK), ("$trial", ".*"), ("$__rate_interval", "5s")]
                {
                    query = query.replace(variable, value);
                }
                ensure!(!query.is_empty() && !query.contains('$'), "{name}: {panel}");
                found.push((format!("{name}: {}", panel["title"]), query));
            }
        }
    }
    Ok(found)
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

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redisbench_e2e::accounts::check_served;
use redisbench_e2e::benchmark::{check_numbers, histogram, phase};
use redisbench_e2e::cluster::repository;
use redisbench_e2e::json::{count, list, text};
use redisbench_e2e::metrics::Scrape;
use redisbench_e2e::{Benchmark, TestNamespace, redis, run};
use serde_json::Value;

#[test]
fn quickstart() {
    run(|namespace| async move {
        let example = |name: &str| repository().join("examples").join(name).to_string_lossy().into_owned();
        namespace.kubectl(&["apply", "-f", &example("redis.yaml")]).await?;
        redis::available(&namespace, "redis").await?;
        namespace.kubectl(&["apply", "-f", &example("quickstart.yaml")]).await?;
        let applied =
            namespace.kubectl(&["get", "redisbenchmarks", "-o", "jsonpath={.items[*].metadata.name}"]).await?;
        let name = applied.split_whitespace().next().context("quickstart.yaml holds no RedisBenchmark")?;
        let kind = format!("rbench/{name}");
        namespace.kubectl(&["wait", "--for=condition=Finished", &kind, "--timeout=150s"]).await?;

        let benchmark = Benchmark::named(&namespace, name);
        let object = benchmark.succeeded(Duration::from_secs(5)).await?;
        check_columns(&namespace, &kind).await?;
        check_events(&namespace, name).await?;
        check_full_result(&namespace, &benchmark, &object).await?;
        check_metrics(&namespace, name, &object).await
    });
}

/// Checks the default columns of `kubectl get`.
async fn check_columns(namespace: &TestNamespace, kind: &str) -> Result<()> {
    let table = namespace.kubectl(&["get", kind]).await?;
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    for column in ["NAME", "PHASE", "VERDICT", "SHARDS", "RATE", "P99", "ERRORS", "AGE"] {
        ensure!(header.contains(&column), "no column {column} in\n{table}");
    }
    let row = lines.next().unwrap_or_default();
    ensure!(row.contains("Succeeded") && row.contains("/s") && row.contains("s  "), "an incomplete row:\n{table}");
    ensure!(!row.contains("<none>"), "an empty column:\n{table}");
    Ok(())
}

async fn check_events(namespace: &TestNamespace, name: &str) -> Result<()> {
    let selector = format!("involvedObject.kind=RedisBenchmark,involvedObject.name={name}");
    let events = namespace.kubectl_json(&["get", "events", "--field-selector", &selector]).await?;
    let reasons: Vec<&str> = list(&events, "/items").iter().filter_map(|event| event["reason"].as_str()).collect();
    ensure!(reasons.len() >= 2, "few events of {name}: {reasons:?}");
    ensure!(reasons.iter().any(|reason| reason.contains("Succeeded")), "no event of its end: {reasons:?}");
    Ok(())
}

/// Checks the full result against the status and the server's counts.
async fn check_full_result(namespace: &TestNamespace, benchmark: &Benchmark, object: &Value) -> Result<()> {
    let result = &object["status"]["result"];
    let full: Value = serde_json::from_str(&benchmark.artifact("result.json").await?)?;
    for pointer in ["/requests", "/responseTime", "/histogram"] {
        let (shown, whole) = (result.pointer(pointer), full.pointer(&format!("/result{pointer}")));
        ensure!(
            shown.is_some() && shown == whole,
            "{pointer} is {shown:?} in the status, {whole:?} in the full result"
        );
    }
    let merged = histogram(text(result, "/histogram/data")?)?;
    // The maximum is the highest value of its bucket.
    let longest = count(result, "/responseTime/maxNanoseconds")?;
    ensure!(merged.max() == merged.highest_equivalent(longest), "the maximum {longest} is not that of the histogram");
    check_served(namespace, &[object]).await
}

async fn check_metrics(namespace: &TestNamespace, name: &str, object: &Value) -> Result<()> {
    check_numbers(object)?;
    ensure!(phase(object) == "Succeeded", "not succeeded");
    let scrape = Scrape::take().await?;
    let labels = [("namespace", namespace.name.as_str()), ("benchmark", name)];
    let requests = scrape.sum("redisbench_requests_total", &[labels[0], labels[1], ("outcome", "succeeded")])?;
    let buckets = scrape.sum("redisbench_response_time_seconds_count", &labels)?;
    let succeeded = count(object, "/status/result/requests/succeeded")? as f64;
    ensure!((requests - succeeded).abs() < 0.5, "Prometheus has {requests} requests, the status {succeeded}");
    ensure!((buckets - succeeded).abs() < 0.5, "Prometheus's histogram has {buckets}, the status {succeeded}");
    let percentile = [labels[0], labels[1], ("percentile", "99")];
    let p99 = scrape.sum("redisbench_result_response_time_seconds", &percentile)?;
    let expected = count(object, "/status/result/responseTime/p99Nanoseconds")? as f64 / 1e9;
    ensure!((p99 - expected).abs() < 1e-9, "Prometheus has a p99 of {p99} s, the status {expected} s");
    ensure!(scrape.sum("redisbench_reconciliations_total", &[])? > 0.0, "no reconcile counted");
    Ok(())
}

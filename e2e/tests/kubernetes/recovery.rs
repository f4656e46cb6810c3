use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, EvictParams, ListParams};
use redisbench_e2e::accounts::check_served;
use redisbench_e2e::benchmark::{SOON, check_numbers, condition, message, phase};
use redisbench_e2e::cluster::{Cluster, OPERATOR, SYSTEM};
use redisbench_e2e::faults::{Expected, Report};
use redisbench_e2e::json::{count, list, text};
use redisbench_e2e::{Benchmark, TestNamespace, run, run_alone, wait};
use serde_json::json;

/// Long enough to be disturbed during the load.
fn long() -> serde_json::Value {
    json!({"load": {"duration": "12s"}})
}

#[test]
fn a_killed_operator_loses_nothing() {
    run_alone(|namespace| async move {
        let benchmark = Benchmark::measured(&namespace, "killed", &long()).await?;
        let before = benchmark.get().await?;
        kill_operator(&namespace).await?;
        let object = benchmark.succeeded(SOON).await?;
        ensure!(
            text(&object, "/status/runId")? == text(&before, "/status/runId")?,
            "another run: {} before, {} after",
            before["status"],
            object["status"]
        );
        ensure!(count(&object, "/status/result/requests/scheduled")? == 400 * 12, "not all of the run: {object}");
        check_served(&namespace, &[&object]).await
    });
}

async fn kill_operator(namespace: &TestNamespace) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let at_once = DeleteParams::default().grace_period(0);
    for pod in pods.list(&ListParams::default().labels(OPERATOR)).await? {
        pods.delete(&pod.name_any(), &at_once).await?;
    }
    Ok(())
}

#[test]
fn a_killed_shard_is_named_by_the_verdict() {
    run(|namespace| async move {
        let benchmark = Benchmark::measured(&namespace, "lost", &long()).await?;
        let victim = benchmark.pods().await?.pop().context("no pods")?;
        let at_once = DeleteParams::default().grace_period(0);
        namespace.api::<Pod>().delete(&victim.name_any(), &at_once).await?;

        let object = benchmark.finished(SOON).await?;
        let verdict = &object["status"]["verdict"];
        ensure!(verdict["value"] == "Invalid", "not Invalid: {}", object["status"]);
        let lost = list(verdict, "/reasons").iter().find(|reason| reason["reason"] == "ShardLost");
        let lost = lost.with_context(|| format!("no ShardLost: {verdict}"))?;
        ensure!(text(lost, "/message")?.contains("shard 1"), "the reason names no shard: {lost}");
        ensure!(condition(&object, "Complete") == Some("True"), "the other shard measured to the end");
        ensure!(condition(&object, "Valid") == Some("False"), "Valid is not False");
        ensure!(count(&object, "/status/shards/lost")? == 1, "not one lost shard: {}", object["status"]["shards"]);
        ensure!(count(&object, "/status/result/requests/succeeded")? > 0, "the other shard's measurement is lost");
        check_numbers(&object)?;
        Ok(())
    });
}

#[test]
fn an_evicted_shard_is_replaced_and_all_begin_again() {
    run(|namespace| async move {
        let spec = json!({"load": {"duration": "15s"}, "shards": {"onLost": "Restart"}});
        let benchmark = Benchmark::measured(&namespace, "evicted", &spec).await?;
        let fault = "shard evicted in mid-run (eviction API), onLost Restart";
        let promised = "the replacement is armed, and attempt 2 runs to its end";
        let report = Report::open(&namespace, &benchmark, fault, promised).await?;
        let victim = benchmark.pods().await?.pop().context("no pods")?;
        let pods = Api::<Pod>::namespaced(Cluster::get().impatient_client().await?, &namespace.name);
        let evict = async || pods.evict(&victim.name_any(), &EvictParams::default()).await;
        let refused = match evict().await {
            Err(kube::Error::Api(status)) => status.code == 429,
            _ => false,
        };
        ensure!(refused, "an eviction during the run was not held back");
        namespace.kubectl(&["delete", "poddisruptionbudgets", "--all"]).await?;
        evict().await?;
        let expected = Expected { repeat: &["Started"], counted_more: true, ..Expected::default() };
        let object = report.close(&expected).await?;
        ensure!(count(&object, "/status/trial/attempt")? == 2, "not the second attempt: {}", object["status"]["trial"]);
        let scheduled = count(&object, "/status/result/requests/scheduled")?;
        ensure!(scheduled == 400 * 15, "{scheduled} are not the requests of one attempt");
        Ok(())
    });
}

#[test]
fn a_lost_shard_stops_the_others_if_asked_to() {
    run(|namespace| async move {
        let spec = json!({"load": {"duration": "60s"}, "shards": {"onLost": "Abort"}});
        let benchmark = Benchmark::measured(&namespace, "stopped", &spec).await?;
        let fault = "shard's pod deleted in mid-run, onLost Abort";
        let promised = "the others are stopped, the partial result is kept; Failed, naming the lost shard";
        let report = Report::open(&namespace, &benchmark, fault, promised).await?;
        let victim = benchmark.pods().await?.pop().context("no pods")?;
        namespace.api::<Pod>().delete(&victim.name_any(), &DeleteParams::default()).await?;
        let expected = Expected {
            phase: "Failed",
            verdicts: &["Invalid"],
            lost: 1,
            repeat: &["ShardLost"],
            ..Expected::default()
        };
        let object = report.close(&expected).await?;
        ensure!(
            message(&object, "Failed").contains("shard 1"),
            "no shard is named: {}",
            object["status"]["conditions"]
        );
        ensure!(count(&object, "/status/result/requests/succeeded")? > 0, "nothing was kept: {}", object["status"]);
        Ok(())
    });
}

#[test]
fn an_abort_keeps_what_was_measured() {
    run(|namespace| async move {
        let benchmark = Benchmark::measured(&namespace, "aborted", &json!({"load": {"duration": "120s"}})).await?;
        benchmark.patch(&json!({"abort": true})).await?;
        let object = benchmark.finished(Duration::from_secs(20)).await?;
        ensure!(phase(&object) == "Aborted", "not Aborted: {}", object["status"]);
        ensure!(condition(&object, "Complete") == Some("False"), "complete, though aborted");
        ensure!(count(&object, "/status/result/requests/succeeded")? > 0, "nothing was kept: {}", object["status"]);
        check_numbers(&object)?;
        let refused = benchmark.patch(&json!({"abort": false})).await;
        ensure!(refused.is_err(), "abort could be unset");
        pods_gone(&namespace, &benchmark).await
    });
}

/// Waits until every pod has ended, so that the load has stopped.
async fn pods_gone(namespace: &TestNamespace, benchmark: &Benchmark) -> Result<()> {
    for pod in benchmark.pods().await? {
        let over = |pod: Option<&Pod>| {
            let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
            pod.is_none() || matches!(phase, Some("Succeeded" | "Failed"))
        };
        wait::object(namespace.api::<Pod>(), &pod.name_any(), "ended", Duration::from_secs(30), over).await?;
    }
    Ok(())
}

#[test]
fn a_deletion_leaves_nothing() {
    run(|namespace| async move {
        let benchmark = Benchmark::measured(&namespace, "deleted", &json!({"load": {"duration": "120s"}})).await?;
        let promised = "the load stops, and all owned objects are deleted";
        let mut report = Report::open(&namespace, &benchmark, "deleted while Running", promised).await?;
        namespace.kubectl(&["delete", "redisbenchmark", "deleted", "--wait=true", "--timeout=30s"]).await?;
        report.fault_ended();
        benchmark.gone(Duration::from_secs(5)).await?;
        let cleared = tokio::time::timeout(Duration::from_secs(100), report.close_deleted());
        cleared.await.context("it has children after 100 s")?
    });
}

use std::time::Duration;

use anyhow::ensure;
use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use redisbench_e2e::benchmark::{SOON, condition, phase};
use redisbench_e2e::json::count;
use redisbench_e2e::metrics::Scrape;
use redisbench_e2e::{Benchmark, redis, run, wait};
use serde_json::{Value, json};

/// Returns whether the operator has observed the current spec.
fn observed(object: &Value) -> bool {
    let generation = object["metadata"]["generation"].as_u64();
    generation.is_some() && object["status"]["observedGeneration"].as_u64() == generation
}

#[test]
fn a_suspended_benchmark_waits_to_be_resumed() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let benchmark = Benchmark::create(&namespace, "later", &json!({"suspend": true})).await?;
        let accepted = |o: &Value| observed(o) && condition(o, "Accepted") == Some("True");
        let object = benchmark.wait("accepted", Duration::from_secs(20), accepted).await?;
        ensure!(matches!(phase(&object), "Suspended" | "Pending"), "not waiting: {}", object["status"]);
        let jobs = namespace.api::<Job>().list(&ListParams::default()).await?;
        let busy = jobs.items.iter().filter(|job| job.spec.as_ref().is_none_or(|spec| spec.suspend != Some(true)));
        ensure!(busy.count() == 0 && benchmark.pods().await?.is_empty(), "a suspended benchmark has pods");
        // Still editable, because it has not begun.
        benchmark.patch(&json!({"load": {"pipeline": 2}})).await?;
        benchmark.patch(&json!({"suspend": false})).await?;
        benchmark.succeeded(SOON).await?;
        Ok(())
    });
}

#[test]
fn a_finished_benchmark_is_left_alone_until_its_time() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let short = json!({"load": {"duration": "2s", "warmup": "0s"}});
        let kept = Benchmark::create(&namespace, "kept", &short).await?;
        let mut fleeting = short.clone();
        fleeting["ttlSecondsAfterFinished"] = json!(3);
        let gone = Benchmark::create(&namespace, "gone", &fleeting).await?;
        tokio::try_join!(kept.succeeded(SOON), gone.finished(SOON))?;
        let version = |object: Value| object["metadata"]["resourceVersion"].clone();
        let before = version(kept.get().await?);
        let reconciled = Scrape::take().await?.sum("redisbench_reconciliations_total", &[])?;

        gone.gone(Duration::from_secs(30)).await?;
        // The operator learns of the deletion by a watch of its own.
        wait::answer("reconciled without metrics of the deleted benchmark", Duration::from_secs(20), || async {
            let scrape = Scrape::take().await?;
            let labels = [("benchmark", "gone"), ("namespace", namespace.name.as_str())];
            let left = scrape.find("redisbench_requests_total", &labels).count();
            let since = scrape.sum("redisbench_reconciliations_total", &[])? - reconciled;
            ensure!(left == 0 && since > 0.0, "{left} series of the benchmark, {since} reconciliations since");
            Ok(Some(()))
        })
        .await?;
        // A label triggers a reconciliation: our change is the only one, and the operator makes none.
        namespace.kubectl(&["label", "redisbenchmark", "kept", "looked=at"]).await?;
        let labelled = version(kept.get().await?);
        ensure!(labelled != before, "the label changed nothing");
        let other = Benchmark::create(&namespace, "other", &json!({"suspend": true})).await?;
        other.wait("observed", Duration::from_secs(20), observed).await?;
        let after = kept.get().await?;
        ensure!(version(after.clone()) == labelled, "the operator wrote to a finished benchmark: {after}");
        ensure!(count(&after, "/status/observedGeneration")? == 1, "a new generation: {after}");
        Ok(())
    });
}

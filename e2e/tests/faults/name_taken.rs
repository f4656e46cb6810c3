//! Another owner has an object with a name that the run needs.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use redisbench_e2e::benchmark::{SOON, condition, is_finished, message, phase, reason};
use redisbench_e2e::faults::{Account, Expected, Server};
use redisbench_e2e::{Benchmark, Space, redis, run, wait};
use serde_json::{Value, json};

use crate::stage::held_preparing;

const LEFT_ALONE: &str =
    "foreign objects stay unchanged, and the benchmark reports the name that it needs until it is free";

fn is_stalled(object: &Value) -> bool {
    condition(object, "Stalled") == Some("True") && reason(object, "Stalled") == Some("NameTaken")
}

#[test]
fn of_the_job() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let (benchmark, _cut) = held_preparing(&space).await?;
        let jobs = space.api::<Job>();
        let name = jobs.list(&ListParams::default()).await?.items.first().context("no Job")?.name_any();
        // While it is suspended, another user takes the name, which is known by now.
        benchmark.patch(&json!({"suspend": true})).await?;
        wait::object(jobs.clone(), &name, "deleted", SOON, |job| job.is_none()).await?;
        space.apply(&[foreign_job(&name)]).await?;
        let fault = "suspended; then the name of its Job taken by another Job, and released";
        let mut account = Account::open(&space, &benchmark, fault, LEFT_ALONE).await?;
        benchmark.patch(&json!({"suspend": false})).await?;
        let object = benchmark.wait("stalled", SOON, |o| is_stalled(o) || is_finished(o)).await?;
        says(&object, &name)?;
        let theirs = jobs.get(&name).await?;
        ensure!(theirs.owner_references().is_empty(), "the foreign Job was taken over: {theirs:?}");
        jobs.delete(&name, &DeleteParams::background()).await?;
        wait::object(jobs, &name, "deleted", SOON, |job| job.is_none_or(|job| !job.owner_references().is_empty()))
            .await?;
        account.fault_ended();
        account.recovers("running", SOON, |o| phase(o) == "Running" || is_finished(o)).await?;
        let expected = Expected {
            server: Server::CountedMore,
            repeat: &["NameTaken", "Preparing", "Suspended"],
            ..Expected::default()
        };
        account.close(&expected).await?;
        Ok(())
    });
}

#[test]
fn of_the_result() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        take_result_name(&space).await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "2s"}})).await?;
        let fault = "name of the result's ConfigMap taken by another, and released";
        let mut account = Account::open(&space, &benchmark, fault, LEFT_ALONE).await?;
        let object = benchmark.wait("stalled", SOON, |o| is_stalled(o) || is_finished(o)).await?;
        says(&object, "run-result-0")?;
        let theirs = space.kubectl_json(&["get", "configmap", "run-result-0"]).await?;
        ensure!(theirs["data"] == json!({"whose": "not yours"}), "the foreign ConfigMap was changed: {theirs}");
        space.kubectl(&["delete", "configmap", "run-result-0"]).await?;
        account.fault_ended();
        account.recovers("finished", SOON, is_finished).await?;
        account.close(&Expected::default()).await?;
        benchmark.full_result().await?;
        Ok(())
    });
}

#[test]
fn of_the_result_for_good() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        take_result_name(&space).await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "2s"}})).await?;
        let fault = "name of the result's ConfigMap taken by another permanently";
        let promised =
            "foreign objects stay unchanged; after a minute only the status has the result, and an event reports it";
        let account = Account::open(&space, &benchmark, fault, promised).await?;
        account.close(&Expected::default()).await?;
        let told = space.kubectl(&["get", "events", "-o", "jsonpath={.items[*].reason}"]).await?;
        ensure!(told.contains("ArtifactsNotWritten"), "no event reports that there is no full result: {told}");
        let theirs = space.kubectl_json(&["get", "configmap", "run-result-0"]).await?;
        ensure!(theirs["data"] == json!({"whose": "not yours"}), "the foreign ConfigMap was changed: {theirs}");
        Ok(())
    });
}

async fn take_result_name(space: &Space) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "run-result-0"}, "data": {"whose": "not yours"}});
    space.apply(&[map]).await?;
    Ok(())
}

fn says(object: &Value, name: &str) -> Result<()> {
    ensure!(is_stalled(object), "not stalled for the name: {}", object["status"]);
    let message = message(object, "Stalled");
    ensure!(message.contains(name) && message.contains("belongs to someone else"), "it does not say how: {message}");
    Ok(())
}

/// A suspended Job, which creates no pods.
fn foreign_job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never",
            "securityContext": {"runAsNonRoot": true, "runAsUser": 999, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "theirs",
                "image": "redis",
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        }}},
    })
}

//! A queue holds a run back. An admission policy plays the part of Kueue, which suspends Jobs with its label when they are created.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use redisbench_e2e::benchmark::{SOON, message, phase};
use redisbench_e2e::{Benchmark, TestNamespace, redis, run, wait};
use serde_json::{Value, json};

const QUEUE: &str = "kueue.x-k8s.io/queue-name";

#[test]
fn a_run_waits_for_its_admission() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let policies = policies(&namespace.name);
        namespace.apply(&policies).await?;
        let outcome = admitted(&namespace).await;
        for policy in &policies {
            let kind = policy["kind"].as_str().unwrap_or_default();
            namespace.kubectl(&["delete", kind, &namespace.name]).await?;
        }
        outcome
    });
}

async fn admitted(namespace: &TestNamespace) -> Result<()> {
    wait::answer("suspended Jobs", SOON, || async {
        let words = ["create", "job", "probe", "--image=none", "--dry-run=client", "-o", "json"];
        let mut job: Value = serde_json::from_str(&namespace.kubectl(&words).await?)?;
        job["metadata"]["labels"] = json!({QUEUE: "load"});
        let created: Job = serde_json::from_value(job)?;
        let dry = kube::api::PostParams { dry_run: true, ..kube::api::PostParams::default() };
        let created = namespace.api::<Job>().create(&dry, &created).await?;
        Ok((created.spec.and_then(|spec| spec.suspend) == Some(true)).then_some(()))
    })
    .await?;
    let spec = json!({"load": {"duration": "2s"}, "shards": {"jobLabels": {QUEUE: "load"}}});
    let benchmark = Benchmark::create(namespace, "queued", &spec).await?;
    let queued = |object: &Value| message(object, "Reconciling").contains("its Job is suspended");
    let object = benchmark.wait("queued", SOON, queued).await?;
    ensure!(phase(&object) == "Preparing", "not Preparing: {}", object["status"]);
    ensure!(benchmark.pods().await?.is_empty(), "it has pods");

    let jobs = namespace.api::<Job>();
    let job = jobs.list(&ListParams::default()).await?.items.pop().context("no Job")?;
    let admission = Patch::Merge(json!({"spec": {"suspend": false}}));
    jobs.patch(&job.name_any(), &PatchParams::default(), &admission).await?;
    benchmark.succeeded(SOON).await?;
    Ok(())
}

/// Suspends Jobs of the namespace that name a queue.
fn policies(namespace: &str) -> [Value; 2] {
    let kind = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": namespace},
            "spec": spec,
        })
    };
    let jobs = json!({"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]});
    [
        kind(
            "MutatingAdmissionPolicy",
            json!({
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "objectSelector": {"matchExpressions": [{"key": QUEUE, "operator": "Exists"}]},
                    "resourceRules": [jobs],
                },
                "mutations": [{
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{spec: Object.spec{suspend: true}}"},
                }],
            }),
        ),
        kind("MutatingAdmissionPolicyBinding", json!({"policyName": namespace})),
    ]
}

//! A benchmark is deleted and created again at once, or deleted with its namespace.

use std::time::Instant;

use anyhow::{Result, ensure};
use redisbench_e2e::benchmark::{SOON, is_finished, phase};
use redisbench_e2e::faults::{Expected, Ledger, Report};
use redisbench_e2e::json::count;
use redisbench_e2e::tools::kubectl;
use redisbench_e2e::{Benchmark, TestNamespace, run};
use serde_json::json;

const NOTHING_LEFT: &str = "the load stops, and all owned objects are deleted";

#[test]
fn created_again_while_the_old_one_runs() {
    run(|namespace| async move {
        let old = Benchmark::measured(&namespace, "run", &json!({"load": {"duration": "60s"}})).await?;
        let mut gone =
            Report::open(&namespace, &old, "deleted while Running, and created again at once", NOTHING_LEFT).await?;
        old.delete().await?;
        gone.fault_ended();
        let new = Benchmark::create(&namespace, "run", &json!({"load": {"duration": "10s"}})).await?;
        let promised =
            "the new one waits for nothing of the old one, counts its own load alone, and reports that of the old one";
        let mut report = Report::open(&namespace, &new, "created again while the old Job ends", promised).await?;
        report.recovers("measuring", SOON, |o| phase(o) == "Running" || is_finished(o)).await?;
        gone.close_deleted().await?;
        // The server has counted the load of both. Shards of the old one may load it until Kubernetes has deleted their pods.
        let doubts = &["Unreconciled", "RateMissed"];
        let expected = Expected { counted_more: true, doubts, ..Expected::default() };
        let object = report.close(&expected).await?;
        ensure!(count(&object, "/status/result/requests/scheduled")? == 400 * 10, "not its own load: {object}");
        Ok(())
    });
}

#[test]
fn with_its_namespace_while_running() {
    run(|namespace| async move {
        Benchmark::measured(&namespace, "run", &json!({"load": {"duration": "60s"}})).await?;
        without_its_namespace(&namespace, "while Running").await
    });
}

/// Kubernetes deletes the pods of a namespace first and waits for them, and a Job may keep finalizers on its pods.
async fn without_its_namespace(namespace: &TestNamespace, when: &str) -> Result<()> {
    let began = Instant::now();
    kubectl(&["delete", "namespace", &namespace.name, "--wait=true", "--timeout=60s"]).await?;
    let row = Ledger {
        fault: format!("its namespace deleted {when}"),
        promised: "the namespace is deleted".to_owned(),
        recovered: format!("{:.1} s (all gone)", began.elapsed().as_secs_f64()),
        test: namespace.test.clone(),
        ..Ledger::default()
    };
    row.keep()
}

//! The Redis under test fails.

use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use redisbench_e2e::accounts::{bounds, served};
use redisbench_e2e::benchmark::SOON;
use redisbench_e2e::faults::{Account, Expected, Process, Server, Signal, lasts};
use redisbench_e2e::json::{count, list, text};
use redisbench_e2e::{Benchmark, redis, run};
use serde_json::{Value, json};

#[test]
fn killed() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "target", &json!({"load": {"duration": "20s"}})).await?;
        benchmark.measuring().await?;
        let fault = "Redis under test hung, killed in mid-run (SIGKILL), and restarted by Kubernetes";
        let promised = "failed requests are counted by kind, the run completes, the verdict has the reason";
        let mut account = Account::open(&space, &benchmark, fault, promised).await?;
        let pods = space.api::<Pod>().list(&ListParams::default().labels("app=redis")).await?;
        let victim = pods.items.first().context("no pod of Redis")?;
        let process = Process::of(victim)?;
        // It hangs before it dies, so that requests are in flight.
        let hanging = process.stop().await?;
        lasts(Duration::from_millis(500)).await;
        process.send(Signal::Kill)?;
        drop(hanging);
        account.fault_ended();
        redis::restarted(&space, victim).await?;
        let rate = |object: &Value| object.pointer("/status/progress/achievedPerSecond").and_then(Value::as_u64);
        account.recovers("measuring again", SOON, |object| rate(object) > Some(0)).await?;
        // The previous server process lost its count.
        let expected = Expected { verdicts: &["Degraded", "Invalid"], server: Server::NotAsked, ..Expected::default() };
        let object = account.close(&expected).await?;
        let result = &object["status"]["result"];
        ensure!(count(result, "/requests/scheduled")? == 400 * 20, "not the whole plan: {result}");
        let failed = count(result, "/requests/errors")? + count(result, "/requests/unsent")?;
        ensure!(failed > 0, "no request failed: {result}");
        let reasons = list(&object, "/status/verdict/reasons");
        let errors = reasons.iter().find(|reason| reason["reason"] == "Errors").context("no reason Errors")?;
        let kind = list(result, "/errors").first().and_then(|error| error["kind"].as_str()).context("no kind")?;
        ensure!(text(errors, "/message")?.contains(kind), "the verdict does not name {kind}: {errors}");
        let counted = served(&redis::calls(&space, "deployment/redis").await?);
        ensure!(counted > 0 && counted < *bounds(&object)?.end(), "the new server counted {counted}: {result}");
        Ok(())
    });
}

//! A benchmark is deleted in every phase, and created again at once.

use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::jiff::Timestamp;
use redisbench_e2e::benchmark::{SOON, condition, is_finished, phase};
use redisbench_e2e::faults::{Account, Expected, Ledger, Server};
use redisbench_e2e::json::text;
use redisbench_e2e::tools::kubectl;
use redisbench_e2e::{Benchmark, Space, redis, run};
use serde_json::{Value, json};

use crate::stage::{held_collecting, held_preparing, start_recorded};

const NOTHING_LEFT: &str = "the load stops, and all owned objects are deleted";

async fn deleted(space: &Space, benchmark: &Benchmark, when: &str) -> Result<()> {
    let mut account = Account::open(space, benchmark, &format!("deleted {when}"), NOTHING_LEFT).await?;
    benchmark.delete().await?;
    account.fault_ended();
    account.close_deleted().await
}

#[test]
fn while_pending() {
    run(|space| async move {
        let operations = json!([{"name": "get", "weight": 1, "command": "GET \"__key__"}]);
        let benchmark = Benchmark::create(&space, "run", &json!({"workload": {"operations": operations}})).await?;
        let refused = |o: &Value| condition(o, "Accepted") == Some("False");
        let object = benchmark.wait("refused", SOON, refused).await?;
        ensure!(phase(&object) == "Pending", "not Pending: {}", object["status"]);
        deleted(&space, &benchmark, "while Pending").await
    });
}

#[test]
fn while_preparing() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let (benchmark, _cut) = held_preparing(&space).await?;
        deleted(&space, &benchmark, "while Preparing").await
    });
}

#[test]
fn at_the_barrier() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "60s"}})).await?;
        let object = start_recorded(&benchmark).await?;
        let start: Timestamp = text(&object, "/status/trial/startAt")?.parse()?;
        let mut account =
            Account::open(&space, &benchmark, "deleted between the order to start and the start", NOTHING_LEFT).await?;
        benchmark.delete().await?;
        ensure!(Timestamp::now() < start, "the start came before the deletion");
        account.fault_ended();
        account.close_deleted().await
    });
}

#[test]
fn while_running() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "60s"}})).await?;
        benchmark.measuring().await?;
        deleted(&space, &benchmark, "while Running").await
    });
}

#[test]
fn while_collecting() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({})).await?;
        let _cut = held_collecting(&benchmark).await?;
        deleted(&space, &benchmark, "while Collecting").await
    });
}

#[test]
fn when_finished() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "2s"}})).await?;
        // Its shards are not released yet.
        benchmark.wait("finished", SOON, is_finished).await?;
        deleted(&space, &benchmark, "when just finished").await
    });
}

#[test]
fn created_again_while_the_old_one_runs() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let old = Benchmark::create(&space, "run", &json!({"load": {"duration": "60s"}})).await?;
        old.measuring().await?;
        let mut gone =
            Account::open(&space, &old, "deleted while Running, and created again at once", NOTHING_LEFT).await?;
        old.delete().await?;
        gone.fault_ended();
        let new = Benchmark::create(&space, "run", &json!({"load": {"duration": "3s"}})).await?;
        let promised = "the new one does not wait for the old one, and measures only its own load";
        let mut account = Account::open(&space, &new, "created again while the old Job terminates", promised).await?;
        account.recovers("measuring", SOON, |o| phase(o) == "Running" || is_finished(o)).await?;
        gone.close_deleted().await?;
        // The server has counted the load of both.
        account.close(&Expected { server: Server::CountedMore, ..Expected::default() }).await?;
        Ok(())
    });
}

#[test]
fn created_again_when_finished() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let short = json!({"load": {"duration": "2s", "warmup": "0s"}, "preload": {"mode": "None"}});
        let old = Benchmark::create(&space, "run", &short).await?;
        old.finished(SOON).await?;
        let mut gone =
            Account::open(&space, &old, "deleted when finished, and created again at once", NOTHING_LEFT).await?;
        old.delete().await?;
        gone.fault_ended();
        let new = Benchmark::create(&space, "run", &short).await?;
        let promised = "the new result replaces the old one, which had the same names";
        let account = Account::open(&space, &new, "created again while the old result is deleted", promised).await?;
        gone.close_deleted().await?;
        let object = account.close(&Expected { server: Server::CountedMore, ..Expected::default() }).await?;
        let full = new.full_result().await?;
        ensure!(full["runId"] == object["status"]["runId"], "the full result of another run: {}", full["runId"]);
        Ok(())
    });
}

#[test]
fn with_its_namespace_while_running() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "60s"}})).await?;
        benchmark.measuring().await?;
        without_its_namespace(&space, "while Running").await
    });
}

#[test]
fn with_its_namespace_while_preparing() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let (_benchmark, _cut) = held_preparing(&space).await?;
        without_its_namespace(&space, "while Preparing").await
    });
}

/// Kubernetes deletes the pods of a namespace first and waits for them, and a Job may keep finalizers on its pods.
async fn without_its_namespace(space: &Space, when: &str) -> Result<()> {
    let began = Instant::now();
    kubectl(&["delete", "namespace", &space.name, "--wait=true", "--timeout=60s"]).await?;
    let row = Ledger {
        fault: format!("its namespace deleted {when}"),
        promised: "the namespace is deleted".to_owned(),
        recovered: format!("{:.1} s (all gone)", began.elapsed().as_secs_f64()),
        test: space.test.clone(),
        ..Ledger::default()
    };
    row.keep()
}

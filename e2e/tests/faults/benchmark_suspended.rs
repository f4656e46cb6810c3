//! A benchmark is suspended and resumed at every point with a different effect.

use anyhow::{Result, ensure};
use redisbench_e2e::benchmark::{SOON, is_finished, phase};
use redisbench_e2e::faults::{Account, Expected, Server};
use redisbench_e2e::{Benchmark, Space, redis, run, wait};
use serde_json::{Value, json};

use crate::stage::{held_preparing, start_recorded};

const NEW_SHARDS: &str = "its shards are deleted; once resumed, new ones prepare, and the whole load is measured";

async fn suspend(benchmark: &Benchmark, suspend: bool) -> Result<()> {
    benchmark.patch(&json!({"suspend": suspend})).await
}

async fn suspended(benchmark: &Benchmark) -> Result<Value> {
    let settled = |o: &Value| phase(o) == "Suspended" || is_finished(o);
    let object = benchmark.wait("suspended", SOON, settled).await?;
    ensure!(phase(&object) == "Suspended", "not Suspended: {}", object["status"]);
    Ok(object)
}

/// A resumed benchmark is prepared again, and preloads the missing keys again.
fn resumed() -> Expected<'static> {
    Expected { server: Server::CountedMore, repeat: &["Preparing", "Suspended"], ..Expected::default() }
}

#[test]
fn before_it_began() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"suspend": true})).await?;
        suspended(&benchmark).await?;
        let promised = "nothing is created until it is resumed; then the whole load is measured";
        let mut account = Account::open(&space, &benchmark, "created suspended, then resumed", promised).await?;
        suspend(&benchmark, false).await?;
        account.fault_ended();
        account.recovers("running", SOON, |o| phase(o) == "Running" || is_finished(o)).await?;
        account.close(&Expected::default()).await?;
        Ok(())
    });
}

#[test]
fn while_preparing() {
    run(|space| resumed_after(space, "suspended while Preparing, resumed when its shards were gone", true));
}

#[test]
fn while_preparing_and_resumed_at_once() {
    run(|space| resumed_after(space, "suspended while Preparing, resumed while its shards were going", false));
}

async fn resumed_after(space: Space, fault: &str, gone: bool) -> Result<()> {
    redis::standalone(&space, "redis").await?;
    let (benchmark, _cut) = held_preparing(&space).await?;
    let mut account = Account::open(&space, &benchmark, fault, NEW_SHARDS).await?;
    suspend(&benchmark, true).await?;
    suspended(&benchmark).await?;
    if gone {
        wait::answer("without shards", SOON, || async {
            let pods = space.kubectl(&["get", "pods", "-l", "batch.kubernetes.io/job-name", "-o", "name"]).await?;
            Ok(pods.is_empty().then_some(()))
        })
        .await?;
    }
    suspend(&benchmark, false).await?;
    account.fault_ended();
    account.recovers("running", SOON, |o| phase(o) == "Running" || is_finished(o)).await?;
    account.close(&resumed()).await?;
    Ok(())
}

#[test]
fn at_the_barrier() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({})).await?;
        start_recorded(&benchmark).await?;
        goes_on(&space, &benchmark, "suspended between the order to start and the start").await
    });
}

#[test]
fn while_running() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({})).await?;
        benchmark.measuring().await?;
        goes_on(&space, &benchmark, "suspended while Running").await
    });
}

async fn goes_on(space: &Space, benchmark: &Benchmark, fault: &str) -> Result<()> {
    let promised = "a started run continues to its end";
    let account = Account::open(space, benchmark, fault, promised).await?;
    suspend(benchmark, true).await?;
    let object = account.close(&Expected::default()).await?;
    ensure!(object["spec"]["suspend"] == true, "spec.suspend was changed: {}", object["spec"]);
    Ok(())
}

//! Brings a benchmark into the state for its fault.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use redisbench_e2e::benchmark::{SOON, is_finished, phase, shard_index};
use redisbench_e2e::faults::{CONTROL, Cut, Link};
use redisbench_e2e::{Benchmark, Space, wait};
use serde_json::{Value, json};

/// Waits until all shards' pods are running, and returns them.
pub async fn shards(benchmark: &Benchmark, number: usize) -> Result<Vec<Pod>> {
    wait::answer("running shards", SOON, || async {
        let pods = benchmark.pods().await?;
        let runs = |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        Ok((pods.iter().filter(runs).count() == number).then_some(pods))
    })
    .await
}

/// A new benchmark of two shards: one is armed, and the other is unreachable until the cut heals.
pub async fn held_preparing(space: &Space) -> Result<(Benchmark, Cut)> {
    // With enough keys that no shard is armed before the other's pod has a network that can be cut.
    let benchmark = Benchmark::create(space, "run", &json!({"workload": {"keys": {"count": 400_000}}})).await?;
    let cut = wait::answer("a shard that can be cut off", SOON, || async {
        let pods = benchmark.pods().await?;
        let second = pods.iter().find(|pod| shard_index(pod) == 1);
        Ok(second.and_then(|pod| Cut::make(pod, Link::Port(CONTROL)).ok()))
    })
    .await?;
    let held = |o: &Value| {
        let shards = |state: &str| o["status"]["shards"][state].as_u64().unwrap_or(0);
        is_finished(o) || shards("armed") >= 1 && shards("unreachable") == 1
    };
    let object = benchmark.wait("held by one of two shards", SOON, held).await?;
    ensure!(phase(&object) == "Preparing", "not Preparing: {}", object["status"]);
    Ok((benchmark, cut))
}

/// One of two shards has returned its final snapshot; the other's cannot be fetched until the cut heals.
pub async fn held_collecting(benchmark: &Benchmark) -> Result<Cut> {
    benchmark.measuring().await?;
    let cut = Cut::make(&shards(benchmark, 2).await?[1], Link::Port(CONTROL))?;
    let collecting = |o: &Value| phase(o) == "Collecting" || is_finished(o);
    let object = benchmark.wait("collecting", SOON, collecting).await?;
    ensure!(!is_finished(&object), "finished without its last snapshot: {}", object["status"]);
    Ok(cut)
}

/// Waits until the start is recorded. Its instant may not have come yet.
pub async fn start_recorded(benchmark: &Benchmark) -> Result<Value> {
    let recorded = |o: &Value| o.pointer("/status/trial/startAt").is_some() || is_finished(o);
    benchmark.wait("a start recorded", SOON, recorded).await
}

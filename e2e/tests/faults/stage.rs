//! Brings a benchmark into the state for its fault.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use redisbench_e2e::benchmark::{SOON, is_finished, phase};
use redisbench_e2e::faults::{CONTROL, Cut};
use redisbench_e2e::{Benchmark, wait};
use serde_json::Value;

/// Waits until all shards' pods are running, and returns them.
pub async fn shards(benchmark: &Benchmark, number: usize) -> Result<Vec<Pod>> {
    wait::answer("running shards", SOON, || async {
        let pods = benchmark.pods().await?;
        let runs = |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        Ok((pods.iter().filter(runs).count() == number).then_some(pods))
    })
    .await
}

/// One of two shards has returned its final snapshot; the other's cannot be fetched until the cut heals.
pub async fn held_collecting(benchmark: &Benchmark) -> Result<Cut> {
    benchmark.measuring().await?;
    let cut = Cut::make(&shards(benchmark, 2).await?[1], CONTROL)?;
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

//! The kernel kills a shard for want of memory.

use anyhow::{Context, ensure};
use redisbench_e2e::benchmark::{SOON, shards};
use redisbench_e2e::faults::{Expected, Process, Report, take_memory_away};
use redisbench_e2e::json::{count, list, text};
use redisbench_e2e::{Benchmark, run};
use serde_json::json;

const PROMISED: &str =
    "the rest goes on; of the lost shard counts what it had told, the rest is unknown; Invalid, naming it";

#[test]
fn out_of_memory() {
    run(|namespace| async move {
        let benchmark = Benchmark::measured(&namespace, "lost", &json!({"load": {"duration": "12s"}})).await?;
        let fault = "shard OOM-killed in mid-run, onLost Invalidate";
        let mut report = Report::open(&namespace, &benchmark, fault, PROMISED).await?;
        report.fault_ended();
        let victim = benchmark.pods().await?.pop().context("no pods")?;
        take_memory_away(&Process::of(&victim)?).await?;
        report.recovers("counted as lost", SOON, |object| shards(object, "lost") > Some(0)).await?;
        let object = report.close(&Expected { verdicts: &["Invalid"], lost: 1, ..Expected::default() }).await?;
        let reasons = list(&object, "/status/verdict/reasons");
        let named = reasons.iter().find(|reason| reason["reason"] == "ShardLost").context("no ShardLost")?;
        let said = text(named, "/message")?;
        ensure!(said.contains("shard 1") && said.contains("OOMKilled"), "the verdict is {said:?}");
        let requests = &object["status"]["result"]["requests"];
        ensure!(count(requests, "/scheduled")? == 400 * 12, "not the whole plan is accounted for: {requests}");
        ensure!(count(requests, "/unknown")? > 0, "a lost shard without an unknown rest: {requests}");
        Ok(())
    });
}

//! The network between operator and shard fails.

use std::time::Duration;

use anyhow::{Context, ensure};
use redisbench_e2e::benchmark::{SOON, phase, shards};
use redisbench_e2e::faults::{CONTROL, Cut, Expected, Report, lasts};
use redisbench_e2e::json::count;
use redisbench_e2e::{Benchmark, run};
use serde_json::json;

/// The time for which the link is cut.
const OUTAGE: Duration = Duration::from_secs(30);

#[test]
fn cut_in_mid_run() {
    run(|namespace| async move {
        let benchmark = Benchmark::measured(&namespace, "cut", &json!({"load": {"duration": "50s"}})).await?;
        let fault = "link operator-shard cut for 30 s in mid-run";
        let promised = "the shard continues; it is only reported as unreachable; nothing is lost";
        let mut report = Report::open(&namespace, &benchmark, fault, promised).await?;
        let cut = Cut::make(&benchmark.pods().await?.pop().context("no pods")?, CONTROL)?;
        let (noticed, ()) = tokio::join!(
            benchmark.wait("with an unreachable shard", OUTAGE, |object| shards(object, "unreachable") == Some(1)),
            lasts(OUTAGE)
        );
        let noticed = noticed?;
        ensure!(phase(&noticed) == "Running", "an unreachable shard changed the phase: {}", noticed["status"]);
        cut.heal();
        report.fault_ended();
        report.recovers("reached again", SOON, |object| shards(object, "unreachable") == Some(0)).await?;
        let object = report.close(&Expected::default()).await?;
        let requests = &object["status"]["result"]["requests"];
        ensure!(count(requests, "/scheduled")? == 400 * 50, "not the whole plan: {requests}");
        Ok(())
    });
}

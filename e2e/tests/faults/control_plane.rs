//! The control plane fails: etcd, the API server.

use std::time::Duration;

use anyhow::{Result, ensure};
use redisbench_e2e::benchmark::SOON;
use redisbench_e2e::faults::{Expected, Part, Report, lasts, operator};
use redisbench_e2e::json::{count, text};
use redisbench_e2e::{Benchmark, TestNamespace, run_alone};
use serde_json::{Value, json};

/// The time for which the API server is unavailable.
const OUTAGE: Duration = Duration::from_secs(30);

/// A run and its state, which must not change.
struct Running {
    seconds: u64,
    benchmark: Benchmark,
    before: Value,
    shards: Vec<Option<String>>,
}

impl Running {
    async fn begin(namespace: &TestNamespace, seconds: u64) -> Result<Self> {
        operator::fresh(&namespace.client).await?;
        let spec = json!({"load": {"duration": format!("{seconds}s")}});
        let benchmark = Benchmark::measured(namespace, "outage", &spec).await?;
        let before = benchmark.get().await?;
        let shards = benchmark.pods().await?.into_iter().map(|pod| pod.metadata.uid).collect();
        Ok(Self { seconds, benchmark, before, shards })
    }

    /// Checks that the same shards are still running.
    async fn check_shards(&self) -> Result<()> {
        let now: Vec<_> = self.benchmark.pods().await?.into_iter().map(|pod| pod.metadata.uid).collect();
        ensure!(now == self.shards, "shards were restarted: {:?} before, {now:?} after", self.shards);
        Ok(())
    }

    /// Checks that it is the same run and attempt, and complete.
    fn check_end(&self, object: &Value) -> Result<()> {
        for once in ["/status/runId", "/status/trial/startAt"] {
            let (before, after) = (text(&self.before, once)?, text(object, once)?);
            ensure!(before == after, "{once} was {before} and is {after}");
        }
        ensure!(count(object, "/status/trial/attempt")? == 1, "not the first attempt: {}", object["status"]);
        let scheduled = count(object, "/status/result/requests/scheduled")?;
        ensure!(scheduled == 400 * self.seconds, "{scheduled} requests are accounted for");
        Ok(())
    }
}

#[test]
fn etcd_stopped() {
    run_alone(|namespace| async move {
        let running = Running::begin(&namespace, 60).await?;
        let fault = "etcd stopped for 30 s in mid-run (SIGSTOP)";
        let promised = "the operator cannot renew its Lease and exits; the shards continue; its replacement takes \
                        over, and nothing is lost";
        let mut report = Report::open(&namespace, &running.benchmark, fault, promised).await?;
        let stopped = Part::Etcd.stop()?;
        lasts(OUTAGE).await;
        report.fault_ended();
        stopped.mend(&namespace.client).await?;
        report.taken_over().await?;
        let leader = operator::leader(&namespace.client).await?;
        ensure!(operator::restarts(&leader) > 0, "the operator outlived a Lease that it could not renew");
        running.check_shards().await?;
        running.check_end(&report.close(&Expected::default()).await?)
    });
}

#[test]
fn api_server_restarted() {
    run_alone(|namespace| async move {
        let running = Running::begin(&namespace, 30).await?;
        let fault = "API server killed in mid-run (SIGKILL) and restarted";
        let promised = "the operator continues with its last state, the status catches up; nothing is lost";
        let mut report = Report::open(&namespace, &running.benchmark, fault, promised).await?;
        report.fault_ended();
        Part::ApiServer.kill()?.mend(&namespace.client).await?;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let before = version(&running.benchmark.get().await?);
        report.recovers("its status is written again", SOON, |object| version(object) != before).await?;
        running.check_shards().await?;
        running.check_end(&report.close(&Expected::default()).await?)
    });
}

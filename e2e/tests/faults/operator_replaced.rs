//! The operator is upgraded, and duplicated.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::Api;
use redisbench_e2e::benchmark::{SOON, phase};
use redisbench_e2e::cluster::SYSTEM;
use redisbench_e2e::faults::operator;
use redisbench_e2e::faults::{Expected, Process, Report};
use redisbench_e2e::{Benchmark, Cluster, TestNamespace, run_alone, wait};
use serde_json::json;

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

#[test]
fn the_leader_stands_still_while_another_takes_over() {
    run_alone(|namespace| async move {
        Cluster::get().upgrade(&["replicas=2"]).await?;
        let outcome = Box::pin(stopped_leader(&namespace)).await;
        Cluster::get().upgrade(&[]).await?;
        outcome
    });
}

async fn stopped_leader(namespace: &TestNamespace) -> Result<()> {
    let leader = operator::leader(&namespace.client).await?;
    let process = Process::of(&leader)?;
    let restarts = operator::restarts(&leader);
    let benchmark = Benchmark::measured(namespace, "run", &json!({"load": {"duration": "45s"}})).await?;
    let promised = "the other takes the Lease and the run; the old leader exits when continued, and writes nothing";
    let fault = "leader of two operators stopped until its Lease expired, then continued";
    let mut report = Report::open(namespace, &benchmark, fault, promised).await?;
    let stopped = process.stop().await?;
    report.fault_ended();
    report.taken_over().await?;
    let other = operator::leader(&namespace.client).await?;
    ensure!(other.name_any() != leader.name_any(), "the stopped operator still leads");
    // Now two operators conduct.
    stopped.go_on();
    wait::answer("an old leader that ended", HALF_A_MINUTE, || async { Ok((!process.is_alive()).then_some(())) })
        .await?;
    ensure!(phase(&benchmark.get().await?) == "Running", "finished before the old leader exited");
    report.close(&Expected::default()).await?;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let pod = pods.get(&leader.name_any()).await?;
    let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
    let ended = status.and_then(|status| status.last_state.as_ref()?.terminated.as_ref()).context("it never ended")?;
    ensure!(operator::restarts(&pod) == restarts + 1, "{} restarts", operator::restarts(&pod));
    ensure!(ended.exit_code == 1, "it did not exit on its own: {ended:?}");
    ensure!(operator::holder(&namespace.client).await? == Some(other.name_any()), "the Lease has changed hands again");
    Ok(())
}

#[test]
fn a_helm_upgrade_in_mid_run() {
    run_alone(|namespace| async move {
        let outcome = upgraded(&namespace).await;
        Cluster::get().upgrade(&[]).await?;
        outcome
    });
}

async fn upgraded(namespace: &TestNamespace) -> Result<()> {
    let leader = operator::leader(&namespace.client).await?;
    let process = Process::of(&leader)?;
    let benchmark = Benchmark::measured(namespace, "run", &json!({"load": {"duration": "20s"}})).await?;
    let promised = "the old operator releases its Lease, the new one takes over immediately, and nothing is lost";
    let mut report = Report::open(namespace, &benchmark, "operator upgraded by Helm in mid-run", promised).await?;
    let upgrade = tokio::spawn(Cluster::get().upgrade(&["podAnnotations.upgraded=yes", "log.format=text"]));
    wait::answer("an old operator that ended", SOON, || async { Ok((!process.is_alive()).then_some(())) }).await?;
    report.fault_ended();
    report.taken_over().await?;
    upgrade.await??;
    let new = operator::leader(&namespace.client).await?;
    ensure!(new.annotations().contains_key("upgraded"), "the operator was not upgraded");
    report.close(&Expected::default()).await?;
    Ok(())
}

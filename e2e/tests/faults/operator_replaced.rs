//! The operator is upgraded, removed and reinstalled, and duplicated.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::Api;
use redisbench_e2e::accounts::served;
use redisbench_e2e::benchmark::{SOON, phase};
use redisbench_e2e::cluster::{RELEASE, SYSTEM};
use redisbench_e2e::faults::operator;
use redisbench_e2e::faults::{Account, Expected, Process};
use redisbench_e2e::json::text;
use redisbench_e2e::tools::helm;
use redisbench_e2e::{Benchmark, Cluster, Space, redis, run_alone, wait};
use serde_json::json;

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

#[test]
fn the_leader_stands_still_while_another_takes_over() {
    run_alone(|space| async move {
        Cluster::get().upgrade(&["replicas=2"]).await?;
        let outcome = Box::pin(stopped_leader(&space)).await;
        Cluster::get().upgrade(&[]).await?;
        outcome
    });
}

async fn stopped_leader(space: &Space) -> Result<()> {
    redis::standalone(space, "redis").await?;
    let leader = operator::leader(&space.client).await?;
    let process = Process::of(&leader)?;
    let restarts = operator::restarts(&leader);
    let benchmark = Benchmark::create(space, "run", &json!({"load": {"duration": "45s"}})).await?;
    benchmark.measuring().await?;
    let promised = "the other takes the Lease and the run; the old leader exits when continued, and writes nothing";
    let fault = "leader of two operators stopped until its Lease expired, then continued";
    let mut account = Account::open(space, &benchmark, fault, promised).await?;
    let stopped = process.stop().await?;
    account.fault_ended();
    account.taken_over().await?;
    let other = operator::leader(&space.client).await?;
    ensure!(other.name_any() != leader.name_any(), "the stopped operator still leads");
    // Now two operators conduct.
    stopped.go_on();
    wait::answer("an old leader that ended", HALF_A_MINUTE, || async { Ok((!process.is_alive()).then_some(())) })
        .await?;
    ensure!(phase(&benchmark.get().await?) == "Running", "finished before the old leader exited");
    account.close(&Expected::default()).await?;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(space.client.clone(), SYSTEM);
    let pod = pods.get(&leader.name_any()).await?;
    let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
    let ended = status.and_then(|status| status.last_state.as_ref()?.terminated.as_ref()).context("it never ended")?;
    ensure!(operator::restarts(&pod) == restarts + 1, "{} restarts", operator::restarts(&pod));
    ensure!(ended.exit_code == 1, "it did not exit on its own: {ended:?}");
    ensure!(operator::holder(&space.client).await? == Some(other.name_any()), "the Lease has changed hands again");
    Ok(())
}

#[test]
fn a_helm_upgrade_in_mid_run() {
    run_alone(|space| async move {
        let outcome = upgraded(&space).await;
        Cluster::get().upgrade(&[]).await?;
        outcome
    });
}

async fn upgraded(space: &Space) -> Result<()> {
    redis::standalone(space, "redis").await?;
    let leader = operator::leader(&space.client).await?;
    let process = Process::of(&leader)?;
    let benchmark = Benchmark::create(space, "run", &json!({"load": {"duration": "20s"}})).await?;
    benchmark.measuring().await?;
    let promised = "the old operator releases its Lease, the new one takes over immediately, and nothing is lost";
    let mut account = Account::open(space, &benchmark, "operator upgraded by Helm in mid-run", promised).await?;
    let upgrade = tokio::spawn(Cluster::get().upgrade(&["podAnnotations.upgraded=yes", "log.format=text"]));
    wait::answer("an old operator that ended", SOON, || async { Ok((!process.is_alive()).then_some(())) }).await?;
    account.fault_ended();
    account.taken_over().await?;
    upgrade.await??;
    let new = operator::leader(&space.client).await?;
    ensure!(new.annotations().contains_key("upgraded"), "the operator was not upgraded");
    account.close(&Expected::default()).await?;
    Ok(())
}

#[test]
fn a_helm_uninstall_in_mid_run() {
    run_alone(|space| async move {
        let outcome = uninstalled(&space, "operator uninstalled in mid-run and installed again", "25s", false).await;
        Cluster::get().upgrade(&[]).await?;
        outcome
    });
}

#[test]
fn a_helm_uninstall_until_the_load_is_over() {
    run_alone(|space| async move {
        let fault = "operator uninstalled in mid-run and installed again after the load";
        let outcome = uninstalled(&space, fault, "8s", true).await;
        Cluster::get().upgrade(&[]).await?;
        outcome
    });
}

async fn uninstalled(space: &Space, fault: &str, duration: &str, until_over: bool) -> Result<()> {
    redis::standalone(space, "redis").await?;
    operator::leader(&space.client).await?;
    let benchmark = Benchmark::create(space, "run", &json!({"load": {"duration": duration}})).await?;
    let before = benchmark.measuring().await?;
    let promised =
        "definition and benchmarks stay, shards continue; the next installed operator takes over, and nothing is lost";
    let mut account = Account::open(space, &benchmark, fault, promised).await?;
    helm(&["uninstall", RELEASE, "-n", SYSTEM, "--wait", "--timeout", "60s"]).await?;
    ensure!(operator::pods(&space.client).await?.is_empty(), "the operator is still there");
    let kept = benchmark.get().await?;
    ensure!(text(&kept, "/metadata/uid")? == text(&before, "/metadata/uid")?, "another benchmark");
    ensure!(phase(&kept) == "Running", "not Running: {}", kept["status"]);
    let counted = count_served(space).await?;
    if until_over {
        wait::answer("the end of the load", SOON, || async {
            let clients = redis::cli(space, "deployment/redis", &["client", "list"]).await?;
            let busy = clients.lines().any(|line| line.contains(" idle=0 ") && line.contains("cmd=get"));
            Ok((!busy).then_some(()))
        })
        .await?;
    } else {
        wait::answer("load without an operator", HALF_A_MINUTE, || async {
            Ok((count_served(space).await? > counted).then_some(()))
        })
        .await?;
    }
    account.fault_ended();
    Cluster::get().upgrade(&[]).await?;
    account.taken_over().await?;
    account.close(&Expected::default()).await?;
    Ok(())
}

async fn count_served(space: &Space) -> Result<u64> {
    Ok(served(&redis::calls(space, "deployment/redis").await?))
}

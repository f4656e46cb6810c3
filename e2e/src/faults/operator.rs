//! Faults of the operator.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use redisbench_testkit::processes::SIGKILL;

use super::process::Process;
use crate::cluster::{OPERATOR, SYSTEM};
use crate::wait;

/// The Lease of the leader election, as the chart names it for the tests' release.
const LEASE: &str = "redisbench-redisbench-operator";

/// Timeout for the Lease to expire, and for a pod to start on a busy machine.
const LEADS_WITHIN: Duration = Duration::from_secs(60);

/// The operator's pods that are not being deleted.
pub async fn pods(client: &Client) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), SYSTEM);
    let mut found = pods.list(&ListParams::default().labels(OPERATOR)).await?.items;
    found.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(found)
}

/// The holder of the Lease, if any.
pub async fn holder(client: &Client) -> Result<Option<String>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM);
    let lease = leases.get_opt(LEASE).await?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity).filter(|holder| !holder.is_empty()))
}

/// Waits for a leader, and returns its pod.
pub async fn leader(client: &Client) -> Result<Pod> {
    wait::answer("led by an operator that is ready", LEADS_WITHIN, || async {
        let Some(holder) = holder(client).await? else { return Ok(None) };
        Ok(pods(client).await?.into_iter().find(|pod| pod.name_any() == holder && is_ready(pod)))
    })
    .await
}

/// Kills the leader with SIGKILL. Its restarted container reclaims its Lease at once.
pub async fn kill(client: &Client) -> Result<()> {
    Process::of(&leader(client).await?)?.send(SIGKILL)
}

/// Replaces an operator whose container was restarted, because after some restarts Kubernetes would wait for minutes before the next.
pub async fn fresh(client: &Client) -> Result<()> {
    leader(client).await?;
    let all: Api<Pod> = Api::namespaced(client.clone(), SYSTEM);
    for pod in pods(client).await?.iter().filter(|pod| restarts(pod) > 0) {
        // With a grace period, so that it releases the Lease.
        all.delete(&pod.name_any(), &DeleteParams::default()).await?;
    }
    let led = leader(client).await?;
    anyhow::ensure!(restarts(&led) == 0, "the operator {} was restarted", led.name_any());
    Ok(())
}

pub fn restarts(pod: &Pod) -> i32 {
    first_status(pod).map_or(0, |status| status.restart_count)
}

pub fn is_ready(pod: &Pod) -> bool {
    first_status(pod).is_some_and(|status| status.ready)
}

fn first_status(pod: &Pod) -> Option<&k8s_openapi::api::core::v1::ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

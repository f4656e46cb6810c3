//! The operator as a thing to be disturbed.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};

use super::process::{Process, Signal};
use crate::cluster::{OPERATOR, SYSTEM};
use crate::wait;

/// The Lease that chooses the leader; the chart names it so for the release of the tests.
pub const LEASE: &str = "redisbench-redisbench-operator";
/// The Deployment.
pub const DEPLOYMENT: &str = "redisbench-redisbench-operator";

/// A lapsed Lease, and a pod that starts on a busy machine.
const LEADS_WITHIN: Duration = Duration::from_secs(60);

/// Who takes over from an operator that was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Successor {
    /// The same pod, whose container is started again: it takes its own Lease back at once.
    SamePod,
    /// Another pod, which has to wait until the Lease has lapsed.
    OtherPod,
}

/// The operator's pods that are not on their way out.
///
/// # Errors
/// If they cannot be listed.
pub async fn pods(client: &Client) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), SYSTEM);
    let mut found = pods.list(&ListParams::default().labels(OPERATOR)).await?.items;
    found.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(found)
}

/// Who holds the Lease, if anybody does.
///
/// # Errors
/// If the Lease cannot be read.
pub async fn holder(client: &Client) -> Result<Option<String>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM);
    let lease = leases.get_opt(LEASE).await?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity).filter(|holder| !holder.is_empty()))
}

/// The pod that leads, once one does.
///
/// # Errors
/// If none does within a minute.
pub async fn leader(client: &Client) -> Result<Pod> {
    wait::answer("led by an operator that is ready", LEADS_WITHIN, || async {
        let Some(holder) = holder(client).await? else { return Ok(None) };
        Ok(pods(client).await?.into_iter().find(|pod| pod.name_any() == holder && is_ready(pod)))
    })
    .await
}

/// Kills the leader without a word of warning.
///
/// # Errors
/// If there is none, or it cannot be killed.
pub async fn kill(client: &Client, successor: Successor) -> Result<()> {
    let leader = leader(client).await?;
    Process::of(&leader)?.send(Signal::Kill)?;
    if successor == Successor::OtherPod {
        remove(client, &leader).await?;
    }
    Ok(())
}

/// Deletes a pod of the operator at once.
///
/// # Errors
/// If the API server refuses.
pub async fn remove(client: &Client, pod: &Pod) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), SYSTEM);
    pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

/// Sees to it that the operator is one whose container was not restarted yet: after some restarts, Kubernetes would
/// wait for minutes before the next.
///
/// # Errors
/// If it does not lead within a minute.
pub async fn fresh(client: &Client) -> Result<()> {
    leader(client).await?;
    let all: Api<Pod> = Api::namespaced(client.clone(), SYSTEM);
    for pod in pods(client).await?.iter().filter(|pod| restarts(pod) > 0) {
        // With grace: the Lease is given back.
        all.delete(&pod.name_any(), &DeleteParams::default()).await?;
    }
    let led = leader(client).await?;
    anyhow::ensure!(restarts(&led) == 0, "the operator {} was restarted", led.name_any());
    Ok(())
}

/// How often the operator's container was started again.
pub fn restarts(pod: &Pod) -> i32 {
    first_status(pod).map_or(0, |status| status.restart_count)
}

/// Whether its container is ready.
pub fn is_ready(pod: &Pod) -> bool {
    first_status(pod).is_some_and(|status| status.ready)
}

/// The address of a pod.
///
/// # Errors
/// If the pod has no address yet.
pub fn address(pod: &Pod) -> Result<std::net::IpAddr> {
    let address =
        pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).context("a pod without an address")?;
    Ok(address.parse()?)
}

fn first_status(pod: &Pod) -> Option<&k8s_openapi::api::core::v1::ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

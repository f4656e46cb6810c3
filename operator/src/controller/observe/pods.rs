//! The presence of shards, from their Job and pods.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use redisbench_benchmark::conductor::{Endpoint, ShardPresence};

use crate::build::{BENCHMARK_LABEL, CONTAINER, CONTROL_PORT, FINAL_EXITS, RETRIES, RUN_LABEL};
use crate::controller::observed::JobView;

/// The label with a pod's index in an Indexed Job.
const INDEX_LABEL: &str = "batch.kubernetes.io/job-completion-index";
/// The annotation with the number of earlier failures of an index.
const FAILURES_ANNOTATION: &str = "batch.kubernetes.io/job-index-failure-count";
/// The time that a pod may take to start before its events are read.
const PATIENCE: Duration = Duration::from_secs(10);

/// The presence of shards 0 to `count`, from the pods of `job`. Without a Job, shards have not been created yet, or are permanently gone if
/// the run had started.
pub fn presence(count: u32, job: Option<&JobView>, pods: &[&Pod], started: bool) -> Vec<ShardPresence> {
    let Some(job) = job else {
        let none = if started {
            ShardPresence::Gone { why: "its Job was deleted".into(), replaced: false }
        } else {
            ShardPresence::Absent { why: None }
        };
        return vec![none; count as usize];
    };
    let mut newest: Vec<Option<&Pod>> = vec![None; count as usize];
    for pod in pods.iter().filter(|pod| belongs(pod, &job.uid)) {
        let index = pod.labels().get(INDEX_LABEL).and_then(|index| index.parse::<usize>().ok());
        if let Some(slot) = index.and_then(|index| newest.get_mut(index))
            && slot.is_none_or(|former| is_newer(pod, former))
        {
            *slot = Some(pod);
        }
    }
    newest
        .into_iter()
        .enumerate()
        .map(|(shard, pod)| match pod {
            Some(pod) => of_pod(u32::try_from(shard).unwrap_or(u32::MAX), job, pod),
            None => match &job.ended {
                Some(why) => ShardPresence::Gone { why: why.clone(), replaced: false },
                None if job.suspended => ShardPresence::Queued,
                None => ShardPresence::Absent { why: None },
            },
        })
        .map(|seen| match seen {
            // A suspended Job replaces no pod until its queue admits it again.
            ShardPresence::Leaving { .. } | ShardPresence::Gone { replaced: true, .. } if job.suspended && !started => {
                ShardPresence::Queued
            }
            seen => seen,
        })
        .collect()
}

/// Removes the fields of a pod that neither this module nor another reader of the cache uses: a whole pod takes 10 to 15 KB.
pub fn strip(pod: &mut Pod) {
    let Pod { metadata, spec, status } = std::mem::take(pod);
    pod.metadata = ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        creation_timestamp: metadata.creation_timestamp,
        deletion_timestamp: metadata.deletion_timestamp,
        labels: entries(metadata.labels, &[BENCHMARK_LABEL, RUN_LABEL, INDEX_LABEL]),
        annotations: entries(metadata.annotations, &[FAILURES_ANNOTATION]),
        owner_references: items(metadata.owner_references, |owner| owner.controller == Some(true)),
        ..ObjectMeta::default()
    };
    pod.spec = spec.map(|spec| PodSpec { node_name: spec.node_name, ..PodSpec::default() });
    pod.status = status.map(|status| PodStatus {
        phase: status.phase,
        pod_ip: status.pod_ip,
        reason: status.reason,
        message: status.message,
        conditions: items(status.conditions, |condition| is_disruption(condition) || is_unscheduled(condition)),
        container_statuses: containers(status.container_statuses),
        init_container_statuses: containers(status.init_container_statuses),
        ..PodStatus::default()
    });
}

/// The entries with these keys. None if there is none.
fn entries(map: Option<BTreeMap<String, String>>, keys: &[&str]) -> Option<BTreeMap<String, String>> {
    let kept: BTreeMap<_, _> = map?.into_iter().filter(|(key, _)| keys.contains(&key.as_str())).collect();
    (!kept.is_empty()).then_some(kept)
}

/// The items to keep, without spare capacity. None if there is none.
fn items<T>(list: Option<Vec<T>>, keep: impl Fn(&T) -> bool) -> Option<Vec<T>> {
    let mut list = list?;
    list.retain(keep);
    list.shrink_to_fit();
    (!list.is_empty()).then_some(list)
}

/// The containers that wait, and the load generator's if it has terminated, each with nothing but its state.
fn containers(statuses: Option<Vec<ContainerStatus>>) -> Option<Vec<ContainerStatus>> {
    let mut kept = items(statuses, |status| {
        status
            .state
            .as_ref()
            .is_some_and(|state| state.waiting.is_some() || (status.name == CONTAINER && state.terminated.is_some()))
    })?;
    for status in &mut kept {
        let ContainerStatus { name, state, .. } = std::mem::take(status);
        *status = ContainerStatus { name, state, ..ContainerStatus::default() };
    }
    Some(kept)
}

fn belongs(pod: &Pod, job: &str) -> bool {
    pod.owner_references().iter().any(|owner| owner.uid == job && owner.controller == Some(true))
}

/// A pod that can still run takes precedence, then the younger one.
fn is_newer(pod: &Pod, former: &Pod) -> bool {
    let rank = |pod: &Pod| {
        let over = matches!(phase(pod), "Failed") || pod.metadata.deletion_timestamp.is_some();
        (!over, pod.creation_timestamp().map(|time| time.0))
    };
    rank(pod) > rank(former)
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

fn of_pod(shard: u32, job: &JobView, pod: &Pod) -> ShardPresence {
    let named = |what: String| format!("pod {}{}: {what}", pod.name_any(), on_node(pod));
    let replaced = job.ended.is_none() && !job.deleting;
    let gone = |what: String, retried: bool| ShardPresence::Gone { why: named(what), replaced: retried && replaced };
    // Released. A sidecar may keep the pod running.
    if terminated(pod).is_some_and(|end| end.exit_code == 0) {
        return ShardPresence::Done;
    }
    match phase(pod) {
        "Succeeded" => return ShardPresence::Done,
        "Failed" => {
            let disrupted = pod.metadata.deletion_timestamp.is_some() || conditions(pod).iter().any(is_disruption);
            return gone(failure(pod), disrupted || will_retry(pod));
        }
        _ => {}
    }
    let deletion = pod.metadata.deletion_timestamp.as_ref().map(|_| deletion(pod));
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()?.parse::<IpAddr>().ok());
    // If the node of a pod does not answer, its state is unknown, and it may still run.
    let address = address.filter(|_| matches!(phase(pod), "Running" | "Unknown"));
    let endpoint = address.map(|address| Endpoint {
        shard,
        incarnation: pod.uid().unwrap_or_default(),
        address: SocketAddr::new(address, CONTROL_PORT),
        host: node(pod).to_owned(),
    });
    match (terminated(pod), deletion, endpoint) {
        (Some(_), Some(deletion), _) | (None, Some(deletion), None) => gone(deletion, true),
        // The load generator has terminated. The pod's phase follows shortly, or when its sidecars terminate.
        (Some(_), None, _) => gone(failure(pod), will_retry(pod)),
        (None, Some(deletion), Some(endpoint)) => ShardPresence::Leaving { endpoint, why: named(deletion), replaced },
        (None, None, Some(endpoint)) => ShardPresence::Present(endpoint),
        (None, None, None) => ShardPresence::Absent { why: hindrance(pod) },
    }
}

/// Three retries per index, and none after an exit code that says that a retry cannot help.
fn will_retry(pod: &Pod) -> bool {
    let failures = pod.annotations().get(FAILURES_ANNOTATION).and_then(|count| count.parse::<i32>().ok()).unwrap_or(0);
    terminated(pod).is_none_or(|end| !FINAL_EXITS.contains(&end.exit_code)) && failures < RETRIES
}

fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

fn on_node(pod: &Pod) -> String {
    match node(pod) {
        "" => String::new(),
        node => format!(" on node {node}"),
    }
}

/// The load generator's container. Kubelets sort containers by name, so a sidecar may precede it.
fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.iter().find(|status| status.name == CONTAINER)
}

fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    container(pod)?.state.as_ref()?.terminated.as_ref()
}

/// Why a pod is being deleted, in Kubernetes' words if it was not by a user.
fn deletion(pod: &Pod) -> String {
    let disruption = conditions(pod).iter().find(|condition| is_disruption(condition));
    let why = disruption.and_then(|found| Some(quote(found.reason.as_deref()?, found.message.as_deref())));
    why.map_or_else(|| "was deleted".to_owned(), |why| format!("was deleted: {why}"))
}

/// Why a pod ended, in Kubernetes' words.
fn failure(pod: &Pod) -> String {
    if let Some(end) = terminated(pod) {
        let reason = end.reason.as_deref().filter(|reason| *reason != "Error");
        let said = end.message.as_deref().and_then(|message| message.trim().lines().last()).unwrap_or_default();
        return match (reason, said) {
            (Some(reason), _) => format!("{reason}, exit code {}", end.exit_code),
            (None, "") => format!("exit code {}", end.exit_code),
            (None, said) => format!("exit code {}: {}", end.exit_code, redisbench_wire::limits::message(said)),
        };
    }
    let status = pod.status.as_ref();
    match status.and_then(|status| Some((status.reason.as_deref()?, status.message.as_deref().unwrap_or_default()))) {
        Some((reason, "")) => reason.to_owned(),
        Some((reason, message)) => format!("{reason}: {message}"),
        None => "failed".into(),
    }
}

fn conditions(pod: &Pod) -> &[PodCondition] {
    pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn is_disruption(condition: &PodCondition) -> bool {
    condition.type_ == "DisruptionTarget" && condition.status == "True"
}

fn is_unscheduled(condition: &PodCondition) -> bool {
    condition.type_ == "PodScheduled" && condition.status == "False"
}

/// The obstacle that keeps a pod from running, according to its status.
fn hindrance(pod: &Pod) -> Option<String> {
    if let Some((reason, message)) = container(pod).and_then(stuck) {
        return Some(quote(reason, message));
    }
    let status = pod.status.as_ref()?;
    let others = [&status.init_container_statuses, &status.container_statuses];
    let other = others.into_iter().flatten().flatten().find_map(|other| Some((&other.name, stuck(other)?)));
    if let Some((name, (reason, message))) = other {
        return Some(format!("container {name}: {}", quote(reason, message)));
    }
    let unscheduled = conditions(pod).iter().find(|condition| is_unscheduled(condition))?;
    Some(quote(unscheduled.reason.as_deref()?, unscheduled.message.as_deref()))
}

/// Why a container waits, with the kubelet's message, unless it is a normal step of a start.
fn stuck(status: &ContainerStatus) -> Option<(&str, Option<&str>)> {
    let ContainerStateWaiting { reason, message } = status.state.as_ref()?.waiting.as_ref()?;
    let reason = reason.as_deref().filter(|reason| !matches!(*reason, "ContainerCreating" | "PodInitializing"))?;
    Some((reason, message.as_deref()))
}

pub(super) fn quote(reason: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        _ => reason.to_owned(),
    }
}

/// The object whose events may explain why a shard is missing: a pod that waits for its volumes, or a Job that cannot create its pods. None
/// if there is no delay, or if the pod's status explains it.
pub fn puzzle(job: &Job, pods: &[&Pod], presence: &[ShardPresence], now: Timestamp) -> Option<(&'static str, String)> {
    let old = |created: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        created.is_some_and(|time| now.duration_since(time.0) >= PATIENCE.try_into().unwrap_or_default())
    };
    if !presence.iter().any(|shard| matches!(shard, ShardPresence::Absent { why: None })) {
        return None;
    }
    let stuck = pods.iter().find(|pod| {
        phase(pod) == "Pending"
            && pod.metadata.deletion_timestamp.is_none()
            && hindrance(pod).is_none()
            && old(pod.creation_timestamp())
    });
    if let Some(pod) = stuck {
        return Some(("Pod", pod.name_any()));
    }
    let missing = pods.len() < presence.len() && old(job.creation_timestamp());
    missing.then(|| ("Job", job.name_any()))
}

#[cfg(test)]
mod tests;

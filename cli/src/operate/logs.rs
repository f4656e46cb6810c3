//! `logs`: what the shards of a benchmark have printed.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, LogParams};
use redisbench_benchmark::api::{RUN_LABEL, RedisBenchmarkStatus};
use redisbench_benchmark::report::conditions::{condition, find};

use crate::arguments::LogsArguments;
use crate::cluster::Cluster;
use crate::cluster::answer::{self, Question};
use crate::exit::{BAD, GOOD};
use crate::render;

/// Label of a pod of an Indexed Job.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Prints the logs of the shards, each line after its shard's index if there are several.
pub async fn logs(cluster: &Cluster, arguments: &LogsArguments) -> anyhow::Result<u8> {
    let status = cluster.get(&arguments.name).await?.status.unwrap_or_default();
    let Some(run) = status.run_id.clone() else {
        anyhow::bail!("redisbenchmark {} has no shards yet: it is {:?}", arguments.name, status.phase);
    };
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let ask = |what, verb, resource| Question { what, verb, resource, namespace: &cluster.namespace };
    let shard = arguments.shard.map(|shard| format!(",{INDEX}={shard}")).unwrap_or_default();
    let selector = format!("{RUN_LABEL}={run}{shard}");
    let found = pods.list(&ListParams::default().labels(&selector)).await;
    let mut found = found.map_err(|error| answer::error(error, ask("list the shards' pods", "list", "pods")))?.items;
    if found.is_empty() {
        eprintln!("{}", nothing(&status, arguments));
        return Ok(BAD);
    }
    let index = |pod: &Pod| -> u32 {
        let labels = pod.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(INDEX)?.parse().ok()).unwrap_or(u32::MAX)
    };
    found.sort_by_key(|pod| (index(pod), pod.metadata.creation_timestamp.clone()));
    let mut code = GOOD;
    for pod in &found {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match pods.logs(name, &LogParams::default()).await {
            Ok(text) => {
                let prefix = if found.len() > 1 { format!("[{}] ", index(pod)) } else { String::new() };
                render::write(text.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>())?;
            }
            // Others may have started.
            Err(error) => {
                let error = answer::error(error, ask("read the log of a shard", "get", "pods/log"));
                eprintln!("shard {}: {error:#}", index(pod));
                code = BAD;
            }
        }
    }
    Ok(code)
}

/// Why there is no log.
fn nothing(status: &RedisBenchmarkStatus, arguments: &LogsArguments) -> String {
    let name = &arguments.name;
    match arguments.shard {
        _ if status.phase.is_terminal() => {
            let failed = find(status, condition::FAILED).filter(|failed| failed.status == "True");
            let why = failed.map(|failed| format!("; {}: {}", failed.reason, failed.message)).unwrap_or_default();
            format!("redisbenchmark {name} has finished, and its shards are deleted with their logs{why}")
        }
        Some(shard) => format!("redisbenchmark {name} has no pod of shard {shard} now"),
        None => format!("redisbenchmark {name} has no pods now: it is {:?}", status.phase),
    }
}

//! The commands that show and stop what runs on a cluster.

pub mod follow;
mod list;
mod logs;
mod status;

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::ListParams;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Phase;

use crate::arguments::{AbortArguments, ClusterCommand, Output, ShowArguments, VersionArguments, WatchArguments};
use crate::cluster::Cluster;
use crate::cluster::answer::{self, Question};
use crate::exit::{BAD, GOOD, USAGE, exit_code};
use crate::interrupt::Interrupts;
use crate::progress::Display;
use crate::{reading, render};
use follow::{End, OnInterrupt, can_ask, finish, follow, wants_abort};

/// The version of this program is wanted, whether there is a cluster or not.
const VERSION_WITHIN: Duration = Duration::from_secs(5);

/// Performs `command`.
///
/// # Errors
/// If the cluster cannot be reached or refuses, or the benchmark does not exist.
pub async fn perform(command: &ClusterCommand) -> anyhow::Result<u8> {
    match command {
        ClusterCommand::List(arguments) => {
            list::list(&Cluster::connect(&arguments.cluster).await?, arguments.all_namespaces).await
        }
        ClusterCommand::Status(arguments) => {
            status::status(&Cluster::connect(&arguments.cluster).await?, arguments).await
        }
        ClusterCommand::Result(arguments) => result(&Cluster::connect(&arguments.cluster).await?, arguments).await,
        ClusterCommand::Watch(arguments) => watch(&Cluster::connect(&arguments.show.cluster).await?, arguments).await,
        ClusterCommand::Logs(arguments) => logs::logs(&Cluster::connect(&arguments.cluster).await?, arguments).await,
        ClusterCommand::Abort(arguments) => abort(&Cluster::connect(&arguments.cluster).await?, arguments).await,
    }
}

async fn result(cluster: &Cluster, arguments: &ShowArguments) -> anyhow::Result<u8> {
    let benchmark = reading::cluster::object(cluster, &arguments.name).await?;
    render::print(&benchmark, arguments.output)?;
    Ok(exit_code(benchmark.status.as_ref()))
}

async fn watch(cluster: &Cluster, arguments: &WatchArguments) -> anyhow::Result<u8> {
    let name = &arguments.show.name;
    cluster.get(name).await?;
    let interrupts = Interrupts::listen().context("failed to listen for signals")?;
    let display = Display::new(arguments.plain);
    let end = Box::pin(follow(cluster, name, &interrupts, OnInterrupt::Leaves, display)).await?;
    finish(end, cluster, name, arguments.show.output)
}

async fn abort(cluster: &Cluster, arguments: &AbortArguments) -> anyhow::Result<u8> {
    let name = &arguments.name;
    let present = phase(&cluster.get(name).await?);
    anyhow::ensure!(!present.is_terminal(), "redisbenchmark {name} has finished: it is {present:?}");
    let interrupts = Interrupts::listen().context("failed to listen for signals")?;
    if !arguments.yes {
        if !can_ask() {
            eprintln!("error: abort asks before it stops a run, and there is no terminal to ask on: use --yes");
            return Ok(USAGE);
        }
        let question = format!("abort {name} in namespace {} and keep the partial result?", cluster.namespace);
        let answer = tokio::select! {
            answer = wants_abort(&interrupts, &question) => answer,
            () = interrupts.first() => None,
        };
        if answer != Some(true) {
            eprintln!("not aborted");
            return Ok(BAD);
        }
    }
    follow::abort(cluster, name).await?;
    let display = Display::new(arguments.plain);
    match Box::pin(follow(cluster, name, &interrupts, OnInterrupt::Leaves, display)).await? {
        End::Finished(benchmark) => {
            let phase = phase(&benchmark);
            eprintln!(
                "redisbenchmark/{name} is {phase:?}; see kubectl redisbench result -n {} {name}",
                cluster.namespace
            );
            Ok(if phase == Phase::Aborted { GOOD } else { BAD })
        }
        end => finish(end, cluster, name, Output::Table),
    }
}

fn phase(benchmark: &RedisBenchmark) -> Phase {
    benchmark.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// Prints the version of this program, and those of the operators of the cluster, if there is one.
pub async fn version(arguments: &VersionArguments) -> anyhow::Result<u8> {
    let asked = async { operators(&Cluster::connect(&arguments.cluster).await?).await };
    let operators = tokio::time::timeout(VERSION_WITHIN, asked).await;
    let operators = operators.unwrap_or_else(|_| Err(anyhow::anyhow!("the cluster does not answer")));
    let operators = operators.unwrap_or_else(|error| vec![format!("unknown: {error:#}")]);
    let lines: String = operators.iter().map(|operator| format!("operator  {operator}\n")).collect();
    render::write(format!("client    {}\n{lines}", env!("CARGO_PKG_VERSION")))?;
    Ok(GOOD)
}

/// Version, place and replicas of each operator.
async fn operators(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let api: Api<Deployment> = Api::all(cluster.client.clone());
    let parameters = ListParams::default().labels("app.kubernetes.io/name=redisbench-operator");
    let found = api.list(&parameters).await.map_err(|error| {
        answer::error(
            error,
            Question { what: "list the operators", verb: "list", resource: "deployments", namespace: "" },
        )
    })?;
    anyhow::ensure!(!found.items.is_empty(), "no Deployment of the chart redisbench-operator");
    let describe = |operator: Deployment| {
        let metadata = operator.metadata;
        let version = metadata.labels.unwrap_or_default().remove("app.kubernetes.io/version");
        let ready = operator.status.and_then(|status| status.ready_replicas).unwrap_or(0);
        format!(
            "{} in namespace {} ({}), {ready} ready",
            version.as_deref().unwrap_or("unknown"),
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default()
        )
    };
    Ok(found.items.into_iter().map(describe).collect())
}

#[cfg(test)]
mod tests;

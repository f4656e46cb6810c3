//! `run`: starts a benchmark on a cluster and follows it to its end.

pub mod answer;
mod apply;
mod follow;

use anyhow::Context as _;
use kube::config::{Config, KubeConfigOptions};
use kube::{Api, Client};
use redisbench_benchmark::api::RedisBenchmark;

use crate::arguments::RunArguments;
use crate::interrupt::Interrupts;
use crate::manifest::{self, Problem};
use crate::progress::Display;
use crate::{BAD, USAGE, exit_code, render, validate};
use apply::ApplyError;
use follow::End;

/// Applies the manifest, follows the benchmark, and prints its result.
///
/// # Errors
/// If the cluster cannot be reached, or refuses for a reason other than the manifest.
pub async fn run(arguments: &RunArguments) -> anyhow::Result<u8> {
    let read = manifest::load(&arguments.file);
    let manifest = match read.and_then(|manifest| manifest::compile(&manifest.benchmark).map(|_| manifest)) {
        Ok(manifest) => manifest,
        Err(problems) => return Ok(refuse(arguments, &problems)),
    };
    if let Some(problem) = manifest::of_one_machine(&manifest.benchmark) {
        return Ok(refuse(arguments, &[problem]));
    }
    let (client, default_namespace) = connect(arguments.context.as_deref()).await?;
    let namespace = match namespace(arguments, &manifest.benchmark, &default_namespace) {
        Ok(namespace) => namespace,
        Err(problem) => return Ok(refuse(arguments, &[problem])),
    };
    let interrupts = Interrupts::listen().context("failed to listen for signals")?;
    let display = Display::new();
    for skipped in &manifest.skipped {
        display.note(&format!("{skipped} is not applied: only the RedisBenchmark and Secrets are"));
    }
    let api: Api<RedisBenchmark> = Api::namespaced(client.clone(), &namespace);
    let applied = match apply::apply(&client, &api, &namespace, &manifest).await {
        Ok(applied) => applied,
        Err(ApplyError::Refused(problems)) => return Ok(refuse(arguments, &problems)),
        Err(error) => return Err(error.into()),
    };
    let name = applied.metadata.name.clone().unwrap_or_default();
    display.note(&format!("redisbenchmark/{name} in namespace {namespace}"));
    match Box::pin(follow::follow(&api, &namespace, &name, &interrupts, display)).await? {
        End::Finished(mut benchmark) => {
            // Hidden like in kubectl, because of its length.
            benchmark.metadata.managed_fields = None;
            render::print(&benchmark, arguments.output)?;
            Ok(exit_code(benchmark.status.as_ref()))
        }
        End::NotAccepted(message) => Ok(refuse(arguments, &[Problem::file(format!("not accepted: {message}"))])),
        End::Deleted => {
            eprintln!("redisbenchmark/{name} was deleted");
            Ok(BAD)
        }
        End::Left => {
            eprintln!("redisbenchmark/{name} continues; see kubectl -n {namespace} get redisbenchmark {name}");
            Ok(BAD)
        }
    }
}

fn refuse(arguments: &RunArguments, problems: &[Problem]) -> u8 {
    validate::report(Some(&arguments.file), problems);
    USAGE
}

/// A client for the cluster of a kubeconfig's `context`, or of the current one, and its default namespace.
///
/// # Errors
/// If there is no usable kubeconfig.
pub async fn connect(context: Option<&str>) -> anyhow::Result<(Client, String)> {
    let config = match context {
        Some(_) => {
            let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
            Config::from_kubeconfig(&options).await.context("failed to read the kubeconfig")?
        }
        None => Config::infer()
            .await
            .context("failed to find a cluster; set KUBECONFIG, or use local to run without one")?,
    };
    let namespace = config.default_namespace.clone();
    Ok((Client::try_from(config).context("failed to set up the connection to the cluster")?, namespace))
}

/// The namespace to run in. As in kubectl, conflicting namespaces in manifest and arguments are an error.
fn namespace(arguments: &RunArguments, benchmark: &RedisBenchmark, default: &str) -> Result<String, Problem> {
    match (arguments.namespace.as_deref(), benchmark.metadata.namespace.as_deref()) {
        (Some(asked), Some(written)) if asked != written => Err(Problem::field(
            "metadata.namespace",
            format!("is {written:?}, but --namespace is {asked:?}; remove one of them"),
        )),
        (Some(namespace), _) | (None, Some(namespace)) => Ok(namespace.to_owned()),
        (None, None) => Ok(default.to_owned()),
    }
}

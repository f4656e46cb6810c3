//! `run`: starts a benchmark on a cluster and follows it to its end.

mod apply;

use anyhow::Context as _;
use redisbench_benchmark::api::RedisBenchmark;

use crate::arguments::RunArguments;
use crate::cluster::Cluster;
use crate::exit::USAGE;
use crate::interrupt::Interrupts;
use crate::manifest::{self, Problem};
use crate::operate::follow::{End, OnInterrupt, finish, follow};
use crate::progress::Display;
use crate::validate;
use apply::ApplyError;

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
    let mut cluster = Cluster::connect(&arguments.cluster).await?;
    cluster.namespace = match namespace(arguments, &manifest.benchmark, &cluster.namespace) {
        Ok(namespace) => namespace,
        Err(problem) => return Ok(refuse(arguments, &[problem])),
    };
    let interrupts = Interrupts::listen().context("failed to listen for signals")?;
    let mut display = Display::new(arguments.plain);
    for skipped in &manifest.skipped {
        display.note(&format!(
            "{skipped} is not applied: only the RedisBenchmark, Secrets and the ConfigMaps of its workload are"
        ));
    }
    let applied = match apply::apply(&cluster, &manifest).await {
        Ok(applied) => applied,
        Err(ApplyError::Refused(problems)) => return Ok(refuse(arguments, &problems)),
        Err(error) => return Err(error.into()),
    };
    let name = applied.metadata.name.clone().unwrap_or_default();
    display.note(&format!("redisbenchmark/{name} in namespace {}", cluster.namespace));
    match Box::pin(follow(&cluster, &name, &interrupts, OnInterrupt::AsksToAbort, display)).await? {
        End::NotAccepted(message) => Ok(refuse(arguments, &[Problem::file(format!("not accepted: {message}"))])),
        end => finish(end, &cluster, &name, arguments.output),
    }
}

fn refuse(arguments: &RunArguments, problems: &[Problem]) -> u8 {
    validate::report(Some(&arguments.file), problems);
    USAGE
}

/// The namespace to run in. As in kubectl, conflicting namespaces in manifest and arguments are an error.
fn namespace(arguments: &RunArguments, benchmark: &RedisBenchmark, default: &str) -> Result<String, Problem> {
    match (arguments.cluster.namespace.as_deref(), benchmark.metadata.namespace.as_deref()) {
        (Some(asked), Some(written)) if asked != written => Err(Problem::field(
            "metadata.namespace",
            format!("is {written:?}, but --namespace is {asked:?}; remove one of them"),
        )),
        (Some(namespace), _) | (None, Some(namespace)) => Ok(namespace.to_owned()),
        (None, None) => Ok(default.to_owned()),
    }
}

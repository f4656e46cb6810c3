//! The objects of a run. Built from checked input, so building cannot fail.

mod budget;
mod job;
mod pod;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceRequirements, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

pub use redisbench_benchmark::api::RUN_LABEL;
use redisbench_benchmark::api::Validated;
use redisbench_benchmark::api::status::Artifact;
use redisbench_benchmark::credential::RunCredential;
use redisbench_benchmark::plan::Plan;
use redisbench_benchmark::report::{Finished, Measurement};

pub use budget::disruption_budget;
pub use job::{FINAL_EXITS, RETRIES, job};

/// Label of all objects of a benchmark: its name.
pub const BENCHMARK_LABEL: &str = "redisbench.dev/benchmark";
/// Annotation of a piece of the result: the epoch of the conductor that wrote it.
pub const EPOCH_ANNOTATION: &str = "redisbench.dev/conductor-epoch";
/// The name of the load generator's container.
pub const CONTAINER: &str = "loadgen";
/// The port of a shard's control API.
pub const CONTROL_PORT: u16 = 7379;

/// The run that the objects belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub namespace: String,
    /// The benchmark's name, at most 46 characters.
    pub benchmark: String,
    pub uid: String,
    /// The benchmark's `status.runId`.
    pub id: String,
}

/// The drivers that benchmarks may name, as the chart sets them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drivers {
    /// Images by the driver's name.
    pub images: BTreeMap<String, String>,
    /// Of each driver's container.
    pub resources: Option<ResourceRequirements>,
}

/// The input for the Job of a run.
#[derive(Clone, Copy, Debug)]
pub struct JobInput<'a> {
    pub run: &'a Run,
    /// All trials: the pods are those of the one with the most shards, and mount the Secrets of all targets.
    pub plan: &'a Plan,
    pub image: &'a str,
    pub pull_policy: &'a str,
    pub drivers: &'a Drivers,
}

impl JobInput<'_> {
    /// The checked spec of the trial with the most shards.
    fn spec(&self) -> &Validated {
        self.plan.largest()
    }
}

/// Where the pieces of the full result are stored, as listed in the status.
pub fn artifacts(finished: &Finished) -> Vec<Artifact> {
    let Some(Measurement { benchmark, trial, .. }) = &finished.measurement else { return Vec::new() };
    let map = |index| match (trial.of, index) {
        (1, _) => format!("{benchmark}-result-{index}"),
        (_, 0) => format!("{benchmark}-result-{}", trial.index),
        _ => format!("{benchmark}-result-{}-{index}", trial.index),
    };
    let pieces = finished.pieces.iter().enumerate();
    pieces.map(|(index, (name, _))| Artifact { name: name.clone(), config_map: map(index) }).collect()
}

impl Run {
    /// The name of the run's Job and Secret. Ends with the end of the runId, so that a re-created benchmark does not collide with its
    /// predecessor's children.
    pub fn child_name(&self) -> String {
        let end = self.id.len().saturating_sub(8);
        format!("{}-{}", self.benchmark, self.id.get(end..).unwrap_or(&self.id).to_ascii_lowercase())
    }

    /// Returns whether `object` is a child of the run's benchmark.
    pub fn owns(&self, object: &impl Resource) -> bool {
        object.meta().owner_references.iter().flatten().any(|owner| owner.uid == self.uid)
    }

    /// The name of the ConfigMap with piece `index` of the aggregate of all trials.
    pub fn experiment_name(&self, index: usize) -> String {
        match index {
            0 => format!("{}-result-experiment", self.benchmark),
            _ => format!("{}-result-experiment-{index}", self.benchmark),
        }
    }

    fn labels(&self) -> BTreeMap<String, String> {
        [
            (BENCHMARK_LABEL, self.benchmark.as_str()),
            (RUN_LABEL, &self.id),
            ("app.kubernetes.io/name", "redisbench"),
            ("app.kubernetes.io/component", "shard"),
            ("app.kubernetes.io/managed-by", "redisbench-operator"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// Metadata of an object owned by the benchmark. Without `blockOwnerDeletion`, which would need a permission on finalizers: no child
    /// has to be gone before the benchmark is.
    fn owned(&self, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(self.namespace.clone()),
            labels: Some(self.labels()),
            owner_references: Some(vec![OwnerReference {
                api_version: "redisbench.dev/v1alpha1".into(),
                kind: "RedisBenchmark".into(),
                name: self.benchmark.clone(),
                uid: self.uid.clone(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        }
    }
}

/// The Secret with the run's credential, which the shards mount.
pub fn secret(run: &Run, credential: &RunCredential) -> Secret {
    let files = [
        ("token", credential.token_text()),
        ("tls.crt", credential.certificate_pem()),
        ("tls.key", credential.private_key_pem()),
    ];
    Secret {
        metadata: run.owned(run.child_name()),
        immutable: Some(true),
        type_: Some("redisbench.dev/run-credential".into()),
        data: Some(files.map(|(name, text)| (name.to_owned(), ByteString(text.as_bytes().to_vec()))).into()),
        ..Secret::default()
    }
}

/// The ConfigMap `config_map` with one piece of the result, from the conductor of `epoch`.
pub fn artifact(run: &Run, epoch: u64, config_map: &str, name: &str, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            annotations: Some([(EPOCH_ANNOTATION.to_owned(), epoch.to_string())].into()),
            ..run.owned(config_map.to_owned())
        },
        data: Some([(name.to_owned(), text.to_owned())].into()),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests;

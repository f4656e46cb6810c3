//! The connection to a cluster, and the benchmarks on it.

pub mod answer;

use std::error::Error as _;

use anyhow::{Context as _, anyhow};
use kube::api::ListParams;
use kube::config::{Config, KubeConfigOptions};
use kube::{Api, Client};
use redisbench_benchmark::api::RedisBenchmark;

use crate::arguments::ClusterArguments;
use crate::explain::nearest;
use answer::Question;

/// The field manager of this program.
pub const FIELD_MANAGER: &str = "kubectl-redisbench";

/// The most objects in one answer: a status may have 256 KiB.
const PAGE: u32 = 100;

/// A cluster and the namespace of the command.
pub struct Cluster {
    pub client: Client,
    pub namespace: String,
}

impl Cluster {
    /// Connects to the cluster of `arguments`.
    ///
    /// # Errors
    /// If there is no usable kubeconfig.
    pub async fn connect(arguments: &ClusterArguments) -> anyhow::Result<Self> {
        let config = match arguments.context.clone() {
            Some(context) => {
                let options = KubeConfigOptions { context: Some(context), ..KubeConfigOptions::default() };
                Config::from_kubeconfig(&options).await.context("failed to read the kubeconfig")?
            }
            None => Config::infer().await.map_err(|error| {
                // Each says all that its causes say.
                let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                anyhow!("failed to find a cluster; set KUBECONFIG, or use local to run without one: {cause}")
            })?,
        };
        let namespace = arguments.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok(Self {
            client: Client::try_from(config).context("failed to set up the connection to the cluster")?,
            namespace,
        })
    }

    pub fn benchmarks(&self) -> Api<RedisBenchmark> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The benchmark `name`.
    ///
    /// # Errors
    /// If it does not exist, with the names that are most like it, or cannot be read.
    pub async fn get(&self, name: &str) -> anyhow::Result<RedisBenchmark> {
        let namespace = &self.namespace;
        let question = Question { what: "read the benchmark", verb: "get", resource: "redisbenchmarks", namespace };
        match self.benchmarks().get(name).await {
            Ok(mut benchmark) => {
                // Hidden like in kubectl, because of its length.
                benchmark.metadata.managed_fields = None;
                Ok(benchmark)
            }
            // Without our custom resource definition, the answer has no such reason.
            Err(kube::Error::Api(status)) if status.reason == "NotFound" => {
                // Without the permission to list, the message has no names.
                let there = self.list(false).await.unwrap_or_default();
                let names: Vec<&str> = there.iter().filter_map(|one| one.metadata.name.as_deref()).collect();
                anyhow::bail!(
                    "redisbenchmark {name} does not exist in namespace {namespace}{}",
                    did_you_mean(name, &names)
                )
            }
            Err(error) => Err(answer::error(error, question)),
        }
    }

    /// The benchmarks of the namespace, or of all.
    pub async fn list(&self, all: bool) -> anyhow::Result<Vec<RedisBenchmark>> {
        let (api, namespace) =
            if all { (Api::all(self.client.clone()), "") } else { (self.benchmarks(), self.namespace.as_str()) };
        let question = Question { what: "list the benchmarks", verb: "list", resource: "redisbenchmarks", namespace };
        let mut found = Vec::new();
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let page = api.list(&parameters).await.map_err(|error| answer::error(error, question))?;
            found.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(found),
            }
        }
    }
}

fn did_you_mean(name: &str, names: &[&str]) -> String {
    match nearest(name, names).as_slice() {
        [] => "; list -A shows those of all namespaces".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}

//! Applies a manifest to the cluster.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Phase;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::answer::{self, Question};
use crate::cluster::{Cluster, FIELD_MANAGER};
use crate::manifest::{Manifest, Problem};

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The manifest must be changed.
    #[error("the manifest was refused")]
    Refused(Vec<Problem>),
    #[error("{0}")]
    Answered(String),
    #[error("failed to {what}")]
    Api { what: &'static str, source: kube::Error },
}

/// Applies the Secrets, the ConfigMaps of the workload, and the benchmark.
///
/// # Errors
/// If the manifest is refused, a finished benchmark has its name, or the API server fails.
pub async fn apply(cluster: &Cluster, manifest: &Manifest) -> Result<RedisBenchmark, ApplyError> {
    let (api, namespace) = (cluster.benchmarks(), cluster.namespace.as_str());
    let name = manifest.benchmark.metadata.name.as_deref().unwrap_or_default();
    let asking = |what, verb| Question { what, verb, resource: "redisbenchmarks", namespace };
    let present = api.get_opt(name).await.map_err(|source| refused(source, asking("look for the benchmark", "get")))?;
    if let Some(problem) = present.as_ref().and_then(|present| finished(present, name, namespace)) {
        return Err(ApplyError::Refused(vec![problem]));
    }
    let mut parameters = PatchParams::apply(FIELD_MANAGER);
    parameters.field_validation = Some(kube::api::ValidationDirective::Strict);
    for secret in &manifest.secrets {
        apply_beside(cluster, secret, &parameters, ("apply a Secret", "secrets")).await?;
    }
    for map in &manifest.config_maps {
        apply_beside(cluster, map, &parameters, ("apply a ConfigMap", "configmaps")).await?;
    }
    api.patch(name, &parameters, &Patch::Apply(body(&manifest.document)))
        .await
        .map_err(|source| refused(source, asking("apply the benchmark", "patch")))
}

/// Applies an object that the benchmark refers to. The last two words are those of a [`Question`].
async fn apply_beside<K>(
    cluster: &Cluster,
    object: &K,
    parameters: &PatchParams,
    (what, resource): (&'static str, &'static str),
) -> Result<(), ApplyError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    let metadata = object.meta();
    let namespace = metadata.namespace.as_deref().unwrap_or(&cluster.namespace);
    let name = metadata.name.as_deref().unwrap_or_default();
    let api = Api::<K>::namespaced(cluster.client.clone(), namespace);
    let applied = api.patch(name, parameters, &Patch::Apply(object)).await;
    applied.map(drop).map_err(|source| refused(source, Question { what, verb: "patch", resource, namespace }))
}

/// The document as the user wrote it, so that the API server sets the defaults. Without fields that users cannot set.
fn body(document: &Value) -> Value {
    let mut body = document.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
    }
    body
}

fn finished(present: &RedisBenchmark, name: &str, namespace: &str) -> Option<Problem> {
    let phase: Phase = present.status.as_ref().map(|status| status.phase)?;
    phase.is_terminal().then(|| {
        Problem::field(
            "metadata.name",
            format!(
                "{name:?} already exists and is {phase:?}; delete it (kubectl -n {namespace} delete redisbenchmark \
                 {name}) or choose another name"
            ),
        )
    })
}

fn refused(error: kube::Error, question: Question<'_>) -> ApplyError {
    match &error {
        kube::Error::Api(status) if matches!(status.code, 400 | 422) => {
            ApplyError::Refused(vec![Problem::file(format!("refused by the API server: {}", status.message))])
        }
        kube::Error::Api(status) => ApplyError::Answered(answer::explain(status, question)),
        _ => ApplyError::Api { what: question.what, source: error },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_that_the_server_does_not_know_means_no_chart() {
        let answer = kube::core::Status { code: 404, message: "404 page not found\n".into(), ..Default::default() };
        let question =
            Question { what: "look for the benchmark", verb: "get", resource: "redisbenchmarks", namespace: "perf" };
        let error = refused(kube::Error::Api(Box::new(answer)), question);
        assert_eq!(error.to_string(), answer::NOT_INSTALLED);
    }

    #[test]
    fn applies_what_the_user_wrote() {
        let document = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"x": 1}, "status": {}});
        assert_eq!(body(&document), json!({"metadata": {"name": "a"}, "spec": {"x": 1}}));
    }
}

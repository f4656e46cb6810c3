//! Carries out writes: the only ones of reconciling.
//!
//! Its only read: if the name of a child is taken, whose it is, and what it holds.
//!
//! Children are created, not patched, because an object with our name that is not ours must stay unchanged. Every status is written with
//! the resourceVersion that the decision was based on, so a decision on stale facts changes nothing.

pub(super) mod events;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::ready;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, Preconditions, PropagationPolicy};
use kube::core::Status;
use kube::{Api, Client, Resource, ResourceExt as _};
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkStatus};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::status::difference;
use crate::build::{EPOCH_ANNOTATION, Run};
use crate::client::{self, CallError};

/// Timeout of one call to the API server.
const CALL: Duration = Duration::from_secs(15);
/// Concurrent deletions of a run's pods. One by one, thousands would take longer than a reconciliation may.
const DELETIONS: usize = 16;
/// A shard that did not stop is killed after this time, in seconds.
const STOP_SECONDS: u32 = 5;

#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Call(#[from] CallError),
    /// An object with the name that we need is not ours.
    #[error("{kind} {name} exists and is not owned by this benchmark; delete or rename it, or rename the benchmark")]
    NameTaken { kind: String, name: String },
    #[error("the previous {kind} {name} is still being deleted")]
    StillDeleting { kind: String, name: String },
    #[error("failed to write ConfigMap {name}: a later conductor has already written it")]
    Superseded { name: String },
    /// A value cannot be serialised as JSON. Not expected.
    #[error("failed to write the status as JSON")]
    Json(#[source] serde_json::Error),
}

impl ApplyError {
    /// The API server's refusal.
    fn refusal(&self) -> Option<&Status> {
        let Self::Call(error) = self else { return None };
        error.refusal()
    }

    /// The HTTP status of the API server's refusal.
    pub fn code(&self) -> Option<u16> {
        self.refusal().map(|status| status.code)
    }

    /// The pause that the API server requests.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.refusal()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// Returns whether a retry with the same object would fail too: it is too large, or not acceptable.
    pub fn refuses_the_object(&self) -> bool {
        self.refusal().is_some_and(|status| match status.code {
            400 | 413 | 422 => true,
            // The API server reports etcd's own limits only as text.
            500 => ["request is too large", "larger than max"].iter().any(|text| status.message.contains(text)),
            _ => false,
        })
    }

    /// Returns whether creating fails because the namespace is being deleted.
    pub fn is_namespace_going(&self) -> bool {
        self.refusal().is_some_and(|status| {
            let mut causes = status.details.iter().flat_map(|details| &details.causes);
            status.code == 403 && causes.any(|cause| cause.reason == "NamespaceTerminating")
        })
    }

    /// Returns whether the API server is unavailable or overloaded, so that the failure does not depend on the request.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Call(CallError::Timeout { .. }) => true,
            Self::Call(error @ CallError::Api { .. }) => error.code().is_none_or(|code| code == 429),
            _ => false,
        }
    }
}

pub(super) async fn call<T>(what: &str, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApplyError> {
    Ok(client::call(what, CALL, call).await?)
}

/// Writes `new` if it differs from the status of `benchmark`. Returns whether it did.
///
/// # Errors
/// Among others a conflict (409) if the benchmark was changed since it was read.
pub async fn status(
    client: &Client,
    benchmark: &RedisBenchmark,
    new: &RedisBenchmarkStatus,
) -> Result<bool, ApplyError> {
    let value = |status: &RedisBenchmarkStatus| serde_json::to_value(status).map_err(ApplyError::Json);
    let old = benchmark.status.as_ref().map_or_else(|| Ok(json!({})), value)?;
    let Some(change) = difference(&old, &value(new)?) else { return Ok(false) };
    change_status(client, &benchmark.metadata, &change).await?;
    Ok(true)
}

/// Merges `change` into the status of a benchmark, which may not parse as this version's type.
///
/// # Errors
/// Among others a conflict (409) if the benchmark was changed since its `metadata` was read.
pub async fn change_status(client: &Client, metadata: &ObjectMeta, change: &Value) -> Result<(), ApplyError> {
    let patch = json!({"metadata": {"resourceVersion": metadata.resource_version}, "status": change});
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
    let resource = ApiResource::erase::<RedisBenchmark>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace.unwrap_or_default(), &resource);
    let (params, patch) = (client::patch(), Patch::Merge(patch));
    call("write the status", api.patch_status(name.unwrap_or_default(), &params, &patch)).await.map(drop)
}

pub struct Applier<'a> {
    /// The owner of the children.
    pub run: &'a Run,
    pub client: &'a Client,
}

impl Applier<'_> {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.run.namespace)
    }

    /// Creates the run's Secret, budget of disruptions and Job, if they do not exist.
    ///
    /// # Errors
    /// If the API server refuses, or a name is taken.
    pub async fn create_children(
        &self,
        secret: &Secret,
        budget: &PodDisruptionBudget,
        job: &Job,
    ) -> Result<(), ApplyError> {
        self.create_unread("Secret", secret).await?;
        self.create_unread("PodDisruptionBudget", budget).await?;
        self.create_ours("Job", job).await.map(drop)
    }

    /// Creates an object that the operator may not read. Its name ends with random letters of the run, so an existing one is ours, from an
    /// earlier attempt.
    async fn create_unread<K>(&self, kind: &str, object: &K) -> Result<(), ApplyError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
    {
        let api: Api<K> = self.api();
        match call(&format!("create the {kind} of the run"), api.create(&client::post(), object)).await {
            Err(error) if error.code() == Some(409) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Creates `object`, or returns the existing one if it is ours.
    async fn create_ours<K>(&self, kind: &str, object: &K) -> Result<Option<K>, ApplyError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
    {
        let api: Api<K> = self.api();
        let name = object.name_any();
        match call(&format!("create {kind} {name}"), api.create(&client::post(), object)).await {
            Ok(_) => return Ok(None),
            Err(error) if error.code() == Some(409) => {}
            Err(error) => return Err(error),
        }
        let found = call(&format!("read {kind} {name}"), api.get(&name)).await?;
        if !self.run.owns(&found) {
            return Err(ApplyError::NameTaken { kind: kind.to_owned(), name });
        }
        if found.meta().deletion_timestamp.is_some() {
            return Err(ApplyError::StillDeleting { kind: kind.to_owned(), name });
        }
        Ok(Some(found))
    }

    /// Writes a ConfigMap with a piece of a result. Overwrites that of an earlier attempt, unless a conductor with a higher epoch than
    /// `epoch` wrote it: an operator that was paused must not overwrite a result with its own.
    ///
    /// # Errors
    /// If the API server refuses, or the name is taken.
    pub async fn write_artifact(&self, epoch: u64, piece: &ConfigMap) -> Result<(), ApplyError> {
        let Some(found) = self.create_ours("ConfigMap", piece).await? else { return Ok(()) };
        if found.data == piece.data {
            return Ok(());
        }
        let name = piece.name_any();
        let writer = found.annotations().get(EPOCH_ANNOTATION).and_then(|epoch| epoch.parse::<u64>().ok());
        if writer.is_some_and(|writer| writer > epoch) {
            return Err(ApplyError::Superseded { name });
        }
        let mut data: BTreeMap<&String, Option<&String>> =
            found.data.iter().flatten().map(|(key, _)| (key, None)).collect();
        data.extend(piece.data.iter().flatten().map(|(key, value)| (key, Some(value))));
        let metadata = json!({
            "uid": found.uid(),
            "resourceVersion": found.resource_version(),
            "annotations": {EPOCH_ANNOTATION: epoch.to_string()},
        });
        let patch = json!({"metadata": metadata, "data": data});
        let api: Api<ConfigMap> = self.api();
        let (params, patch) = (client::patch(), Patch::Merge(patch));
        call(&format!("write ConfigMap {name}"), api.patch(&name, &params, &patch)).await.map(drop)
    }

    /// Deletes the run's Secret, its budget of disruptions, and its Job with all pods. A remaining Job would do harm: while an index may be
    /// retried, its failed pod has a finalizer, and the deletion of a namespace waits for its pods before its Jobs.
    ///
    /// # Errors
    /// If the API server refuses.
    pub async fn delete_children(&self, job: &str) -> Result<(), ApplyError> {
        let name = self.run.child_name();
        // Without the UIDs of those that we may not read: the name is the run's own.
        self.delete::<Secret>("Secret", &name, None, None).await?;
        self.delete::<PodDisruptionBudget>("PodDisruptionBudget", &name, None, None).await?;
        self.delete::<Job>("Job", &name, Some(job), None).await
    }

    /// Deletes pods of shards that did not stop, given by name and UID. No client waits for their results. A refused deletion does not keep
    /// the others from being tried.
    ///
    /// # Errors
    /// The first refusal of the API server.
    pub async fn delete_pods(&self, pods: &[(String, String)]) -> Result<(), ApplyError> {
        let stop = Some(STOP_SECONDS);
        let deletions: Vec<_> =
            pods.iter().map(|(name, uid)| self.delete::<Pod>("Pod", name, Some(uid), stop)).collect();
        let tried = stream::iter(deletions).buffer_unordered(DELETIONS);
        tried.fold(Ok(()), |all, one| ready(all.and(one))).await
    }

    /// Deletes the benchmark itself.
    ///
    /// # Errors
    /// If the API server refuses.
    pub async fn delete_benchmark(&self) -> Result<(), ApplyError> {
        self.delete::<RedisBenchmark>("RedisBenchmark", &self.run.benchmark, Some(&self.run.uid), None).await
    }

    /// Without `grace` in seconds, a pod has its own grace period.
    async fn delete<K>(&self, kind: &str, name: &str, uid: Option<&str>, grace: Option<u32>) -> Result<(), ApplyError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = self.api();
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            grace_period_seconds: grace,
            preconditions: uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        match call(&format!("delete {kind} {name}"), api.delete(name, &params)).await {
            // It does not exist, or was replaced (409 for its UID).
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(()),
            other => other.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::artifact;
    use crate::testing::{FakeServer, Fault, How, run};

    const PODS: &str = "/api/v1/namespaces/perf/pods";

    /// Stores 40 pods on `server`. Returns their names and UIDs.
    fn forty(server: &FakeServer) -> Vec<(String, String)> {
        let pod = |index| (format!("p-{index}"), format!("uid-{index}"));
        let pods: Vec<_> = (10..50).map(pod).collect();
        for (name, uid) in &pods {
            server.put(&format!("{PODS}/{name}"), json!({"metadata": {"name": name, "uid": uid}}));
        }
        pods
    }

    fn deletion(path: &'static str, how: How) -> Fault {
        Fault { method: "DELETE", path, body: |_| true, how }
    }

    #[tokio::test]
    async fn all_pods_are_deleted_before_a_refusal_is_reported() {
        let (server, run) = (FakeServer::default(), run());
        let (client, pods) = (server.client(), forty(&server));
        let applier = Applier { run: &run, client: &client };
        // Deleted meanwhile, and replaced.
        server.remove(&format!("{PODS}/p-20"));
        server.put(&format!("{PODS}/p-30"), json!({"metadata": {"name": "p-30", "uid": "other"}}));
        server.fail(deletion("/p-11", How::Refusal(500, "etcdserver: leader changed")), 1);
        let error = applier.delete_pods(&pods).await.unwrap_err();
        assert_eq!((error.code(), error.to_string()), (Some(500), "failed to delete Pod p-11".to_owned()));
        assert_eq!(server.paths(), [format!("{PODS}/p-11"), format!("{PODS}/p-30")]);
        applier.delete_pods(&pods).await.unwrap();
        assert_eq!(server.paths(), [format!("{PODS}/p-30")]);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_are_deleted_sixteen_at_once() {
        let (server, run) = (FakeServer::default(), run());
        let (client, pods) = (server.client(), forty(&server));
        server.fail(deletion("/pods/", How::Silence), u32::MAX);
        let began = tokio::time::Instant::now();
        Applier { run: &run, client: &client }.delete_pods(&pods).await.unwrap_err();
        // 16, 16 and 8.
        assert!(began.elapsed() >= 3 * CALL && began.elapsed() < 4 * CALL, "{:?}", began.elapsed());
    }

    #[test]
    fn a_namespace_that_is_deleted_is_no_lack_of_rights() {
        let refused = |details: Value| {
            let status = json!({"code": 403, "message": "forbidden", "reason": "Forbidden", "details": details});
            let status: Status = serde_json::from_value(status).unwrap();
            let source = Box::new(kube::Error::Api(status.boxed()));
            ApplyError::Call(CallError::Api { what: "create".into(), source })
        };
        let going =
            json!({"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace"}]});
        assert!(refused(going).is_namespace_going());
        assert!(!refused(json!({})).is_namespace_going());
    }

    #[tokio::test]
    async fn an_operator_that_stood_still_does_not_overwrite_a_result() {
        let run = Run { namespace: "perf".into(), benchmark: "cart".into(), uid: "u-1".into(), id: "r".into() };
        let server = FakeServer::default();
        let client = server.client();
        let applier = Applier { run: &run, client: &client };
        let write = async |epoch: u64, text: &str| {
            applier.write_artifact(epoch, &artifact(&run, epoch, "cart-result-0", "result.json", text)).await
        };
        let written =
            || server.get("/api/v1/namespaces/perf/configmaps/cart-result-0").unwrap()["data"]["result.json"].clone();
        write(1, "first").await.unwrap();
        write(2, "second").await.unwrap();
        assert_eq!(written(), "second");
        assert!(matches!(write(1, "first").await, Err(ApplyError::Superseded { .. })));
        assert_eq!(written(), "second");
    }
}

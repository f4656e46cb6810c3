//! Observes a run: the only reads of reconciling. Most come from caches that watches keep up to date.
//!
//! An action may read too, through this module, what is too large to be read in every reconciliation: the results to aggregate.

mod pods;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client, ResourceExt as _};
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Artifact;
use redisbench_benchmark::conductor::ShardPresence;
use redisbench_benchmark::report::historical;
use redisbench_wire::limits;

use super::apply::{ApplyError, call};
use super::cache::Cache;
use super::observed::{JobView, Observed, has_started};
use super::pod_store::PodStore;
use crate::build::Run;
use crate::tasks::{ConductTask, TaskRegistry};

pub(super) use pods::strip;

/// The longest time that the caches may take to fill.
const FILL: Duration = Duration::from_secs(30);
/// Timeout of one call to the API server.
const CALL: Duration = Duration::from_secs(5);
/// The minimum interval between look-ups of the shards' obstacles.
const OBSTACLE_INTERVAL: Duration = Duration::from_secs(10);

pub struct Reads {
    /// For objects that are not cached.
    pub client: Client,
    pub jobs: Store<Job>,
    /// Without the fields that `strip` removes.
    pub pods: PodStore,
}

/// The caches did not fill in time.
#[derive(Debug, thiserror::Error)]
#[error("failed to list Jobs and Pods within {} s; check that its role allows list and watch", FILL.as_secs())]
pub struct NotFilled;

impl Reads {
    /// Observes the children of `run`, which has at most `shards`, its conducting task, and what earlier reconciliations left in the
    /// cache.
    pub(super) async fn observe(
        &self,
        benchmark: &RedisBenchmark,
        run: &Run,
        shards: u32,
        now: Timestamp,
        tasks: &TaskRegistry,
        cache: &Cache,
    ) -> Observed {
        let conduct = tasks.get(&run.uid);
        let children = self.children(benchmark, run, shards, conduct.as_deref(), now).await;
        Observed {
            since_write: cache.since_write(&run.uid),
            cleared: cache.cleared(&run.uid),
            failure: cache.failure(&run.uid),
            fresh_run_id: run.id.clone(),
            ..children
        }
    }

    /// Waits until the caches are filled.
    ///
    /// # Errors
    /// If they do not fill in time.
    pub async fn filled(&self) -> Result<(), NotFilled> {
        let filled = async { tokio::try_join!(self.jobs.wait_until_ready(), self.pods.wait_until_ready()) };
        match tokio::time::timeout(FILL, filled).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(NotFilled),
        }
    }

    /// Observes the children of `run`, which has at most `shards`, and updates the presence in `conduct`.
    async fn children(
        &self,
        benchmark: &RedisBenchmark,
        run: &Run,
        shards: u32,
        conduct: Option<&ConductTask>,
        now: Timestamp,
    ) -> Observed {
        let key = ObjectRef::new(&run.child_name()).within(&run.namespace);
        let job = self.jobs.get(&key).filter(|job| run.owns(&**job));
        let pods = self.pods.of_run(run);
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let view = job.as_deref().map(JobView::of);
        let trial = benchmark.status.as_ref().and_then(|status| status.trial.as_ref());
        let epoch = benchmark.status.as_ref().and_then(|status| status.conductor_epoch);
        if let Some(conduct) = conduct.filter(|conduct| epoch.is_some_and(|epoch| epoch > conduct.epoch)) {
            conduct.supersede();
        }
        let conduct_view = conduct.map(ConductTask::view);
        let conducted = conduct.map_or(0, |conduct| conduct.trial);
        // Of status and task, only the one of the later trial counts.
        let started = match conducted.cmp(&trial.map_or(0, |trial| trial.index)) {
            Ordering::Less => has_started(trial, None),
            Ordering::Equal => has_started(trial, conduct_view.as_ref()),
            Ordering::Greater => has_started(None, conduct_view.as_ref()),
        };
        // A benchmark admitted by another definition is observed before it is validated.
        let mut presence = pods::presence(shards.min(limits::SHARDS), view.as_ref(), &pods, started);
        if let (Some(job), Some(conduct)) = (&job, conduct)
            && !started
            && let Some((kind, name)) = pods::puzzle(job, &pods, &presence, now)
        {
            let why = self.obstacle(conduct, &run.namespace, kind, &name).await;
            for shard in &mut presence {
                if let ShardPresence::Absent { why: unknown @ None } = shard {
                    unknown.clone_from(&why);
                }
            }
        }
        if let Some(conduct) = conduct {
            conduct.set_presence(presence.clone());
        }
        let aggregate = conduct.and_then(ConductTask::aggregate);
        let is_going = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
        let left_pods = view.as_ref().is_some_and(|job| job.suspended) && pods.iter().any(is_going);
        Observed { job: view, presence, left_pods, conduct: conduct_view, conducted, aggregate, ..Observed::default() }
    }

    /// The names and UIDs of the pods of `run` with one of `uids`.
    pub fn pods_of(&self, run: &Run, uids: &[String]) -> Vec<(String, String)> {
        let wanted: HashSet<&str> = uids.iter().map(String::as_str).collect();
        let pods = self.pods.of_run(run);
        let named = pods.iter().filter_map(|pod| Some((pod.name_any(), pod.uid()?)));
        named.filter(|(_, uid)| wanted.contains(uid.as_str())).collect()
    }

    /// The benchmark of this name, if it exists.
    ///
    /// # Errors
    /// If the API server fails to answer.
    pub async fn benchmark(&self, namespace: &str, name: &str) -> Result<Option<RedisBenchmark>, ApplyError> {
        let api: Api<RedisBenchmark> = Api::namespaced(self.client.clone(), namespace);
        call(&format!("read RedisBenchmark {name}"), api.get_opt(name)).await
    }

    /// The benchmark with this metadata as it is, if it exists. It may not parse as this version's type.
    ///
    /// # Errors
    /// If the API server fails to answer.
    pub async fn unparsed(&self, metadata: &ObjectMeta) -> Result<Option<DynamicObject>, ApplyError> {
        let (Some(namespace), Some(name)) = (&metadata.namespace, &metadata.name) else { return Ok(None) };
        let resource = ApiResource::erase::<RedisBenchmark>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        call("read the benchmark", api.get_opt(name)).await
    }

    /// The content of a piece of a result. Empty if its ConfigMap lacks it.
    ///
    /// # Errors
    /// If the API server refuses, or the ConfigMap is not ours.
    pub async fn artifact(&self, run: &Run, artifact: &Artifact) -> Result<String, ApplyError> {
        let name = &artifact.config_map;
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &run.namespace);
        let found = call(&format!("read ConfigMap {name}"), api.get(name)).await?;
        if !run.owns(&found) {
            return Err(ApplyError::NameTaken { kind: "ConfigMap".to_owned(), name: name.clone() });
        }
        Ok(found.data.unwrap_or_default().remove(&artifact.name).unwrap_or_default())
    }

    /// Why a run that has not begun cannot be compared with the benchmark that its spec names.
    ///
    /// # Errors
    /// If the API server fails to return that benchmark.
    pub(super) async fn unfit_baseline(
        &self,
        benchmark: &RedisBenchmark,
        run: &Run,
    ) -> Result<Option<String>, ApplyError> {
        let begun = benchmark.status.as_ref().is_some_and(|status| status.run_id.is_some());
        let name = benchmark.spec.comparison.as_ref().and_then(|comparison| comparison.benchmark.as_deref());
        let Some(name) = name.filter(|_| !begun) else { return Ok(None) };
        let other = self.benchmark(&run.namespace, name).await?;
        Ok(historical::check(&benchmark.spec, name, other.as_ref()).err().map(|problem| problem.to_string()))
    }

    async fn obstacle(&self, conduct: &ConductTask, namespace: &str, kind: &str, name: &str) -> Option<String> {
        if let Some(known) = conduct.recent_obstacle(OBSTACLE_INTERVAL) {
            return known;
        }
        let found = match tokio::time::timeout(CALL, self.warning(namespace, kind, name)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "failed to list events of {kind} {name}");
                None
            }
            Err(_) => None,
        };
        conduct.note_obstacle(found.clone());
        found
    }

    /// The newest warning about an object, as `reason: note`.
    async fn warning(&self, namespace: &str, kind: &str, name: &str) -> Result<Option<String>, kube::Error> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let fields = format!("regarding.kind={kind},regarding.name={name},type=Warning");
        let found = api.list(&ListParams::default().fields(&fields).limit(50)).await?;
        let newest = found.items.into_iter().max_by_key(seen_last);
        Ok(newest.and_then(|event| Some(pods::quote(event.reason.as_deref()?, event.note.as_deref()))))
    }
}

fn seen_last(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().map(|series| series.last_observed_time.0);
    let classic = event.deprecated_last_timestamp.as_ref().map(|time| time.0);
    series.or(classic).or_else(|| event.event_time.as_ref().map(|time| time.0))
}

//! A benchmark of a test: its manifest, waiting for its states, and checks that its numbers are consistent.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use redisbench_testkit::api_server::merge;
use redisbench_testkit::machine::{Priority, Watch};
use redisbench_testkit::status::imbalances;
use serde_json::{Value, json};

use crate::json::{count, list, text};
use crate::namespace::TestNamespace;
use crate::redis;
use crate::wait;

/// Long enough for a short benchmark on a busy machine.
pub const SOON: Duration = Duration::from_secs(90);

/// A small benchmark: two shards, four connections, five seconds, with the members of `spec` merged into its own.
pub fn manifest(name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": name},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {
                "operations": [
                    {"name": "get", "weight": 80, "command": "GET __key__"},
                    {"name": "set", "weight": 20, "command": "SET __key__ __data__"},
                ],
                "keys": {"prefix": "rb:", "count": 1000, "pattern": {"type": "Uniform"}},
                "values": {"size": {"type": "Fixed", "fixed": {"bytes": 64}}},
            },
            "preload": {"mode": "FillMissing"},
            "load": {
                "type": "OpenLoop",
                "openLoop": {"rate": 400},
                "connections": 4,
                "pipeline": 4,
                "duration": "5s",
                "warmup": "1s",
                "timeouts": {"connect": "3s", "request": "3s"},
            },
            "shards": {
                "count": 2,
                // High, because three nodes share the processors of one machine.
                "maxStartSkew": "500ms",
                "template": {"resources": {
                    "requests": {"cpu": "100m", "memory": "64Mi"},
                    "limits": {"cpu": "1", "memory": "128Mi"},
                }},
            },
        },
    });
    merge(&mut object["spec"], spec.clone());
    object
}

#[derive(Clone, Debug)]
pub struct Benchmark {
    namespace: TestNamespace,
    pub name: String,
    /// Watches the machine since before its load.
    pub(crate) machine: Arc<Watch>,
}

impl Benchmark {
    /// Creates [`manifest`] in the test's namespace.
    pub async fn create(namespace: &TestNamespace, name: &str, spec: &Value) -> Result<Self> {
        let object: DynamicObject = serde_json::from_value(manifest(name, spec))?;
        let benchmark = Self::named(namespace, name);
        namespace.benchmarks().create(&PostParams::default(), &object).await?;
        Ok(benchmark)
    }

    /// Starts a server, creates [`manifest`], and waits until it measures.
    pub async fn measured(namespace: &TestNamespace, name: &str, spec: &Value) -> Result<Self> {
        redis::standalone(namespace, "redis").await?;
        let benchmark = Self::create(namespace, name, spec).await?;
        benchmark.measuring().await?;
        Ok(benchmark)
    }

    /// A benchmark that was created in another way.
    pub fn named(namespace: &TestNamespace, name: &str) -> Self {
        let machine = Arc::new(Watch::begin(Some(Priority::Inherited)));
        Self { namespace: namespace.clone(), name: name.to_owned(), machine }
    }

    /// Deletes it, without waiting.
    pub async fn delete(&self) -> Result<()> {
        self.namespace.benchmarks().delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until the object `holds`, and returns it.
    pub async fn wait(&self, what: &str, limit: Duration, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut seen = Value::Null;
        wait::object(self.namespace.benchmarks(), &self.name, what, limit, |object| {
            object.and_then(|object| serde_json::to_value(object).ok()).is_some_and(|object| {
                let ready = holds(&object);
                seen = object;
                ready
            })
        })
        .await?;
        Ok(seen)
    }

    /// Waits until the object is gone.
    pub async fn gone(&self, limit: Duration) -> Result<()> {
        wait::object(self.namespace.benchmarks(), &self.name, "deleted", limit, |object| object.is_none()).await?;
        Ok(())
    }

    /// Waits until the load is running.
    pub async fn running(&self) -> Result<Value> {
        let object = self.wait("running or finished", SOON, |o| phase(o) == "Running" || is_finished(o)).await?;
        ensure!(phase(&object) == "Running", "{} finished before it was seen running: {}", self.name, object["status"]);
        Ok(object)
    }

    /// Waits until it is running, and a first measurement has arrived from the shards.
    pub async fn measuring(&self) -> Result<Value> {
        self.running().await?;
        let measured = |o: &Value| o.pointer("/status/progress/achievedPerSecond").and_then(Value::as_u64) > Some(0);
        let object = self.wait("measuring", SOON, |o| is_finished(o) || measured(o)).await?;
        ensure!(!is_finished(&object), "{} finished before the fault was injected: {}", self.name, object["status"]);
        Ok(object)
    }

    pub async fn finished(&self, limit: Duration) -> Result<Value> {
        self.wait("finished", limit, is_finished).await
    }

    /// Waits until it has succeeded, and checks that its numbers are consistent.
    pub async fn succeeded(&self, limit: Duration) -> Result<Value> {
        let object = self.finished(limit).await?;
        ensure!(phase(&object) == "Succeeded", "{} did not succeed: {}", self.name, object["status"]);
        ensure!(condition(&object, "Complete") == Some("True"), "not complete: {}", object["status"]["conditions"]);
        match list(&object, "/status/trials") {
            [] => check_numbers(&object)?,
            trials => {
                for trial in trials {
                    ensure!(trial["state"] == "Completed", "a trial did not complete: {trial}");
                    ensure!(count(trial, "/requests/scheduled")? > 0, "nothing was scheduled: {trial}");
                    ensure!(imbalances(trial, &[]).is_empty(), "its requests have not one outcome each: {trial}");
                }
            }
        }
        Ok(object)
    }

    /// Changes its spec by a merge patch.
    pub async fn patch(&self, spec: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.namespace.benchmarks().patch(&self.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub async fn get(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.namespace.benchmarks().get(&self.name).await?)?)
    }

    /// Its shards' pods, by shard index.
    pub async fn pods(&self) -> Result<Vec<Pod>> {
        let object = self.get().await?;
        let uid = text(&object, "/metadata/uid")?;
        let jobs = self.namespace.api::<Job>().list(&ListParams::default()).await?;
        let Some(job) = jobs.items.iter().find(|job| is_owned_by(*job, uid)) else { return Ok(Vec::new()) };
        let selector = format!("batch.kubernetes.io/job-name={}", job.name_any());
        let mut pods = self.namespace.api::<Pod>().list(&ListParams::default().labels(&selector)).await?.items;
        pods.sort_by_key(shard_index);
        Ok(pods)
    }

    /// The text of its artifact `name`, such as `result.json`, from all ConfigMaps that have a part of it.
    pub async fn artifact(&self, name: &str) -> Result<String> {
        let object = self.get().await?;
        let artifacts = list(&object, "/status/artifacts");
        let mut whole = String::new();
        for artifact in artifacts.iter().filter(|a| a["name"].as_str().is_some_and(|n| n.starts_with(name))) {
            let map = text(artifact, "/configMap")?;
            let map: ConfigMap = self.namespace.api().get(map).await?;
            let owned = is_owned_by(&map, text(&object, "/metadata/uid")?);
            ensure!(owned, "ConfigMap {} is not owned by {}", map.name_any(), self.name);
            let key = text(artifact, "/name")?;
            let part = map.data.as_ref().and_then(|data| data.get(key));
            whole += part.with_context(|| format!("no {key} in ConfigMap {}", map.name_any()))?;
        }
        ensure!(!whole.is_empty(), "no {name} among the artifacts: {}", object["status"]["artifacts"]);
        Ok(whole)
    }
}

/// The phase in the status; empty if there is none.
pub fn phase(object: &Value) -> &str {
    text(object, "/status/phase").unwrap_or_default()
}

/// The number of shards in a state, such as "lost". None if the status does not say.
pub fn shards(object: &Value, state: &str) -> Option<u64> {
    object["status"]["shards"][state].as_u64()
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    of_condition(object, kind, "status")
}

pub fn reason<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    of_condition(object, kind, "reason")
}

/// The message of a condition; empty if there is none.
pub fn message<'a>(object: &'a Value, kind: &str) -> &'a str {
    of_condition(object, kind, "message").unwrap_or_default()
}

fn of_condition<'a>(object: &'a Value, kind: &str, field: &str) -> Option<&'a str> {
    list(object, "/status/conditions").iter().find(|condition| condition["type"] == kind)?[field].as_str()
}

pub fn is_finished(object: &Value) -> bool {
    condition(object, "Finished") == Some("True")
}

fn shard_index(pod: &Pod) -> u32 {
    let index = pod.annotations().get("batch.kubernetes.io/job-completion-index");
    index.and_then(|index| index.parse().ok()).unwrap_or(u32::MAX)
}

fn is_owned_by<K: Resource>(object: &K, uid: &str) -> bool {
    object.owner_references().iter().any(|owner| owner.uid == uid)
}

/// Decodes a histogram of a status or result.
pub fn histogram(encoded: &str) -> Result<Histogram<u64>> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded)?;
    Ok(Deserializer::new().deserialize(&mut bytes.as_slice())?)
}

/// Checks that every scheduled request has one outcome, in total, per operation and per shard; that these sum to the total; and that the
/// merged histogram has the succeeded requests.
pub fn check_numbers(object: &Value) -> Result<()> {
    let result = object.pointer("/status/result").context("no status.result")?;
    let total = count(result, "/requests/scheduled")?;
    ensure!(total > 0, "nothing was scheduled: {result}");
    for breakdown in ["operations", "shards"] {
        ensure!(!list(result, &format!("/{breakdown}")).is_empty(), "no {breakdown} in {result}");
    }
    let imbalances = imbalances(result, &["operations", "shards"]);
    ensure!(imbalances.is_empty(), "{imbalances:?}: {result}");
    let merged = histogram(text(result, "/histogram/data")?)?;
    let succeeded = count(result, "/requests/succeeded")?;
    ensure!(merged.len() == succeeded, "the histogram has {} of {succeeded} requests", merged.len());
    // With failed requests, the status has the censored quantile, which differs. With fewer than 1,000 requests it has none.
    if succeeded == total && total >= 1_000 {
        let (p99, merged) = (count(result, "/responseTime/p99Nanoseconds")?, merged.value_at_quantile(0.99));
        ensure!(p99 == merged, "p99 is {p99} in the status, but {merged} in its histogram");
    }
    Ok(())
}

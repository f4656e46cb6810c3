//! A namespace per test, deleted at its end. If the test failed, its content is printed first.

use std::panic::resume_unwind;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::RwLock;

use crate::cluster::{Cluster, OPERATOR, SYSTEM};
use crate::install::restricted_namespace;
use crate::tools::{kubectl, kubectl_with_input};

/// Timeout of a test, so that one that hangs does not hang the suite.
const LIMIT: Duration = Duration::from_secs(240);

/// Held by every test; exclusively by those that disturb the operator.
static TESTS: RwLock<()> = RwLock::const_new(());

#[derive(Clone)]
pub struct TestNamespace {
    pub name: String,
    pub test: String,
    pub client: Client,
    pub began: Timestamp,
}

/// Runs a test in its own namespace, in parallel with others.
pub fn run<T, F>(test: T)
where
    T: FnOnce(TestNamespace) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    run_within(LIMIT, test);
}

/// Runs a test in its own namespace, with this timeout.
pub fn run_within<T, F>(limit: Duration, test: T)
where
    T: FnOnce(TestNamespace) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    Cluster::get().runtime.block_on(async {
        let _shared = TESTS.read().await;
        in_space(limit, test).await;
    });
}

/// Runs a test while no other is running, because it kills the operator.
pub fn run_alone<T, F>(test: T)
where
    T: FnOnce(TestNamespace) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    Cluster::get().runtime.block_on(async {
        let _exclusive = TESTS.write().await;
        in_space(LIMIT, test).await;
    });
}

#[expect(clippy::panic, reason = "the failure of a test")]
async fn in_space<T, F>(limit: Duration, test: T)
where
    T: FnOnce(TestNamespace) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let namespace = match TestNamespace::create().await {
        Ok(namespace) => namespace,
        Err(error) => panic!("failed to prepare the test: {error:#}"),
    };
    let outcome = tokio::spawn(tokio::time::timeout(limit, test(namespace.clone()))).await;
    if !matches!(outcome, Ok(Ok(Ok(())))) {
        dump(&namespace.name, namespace.began).await;
    }
    namespace.delete().await;
    match outcome {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(error))) => panic!("{error:#}"),
        Ok(Err(_)) => panic!("the test took more than {limit:?}"),
        Err(failed) if failed.is_panic() => resume_unwind(failed.into_panic()),
        Err(cancelled) => panic!("{cancelled}"),
    }
}

impl std::fmt::Debug for TestNamespace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("TestNamespace").field(&self.name).finish()
    }
}

impl TestNamespace {
    async fn create() -> Result<Self> {
        let cluster = Cluster::get();
        cluster.install().await?;
        let client = cluster.client().await?;
        let thread = std::thread::current();
        let test = thread.name().and_then(|path| path.rsplit("::").next()).unwrap_or("test").to_owned();
        let mut namespace = restricted_namespace("");
        // At most 63 characters, including the five that the server appends.
        let prefix: String = format!("e2e-{}", test.replace('_', "-")).chars().take(50).collect();
        namespace["metadata"]["generateName"] = Value::String(prefix + "-");
        let namespace: Namespace = serde_json::from_value(namespace)?;
        let made = Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(Self { name: made.name_any(), test, client, began: Timestamp::now() })
    }

    async fn delete(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        // Deletes in the background; a failure here does not fail the test.
        let _ = namespaces.delete(&self.name, &DeleteParams::background()).await;
    }

    /// The objects of a built-in kind in this namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    pub fn benchmarks(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("redisbench.dev", "v1alpha1", "RedisBenchmark");
        let resource = ApiResource::from_gvk_with_plural(&kind, "redisbenchmarks");
        Api::namespaced_with(self.client.clone(), &self.name, &resource)
    }

    /// Runs `kubectl` in this namespace.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        kubectl(&[&["-n", &self.name], arguments].concat()).await
    }

    /// Runs `kubectl ... -o json` in this namespace.
    pub async fn kubectl_json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.kubectl(&[arguments, &["-o", "json"]].concat()).await?;
        serde_json::from_str(&text).with_context(|| format!("`kubectl {arguments:?}` returned no JSON"))
    }

    /// Creates a Secret. Not applied, because that would store a copy of its data in an annotation.
    pub async fn secret(&self, name: &str, data: Value) -> Result<()> {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        kubectl_with_input(&["-n", &self.name, "create", "-f", "-"], &secret.to_string()).await?;
        Ok(())
    }

    /// Applies manifests in this namespace, as `kubectl apply` does.
    pub async fn apply(&self, manifests: &[Value]) -> Result<String> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
        kubectl_with_input(&["-n", &self.name, "apply", "-f", "-"], &list.to_string()).await
    }
}

/// Prints to standard error the benchmarks, pods, events and logs of the namespace `name`, and the operator's log since the test `began`.
async fn dump(name: &str, began: Timestamp) {
    let shard_logs = "logs -l batch.kubernetes.io/job-name --prefix --tail=60 --max-log-requests=20";
    let operator_log = format!("logs -l {OPERATOR} --prefix --tail=300 --since-time={began}");
    let questions: [(&str, &str, &str); 7] = [
        ("benchmarks", name, "get redisbenchmarks -o yaml"),
        ("children", name, "get pods,jobs,configmaps,secrets -o wide"),
        ("pods", name, "describe pods"),
        ("events", name, "get events --sort-by=.lastTimestamp"),
        ("shard logs", name, shard_logs),
        ("operator", SYSTEM, "get pods -o wide"),
        ("operator log", SYSTEM, &operator_log),
    ];
    for (title, namespace, command) in questions {
        let arguments: Vec<&str> = ["-n", namespace].into_iter().chain(command.split(' ')).collect();
        let answer = kubectl(&arguments).await.unwrap_or_else(|error| format!("{error:#}"));
        eprintln!("--- {title} of {name}\n{answer}");
    }
}

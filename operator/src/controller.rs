//! The reconcile driver: validate, observe, decide, apply, publish events.

mod aggregate;
pub mod apply;
mod cache;
pub mod decide;
pub mod decision;
pub(crate) mod events;
mod execute;
pub mod observe;
pub mod observed;
pub mod status;
mod throttle;
mod unreadable;
pub mod watch;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action as Requeue;
use kube::runtime::events::Recorder;
use kube::runtime::events::Reporter;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::Store;
use kube::{Client, Resource as _, ResourceExt as _};
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::credential::CredentialError;
use redisbench_benchmark::report::conditions::reason;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::Instant;

use self::apply::ApplyError;
use self::cache::Cache;
use self::decide::{Subject, decide};
use self::decision::Notice;
use self::execute::Executor;
use self::observe::{NotFilled, Reads};
use crate::build::Run;
use crate::environment::Environment;
use crate::metrics::OperatorMetrics;
use crate::tasks::TaskRegistry;
use crate::telemetry::chain;

/// A benchmark, or the reason why it could not be parsed.
pub type Guarded = DeserializeGuard<RedisBenchmark>;

/// Timeout of one reconciliation.
const RECONCILE: Duration = Duration::from_secs(120);

/// Upper limit of a pause that the API server requests.
const LONGEST_ASKED_PAUSE: Duration = Duration::from_secs(60);

/// Settings that do not change while the operator runs.
#[derive(Clone)]
pub struct Settings {
    pub image: String,
    /// For benchmarks with client libraries.
    pub clients_image: String,
    pub pull_policy: String,
    /// The key from which the credentials of all runs are derived.
    pub master_key: Arc<[u8; 32]>,
}

#[derive(Clone)]
pub struct Shared {
    pub client: Client,
    pub settings: Settings,
    /// Shared by all, so that equal events are aggregated into one with a count.
    pub recorder: Recorder,
    pub metrics: OperatorMetrics,
    pub tasks: TaskRegistry,
    cache: Arc<Cache>,
    environment: Environment,
}

impl Shared {
    pub fn new(
        client: Client,
        settings: Settings,
        recorder: Recorder,
        metrics: OperatorMetrics,
        tasks: TaskRegistry,
    ) -> Self {
        let environment = Environment { compute: tasks.compute(), ..Environment::default() };
        let cache = Arc::default();
        Self { client, settings, recorder, metrics, tasks, cache, environment }
    }

    /// The UIDs of benchmarks in `namespace`, or in all namespaces, that have a conducting task or an entry in the cache.
    fn remembered(&self, namespace: Option<&str>) -> HashSet<String> {
        self.tasks.of_namespace(namespace).into_iter().chain(self.cache.of_namespace(namespace)).collect()
    }

    /// Stops the load of a deleted benchmark, and drops its state.
    fn forget(&self, uid: &str) {
        self.tasks.forget(uid);
        self.cache.forget(uid);
    }
}

/// The context of reconciling in one scope: a namespace, or all of them.
pub struct Context {
    shared: Shared,
    reads: Reads,
    wake: mpsc::Sender<ObjectRef<Guarded>>,
}

impl Context {
    /// For a simulation, which fills the caches and calls [`reconcile`] itself. Its metrics are not served.
    pub fn simulated(
        client: Client,
        settings: Settings,
        environment: Environment,
        tasks: TaskRegistry,
        (jobs, pods): (Store<Job>, Store<Pod>),
        wake: mpsc::Sender<ObjectRef<Guarded>>,
    ) -> Self {
        let reporter = Reporter { controller: "redisbench-operator".into(), instance: Some("simulated".into()) };
        let recorder = Recorder::new(client.clone(), reporter);
        let shared = Shared::new(client.clone(), settings, recorder, OperatorMetrics::default(), tasks);
        Self { shared: Shared { environment, ..shared }, reads: Reads { client, jobs, pods }, wake }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error(transparent)]
    NotFilled(#[from] NotFilled),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error("failed to create the run's credential")]
    Credential(#[from] CredentialError),
    #[error("reconciliation timed out after {} s", RECONCILE.as_secs())]
    Timeout,
    /// A bug in the operator.
    #[error("reconciliation panicked; see the operator's log")]
    Panicked(#[from] JoinError),
}

impl ReconcileError {
    /// The error class for metrics: one of a few values.
    fn class(&self) -> &'static str {
        match self {
            Self::NotFilled(_) => "cache",
            Self::Panicked(_) => "panic",
            Self::Credential(_) => "credential",
            Self::Timeout | Self::Apply(ApplyError::Timeout { .. }) => "timeout",
            Self::Apply(ApplyError::NameTaken { .. }) => "name_taken",
            Self::Apply(ApplyError::StillDeleting { .. }) => "still_deleting",
            Self::Apply(ApplyError::Superseded { .. }) => "conflict",
            Self::Apply(ApplyError::Json(_)) => "internal",
            Self::Apply(error @ ApplyError::Api { .. }) => match error.code() {
                Some(409) => "conflict",
                Some(403) => "forbidden",
                Some(429) => "throttled",
                Some(400..=499) => "refused",
                Some(_) => "server",
                None => "connection",
            },
        }
    }

    /// Reason and message for the condition Stalled, if only a person can resolve the failure.
    fn for_user(&self) -> Option<(&'static str, String)> {
        let why = match self.class() {
            "name_taken" => reason::NAME_TAKEN,
            "forbidden" => "Forbidden",
            "refused" => "Refused",
            _ => return None,
        };
        Some((why, chain(self)))
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Apply(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Reason and message for the condition Stalled, if the failure is temporary but persists.
    fn lasting_failure(&self) -> Option<(&'static str, String)> {
        matches!(self.class(), "throttled" | "server" | "connection" | "timeout")
            .then(|| (reason::API_SERVER_FAILING, chain(self)))
    }
}

/// Advances one benchmark by one step. Errors only serve the metrics and [`retry`].
///
/// # Errors
/// If a step failed. All of it is retried.
pub async fn reconcile(object: Arc<Guarded>, context: Arc<Context>) -> Result<Requeue, ReconcileError> {
    let began = Instant::now();
    let meta = object.meta();
    context.shared.metrics.dequeued(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
    let step = async {
        context.reads.filled().await?;
        match &object.0 {
            // Boxed, because the future holds a whole spec.
            Ok(benchmark) => Box::pin(step(benchmark, &context)).await,
            Err(invalid) => unreadable::reject(&context.shared.client, invalid).await,
        }
    };
    let result = tokio::time::timeout(RECONCILE, step).await.unwrap_or(Err(ReconcileError::Timeout));
    context.shared.metrics.reconciled(began.elapsed(), result.as_ref().err().map(ReconcileError::class));
    // Publish the event of a failure once, not on every retry.
    if let Err(error) = &result
        && let (Some(failure), Ok(benchmark)) = (error.for_user(), &object.0)
        && context.shared.cache.failure(&benchmark.uid().unwrap_or_default()).as_ref() != Some(&failure)
    {
        let (why, message) = failure;
        let notice = Notice { warning: true, reason: why.to_owned(), message };
        events::publish(&context.shared.recorder, &benchmark.object_ref(&()), &[notice]).await;
    }
    result
}

/// The pause before a retry after `error`.
#[expect(clippy::needless_pass_by_value, reason = "the runtime's signature")]
pub fn retry(object: Arc<Guarded>, error: &ReconcileError, context: Arc<Context>) -> Requeue {
    let meta = object.meta();
    let (namespace, uid) = (meta.namespace.as_deref().unwrap_or_default(), meta.uid.as_deref().unwrap_or_default());
    let shared = &context.shared;
    if error.class() == "conflict" {
        // Another client wrote first; the watch delivers its version.
        return Requeue::requeue(shared.cache.conflicted(namespace, uid, shared.environment.chance()));
    }
    tracing::warn!(
        namespace,
        benchmark = meta.name,
        class = error.class(),
        error = chain(error),
        "reconciliation failed"
    );
    let (failure, lasting_failure) = (error.for_user(), error.lasting_failure());
    let pause = shared.cache.failed(namespace, uid, failure, lasting_failure, shared.environment.chance());
    Requeue::requeue(pause.max(error.retry_after().unwrap_or_default().min(LONGEST_ASKED_PAUSE)))
}

async fn step(benchmark: &RedisBenchmark, context: &Context) -> Result<Requeue, ReconcileError> {
    let shared = &context.shared;
    let uid = benchmark.uid().unwrap_or_default();
    if benchmark.metadata.deletion_timestamp.is_some() {
        shared.tasks.stop_load(&uid);
        return Ok(Requeue::await_change());
    }
    let now = shared.environment.now();
    let status = benchmark.status.clone().unwrap_or_default();
    let run = Run {
        namespace: benchmark.namespace().unwrap_or_default(),
        benchmark: benchmark.name_any(),
        uid: uid.clone(),
        id: status.run_id.clone().unwrap_or_else(|| shared.environment.fresh_run_id()),
    };

    // validate: the plan of trials (no client). A finished benchmark needs none, once no task releases its shards.
    let compiled = if status.phase.is_terminal() && shared.tasks.get(&uid).is_none() {
        shared.cache.drop_plan(&run);
        None
    } else {
        Some(shared.cache.plan(&run, &benchmark.spec, &shared.environment.compute).await?)
    };
    let plan = compiled.as_deref().and_then(|compiled| compiled.as_ref().ok());
    let problems = compiled.as_deref().and_then(|compiled| compiled.as_ref().err()).map(String::as_str);
    let generation = benchmark.metadata.generation;
    let subject = Subject { spec: &benchmark.spec, status: &status, generation, problems, plan };

    // observe (the only reads)
    let observed = context.observe(benchmark, &run, subject.pods(), now).await?;

    // decide (pure)
    let decision = decide(&subject, &observed, now);

    // apply (the only writes)
    let executor = Executor { context, benchmark, run: &run, plan, observed: &observed };
    let put_off = executor.execute(&decision).await?;
    shared.cache.succeeded(&uid);
    Ok(put_off.or(decision.requeue).map_or_else(Requeue::await_change, Requeue::requeue))
}

#[cfg(test)]
mod tests;

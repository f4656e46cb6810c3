//! One step of a benchmark: validate, observe, decide, apply.

use std::sync::Arc;
use std::time::Duration;

use kube::core::error_boundary::InvalidObject;
use kube::runtime::controller::Action as Requeue;
use kube::{Resource as _, ResourceExt as _};
use redisbench_benchmark::api::RedisBenchmark;
use tokio::time::Instant;

use super::apply::{self, ApplyError, events};
use super::context::{Context, Guarded};
use super::decide::{Subject, decide};
use super::decision::Notice;
use super::error::{RECONCILE, ReconcileError};
use super::execute::Executor;
use super::unreadable;
use crate::build::Run;
use crate::telemetry::chain;

/// Upper limit of a pause that the API server requests.
const LONGEST_ASKED_PAUSE: Duration = Duration::from_secs(60);

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
            Err(invalid) => refuse(invalid, &context).await,
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

/// The same steps for an object that does not parse as this version's type.
async fn refuse(invalid: &InvalidObject, context: &Context) -> Result<Requeue, ReconcileError> {
    let Context { shared, reads, .. } = context;
    if let Some(found) = reads.unparsed(&invalid.metadata).await? {
        let change = unreadable::refusal(invalid, &found, shared.environment.now()).map_err(ApplyError::Json)?;
        if let Some(change) = change {
            apply::change_status(&shared.client, &found.metadata, &change).await?;
        }
    }
    Ok(Requeue::await_change())
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
        let drivers = &shared.settings.drivers;
        Some(shared.cache.plan(&run, &benchmark.spec, drivers, &shared.environment.compute).await?)
    };
    let plan = compiled.as_deref().and_then(|compiled| compiled.as_ref().ok());
    let problems = compiled.as_deref().and_then(|compiled| compiled.as_ref().err()).map(String::as_str);
    let generation = benchmark.metadata.generation;
    let subject = Subject { spec: &benchmark.spec, status: &status, generation, problems, plan };

    // observe
    let observed = context.reads.observe(benchmark, &run, subject.pods(), now, &shared.tasks, &shared.cache).await?;

    // decide (pure)
    let decision = decide(&subject, &observed, now);

    // apply
    let executor = Executor { context, benchmark, run: &run, plan, observed: &observed };
    let put_off = executor.execute(&decision).await?;
    shared.cache.succeeded(&uid);
    Ok(put_off.or(decision.requeue).map_or_else(Requeue::await_change, Requeue::requeue))
}

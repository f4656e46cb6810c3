//! One step of a benchmark: validate, observe, decide, apply.

use std::sync::Arc;
use std::time::Duration;

use kube::core::error_boundary::InvalidObject;
use kube::runtime::controller::Action as Requeue;
use kube::{Resource as _, ResourceExt as _};
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkSpec, RedisBenchmarkStatus};
use tokio::time::Instant;

use super::apply::{self, ApplyError, events};
use super::context::{Context, Guarded};
use super::decide::{Subject, decide, is_reported, waits_for_memory};
use super::decision::Notice;
use super::error::{ErrorClass, RECONCILE, ReconcileError};
use super::execute::Executor;
use super::observed::{Observed, has_started};
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
    let class = result.as_ref().err().map(|error| error.class().as_str());
    context.shared.metrics.reconciled(began.elapsed(), class);
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
    if error.class() == ErrorClass::Conflict {
        // Another client wrote first; the watch delivers its version.
        return Requeue::requeue(shared.cache.conflicted(namespace, uid, shared.environment.chance()));
    }
    tracing::warn!(
        namespace,
        benchmark = meta.name,
        class = error.class().as_str(),
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

    let unfit_baseline = context.reads.unfit_baseline(benchmark, &run).await?;
    let has_task = shared.tasks.get(&uid).is_some();
    let admit = || begins(benchmark, has_task).then(|| shared.cache.admit(&uid, &shared.tasks)).flatten();

    // validate: the plan of trials
    let mut no_room = admit();
    let compiled = if needs_plan(benchmark, unfit_baseline.as_deref(), no_room.as_deref(), has_task) {
        let (drivers, compute) = (&shared.settings.drivers, &shared.environment.compute);
        let compiled = shared.cache.plan(&run, &benchmark.spec, drivers, compute, &shared.tasks).await?;
        // Its size may be new.
        no_room = admit().filter(|_| compiled.is_ok());
        Some(compiled)
    } else {
        shared.cache.drop_plan(&run);
        None
    };
    let plan = compiled.as_deref().and_then(|compiled| compiled.as_ref().ok());
    let problems = compiled.as_deref().and_then(|compiled| compiled.as_ref().err()).map(String::as_str);
    let generation = benchmark.metadata.generation;
    let subject = Subject { spec: &benchmark.spec, status: &status, generation, problems, plan };

    // observe
    let observed = context.reads.observe(benchmark, &run, subject.pods(), now, &shared.tasks, &shared.cache).await;
    let observed = Observed { unfit_baseline, no_room, ..observed };

    // decide (pure)
    let decision = decide(&subject, &observed, now);

    // apply
    let executor = Executor { context, benchmark, run: &run, plan, observed: &observed };
    let put_off = executor.execute(&decision).await?;
    if benchmark.spec.suspend && shared.tasks.get(&uid).is_none() {
        // It may stay suspended for months.
        shared.cache.drop_plan(&run);
    }
    shared.cache.succeeded(&uid);
    Ok(put_off.or(decision.requeue).map_or_else(Requeue::await_change, Requeue::requeue))
}

/// Returns whether a run may begin, or continue after it was suspended.
fn begins(benchmark: &RedisBenchmark, has_task: bool) -> bool {
    let waits = |status: &RedisBenchmarkStatus| {
        status.run_id.is_none() && !status.phase.is_terminal()
            || status.phase == Phase::Suspended && !has_started(status.trial.as_ref(), None)
    };
    let RedisBenchmarkSpec { suspend, abort, .. } = benchmark.spec;
    !suspend && !abort && !has_task && benchmark.status.as_ref().is_none_or(waits)
}

/// Returns whether the decision about `benchmark` depends on its plan of trials. Those that a timer repeats while it waits do not: many
/// waiting benchmarks, whose plans together exceed the cache's budget, would be compiled again and again.
fn needs_plan(benchmark: &RedisBenchmark, unfit_baseline: Option<&str>, no_room: Option<&str>, has_task: bool) -> bool {
    let (spec, Some(status)) = (&benchmark.spec, &benchmark.status) else { return true };
    if has_task {
        // Also at the end: it releases the shards.
        return true;
    }
    if status.phase.is_terminal() {
        return false;
    }
    let is_known = status.observed_generation == benchmark.metadata.generation;
    if is_known && no_room.is_some_and(|message| waits_for_memory(status, message)) {
        return false;
    }
    if status.run_id.is_some() {
        let stays = status.phase == Phase::Suspended && spec.suspend && !spec.abort;
        return !stays || has_started(status.trial.as_ref(), None);
    }
    // Reported only for a valid spec. A comparison that becomes possible needs the plan again.
    !(is_known && unfit_baseline.is_some_and(|problem| is_reported(status, problem)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{benchmark, status};

    /// A benchmark with this change of its spec and of its status.
    fn object(spec: &Value, state: Value) -> RedisBenchmark {
        RedisBenchmark { status: Some(status(state)), ..benchmark(json!({"spec": spec})) }
    }

    #[test]
    fn only_what_waits_or_has_finished_needs_no_plan() {
        let (none, suspend) = (json!({}), json!({"suspend": true}));
        assert!(needs_plan(&benchmark(json!({})), None, None, false));
        for (spec, state, needed) in [
            (&none, json!({"phase": "Preparing"}), true),
            (&none, json!({"phase": "Running"}), true),
            (&none, json!({"phase": "Suspended"}), true),
            (&none, json!({"phase": "Succeeded"}), false),
            (&suspend, json!({"phase": "Preparing"}), true),
            (&suspend, json!({"phase": "Running"}), true),
            (&suspend, json!({"phase": "Suspended"}), false),
            (&suspend, json!({"phase": "Suspended", "runId": null}), true),
            (&json!({"suspend": true, "abort": true}), json!({"phase": "Suspended"}), true),
        ] {
            let object = object(spec, state);
            assert_eq!(needs_plan(&object, None, None, false), needed, "{spec} {:?}", object.status);
            assert!(needs_plan(&object, None, None, true), "{spec} {:?}", object.status);
        }
    }

    #[test]
    fn a_reported_baseline_needs_no_plan_until_something_changes() {
        let accepted = json!([{
            "type": "Accepted", "status": "False", "reason": "InvalidSpec", "message": "missing",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let waiting = |generation: u32| {
            let state =
                json!({"phase": "Pending", "runId": null, "conditions": accepted, "observedGeneration": generation});
            object(&json!({}), state)
        };
        assert!(!needs_plan(&waiting(1), Some("missing"), None, false));
        assert!(needs_plan(&waiting(1), Some("not finished"), None, false));
        assert!(needs_plan(&waiting(1), None, None, false));
        assert!(needs_plan(&waiting(0), Some("missing"), None, false), "the spec was edited");
    }

    #[test]
    fn one_that_waits_for_memory_needs_no_plan_until_something_changes() {
        let waiting = |state: Value, generation: u32| {
            let mut state = state;
            state["observedGeneration"] = json!(generation);
            state["conditions"] = json!([{
                "type": "Reconciling", "status": "True", "reason": "WaitingForMemory", "message": "needs much",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
            object(&json!({}), state)
        };
        for state in [json!({"phase": "Pending", "runId": null}), json!({"phase": "Suspended"})] {
            assert!(begins(&waiting(state.clone(), 1), false));
            assert!(!needs_plan(&waiting(state.clone(), 1), None, Some("needs much"), false));
            assert!(needs_plan(&waiting(state.clone(), 1), None, Some("needs more"), false));
            assert!(needs_plan(&waiting(state.clone(), 1), None, None, false));
            assert!(needs_plan(&waiting(state, 0), None, Some("needs much"), false), "the spec was edited");
        }
    }

    #[test]
    fn what_waits_begins_unless_its_user_stops_it() {
        let none = json!({});
        assert!(begins(&benchmark(json!({})), false));
        for (spec, state, expected) in [
            (&none, json!({"phase": "Pending", "runId": null}), true),
            (&none, json!({"phase": "Suspended"}), true),
            (&none, json!({"phase": "Suspended", "runId": null}), true),
            (&none, json!({"phase": "Preparing"}), false),
            (&none, json!({"phase": "Aborted", "runId": null}), false),
            (&json!({"suspend": true}), json!({"phase": "Suspended"}), false),
            (&json!({"abort": true}), json!({"phase": "Suspended"}), false),
        ] {
            let object = object(spec, state);
            assert_eq!(begins(&object, false), expected, "{spec} {:?}", object.status);
            assert!(!begins(&object, true), "{spec} {:?}", object.status);
        }
    }
}

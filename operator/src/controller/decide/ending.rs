//! The end of a run, and the cleanup after it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::{Artifact, Phase, Verdict, VerdictValue};
use redisbench_benchmark::human;
use redisbench_benchmark::measurement::reason::INTERNAL_ERROR;
use redisbench_benchmark::measurement::{Ending, Failure};
use redisbench_benchmark::plan::Plan;
use redisbench_benchmark::report::conditions::{condition, find, reason};
use redisbench_benchmark::report::{Finished, comparison, repeats, without_artifacts, worst};

use super::live;
use super::subject::Subject;
use crate::build;
use crate::controller::decision::{Action, Decision, Notice};
use crate::controller::observed::Observed;
use crate::tasks::{Ended, RELEASE_LIMIT, TaskView};

/// The pause before taking a run back after another conductor took over, because it rarely is still ours.
const SUPERSEDED_PAUSE: Duration = Duration::from_secs(15);

/// For this long after the end, a run without a Job is checked for other leftovers.
const LEFTOVERS: Duration = Duration::from_secs(600);

/// The pause before deciding again, while the result or the aggregate must be stored before the end.
const AGAIN: Duration = Duration::from_millis(500);

/// Ends the run without a measurement.
pub(super) fn without_measurement(
    subject: &Subject<'_>,
    decision: &mut Decision,
    phase: Phase,
    why: &str,
    message: &str,
    now: Timestamp,
) {
    let status = &mut decision.status;
    status.phase = phase;
    status.progress = None;
    let of = status.trial.as_ref().map_or(1, |trial| trial.of);
    // Earlier trials keep their results.
    status.verdict = worst(&status.trials, of).or(status.verdict.take());
    let failed = phase == Phase::Failed;
    subject.report(now).ended(status, why, message);
    decision.notices.push(if failed { Notice::warning(why, message) } else { Notice::normal(why, message) });
}

/// The conductor has finished.
pub(super) fn over(
    subject: &Subject<'_>,
    observed: &Observed,
    ended: &Ended,
    since: Duration,
    artifacts_failure: Option<&str>,
    decision: &mut Decision,
    now: Timestamp,
) {
    let broken;
    let finished = match ended {
        Ended::Superseded => {
            match rest(SUPERSEDED_PAUSE, since) {
                Some(wait) => decision.requeue = Some(wait),
                None => decision.after.push(Action::StopTask),
            }
            return;
        }
        Ended::Broken => {
            broken = Arc::new(broken_again(subject));
            &broken
        }
        Ended::Over(finished) => finished,
    };
    let index = subject.status.trial.as_ref().map_or(0, |trial| trial.index);
    let follows = subject.plan.is_none_or(|plan| finished.next_trial(plan, &subject.status.trials).is_some());
    let next = Some(index.saturating_add(1))
        .filter(|next| *next < finished.of && finished.ending == Ending::Completed && follows);
    // A late abort does not change how the trial ended, but the run ends with it.
    let ending = if next.is_some() && subject.spec.abort { &Ending::Aborted } else { &finished.ending };
    let next = next.filter(|_| *ending == Ending::Completed);
    let told = match next {
        Some(next) => Some(subject.report_of(next, now).next_trial(&mut decision.status, finished)),
        None => subject.report(now).over_as(&mut decision.status, finished, ending),
    };
    let Some((why, message)) = told else { return };
    let artifacts = build::artifacts(finished);
    match artifacts_failure {
        Some(failure) => {
            let failure = human::shorten(failure, 512);
            let message = format!("failed to store the full result: {failure}; the status has its summary");
            if finished.of == 1 {
                add_to_complete(decision, &message);
            }
            decision.notices.push(Notice::warning(reason::ARTIFACTS_NOT_WRITTEN, message));
        }
        // A person can remove the obstacle, so the status reports it first, and the result is retried.
        None if is_for_a_person(observed) && !artifacts.is_empty() => {
            decision.status = subject.status.clone();
            decision.after.push(Action::WriteArtifacts(finished.clone()));
            decision.requeue = Some(AGAIN);
            return;
        }
        // If writing fails, the status is not written either, and both are retried.
        None if !artifacts.is_empty() => {
            decision.before.push(Action::WriteArtifacts(finished.clone()));
            let new = |known: &Artifact| artifacts.iter().all(|artifact| artifact.name != known.name);
            decision.status.artifacts.retain(new);
            decision.status.artifacts.extend(artifacts);
        }
        None => {}
    }
    if next.is_none() && has_repeats(&decision.status) && !aggregate(observed, decision) {
        // The aggregate is computed from the stored results of all trials, so this one must be stored first.
        let (trials, artifacts) = (decision.status.trials.clone(), decision.status.artifacts.clone());
        decision.status = subject.status.clone();
        decision.notices.clear();
        decision.after.push(Action::Aggregate { trials, artifacts });
        decision.requeue = Some(AGAIN);
        return;
    }
    if let Some(cleanup) = finished.cleanup.as_ref().filter(|cleanup| !cleanup.left.is_empty()) {
        decision.notices.push(Notice::warning(reason::KEYS_LEFT, cleanup.summary()));
    }
    let missing = without_artifacts(&decision.status);
    if next.is_none() && missing > 0 {
        add_to_complete(
            decision,
            &format!("the full results of {} were not stored", human::counted(missing as u64, "trial")),
        );
    }
    // If the loss ends the run, its own notice reports it.
    if why != live::SHARD_LOST {
        live::losses(subject, observed, finished.shards.lost, decision);
    }
    // A step of a search that misses its objective is no warning.
    let is_step = next.is_some() && subject.spec.search.is_some();
    let warning = decision.status.phase == Phase::Failed || is_invalid(finished.verdict()) && !is_step;
    decision.notices.push(Notice { warning, reason: why, message });
    if let Some(trial) = next {
        // If suspended, the next reconciliation releases the shards.
        if !subject.spec.suspend {
            let epoch = subject.status.conductor_epoch.unwrap_or(0).saturating_add(1);
            decision.status.conductor_epoch = Some(epoch);
            decision.after.push(Action::Conduct { epoch, trial, resume: None, attempts: 0 });
        }
        return;
    }
    decision.after.push(Action::Release);
    if !finished.unacknowledged.is_empty() {
        decision.after.push(Action::DeletePods { incarnations: finished.unacknowledged.clone() });
    }
    decision.requeue = Some(RELEASE_LIMIT);
}

/// A trial whose conducting failed, and that of its successor too.
fn broken_again(subject: &Subject<'_>) -> Finished {
    let of = subject.status.trial.as_ref().map_or_else(|| subject.plan.map_or(1, Plan::count), |trial| trial.of);
    let message = "conducting the run failed twice because of a bug in the operator; see its log, and please report it";
    let failure = Failure { reason: INTERNAL_ERROR.to_owned(), message: message.to_owned() };
    Finished::unmeasured(of, subject.shards(), Ending::Failed(failure))
}

fn has_repeats(status: &RedisBenchmarkStatus) -> bool {
    !status.repeats.is_empty() || status.repeats_left_out > 0
}

/// Adds the aggregate of the repeats to the decision. Returns false if it is not computed yet.
fn aggregate(observed: &Observed, decision: &mut Decision) -> bool {
    let Some(aggregate) = &observed.aggregate else { return false };
    if !aggregate.against.is_empty() {
        comparison::list(&mut decision.status, aggregate.against.clone());
        if let Some(found) = comparison::sentence(&aggregate.against) {
            add_to_complete(decision, &found);
        }
    }
    aggregate.experiment.tell(&mut decision.status);
    decision.status.artifacts.retain(|known| !known.name.starts_with(repeats::DOCUMENT));
    decision.status.artifacts.extend(aggregate.artifacts.iter().cloned());
    if let Some(failure) = &aggregate.failure {
        let message = format!("failed to merge the trials: {}", human::shorten(failure, 512));
        add_to_complete(decision, &message);
        decision.notices.push(Notice::warning(reason::ARTIFACTS_NOT_WRITTEN, message));
    }
    true
}

fn add_to_complete(decision: &mut Decision, what: &str) {
    let complete = |condition: &&mut Condition| condition.type_ == condition::COMPLETE;
    if let Some(complete) = decision.status.conditions.iter_mut().find(complete) {
        complete.message = format!("{}; {what}", human::cut(&complete.message, 512));
    }
}

/// The previous decision failed for a reason that waiting does not resolve.
fn is_for_a_person(observed: &Observed) -> bool {
    observed.failure.as_ref().is_some_and(|(why, _)| *why != reason::API_SERVER_FAILING)
}

fn is_invalid(verdict: Option<&Verdict>) -> bool {
    verdict.is_some_and(|verdict| verdict.value == VerdictValue::Invalid)
}

/// In a terminal phase: releases the shards, deletes the children, and deletes the benchmark after its time to live. The status stays the
/// same.
pub(super) fn finished(subject: &Subject<'_>, observed: &Observed, now: Timestamp) -> Decision {
    let mut decision = Decision { status: subject.status.clone(), ..Decision::default() };
    let finished_at = find(subject.status, condition::FINISHED).map_or(now, |finished| finished.last_transition_time.0);
    let age = Duration::try_from(now.duration_since(finished_at)).unwrap_or_default();
    if let Some(ttl) = subject.spec.ttl_seconds_after_finished {
        let Some(wait) = rest(Duration::from_secs(u64::from(ttl)), age) else {
            decision.after = vec![Action::StopTask, Action::DeleteBenchmark];
            return decision;
        };
        decision.requeue = Some(wait);
    }
    let releasing = match &observed.conduct {
        Some(TaskView::Ended { released, .. }) => !released,
        Some(TaskView::Running(_)) | None => false,
    };
    let Some(_) = observed.job.as_ref().filter(|job| !job.deleting) else {
        // The Secret may remain if someone else deleted the Job, or if it was never created. The operator may not read Secrets to find out.
        let leftovers = subject.status.run_id.is_some() && age < LEFTOVERS && !observed.cleared;
        if observed.conduct.is_some() || leftovers {
            decision.after.push(Action::DeleteChildren);
        }
        decision.after.push(Action::StopTask);
        return decision;
    };
    if let Some(wait) = rest(RELEASE_LIMIT, age).filter(|_| releasing) {
        decision.after.push(Action::Release);
        decision.requeue = Some(decision.requeue.map_or(wait, |other| other.min(wait)));
        return decision;
    }
    decision.after.push(Action::StopTask);
    decision.after.push(Action::DeleteChildren);
    decision
}

/// The rest of `limit` after `age`. None if it has passed.
fn rest(limit: Duration, age: Duration) -> Option<Duration> {
    limit.checked_sub(age).filter(|rest| !rest.is_zero())
}

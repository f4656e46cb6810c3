//! The decision about a benchmark: a pure function of its spec and status, the observation, and the time.

mod ending;
mod live;
mod subject;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::{Phase, TrialStatus};
use redisbench_benchmark::conductor::{ShardPresence, StartRecord};
use redisbench_benchmark::human;
use redisbench_benchmark::report::conditions::{Conditions, condition, cut, find, reason};

pub use subject::Subject;

use super::decision::{Action, Decision, Notice};
use super::observed::{Observed, has_started};
use super::status::is_urgent;
use crate::tasks::{Ended, TaskView};

/// The interval at which a waiting run looks for the other benchmark of its comparison, or for memory.
const WAITING_INTERVAL: Duration = Duration::from_secs(10);

/// The minimum interval between writes of the status for new numbers only.
pub const STATUS_INTERVAL: Duration = Duration::from_secs(5);
/// A running benchmark is reconciled at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

pub fn decide(subject: &Subject<'_>, observed: &Observed, now: Timestamp) -> Decision {
    let mut decision = if subject.status.phase.is_terminal() {
        ending::finished(subject, observed, now)
    } else if subject.status.run_id.is_none() {
        waiting(subject, observed, now)
    } else {
        under_way(subject, observed, now)
    };
    decision.status.observed_generation = subject.generation;
    if let Some(plan) = subject.plan.filter(|_| !decision.status.phase.is_terminal()) {
        plan.name_present(&mut decision.status);
    }
    if let (Some((why, message)), false) = (&observed.failure, decision.status.phase.is_terminal()) {
        // Starts from the last reported condition, so that its transition time stays the same as long as the obstacle does.
        let is_stalled = |condition: &Condition| condition.type_ == condition::STALLED;
        let present = decision.status.conditions.iter_mut().find(|condition| is_stalled(condition));
        if let (Some(present), Some(former)) = (present, find(subject.status, condition::STALLED)) {
            present.clone_from(former);
        }
        Conditions::new(&mut decision.status, subject.generation, now).set(condition::STALLED, true, why, message);
    }
    hold_back(subject, observed, &mut decision);
    decision
}

/// Writes changes of numbers only every [`STATUS_INTERVAL`].
fn hold_back(subject: &Subject<'_>, observed: &Observed, decision: &mut Decision) {
    let Some(wait) =
        observed.since_write.and_then(|since| STATUS_INTERVAL.checked_sub(since)).filter(|wait| !wait.is_zero())
    else {
        return;
    };
    if decision.status != *subject.status && !is_urgent(subject.status, &decision.status) {
        decision.status = subject.status.clone();
        decision.requeue = Some(decision.requeue.map_or(wait, |other| other.min(wait)));
    }
}

/// The run has not begun: the spec can still be edited.
fn waiting(subject: &Subject<'_>, observed: &Observed, now: Timestamp) -> Decision {
    let mut decision = Decision { status: subject.status.clone(), ..Decision::default() };
    if let Some(problems) = subject.problems {
        return rejected(subject, decision, problems, now);
    }
    if let Some(problem) = &observed.unfit_baseline {
        // No watch reports when the other benchmark becomes comparable.
        decision.requeue = Some(WAITING_INTERVAL);
        return rejected(subject, decision, problem, now);
    }
    let was_accepted = find(subject.status, condition::ACCEPTED).is_some_and(|accepted| accepted.status == "True");
    if !was_accepted {
        decision.notices.push(Notice::normal(reason::ACCEPTED, "the spec is valid"));
    }
    Conditions::new(&mut decision.status, subject.generation, now).set(
        condition::ACCEPTED,
        true,
        reason::ACCEPTED,
        "the spec is valid",
    );
    if subject.spec.abort {
        ending::without_measurement(
            subject,
            &mut decision,
            Phase::Aborted,
            reason::ABORTED,
            "aborted before the start",
            now,
        );
        return decision;
    }
    if subject.spec.suspend {
        suspended(subject, &mut decision.status, now);
        return decision;
    }
    if let Some(message) = &observed.no_room {
        return short_of_memory(subject, decision, message, now);
    }
    decision.status.run_id = Some(observed.fresh_run_id.clone());
    decision.status.conductor_epoch = Some(1);
    decision.status.plan_hash = subject.plan.map(|plan| plan.hash().to_owned());
    subject.report(now).preparing(&mut decision.status, "shards are being created");
    decision.notices.push(creating(subject));
    decision.after = vec![Action::Conduct { epoch: 1, trial: 0, resume: None, attempts: 0 }, Action::CreateChildren];
    decision.requeue = Some(LOOK_AGAIN);
    decision
}

/// Returns whether `status` says that the benchmark cannot run because of `problems`.
pub fn is_reported(status: &RedisBenchmarkStatus, problems: &str) -> bool {
    find(status, condition::ACCEPTED)
        .is_some_and(|accepted| accepted.status == "False" && accepted.message == cut(problems))
}

fn rejected(subject: &Subject<'_>, mut decision: Decision, problems: &str, now: Timestamp) -> Decision {
    decision.status.phase = Phase::Pending;
    if !is_reported(subject.status, problems) {
        decision.notices.push(Notice::warning(reason::INVALID_SPEC, problems));
    }
    let mut conditions = Conditions::new(&mut decision.status, subject.generation, now);
    conditions
        .set(condition::ACCEPTED, false, reason::INVALID_SPEC, problems)
        .set(condition::FINISHED, false, reason::INVALID_SPEC, "waiting for a valid spec")
        .set(condition::RECONCILING, false, reason::INVALID_SPEC, "waiting for a valid spec")
        .set(condition::STALLED, true, reason::INVALID_SPEC, problems);
    decision
}

/// Returns whether `status` says that the benchmark waits for memory, with this message.
pub fn waits_for_memory(status: &RedisBenchmarkStatus, message: &str) -> bool {
    find(status, condition::RECONCILING)
        .is_some_and(|now| now.reason == reason::WAITING_FOR_MEMORY && now.message == cut(message))
}

/// It begins or continues when other benchmarks have finished, which no watch reports.
fn short_of_memory(subject: &Subject<'_>, mut decision: Decision, message: &str, now: Timestamp) -> Decision {
    if !waits_for_memory(subject.status, message) {
        decision.notices.push(Notice::normal(reason::WAITING_FOR_MEMORY, message));
    }
    Conditions::new(&mut decision.status, subject.generation, now)
        .set(condition::FINISHED, false, reason::WAITING_FOR_MEMORY, message)
        .set(condition::RECONCILING, true, reason::WAITING_FOR_MEMORY, message)
        .set(condition::STALLED, false, reason::NO_OBSTACLE, "not stalled");
    decision.requeue = Some(WAITING_INTERVAL);
    decision
}

fn suspended(subject: &Subject<'_>, status: &mut RedisBenchmarkStatus, now: Timestamp) {
    const HOW: &str = "suspended by spec.suspend; set it to false to continue";
    status.phase = Phase::Suspended;
    // Keep the number of attempts, because shards of the previous one may still be terminating.
    status.trial = status.trial.take().map(|trial| TrialStatus { start_at: None, ..trial });
    status.shards = None;
    status.progress = None;
    Conditions::new(status, subject.generation, now)
        .set(condition::FINISHED, false, reason::SUSPENDED, HOW)
        .set(condition::RECONCILING, false, reason::SUSPENDED, HOW)
        .set(condition::STALLED, false, reason::NO_OBSTACLE, "not stalled");
}

/// The run has begun and has not finished.
fn under_way(subject: &Subject<'_>, observed: &Observed, now: Timestamp) -> Decision {
    let mut decision = Decision { status: subject.status.clone(), requeue: Some(LOOK_AGAIN), ..Decision::default() };
    let index = subject.status.trial.as_ref().map_or(0, |trial| trial.index);
    if observed.conduct.is_some() && observed.conducted > index {
        // This status is older than the conducted trial; the watch delivers the newer one.
        return decision;
    }
    // A task of the previous trial is done.
    let conduct = observed.conduct.as_ref().filter(|_| observed.conducted == index);
    let started = has_started(subject.status.trial.as_ref(), conduct);
    let ended = matches!(conduct, Some(TaskView::Ended { .. }));
    // Without a valid spec, a started run cannot be taken over either.
    let unusable = subject.problems.filter(|_| !started || conduct.is_none());
    let changed = plan_changed(subject, index).filter(|_| conduct.is_none());
    let aborted = subject.status.phase == Phase::Suspended && subject.spec.abort;
    let ends = if let Some(why) = &changed {
        Some((Phase::Failed, reason::PLAN_CHANGED, why.as_str()))
    } else if let Some(problems) = unusable {
        Some((Phase::Failed, reason::INVALID_SPEC, problems))
    } else {
        aborted.then_some((Phase::Aborted, reason::ABORTED, "aborted while suspended"))
    };
    if let Some((phase, why, message)) = ends {
        ending::without_measurement(subject, &mut decision, phase, why, message, now);
        decision.after = vec![Action::StopTask, Action::DeleteChildren];
        return decision;
    }
    // Once it measures, a suspended benchmark runs to its end. Aborting takes precedence over suspending.
    if subject.spec.suspend && !subject.spec.abort && !started && !ended {
        if subject.status.phase != Phase::Suspended {
            decision
                .notices
                .push(Notice::normal(reason::SUSPENDED, "suspended before the start; its shards are deleted"));
        }
        suspended(subject, &mut decision.status, now);
        decision.after.push(Action::StopTask);
        if observed.job.as_ref().is_some_and(|job| !job.deleting) {
            decision.after.push(Action::DeleteChildren);
        }
        return decision;
    }
    if let Some(message) = observed.no_room.as_ref().filter(|_| conduct.is_none()) {
        return short_of_memory(subject, decision, message, now);
    }
    match conduct {
        None => take_over(subject, observed, started, &mut decision, now),
        Some(TaskView::Running(progress)) => {
            // A new conductor first asks the shards for their state. Until then, keep the previous report.
            if progress.attempt > 0 || resume(subject.status.trial.as_ref()).is_none() {
                subject.report(now).running(&mut decision.status, progress, &observed.presence);
                live::notices(subject, observed, &mut decision);
            }
            if subject.spec.abort {
                // Stopping the load must not depend on writing the status.
                decision.before.push(Action::Abort);
            }
            // Creating children that exist shows whether the namespace still accepts objects. If it does not, deleted pods do not come
            // back.
            let is_gone = |shard: &ShardPresence| {
                matches!(shard, ShardPresence::Leaving { .. } | ShardPresence::Gone { replaced: true, .. })
            };
            let job_stays = observed.job.as_ref().is_some_and(|job| !job.deleting);
            let may_not_come = observed.left_pods || observed.presence.iter().any(is_gone);
            if !started && (observed.job.is_none() || job_stays && may_not_come) {
                decision.after.push(Action::CreateChildren);
            }
        }
        // As after the end of a process. Only once, because the same bug may come again.
        Some(TaskView::Ended { ended: Ended::Broken, .. }) if subject.status.conductor_failures == 0 => {
            take_over(subject, observed, started, &mut decision, now);
            if !decision.after.is_empty() {
                decision.status.conductor_failures = 1;
                let message =
                    "conducting the run failed because of a bug in the operator; another conductor takes over";
                decision.notices.push(Notice::warning(reason::CONDUCTOR_FAILED, message));
            }
        }
        Some(TaskView::Ended { ended, since, artifacts_failure, .. }) => {
            ending::over(subject, observed, ended, *since, artifacts_failure.as_deref(), &mut decision, now);
        }
    }
    decision
}

/// Why the run cannot continue: its trials differ from those that this operator would run.
fn plan_changed(subject: &Subject<'_>, index: u32) -> Option<String> {
    let (plan, known) = (subject.plan?, subject.status.plan_hash.as_ref()?);
    let way_out = "create a new benchmark, or go back to the previous operator version";
    if known != plan.hash() {
        let of = plan.count();
        return Some(format!(
            "this operator derives different trials from the spec ({of} of them) than those that run; {way_out}"
        ));
    }
    plan.trial(index, &subject.status.trials)
        .is_none()
        .then(|| format!("the status refers to trial {index}, which does not exist; {way_out}"))
}

fn creating(subject: &Subject<'_>) -> Notice {
    Notice::normal("Preparing", format!("creating {}", human::counted(subject.pods().into(), "shard")))
}

/// This process has no task for the run, because another process had one, or the run was suspended; or its task is broken.
fn take_over(subject: &Subject<'_>, observed: &Observed, started: bool, decision: &mut Decision, now: Timestamp) {
    if observed.job.as_ref().is_some_and(|job| job.deleting) && !started {
        // The shards from before a suspension are still terminating; a change of the Job triggers the next reconciliation.
        decision.status = subject.status.clone();
        return;
    }
    // Saturates, because anyone with write access to the status can set any number.
    let epoch = subject.status.conductor_epoch.unwrap_or(0).saturating_add(1);
    decision.status.conductor_epoch = Some(epoch);
    if subject.status.phase == Phase::Suspended {
        decision.notices.push(creating(subject));
    }
    if !started {
        subject.report(now).preparing(&mut decision.status, "shards are being created");
    }
    let trial = subject.status.trial.as_ref();
    let attempts = trial.filter(|trial| trial.start_at.is_none()).map_or(0, |trial| trial.attempt);
    let index = trial.map_or(0, |trial| trial.index);
    decision.after.push(Action::Conduct { epoch, trial: index, resume: resume(trial), attempts });
    if !started && observed.job.is_none() {
        decision.after.push(Action::CreateChildren);
    }
}

/// The start recorded in a status.
fn resume(trial: Option<&TrialStatus>) -> Option<StartRecord> {
    let trial = trial?;
    let nanoseconds = trial.start_at.as_ref()?.0.as_nanosecond();
    Some(StartRecord { attempt: trial.attempt, start_at_unix_nanoseconds: u64::try_from(nanoseconds).unwrap_or(0) })
}

#[cfg(test)]
mod tests;

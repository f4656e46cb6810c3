//! The end of a run, and what follows it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::{Artifact, Phase, Verdict, VerdictValue};
use redisbench_benchmark::human;
use redisbench_benchmark::measurement::Ending;
use redisbench_benchmark::report::conditions::{condition, find, reason};
use redisbench_benchmark::report::{comparison, repeats, without_artifacts, worst};

use super::{Action, ConductView, Decision, Notice, Observed, RELEASE_LIMIT, Subject, live};
use crate::conduct::Ended;

/// After another conductor took over, this long passes before the run is taken back: that it still is ours to run is
/// the exception.
const SUPERSEDED_PAUSE: Duration = Duration::from_secs(15);

/// For so long after the end a run without a Job is looked through for what else it left.
const LEFTOVERS: Duration = Duration::from_secs(600);

/// Between a result that could be kept at last and the end.
const AGAIN: Duration = Duration::from_millis(500);

/// The run ends without anything measured.
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
    // Trials that were over before stay measured.
    status.verdict = worst(&status.trials, of).or(status.verdict.take());
    let failed = phase == Phase::Failed;
    subject.report(now).ended(status, why, message);
    decision.notices.push(if failed { Notice::warning(why, message) } else { Notice::normal(why, message) });
}

/// The conductor is done.
pub(super) fn over(
    subject: &Subject<'_>,
    observed: &Observed,
    ended: &Ended,
    since: Duration,
    artifacts_failure: Option<&str>,
    decision: &mut Decision,
    now: Timestamp,
) {
    let finished = match ended {
        Ended::Superseded => {
            match rest(SUPERSEDED_PAUSE, since) {
                Some(wait) => decision.requeue = Some(wait),
                None => decision.after.push(Action::StopConducting),
            }
            return;
        }
        Ended::Over(finished) => finished,
    };
    let report = &finished.report;
    let index = subject.status.trial.as_ref().map_or(0, |trial| trial.index);
    let follows = subject.plan.is_none_or(|plan| report.next_trial(plan, &subject.status.trials).is_some());
    let next =
        Some(index.saturating_add(1)).filter(|next| *next < report.of && report.ending == Ending::Completed && follows);
    // Nothing that comes late changes how a trial ended, but the run ends with it.
    let ending = if next.is_some() && subject.spec.abort { &Ending::Aborted } else { &report.ending };
    let next = next.filter(|_| *ending == Ending::Completed);
    let told = match next {
        Some(next) => Some(subject.report_of(next, now).next_trial(&mut decision.status, report)),
        None => subject.report(now).over_as(&mut decision.status, report, ending),
    };
    let Some((why, message)) = told else { return };
    match artifacts_failure {
        Some(failure) => {
            let failure = human::shorten(failure, 512);
            let message = format!("the full result could not be kept: {failure}; the status holds its summary");
            if report.of == 1 {
                add_to_complete(decision, &message);
            }
            decision.notices.push(Notice::warning(reason::ARTIFACTS_NOT_WRITTEN, message));
        }
        // A person can mend what is in the way: the status says so first, and the result is tried again.
        None if is_for_a_person(observed) && !finished.artifacts.is_empty() => {
            decision.status = subject.status.clone();
            decision.after.push(Action::WriteArtifacts(finished.clone()));
            decision.requeue = Some(AGAIN);
            return;
        }
        // While writing fails the status is not written either, and both are tried again.
        None if !finished.artifacts.is_empty() => {
            decision.before.push(Action::WriteArtifacts(finished.clone()));
            let new = |known: &Artifact| finished.artifacts.iter().all(|artifact| artifact.name != known.name);
            decision.status.artifacts.retain(new);
            decision.status.artifacts.extend(finished.artifacts.iter().cloned());
        }
        None => {}
    }
    if next.is_none() && has_repeats(&decision.status) && !gathered(observed, decision) {
        // What they come to together is read from what was kept of each, this one included.
        let (trials, artifacts) = (decision.status.trials.clone(), decision.status.artifacts.clone());
        decision.status = subject.status.clone();
        decision.notices.clear();
        decision.after.push(Action::Gather { trials, artifacts });
        decision.requeue = Some(AGAIN);
        return;
    }
    if let Some(cleanup) = finished.report.cleanup.as_ref().filter(|cleanup| !cleanup.left.is_empty()) {
        decision.notices.push(Notice::warning(reason::KEYS_LEFT, cleanup.summary()));
    }
    let missing = without_artifacts(&decision.status);
    if next.is_none() && missing > 0 {
        add_to_complete(decision, &format!("the full results of {missing} trials could not be kept"));
    }
    // A run that ends with a loss says so itself if that is why it ends.
    if why != live::SHARD_LOST {
        live::losses(subject, observed, finished.report.shards.lost, decision);
    }
    // What a search tries and does not hold is no news to warn of.
    let is_step = next.is_some() && subject.spec.search.is_some();
    let warning = decision.status.phase == Phase::Failed || is_invalid(finished.report.verdict.as_ref()) && !is_step;
    decision.notices.push(Notice { warning, reason: why, message });
    if let Some(trial) = next {
        // What is suspended waits for the next look, which lets the shards go.
        if !subject.spec.suspend {
            let epoch = subject.status.conductor_epoch.unwrap_or(0).saturating_add(1);
            decision.status.conductor_epoch = Some(epoch);
            decision.after.push(Action::Conduct { epoch, trial, resume: None, attempts: 0 });
        }
        return;
    }
    decision.after.push(Action::Release);
    let unacknowledged = finished.unacknowledged.iter();
    decision.after.extend(unacknowledged.map(|pod| Action::DeletePod { incarnation: pod.clone() }));
    decision.requeue = Some(RELEASE_LIMIT);
}

fn has_repeats(status: &RedisBenchmarkStatus) -> bool {
    !status.repeats.is_empty() || status.repeats_left_out > 0
}

/// Tells what the repeats came to, if that is known.
fn gathered(observed: &Observed, decision: &mut Decision) -> bool {
    let Some(gathered) = &observed.gathered else { return false };
    if !gathered.against.is_empty() {
        comparison::list(&mut decision.status, gathered.against.clone());
        if let Some(found) = comparison::sentence(&gathered.against) {
            add_to_complete(decision, &found);
        }
    }
    gathered.experiment.tell(&mut decision.status);
    decision.status.artifacts.retain(|known| !known.name.starts_with(repeats::DOCUMENT));
    decision.status.artifacts.extend(gathered.artifacts.iter().cloned());
    if let Some(failure) = &gathered.failure {
        let message = format!("the trials could not be put together: {}", human::shorten(failure, 512));
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

/// What was decided last time could not be done, and no waiting mends that.
fn is_for_a_person(observed: &Observed) -> bool {
    observed.failure.as_ref().is_some_and(|(why, _)| *why != reason::API_SERVER_FAILING)
}

fn is_invalid(verdict: Option<&Verdict>) -> bool {
    verdict.is_some_and(|verdict| verdict.value == VerdictValue::Invalid)
}

/// In a terminal phase: shards are let go, children cleared away, and the benchmark too when its time is over. The
/// status stays as it is.
pub(super) fn finished(subject: &Subject<'_>, observed: &Observed, now: Timestamp) -> Decision {
    let mut decision = Decision { status: subject.status.clone(), ..Decision::default() };
    let finished_at = find(subject.status, condition::FINISHED).map_or(now, |finished| finished.last_transition_time.0);
    let age = Duration::try_from(now.duration_since(finished_at)).unwrap_or_default();
    if let Some(ttl) = subject.spec.ttl_seconds_after_finished {
        let Some(wait) = rest(Duration::from_secs(u64::from(ttl)), age) else {
            decision.after = vec![Action::StopConducting, Action::DeleteBenchmark];
            return decision;
        };
        decision.requeue = Some(wait);
    }
    let releasing = match &observed.conduct {
        Some(ConductView::Ended { released, .. }) => !released,
        Some(ConductView::Running(_)) | None => false,
    };
    let Some(_) = observed.job.as_ref().filter(|job| !job.deleting) else {
        // The Secret may be left: someone else deleted the Job, or it was never made. We may not look for it.
        let leftovers = subject.status.run_id.is_some() && age < LEFTOVERS && !observed.cleared;
        if observed.conduct.is_some() || leftovers {
            decision.after.push(Action::DeleteChildren);
        }
        decision.after.push(Action::StopConducting);
        return decision;
    };
    if let Some(wait) = rest(RELEASE_LIMIT, age).filter(|_| releasing) {
        decision.after.push(Action::Release);
        decision.requeue = Some(decision.requeue.map_or(wait, |other| other.min(wait)));
        return decision;
    }
    decision.after.push(Action::StopConducting);
    decision.after.push(Action::DeleteChildren);
    decision
}

/// What is left of `limit` after `age`; none if nothing is.
fn rest(limit: Duration, age: Duration) -> Option<Duration> {
    limit.checked_sub(age).filter(|rest| !rest.is_zero())
}

use std::sync::Arc;

use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::{ReasonKind, ShardCounts, Summary, VerdictReason, VerdictValue};
use redisbench_benchmark::conductor::{ConductProgress, ConductStage, Endpoint};
use redisbench_benchmark::measurement::{Ending, Failure};
use redisbench_benchmark::plan::compile;
use redisbench_benchmark::report::Finished;
use serde_json::{Value, json};

use super::*;
use crate::controller::observed::JobView;
use crate::tasks::Ended;
use crate::testing::{self, benchmark, status};

const NOW: &str = "2026-01-01T01:00:00Z";

/// Decides about a benchmark with this spec and status, and checks the invariants.
fn decide_on(benchmark: &RedisBenchmark, status: &RedisBenchmarkStatus, observed: &Observed) -> Decision {
    decide_with(benchmark, status, observed, None)
}

fn decide_with(
    benchmark: &RedisBenchmark,
    status: &RedisBenchmarkStatus,
    observed: &Observed,
    problems: Option<&str>,
) -> Decision {
    let plan = problems.is_none().then(|| compile(&benchmark.spec, "cart").unwrap());
    let subject = Subject { spec: &benchmark.spec, status, generation: Some(1), problems, plan: plan.as_ref() };
    let decision = decide(&subject, observed, NOW.parse().unwrap());
    for condition in &decision.status.conditions {
        assert!(!condition.message.is_empty() && !condition.reason.is_empty(), "{condition:?}");
    }
    // Deciding again on the written status must not change it.
    let again = Subject { status: &decision.status, ..subject };
    if !decision.status.phase.is_terminal() && observed.conduct.is_some() {
        assert_eq!(decide(&again, observed, NOW.parse().unwrap()).status, decision.status);
    }
    decision
}

fn idle() -> Observed {
    Observed { fresh_run_id: "fresh".into(), ..Observed::default() }
}

fn job() -> JobView {
    JobView { uid: "job".into(), ..JobView::default() }
}

fn conducting(stage: ConductStage) -> Observed {
    let started = stage != ConductStage::Preparing;
    let progress = ConductProgress {
        stage,
        attempt: u32::from(started),
        start_at_unix_nanoseconds: started.then_some(1_767_229_200_123_456_000),
        shards: ShardCounts { desired: 2, armed: 1, ..ShardCounts::default() },
        ..ConductProgress::default()
    };
    Observed { job: Some(job()), conduct: Some(TaskView::Running(Box::new(progress))), ..idle() }
}

fn finished(ending: Ending) -> Arc<Finished> {
    let mut finished = testing::finished(0, 1, VerdictValue::Invalid);
    finished.measurement.as_mut().unwrap().verdict.reasons = vec![VerdictReason {
        reason: ReasonKind::ShardLost,
        severity: VerdictValue::Invalid,
        message: "shard 1 was lost".into(),
    }];
    Arc::new(Finished {
        ending,
        summary: Summary { shards: Some("1/2".into()), ..Summary::default() },
        shards: ShardCounts { desired: 2, finished: 1, lost: 1, ..ShardCounts::default() },
        unacknowledged: vec!["uid-b".into()],
        ..finished
    })
}

fn over(ended: Ended, since: Duration, failure: Option<&str>) -> Observed {
    let view = TaskView::Ended { ended, since, artifacts_failure: failure.map(str::to_owned), released: false };
    Observed { job: Some(job()), conduct: Some(view), ..idle() }
}

fn truth<'a>(decision: &'a Decision, kind: &str) -> (&'a str, &'a str) {
    find(&decision.status, kind).map_or(("", ""), |found| (&found.status, &found.reason))
}

fn reasons(decision: &Decision) -> Vec<&str> {
    decision.notices.iter().map(|notice| notice.reason.as_str()).collect()
}

fn none() -> RedisBenchmarkStatus {
    RedisBenchmarkStatus::default()
}

#[test]
fn a_valid_spec_begins_a_run() {
    let decision = decide_on(&benchmark(json!({})), &none(), &idle());
    let status = &decision.status;
    assert_eq!(
        (status.phase, status.run_id.as_deref(), status.conductor_epoch),
        (Phase::Preparing, Some("fresh"), Some(1))
    );
    assert_eq!(
        decision.after,
        [Action::Conduct { trial: 0, epoch: 1, resume: None, attempts: 0 }, Action::CreateChildren]
    );
    assert_eq!(truth(&decision, "Accepted").0, "True");
    assert_eq!(truth(&decision, "Finished").0, "False");
    assert_eq!(reasons(&decision), ["Accepted", "Preparing"]);
    assert_eq!(status.summary.as_ref().unwrap().shards.as_deref(), Some("0/2"));
}

#[test]
fn an_invalid_spec_waits_to_be_mended() {
    let spec = benchmark(json!({}));
    let decision = decide_with(&spec, &none(), &idle(), Some("spec.load: both"));
    assert_eq!((decision.status.phase, decision.status.run_id.as_ref()), (Phase::Pending, None));
    assert_eq!(truth(&decision, "Accepted"), ("False", "InvalidSpec"));
    assert_eq!(find(&decision.status, "Accepted").unwrap().message, "spec.load: both");
    assert_eq!(truth(&decision, "Stalled").0, "True");
    assert!(decision.after.is_empty() && decision.requeue.is_none());
    assert_eq!(reasons(&decision), ["InvalidSpec"]);
    // The second decision changes nothing and publishes no event.
    let again = decide_with(&spec, &decision.status, &idle(), Some("spec.load: both"));
    assert_eq!((&again.status, again.notices.len()), (&decision.status, 0));
    // Correcting the spec is sufficient.
    let mended = decide_on(&spec, &decision.status, &idle());
    assert_eq!((mended.status.phase, truth(&mended, "Stalled").0), (Phase::Preparing, "False"));
}

#[test]
fn a_benchmark_waits_for_room_for_its_plan() {
    let spec = benchmark(json!({}));
    let short = Observed { no_room: Some("its plan needs much".to_owned()), ..idle() };
    let waits = decide_on(&spec, &none(), &short);
    assert_eq!((waits.status.phase, waits.status.run_id.as_ref()), (Phase::Pending, None));
    assert_eq!(truth(&waits, "Reconciling"), ("True", "WaitingForMemory"));
    assert_eq!(truth(&waits, "Accepted").0, "True");
    assert!(waits.after.is_empty() && waits.requeue.is_some());
    assert_eq!(reasons(&waits), ["Accepted", "WaitingForMemory"]);
    // The second decision changes nothing and publishes no event.
    let again = decide_on(&spec, &waits.status, &short);
    assert_eq!((&again.status, again.notices.len()), (&waits.status, 0));
    assert_eq!(decide_on(&spec, &waits.status, &idle()).status.phase, Phase::Preparing);
    // One that continues after it was suspended stays suspended.
    let suspended = decide_on(&benchmark(json!({"spec": {"suspend": true}})), &none(), &idle()).status;
    let suspended = RedisBenchmarkStatus { run_id: Some("r".to_owned()), ..suspended };
    let waits = decide_on(&spec, &suspended, &short);
    assert_eq!((waits.status.phase, truth(&waits, "Finished").1), (Phase::Suspended, "WaitingForMemory"));
    assert!(waits.after.is_empty());
}

#[test]
fn a_very_long_message_is_told_once() {
    let (spec, problems) = (benchmark(json!({})), "é".repeat(10_000));
    let decision = decide_with(&spec, &none(), &idle(), Some(&problems));
    assert_eq!(reasons(&decision), ["InvalidSpec"]);
    let again = decide_with(&spec, &decision.status, &idle(), Some(&problems));
    assert_eq!((&again.status, again.notices.len()), (&decision.status, 0));
}

#[test]
fn a_suspended_benchmark_creates_nothing_until_it_is_resumed() {
    let suspended = benchmark(json!({"spec": {"suspend": true}}));
    let decision = decide_on(&suspended, &none(), &idle());
    assert_eq!((decision.status.phase, decision.status.run_id.as_ref()), (Phase::Suspended, None));
    assert_eq!((truth(&decision, "Accepted").0, truth(&decision, "Reconciling").0), ("True", "False"));
    assert!(decision.after.is_empty());
    let again = decide_on(&suspended, &decision.status, &idle());
    assert_eq!((&again.status, again.notices.len()), (&decision.status, 0));
    let resumed = decide_on(&benchmark(json!({})), &decision.status, &idle());
    assert_eq!((resumed.status.phase, reasons(&resumed)), (Phase::Preparing, vec!["Preparing"]));
}

#[test]
fn an_abort_before_the_run_ends_it_and_wins_over_suspend() {
    let decision = decide_on(&benchmark(json!({"spec": {"abort": true, "suspend": true}})), &none(), &idle());
    assert_eq!(decision.status.phase, Phase::Aborted);
    assert_eq!((truth(&decision, "Finished"), truth(&decision, "Complete").0), (("True", "Aborted"), "False"));
    assert!(decision.after.is_empty());
}

#[test]
fn the_phase_follows_the_conductor() {
    for (stage, phase) in [
        (ConductStage::Preparing, Phase::Preparing),
        (ConductStage::Running, Phase::Running),
        (ConductStage::Collecting, Phase::Collecting),
        (ConductStage::Done, Phase::Collecting),
    ] {
        let decision = decide_on(&benchmark(json!({})), &status(json!({})), &conducting(stage));
        assert_eq!(decision.status.phase, phase);
        assert_eq!(decision.status.trial.is_some(), phase != Phase::Preparing);
        assert!(decision.after.is_empty() && decision.before.is_empty(), "{decision:?}");
    }
    let decision = decide_on(&benchmark(json!({})), &status(json!({})), &conducting(ConductStage::Running));
    assert_eq!(reasons(&decision), ["Started"]);
    let start = decision.status.trial.as_ref().unwrap().start_at.as_ref().unwrap();
    assert_eq!(serde_json::to_value(start).unwrap(), "2026-01-01T01:00:00.123456Z");
}

#[test]
fn children_that_vanish_before_the_start_are_made_again_and_later_not() {
    let mut observed = conducting(ConductStage::Preparing);
    observed.job = None;
    let decision = decide_on(&benchmark(json!({})), &status(json!({})), &observed);
    assert_eq!(decision.after, [Action::CreateChildren]);
    let mut observed = conducting(ConductStage::Running);
    observed.job = None;
    assert!(decide_on(&benchmark(json!({})), &status(json!({})), &observed).after.is_empty());
}

#[test]
fn a_pod_that_is_gone_before_the_start_makes_it_ask_whether_the_namespace_stays() {
    let gone = |replaced: bool| ShardPresence::Gone { why: "was deleted".into(), replaced };
    for (stage, replaced, asks) in [
        (ConductStage::Preparing, true, vec![Action::CreateChildren]),
        (ConductStage::Preparing, false, vec![]),
        (ConductStage::Running, true, vec![]),
    ] {
        let mut observed = conducting(stage);
        observed.presence = vec![gone(replaced)];
        assert_eq!(decide_on(&benchmark(json!({})), &status(json!({})), &observed).after, asks, "{stage:?} {replaced}");
    }
    let endpoint =
        Endpoint { shard: 0, incarnation: "p".into(), address: ([10, 0, 0, 1], 7379).into(), host: "n".into() };
    let mut observed = conducting(ConductStage::Preparing);
    observed.presence = vec![ShardPresence::Leaving { endpoint, why: "was deleted".into(), replaced: true }];
    assert_eq!(decide_on(&benchmark(json!({})), &status(json!({})), &observed).after, [Action::CreateChildren]);
    // A suspended Job replaces no pod, and keeps those that have failed.
    for (left_pods, asks) in [(true, vec![Action::CreateChildren]), (false, vec![])] {
        let presence = vec![ShardPresence::Queued];
        let observed = Observed { presence, left_pods, ..conducting(ConductStage::Preparing) };
        assert_eq!(decide_on(&benchmark(json!({})), &status(json!({})), &observed).after, asks, "{left_pods}");
    }
}

#[test]
fn a_run_without_a_conductor_is_taken_over() {
    let before = status(json!({"conductorEpoch": 3}));
    let decision = decide_on(&benchmark(json!({})), &before, &Observed { job: Some(job()), ..idle() });
    assert_eq!(decision.status.conductor_epoch, Some(4));
    assert_eq!(decision.after, [Action::Conduct { trial: 0, epoch: 4, resume: None, attempts: 0 }]);

    let trial = json!({"index": 0, "of": 1, "attempt": 2, "startAt": "2026-01-01T00:59:00.000001Z"});
    let running = status(json!({"phase": "Running", "conductorEpoch": 3, "trial": trial}));
    let decision = decide_on(&benchmark(json!({})), &running, &idle());
    let resume = StartRecord { attempt: 2, start_at_unix_nanoseconds: 1_767_229_140_000_001_000 };
    assert_eq!(decision.after, [Action::Conduct { trial: 0, epoch: 4, resume: Some(resume), attempts: 0 }]);
    assert_eq!(decision.status.phase, Phase::Running);
}

#[test]
fn a_conductor_that_broke_is_taken_over_once() {
    let object = benchmark(json!({}));
    let plan = compile(&object.spec, "cart").unwrap();
    let broken = over(Ended::Broken, Duration::ZERO, None);
    let about = |status: &RedisBenchmarkStatus| {
        let subject = Subject { spec: &object.spec, status, generation: Some(1), problems: None, plan: Some(&plan) };
        decide(&subject, &broken, NOW.parse().unwrap())
    };
    let trial = json!({"index": 0, "of": 1, "attempt": 2, "startAt": "2026-01-01T00:59:00.000001Z"});
    let first = about(&status(json!({"phase": "Running", "conductorEpoch": 3, "trial": trial})));
    let RedisBenchmarkStatus { phase, conductor_epoch, conductor_failures, .. } = first.status;
    assert_eq!((phase, conductor_epoch, conductor_failures), (Phase::Running, Some(4), 1));
    let resume = StartRecord { attempt: 2, start_at_unix_nanoseconds: 1_767_229_140_000_001_000 };
    assert_eq!(first.after, [Action::Conduct { trial: 0, epoch: 4, resume: Some(resume), attempts: 0 }]);
    assert_eq!(reasons(&first), ["ConductorFailed"]);
    // Before the start it begins anew.
    let early = about(&status(json!({"conductorEpoch": 1})));
    assert_eq!(early.after, [Action::Conduct { trial: 0, epoch: 2, resume: None, attempts: 0 }]);
    let second = about(&first.status);
    assert_eq!((second.status.phase, truth(&second, "Failed")), (Phase::Failed, ("True", "InternalError")));
    assert!(find(&second.status, "Failed").unwrap().message.contains("twice"), "{:?}", second.status.conditions);
    assert_eq!(second.after, [Action::Release]);
}

#[test]
fn a_take_over_is_neither_a_setback_nor_another_start() {
    let trial = json!({"index": 0, "of": 1, "attempt": 1, "startAt": "2026-01-01T01:00:00.123456Z"});
    for phase in ["Running", "Collecting"] {
        let before = status(json!({"phase": phase, "trial": trial}));
        let mut observed = conducting(ConductStage::Preparing);
        observed.conduct = Some(TaskView::Running(Box::default()));
        let asking = decide_on(&benchmark(json!({})), &before, &observed);
        assert_eq!((asking.status.phase, reasons(&asking)), (before.phase, vec![]));
        let running = decide_on(&benchmark(json!({})), &asking.status, &conducting(ConductStage::Running));
        assert_eq!((running.status.phase, reasons(&running)), (before.phase, vec![]));
    }
}

#[test]
fn a_restart_is_told_with_who_was_lost() {
    let trial = json!({"index": 0, "of": 1, "attempt": 1, "startAt": "2026-01-01T01:00:00.123456Z"});
    let mut observed = conducting(ConductStage::Preparing);
    if let Some(TaskView::Running(progress)) = &mut observed.conduct {
        progress.attempt = 1;
    }
    observed.presence = vec![ShardPresence::Done, ShardPresence::Gone { why: "exit code 137".into(), replaced: true }];
    let decision = decide_on(&benchmark(json!({})), &status(json!({"phase": "Running", "trial": trial})), &observed);
    assert_eq!((decision.status.phase, reasons(&decision)), (Phase::Preparing, vec!["Restarting"]));
    assert!(decision.notices[0].message.ends_with("shard 1: exit code 137"), "{:?}", decision.notices);
}

#[test]
fn suspending_before_the_start_takes_the_pods_away_and_later_waits_for_the_end() {
    let suspended = benchmark(json!({"spec": {"suspend": true}}));
    let decision = decide_on(&suspended, &status(json!({})), &conducting(ConductStage::Preparing));
    assert_eq!(decision.status.phase, Phase::Suspended);
    assert_eq!(decision.status.run_id.as_deref(), Some("0123456789abcdef"));
    assert_eq!(decision.after, [Action::StopTask, Action::DeleteChildren]);
    let gone = decide_on(&suspended, &decision.status, &idle());
    assert_eq!((gone.after, gone.notices.len()), (vec![Action::StopTask], 0));

    let running = decide_on(&suspended, &status(json!({})), &conducting(ConductStage::Running));
    assert_eq!(running.status.phase, Phase::Running);

    let resumed = decide_on(&benchmark(json!({})), &decision.status, &idle());
    assert_eq!(resumed.status.phase, Phase::Preparing);
    assert_eq!(
        resumed.after,
        [Action::Conduct { trial: 0, epoch: 2, resume: None, attempts: 0 }, Action::CreateChildren]
    );
    let mut leaving = idle();
    leaving.job = Some(JobView { deleting: true, ..JobView::default() });
    let waits = decide_on(&benchmark(json!({})), &decision.status, &leaving);
    assert_eq!((waits.status.phase, waits.after), (Phase::Suspended, vec![]));
}

#[test]
fn an_abort_goes_through_the_conductor() {
    let aborted = benchmark(json!({"spec": {"abort": true, "suspend": true}}));
    for stage in [ConductStage::Preparing, ConductStage::Running] {
        let decision = decide_on(&aborted, &status(json!({})), &conducting(stage));
        assert_eq!((&decision.before, &decision.after), (&vec![Action::Abort], &vec![]), "{stage:?}");
        assert!(!decision.status.phase.is_terminal());
    }
    let decision = decide_on(&aborted, &status(json!({"phase": "Suspended"})), &idle());
    assert_eq!(decision.status.phase, Phase::Aborted);
    assert_eq!(decision.after, [Action::StopTask, Action::DeleteChildren]);
}

#[test]
fn a_completed_run_keeps_its_result_before_the_shards_go() {
    let finished = finished(Ending::Completed);
    let observed = over(Ended::Over(finished.clone()), Duration::ZERO, None);
    let decision = decide_on(&benchmark(json!({})), &status(json!({"phase": "Collecting"})), &observed);
    assert_eq!(decision.before, [Action::WriteArtifacts(finished.clone())]);
    assert_eq!(decision.after, [Action::Release, Action::DeletePods { incarnations: vec!["uid-b".into()] }]);
    let status = &decision.status;
    assert_eq!(status.phase, Phase::Succeeded);
    assert_eq!((status.result.is_some(), status.artifacts.len(), status.progress.is_none()), (true, 1, true));
    assert_eq!(status.summary.as_ref().unwrap().shards.as_deref(), Some("1/2"));
    assert_eq!(truth(&decision, "Finished"), ("True", "Succeeded"));
    assert_eq!((truth(&decision, "Complete").0, truth(&decision, "Failed").0), ("True", "False"));
    assert_eq!(truth(&decision, "Valid"), ("False", "Invalid"));
    assert!(find(status, "Valid").unwrap().message.contains("shard 1 was lost"));
    // The loss of the last shard has not been published yet.
    assert_eq!(reasons(&decision), ["ShardLost", "Succeeded"]);
    assert!(decision.notices[1].warning, "an Invalid verdict is worth a warning");
}

#[test]
fn a_failed_run_says_why() {
    let failure = Failure { reason: "AuthenticationFailed".into(), message: "shard 0: wrong password".into() };
    let observed = over(Ended::Over(finished(Ending::Failed(failure))), Duration::ZERO, None);
    let decision = decide_on(&benchmark(json!({})), &status(json!({})), &observed);
    assert_eq!(decision.status.phase, Phase::Failed);
    assert_eq!(truth(&decision, "Failed"), ("True", "AuthenticationFailed"));
    assert_eq!(find(&decision.status, "Failed").unwrap().message, "shard 0: wrong password");
    assert_eq!((truth(&decision, "Finished"), truth(&decision, "Stalled").0), (("True", "Failed"), "True"));
    assert_eq!(reasons(&decision), ["ShardLost", "AuthenticationFailed"]);
    let failure = Failure { reason: "ShardLost".into(), message: "shard 1: exit code 137".into() };
    let observed = over(Ended::Over(finished(Ending::Failed(failure))), Duration::ZERO, None);
    let decision = decide_on(&benchmark(json!({})), &status(json!({})), &observed);
    assert_eq!(reasons(&decision), ["ShardLost"]);
}

#[test]
fn an_aborted_run_keeps_what_was_measured() {
    let observed = over(Ended::Over(finished(Ending::Aborted)), Duration::ZERO, None);
    let decision = decide_on(&benchmark(json!({"spec": {"abort": true}})), &status(json!({})), &observed);
    assert_eq!((decision.status.phase, decision.status.result.is_some()), (Phase::Aborted, true));
    assert_eq!((truth(&decision, "Complete").0, truth(&decision, "Finished")), ("False", ("True", "Aborted")));
}

#[test]
fn what_keeps_the_result_from_being_kept_is_in_the_status() {
    let finished = finished(Ending::Completed);
    let mut taken = over(Ended::Over(finished.clone()), Duration::ZERO, None);
    taken.failure = Some((reason::NAME_TAKEN, "ConfigMap cart-result-0 is not owned by this benchmark".into()));
    let decision = decide_on(&benchmark(json!({})), &status(json!({"phase": "Collecting"})), &taken);
    // Stalled is written before the retry of the result, so that users can read it meanwhile.
    assert_eq!((decision.before, decision.after), (vec![], vec![Action::WriteArtifacts(finished)]));
    assert_eq!((decision.status.phase, decision.notices), (Phase::Collecting, vec![]));
    let stalled = find(&decision.status, condition::STALLED).unwrap();
    assert_eq!((stalled.status.as_str(), stalled.reason.as_str()), ("True", "NameTaken"));
}

#[test]
fn a_result_that_cannot_be_kept_does_not_hold_up_the_end_for_ever() {
    let refused = over(Ended::Over(finished(Ending::Completed)), Duration::ZERO, Some("quota"));
    let decision = decide_on(&benchmark(json!({})), &status(json!({})), &refused);
    assert!(decision.before.is_empty() && decision.status.artifacts.is_empty());
    assert_eq!(decision.status.phase, Phase::Succeeded);
    assert_eq!(reasons(&decision), ["ArtifactsNotWritten", "ShardLost", "Succeeded"]);
}

/// Preparing again after `missed` of the recorded attempts.
fn missed(missed: u32) -> Observed {
    let mut observed = conducting(ConductStage::Preparing);
    if let Some(TaskView::Running(progress)) = &mut observed.conduct {
        (progress.attempt, progress.missed) = (missed, missed);
    }
    observed
}

#[test]
fn a_start_that_was_missed_does_not_keep_a_benchmark_from_being_suspended() {
    let suspend = benchmark(json!({"spec": {"suspend": true}}));
    let trial = json!({"index": 0, "of": 1, "attempt": 2, "startAt": "2026-01-01T00:59:00Z"});
    let recorded = status(json!({"trial": trial}));
    let decision = decide_on(&suspend, &recorded, &missed(2));
    assert_eq!(decision.status.phase, Phase::Suspended);
    assert_eq!(decision.after, [Action::StopTask, Action::DeleteChildren]);
    // The next start is being recorded, so it may have begun.
    assert_ne!(decide_on(&suspend, &recorded, &missed(1)).status.phase, Phase::Suspended);

    // A resumed run continues the numbering, and does not ask for the missed attempt.
    let resumed = decide_on(&benchmark(json!({})), &decision.status, &idle());
    assert_eq!(resumed.status.phase, Phase::Preparing);
    let conduct = Action::Conduct { trial: 0, epoch: 2, resume: None, attempts: 2 };
    assert_eq!(resumed.after, [conduct, Action::CreateChildren]);
}

#[test]
fn children_that_vanish_after_a_missed_start_are_made_again() {
    let trial = json!({"index": 0, "of": 1, "attempt": 1, "startAt": "2026-01-01T00:59:00Z"});
    let observed = Observed { job: None, ..missed(1) };
    let decision = decide_on(&benchmark(json!({})), &status(json!({"trial": trial})), &observed);
    assert_eq!(decision.after, [Action::CreateChildren]);
}

#[test]
fn a_superseded_conductor_writes_nothing() {
    let before = status(json!({"phase": "Running"}));
    let early = decide_on(&benchmark(json!({})), &before, &over(Ended::Superseded, Duration::ZERO, None));
    assert_eq!((early.status, early.after), (before.clone(), vec![]));
    let late = decide_on(&benchmark(json!({})), &before, &over(Ended::Superseded, Duration::from_secs(60), None));
    assert_eq!((late.status, late.after), (before, vec![Action::StopTask]));
}

#[test]
fn the_pause_of_a_superseded_conductor_ends_without_a_spin() {
    let pause = Duration::from_secs(15);
    let decision =
        decide_on(&benchmark(json!({})), &status(json!({"phase": "Running"})), &over(Ended::Superseded, pause, None));
    assert_eq!((decision.requeue.unwrap(), decision.after), (LOOK_AGAIN, vec![Action::StopTask]));
}

#[test]
fn the_secret_of_a_job_that_someone_deleted_goes_too() {
    let observed = Observed { job: None, ..over(Ended::Over(finished(Ending::Completed)), Duration::ZERO, None) };
    let decision = decide_on(&benchmark(json!({})), &ended("Failed", 1), &observed);
    assert_eq!(decision.after, [Action::DeleteChildren, Action::StopTask]);
    // Also if another process conducted it, and only once.
    let later = Observed { conduct: None, ..observed };
    let decision = decide_on(&benchmark(json!({})), &ended("Failed", 1), &later);
    assert_eq!(decision.after, [Action::DeleteChildren, Action::StopTask]);
    let cleared = Observed { cleared: true, ..later };
    let decision = decide_on(&benchmark(json!({})), &ended("Failed", 1), &cleared);
    assert_eq!(decision.after, [Action::StopTask]);
}

/// A status that finished `age` seconds before `NOW`.
fn ended(phase: &str, age: i64) -> RedisBenchmarkStatus {
    let now: Timestamp = NOW.parse().unwrap();
    let at = Timestamp::from_second(now.as_second() - age).unwrap();
    status(json!({"phase": phase, "conditions": [{
        "type": "Finished", "status": "True", "reason": phase, "message": "m", "observedGeneration": 1,
        "lastTransitionTime": at.to_string(),
    }]}))
}

#[test]
fn finished_runs_are_cleared_away_once_released() {
    let done = |released: bool, phase: &str, age: i64| {
        let view = TaskView::Ended {
            ended: Ended::Over(finished(Ending::Completed)),
            since: Duration::from_secs(1),
            artifacts_failure: None,
            released,
        };
        let observed = Observed { job: Some(job()), conduct: Some(view), ..idle() };
        let before = ended(phase, age);
        let decision = decide_on(&benchmark(json!({})), &before, &observed);
        assert_eq!(decision.status, before, "a finished status stays as it is");
        decision
    };
    let waiting = done(false, "Succeeded", 10);
    assert_eq!((waiting.after, waiting.requeue), (vec![Action::Release], Some(Duration::from_secs(20))));
    let clear = vec![Action::StopTask, Action::DeleteChildren];
    assert_eq!(done(false, "Succeeded", 30).after, clear);
    assert_eq!(done(true, "Succeeded", 1).after, clear);
    assert_eq!(done(true, "Aborted", 1).after, clear);
    assert_eq!(done(true, "Failed", 1).after, clear);
}

#[test]
fn a_finished_run_without_children_is_left_alone() {
    for job in [None, Some(JobView { deleting: true, ..JobView::default() })] {
        let before = ended("Failed", 3_600);
        let decision = decide_on(&benchmark(json!({})), &before, &Observed { job, ..idle() });
        assert_eq!((decision.status, decision.requeue), (before, None));
        assert_eq!(decision.after, [Action::StopTask]);
    }
}

#[test]
fn a_finished_run_of_another_process_is_cleared_away_at_once() {
    let decision = decide_on(&benchmark(json!({})), &ended("Succeeded", 1), &Observed { job: Some(job()), ..idle() });
    assert_eq!(decision.after, [Action::StopTask, Action::DeleteChildren]);
}

#[test]
fn a_benchmark_goes_when_its_time_is_over() {
    let fleeting = benchmark(json!({"spec": {"ttlSecondsAfterFinished": 60}}));
    let early = decide_on(&fleeting, &ended("Succeeded", 20), &idle());
    assert_eq!(early.requeue, Some(Duration::from_secs(40)));
    let late = decide_on(&fleeting, &ended("Succeeded", 60), &idle());
    assert_eq!(late.after, [Action::StopTask, Action::DeleteBenchmark]);
    let at_once = benchmark(json!({"spec": {"ttlSecondsAfterFinished": 0}}));
    assert_eq!(decide_on(&at_once, &ended("Failed", 0), &idle()).after.last(), Some(&Action::DeleteBenchmark));
}

#[test]
fn newer_numbers_wait_for_their_turn() {
    let preparing = conducting(ConductStage::Preparing);
    let written = decide_on(&benchmark(json!({})), &status(json!({})), &preparing).status;
    let mut more = preparing;
    if let Some(TaskView::Running(progress)) = &mut more.conduct {
        progress.shards.armed = 2;
    }
    more.since_write = Some(Duration::from_secs(2));
    let held = decide_on(&benchmark(json!({})), &written, &more);
    assert_eq!((held.status, held.requeue), (written.clone(), Some(Duration::from_secs(3))));
    more.since_write = Some(STATUS_INTERVAL);
    assert_ne!(decide_on(&benchmark(json!({})), &written, &more).status, written);
    let mut running = conducting(ConductStage::Running);
    running.since_write = Some(Duration::ZERO);
    assert_eq!(decide_on(&benchmark(json!({})), &written, &running).status.phase, Phase::Running);
}

#[test]
fn a_lost_shard_is_told_at_once() {
    let mut observed = conducting(ConductStage::Running);
    let written = decide_on(&benchmark(json!({})), &status(json!({})), &observed).status;
    if let Some(TaskView::Running(progress)) = &mut observed.conduct {
        progress.shards.lost = 1;
    }
    observed.presence =
        vec![ShardPresence::Done, ShardPresence::Gone { why: "pod b on node n1: was deleted".into(), replaced: true }];
    observed.since_write = Some(Duration::ZERO);
    let decision = decide_on(&benchmark(json!({})), &written, &observed);
    assert_eq!(decision.status.shards.unwrap().lost, 1);
    assert_eq!(reasons(&decision), ["ShardLost"]);
    assert!(decision.notices[0].message.contains("shard 1: pod b on node n1: was deleted"));
    observed.presence[1] = ShardPresence::Absent { why: None };
    let decision = decide_on(&benchmark(json!({})), &written, &observed);
    assert!(decision.notices[0].message.contains("shard 1: its pod was deleted"));
}

#[test]
fn what_a_person_must_mend_is_in_the_status() {
    let mut observed = conducting(ConductStage::Preparing);
    observed.failure = Some((reason::NAME_TAKEN, "Job cart-1 is not owned by this benchmark".into()));
    let decision = decide_on(&benchmark(json!({})), &status(json!({})), &observed);
    assert_eq!(truth(&decision, "Stalled"), ("True", "NameTaken"));
    let subject = Subject {
        spec: &benchmark(json!({})).spec,
        status: &decision.status,
        generation: Some(1),
        problems: None,
        plan: None,
    };
    let later = decide(&subject, &observed, "2026-01-01T02:00:00Z".parse().unwrap());
    assert_eq!(later.status, decision.status, "nothing new, so nothing to write");
    observed.failure = None;
    let mended = decide_on(&benchmark(json!({})), &decision.status, &observed);
    assert_eq!(truth(&mended, "Stalled").0, "False");
}

#[test]
fn a_spec_that_a_newer_operator_refuses_fails_before_the_start_only() {
    let spec = benchmark(json!({}));
    let decision = decide_with(&spec, &status(json!({})), &conducting(ConductStage::Preparing), Some("no"));
    assert_eq!((decision.status.phase, truth(&decision, "Failed").1), (Phase::Failed, "InvalidSpec"));
    assert_eq!(decision.after, [Action::StopTask, Action::DeleteChildren]);
    let running = decide_with(&spec, &status(json!({})), &conducting(ConductStage::Running), Some("no"));
    assert_eq!(running.status.phase, Phase::Running);
}

#[test]
fn a_running_spec_that_cannot_be_conducted_any_more_fails() {
    let trial = json!({"index": 0, "of": 1, "attempt": 1, "startAt": "2026-01-01T00:59:00Z"});
    let running = status(json!({"phase": "Running", "trial": trial}));
    let decision = decide_with(&benchmark(json!({})), &running, &Observed { job: Some(job()), ..idle() }, Some("no"));
    assert_eq!((decision.status.phase, truth(&decision, "Failed").1), (Phase::Failed, "InvalidSpec"));
    assert_eq!(decision.after, [Action::StopTask, Action::DeleteChildren]);
}

#[test]
fn a_changed_generation_is_acknowledged() {
    let before: RedisBenchmarkStatus =
        serde_json::from_value(serde_json::to_value(ended("Succeeded", 5)).unwrap()).unwrap();
    let subject =
        Subject { spec: &benchmark(json!({})).spec, status: &before, generation: Some(2), problems: None, plan: None };
    let decision = decide(&subject, &idle(), NOW.parse().unwrap());
    assert_eq!(decision.status.observed_generation, Some(2));
    let _: Value = serde_json::to_value(&decision.status).unwrap();
}

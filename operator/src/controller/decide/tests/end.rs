//! Decisions about the end of a run and about what follows it.

use super::*;

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
fn a_changed_generation_is_acknowledged() {
    let before: RedisBenchmarkStatus =
        serde_json::from_value(serde_json::to_value(ended("Succeeded", 5)).unwrap()).unwrap();
    let subject =
        Subject { spec: &benchmark(json!({})).spec, status: &before, generation: Some(2), problems: None, plan: None };
    let decision = decide(&subject, &idle(), NOW.parse().unwrap());
    assert_eq!(decision.status.observed_generation, Some(2));
    let _: Value = serde_json::to_value(&decision.status).unwrap();
}

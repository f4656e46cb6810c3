//! Decisions before the load begins.

use super::*;

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

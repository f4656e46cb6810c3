//! Decisions while the benchmark is conducted.

use super::*;

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
fn a_running_spec_that_cannot_be_conducted_any_more_fails() {
    let trial = json!({"index": 0, "of": 1, "attempt": 1, "startAt": "2026-01-01T00:59:00Z"});
    let running = status(json!({"phase": "Running", "trial": trial}));
    let decision = decide_with(&benchmark(json!({})), &running, &Observed { job: Some(job()), ..idle() }, Some("no"));
    assert_eq!((decision.status.phase, truth(&decision, "Failed").1), (Phase::Failed, "InvalidSpec"));
    assert_eq!(decision.after, [Action::StopTask, Action::DeleteChildren]);
}

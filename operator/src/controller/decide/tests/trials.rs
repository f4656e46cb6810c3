//! Decisions about runs with several trials.

use redisbench_benchmark::api::status::{Artifact, TrialOutcome, TrialRequests};

use super::*;
use crate::tasks::Aggregate;

/// Three trials.
fn of_presets(change: &Value) -> RedisBenchmark {
    let mut spec = json!({"workload": {"preset": ["set", "get", "incr"], "operations": []}});
    spec.as_object_mut().unwrap().extend(change.as_object().cloned().unwrap());
    benchmark(json!({"spec": spec}))
}

/// Decides once: decided again, a trial that is over would be followed by the next.
fn decide_on(benchmark: &RedisBenchmark, status: &RedisBenchmarkStatus, observed: &Observed) -> Decision {
    let plan = compile(&benchmark.spec, "cart").unwrap();
    let subject = Subject { spec: &benchmark.spec, status, generation: Some(1), problems: None, plan: Some(&plan) };
    decide(&subject, observed, NOW.parse().unwrap())
}

fn between() -> Observed {
    Observed { job: Some(job()), ..idle() }
}

/// A run in trial `index`, with the lines of the previous ones.
fn in_trial(index: u32, change: &Value) -> RedisBenchmarkStatus {
    let line =
        |index: u32| json!({"index": index, "preset": "set", "state": "Completed", "attempt": 1, "verdict": "Valid"});
    let mut all = json!({
        "phase": "Collecting",
        "planHash": compile(&of_presets(&json!({})).spec, "cart").unwrap().hash(),
        "trial": {"index": index, "of": 3, "attempt": 1, "startAt": "2026-01-01T00:59:00.000000Z"},
        "trials": (0..index).map(line).collect::<Vec<_>>(),
    });
    all.as_object_mut().unwrap().extend(change.as_object().cloned().unwrap());
    status(all)
}

fn over(index: u32, ending: Ending, verdict: VerdictValue) -> Observed {
    let why = (verdict != VerdictValue::Valid).then(|| "for a reason".to_owned());
    let state = if ending == Ending::Completed { "Completed" } else { "Failed" };
    let line = json!({"index": index, "preset": "get", "state": state, "attempt": 1, "cell": index, "misses": 0,
        "requests": TrialRequests::default(), "achievedPerSecond": 1_000, "verdict": verdict, "why": why});
    let finished =
        Finished { line: Some(serde_json::from_value(line).unwrap()), ending, ..testing::finished(index, 3, verdict) };
    let ended = Ended::Over(Arc::new(finished));
    let view = TaskView::Ended { ended, since: Duration::ZERO, artifacts_failure: None, released: false };
    Observed { conduct: Some(view), conducted: index, ..between() }
}

fn failed(decision: &Decision) -> &str {
    find(&decision.status, "Failed").map_or("", |condition| &condition.reason)
}

#[test]
fn a_trial_that_is_over_is_kept_before_the_next_begins() {
    let before = in_trial(0, &json!({}));
    let decision = decide_on(&of_presets(&json!({})), &before, &over(0, Ending::Completed, VerdictValue::Valid));
    assert!(matches!(decision.before[..], [Action::WriteArtifacts(_)]));
    let status = &decision.status;
    assert_eq!((status.phase, status.conductor_epoch), (Phase::Preparing, Some(2)));
    let trial = status.trial.as_ref().unwrap();
    assert_eq!((trial.index, trial.of, trial.attempt, &trial.start_at), (1, 3, 0, &None));
    assert_eq!(status.trials.iter().map(|line| line.index).collect::<Vec<_>>(), [0]);
    assert_eq!(status.artifacts.len(), 1);
    assert_eq!(decision.after, [Action::Conduct { epoch: 2, trial: 1, resume: None, attempts: 0 }]);
    assert!(is_urgent(&before, status));
    let notices: Vec<_> = decision.notices.iter().map(|notice| (notice.warning, notice.reason.as_str())).collect();
    assert_eq!(notices, [(false, "TrialOver")]);
}

#[test]
fn a_trial_is_over_once() {
    // The task of trial 0 still exists, but the status has its line already.
    let waits =
        in_trial(1, &json!({"phase": "Preparing", "trial": {"index": 1, "of": 3, "attempt": 0, "setting": "get"}}));
    let decision = decide_on(&of_presets(&json!({})), &waits, &over(0, Ending::Completed, VerdictValue::Valid));
    assert_eq!(decision.status.trials, waits.trials);
    assert!(decision.before.is_empty());
    assert_eq!(decision.after, [Action::Conduct { epoch: 2, trial: 1, resume: None, attempts: 0 }]);
    // The status is older than the beginning of trial 2.
    let decision = decide_on(&of_presets(&json!({})), &waits, &over(2, Ending::Completed, VerdictValue::Valid));
    assert_eq!((&decision.status, decision.before.len(), decision.after.len()), (&waits, 0, 0));
}

#[test]
fn the_last_trial_ends_the_run_with_the_worst_verdict() {
    let before = in_trial(2, &json!({}));
    let decision = decide_on(&of_presets(&json!({})), &before, &over(2, Ending::Completed, VerdictValue::Degraded));
    let status = &decision.status;
    assert_eq!((status.phase, status.trials.len(), &status.result), (Phase::Succeeded, 3, &None));
    let verdict = status.verdict.as_ref().unwrap();
    assert_eq!(verdict.value, VerdictValue::Degraded);
    assert_eq!(verdict.reasons[0].message, "trial 3 of 3, get: for a reason");
    assert_eq!(status.summary.as_ref().unwrap().verdict.as_deref(), Some("Degraded"));
    assert_eq!(decision.after, [Action::Release]);
    // The other two had no requests, so none of their data is missing.
    assert_eq!(find(status, "Complete").unwrap().message, "the measurement completed");
}

#[test]
fn results_that_could_not_be_kept_are_counted_at_the_end() {
    let line = json!({"index": 0, "state": "Completed", "attempt": 1, "verdict": "Valid",
        "requests": serde_json::to_value(redisbench_benchmark::api::status::Requests::default()).unwrap()});
    let second = json!({"index": 1, "state": "Completed", "attempt": 1, "verdict": "Valid"});
    let before = in_trial(2, &json!({"trials": [line, second]}));
    let decision = decide_on(&of_presets(&json!({})), &before, &over(2, Ending::Completed, VerdictValue::Valid));
    let complete = &find(&decision.status, "Complete").unwrap().message;
    assert!(complete.ends_with("the full results of 1 trial were not stored"), "{complete}");
}

#[test]
fn a_failed_trial_ends_the_run_and_keeps_what_was_measured() {
    let failure = Failure { reason: "ShardLost".into(), message: "2 of 2 shards were lost".into() };
    let observed = over(1, Ending::Failed(failure), VerdictValue::Invalid);
    let decision = decide_on(&of_presets(&json!({})), &in_trial(1, &json!({})), &observed);
    assert_eq!((decision.status.phase, failed(&decision)), (Phase::Failed, "ShardLost"));
    assert_eq!(find(&decision.status, "Failed").unwrap().message, "trial 2 of 3: 2 of 2 shards were lost");
    assert_eq!(decision.status.trials.len(), 2);
    assert_eq!(decision.after, [Action::Release]);
}

#[test]
fn an_abort_between_two_trials_ends_the_run() {
    let abort = of_presets(&json!({"abort": true}));
    // It was requested at the end of the first trial.
    let decision = decide_on(&abort, &in_trial(0, &json!({})), &over(0, Ending::Completed, VerdictValue::Valid));
    assert_eq!((decision.status.phase, decision.status.trials.len()), (Phase::Aborted, 1));
    assert_eq!(decision.status.trials[0].state, TrialOutcome::Completed);
    assert_eq!(decision.after, [Action::Release]);
    // After the last trial it has no effect.
    let decision = decide_on(&abort, &in_trial(2, &json!({})), &over(2, Ending::Completed, VerdictValue::Valid));
    assert_eq!(decision.status.phase, Phase::Succeeded);
    // While suspended, there is no load to stop.
    let waits = json!({"phase": "Suspended", "trial": {"index": 1, "of": 3, "attempt": 0}});
    let decision = decide_on(&abort, &in_trial(1, &waits), &between());
    assert_eq!((decision.status.phase, decision.status.verdict.unwrap().value), (Phase::Aborted, VerdictValue::Valid));
}

#[test]
fn suspending_holds_between_trials() {
    let suspend = of_presets(&json!({"suspend": true}));
    let decision = decide_on(&suspend, &in_trial(0, &json!({})), &over(0, Ending::Completed, VerdictValue::Valid));
    assert_eq!((decision.status.trials.len(), decision.after.len()), (1, 0));
    let held = decide_on(&suspend, &decision.status, &over(0, Ending::Completed, VerdictValue::Valid));
    assert_eq!((held.status.phase, held.status.trials.len()), (Phase::Suspended, 1));
    assert_eq!(held.after, [Action::StopTask, Action::DeleteChildren]);
    let gone = Observed { job: None, ..between() };
    let resumed = decide_on(&of_presets(&json!({})), &held.status, &gone);
    let conduct = Action::Conduct { epoch: 2, trial: 1, resume: None, attempts: 0 };
    assert_eq!(resumed.after, [conduct, Action::CreateChildren]);
}

#[test]
fn a_new_operator_goes_on_with_the_trial_that_runs() {
    let decision = decide_on(&of_presets(&json!({})), &in_trial(1, &json!({"phase": "Running"})), &between());
    let resume = Some(StartRecord { attempt: 1, start_at_unix_nanoseconds: 1_767_229_140_000_000_000 });
    assert_eq!(decision.after, [Action::Conduct { epoch: 2, trial: 1, resume, attempts: 0 }]);
    assert_eq!((decision.status.phase, decision.status.trials.len()), (Phase::Running, 1));
}

#[test]
fn an_operator_that_makes_other_trials_of_the_spec_fails_the_run() {
    for change in [json!({"planHash": "0".repeat(64)}), json!({"trial": {"index": 3, "of": 3, "attempt": 1}})] {
        let decision = decide_on(&of_presets(&json!({})), &in_trial(1, &change), &between());
        assert_eq!((decision.status.phase, failed(&decision)), (Phase::Failed, "PlanChanged"));
        assert_eq!(decision.status.trials.len(), 1);
        assert_eq!(decision.after, [Action::StopTask, Action::DeleteChildren]);
    }
    // The process that conducts it continues.
    let mut running = over(1, Ending::Completed, VerdictValue::Valid);
    let progress =
        ConductProgress { stage: ConductStage::Running, trial: 1, of: 3, attempt: 1, ..ConductProgress::default() };
    running.conduct = Some(TaskView::Running(Box::new(progress)));
    let decision = decide_on(&of_presets(&json!({})), &in_trial(1, &json!({"planHash": "0".repeat(64)})), &running);
    assert!(!decision.status.phase.is_terminal());
}

#[test]
fn the_status_says_which_trial_it_is_in() {
    let setting = |decision: Decision| decision.status.trial.and_then(|trial| trial.setting);
    let mut running = between();
    let progress =
        ConductProgress { stage: ConductStage::Running, trial: 1, of: 3, attempt: 1, ..ConductProgress::default() };
    running.conduct = Some(TaskView::Running(Box::new(progress)));
    let status = in_trial(1, &json!({"phase": "Running"}));
    assert_eq!(setting(decide_on(&of_presets(&json!({})), &status, &running)).as_deref(), Some("get"));
    let over = over(1, Ending::Completed, VerdictValue::Valid);
    assert_eq!(setting(decide_on(&of_presets(&json!({})), &in_trial(1, &json!({})), &over)).as_deref(), Some("incr"));
}

fn of_repeats() -> RedisBenchmark {
    benchmark(json!({"spec": {"repeats": {"count": 3}}}))
}

/// The last of three repeats has finished.
fn last_repeat() -> (RedisBenchmarkStatus, Observed) {
    let line = |index: u32| {
        json!({
            "index": index, "cell": 0, "repeat": index, "state": "Completed", "attempt": 1, "verdict": "Valid",
            "requests": {"scheduled": 10, "succeeded": 10, "errors": 0, "unsent": 0}, "achievedPerSecond": 1000 + index,
        })
    };
    let artifact =
        |index: u32| json!({"name": format!("trial-{index}.result.json"), "configMap": format!("cart-result-{index}")});
    let before = in_trial(
        2,
        &json!({
            "planHash": compile(&of_repeats().spec, "cart").unwrap().hash(),
            "trial": {"index": 2, "of": 3, "attempt": 1, "setting": "repeat 3", "startAt": "2026-01-01T00:59:00.000000Z"},
            "trials": [line(0), line(1)],
            "artifacts": [artifact(0), artifact(1)],
        }),
    );
    let mut over = over(2, Ending::Completed, VerdictValue::Valid);
    if let Some(TaskView::Ended { ended: Ended::Over(finished), .. }) = &mut over.conduct {
        let line = Arc::make_mut(finished).line.as_mut().unwrap();
        (line.cell, line.repeat, line.setting.preset) = (0, Some(2), None);
    }
    (before, over)
}

#[test]
fn what_repeats_come_to_is_looked_up_before_the_run_ends() {
    let (before, mut observed) = last_repeat();
    let decision = decide_on(&of_repeats(), &before, &observed);
    assert!(matches!(decision.before[..], [Action::WriteArtifacts(_)]), "the last result is safe first");
    assert_eq!(decision.status, before);
    let [Action::Aggregate { trials, artifacts }] = &decision.after[..] else { panic!("{:?}", decision.after) };
    assert_eq!((trials.len(), artifacts.len()), (3, 3));
    assert!(decision.notices.is_empty() && decision.requeue.is_some());

    let experiment = Artifact { name: "experiment.json".into(), config_map: "cart-result-experiment".into() };
    let aggregate = Aggregate { artifacts: vec![experiment.clone()], ..Aggregate::default() };
    observed.aggregate = Some(Arc::new(aggregate));
    let decision = decide_on(&of_repeats(), &before, &observed);
    assert_eq!(decision.status.phase, Phase::Succeeded);
    assert_eq!((decision.status.artifacts.len(), decision.status.artifacts.last()), (4, Some(&experiment)));
    assert!(decision.after.contains(&Action::Release));
}

#[test]
fn repeats_that_could_not_be_merged_are_told_and_hold_nothing_up() {
    let (before, mut observed) = last_repeat();
    let failure = Some("trial 1: its full result was not stored".to_owned());
    observed.aggregate = Some(Arc::new(Aggregate { failure, ..Aggregate::default() }));
    let decision = decide_on(&of_repeats(), &before, &observed);
    assert_eq!(decision.status.phase, Phase::Succeeded);
    let complete = find(&decision.status, "Complete").unwrap();
    assert!(complete.message.contains("failed to merge the trials: trial 1"), "{}", complete.message);
    assert!(decision.notices.iter().any(|notice| notice.warning && notice.reason == "ArtifactsNotWritten"));
}

#[test]
fn a_trial_of_fewer_shards_counts_its_own() {
    let sweep = json!([{"field": "shards.count", "values": [1, 2, 4]}]);
    let benchmark = benchmark(json!({"spec": {"sweep": sweep, "sweepOrder": "Listed"}}));
    let plan = compile(&benchmark.spec, "cart").unwrap();
    let before = in_trial(0, &json!({"planHash": plan.hash()}));
    let decision = decide_on(&benchmark, &before, &over(0, Ending::Completed, VerdictValue::Valid));
    assert_eq!(decision.status.shards.unwrap().desired, 2, "those of the trial that follows");
    let subject =
        Subject { spec: &benchmark.spec, status: &before, generation: Some(1), problems: None, plan: Some(&plan) };
    assert_eq!((subject.shards(), subject.pods()), (1, 4));
}

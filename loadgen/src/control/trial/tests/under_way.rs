//! Orders for a started attempt: the early end of its warm-up, and the probe after it.

use redisbench_wire::snapshot::Tally;

use super::*;

#[test]
fn a_warm_up_ends_once_before_its_time() {
    let warm = || {
        let mut trial = without_preload(TrialPlan { warmup_nanoseconds: 60 * SECOND, ..plan() });
        trial.start(0, 0, start(1, SECOND)).unwrap();
        trial
    };
    let after = |attempt, seconds: u64| AfterRequest { epoch: 0, attempt, after_nanoseconds: seconds * SECOND };
    let mut trial = warm();
    assert_eq!(trial.measure(10 * SECOND, 0, after(1, 15)), Ok(vec![Action::Measure(16 * SECOND)]));
    assert_eq!(trial.warmup_nanoseconds(), 15 * SECOND);
    // A late repeat changes nothing. A later instant is refused.
    assert_eq!(trial.measure(50 * SECOND, 0, after(1, 15)), Ok(vec![]));
    assert_eq!(code(trial.measure(10 * SECOND, 0, after(1, 15 + 1))), RefusalCode::WrongPhase);
    assert_eq!(code(warm().measure(20 * SECOND, 0, after(1, 15))), RefusalCode::InstantPassed);
    assert_eq!(code(warm().measure(20 * SECOND, 0, after(1, 60))), RefusalCode::WrongPhase);
    assert_eq!(code(warm().measure(20 * SECOND, 0, after(2, 30))), RefusalCode::WrongPhase);
    assert_eq!(code(armed().measure(0, 0, after(1, 30))), RefusalCode::WrongPhase);
    assert_eq!(code(finished().measure(0, 0, after(1, 30))), RefusalCode::WrongPhase);
    // The next attempt has the full warm-up.
    trial.abort(11 * SECOND, 0, abort(Some(1), AbortThen::Rearm)).unwrap();
    trial.observe(11 * SECOND, ALL);
    trial.start(11 * SECOND, 0, start(2, 12 * SECOND)).unwrap();
    assert_eq!(trial.warmup_nanoseconds(), 60 * SECOND);
}

#[test]
fn a_probe_is_asked_for_once_after_its_own_attempt() {
    let probed = |allowed: u64| {
        let mut plan = plan();
        plan.measurement.probe_nanoseconds = allowed;
        let mut trial = without_preload(plan);
        trial.start(0, 0, start(1, SECOND)).unwrap();
        trial
    };
    let over = |allowed: u64| {
        let mut trial = probed(allowed);
        trial.observe(20 * SECOND, Event::LoadEnded { attempt: 1 });
        trial
    };
    let after = |attempt, seconds: u64| AfterRequest { epoch: 0, attempt, after_nanoseconds: seconds * SECOND };
    let refused = |mut trial: Trial, request| code(trial.probe(20 * SECOND, 0, request).map(|(_, actions)| actions));
    let tally = Tally::default();
    let probe = Probe { room: 1, of_room: 2, nanoseconds: SECOND, succeeded: 1, mean_nanoseconds: 1, tally };
    let mut trial = over(SECOND);
    let asked = ProbeState { after_nanoseconds: 25 * SECOND, over: false, probe: None };
    assert!(trial.load_was_last());
    assert_eq!(trial.probe(20 * SECOND, 0, after(1, 25)), Ok((asked, vec![Action::Probe(26 * SECOND)])));
    assert!(!trial.load_was_last());
    assert_eq!(trial.observe(29 * SECOND, Event::Probed(Some(probe))), vec![]);
    // A later call returns the first outcome.
    let told = ProbeState { over: true, probe: Some(probe), ..asked };
    assert_eq!(trial.probe(60 * SECOND, 0, after(1, 65)), Ok((told, vec![])));
    assert_eq!(trial.state().phase, ShardPhase::Finished);
    assert_eq!(refused(over(SECOND), after(2, 25)), RefusalCode::WrongPhase);
    assert_eq!(refused(probed(SECOND), after(1, 25)), RefusalCode::WrongPhase);
    assert_eq!(refused(over(SECOND), after(1, 19)), RefusalCode::InstantPassed);
    assert_eq!(refused(over(SECOND), after(1, 1_000_000)), RefusalCode::Malformed);
    assert_eq!(refused(over(0), after(1, 25)), RefusalCode::Malformed);
    // No probe once the keys are being deleted.
    let mut deleted = over(SECOND);
    deleted.cleanup(20 * SECOND, EpochRequest { epoch: 0 }).unwrap();
    assert_eq!(refused(deleted, after(1, 25)), RefusalCode::WrongPhase);
    // The next attempt may have its own probe.
    trial.abort(61 * SECOND, 0, abort(Some(1), AbortThen::Rearm)).unwrap();
    trial.start(61 * SECOND, 0, start(2, 62 * SECOND)).unwrap();
    assert!(trial.load_was_last());
}

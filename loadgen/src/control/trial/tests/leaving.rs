//! Termination by a signal.

use super::*;

#[test]
fn a_signal_ends_a_process_that_has_measured_nothing() {
    let exit = [Action::Exit(Exit::Terminated)];
    for mut trial in [idle(), preparing(), armed()] {
        assert_eq!(trial.observe(0, Event::Terminate), exit);
    }
    // Without time to stay, it ends every process.
    for mut trial in [running(), finished()] {
        trial.limits.leaving = Duration::ZERO;
        assert_eq!(trial.observe(0, Event::Terminate), exit);
    }
}

#[test]
fn a_signal_stops_the_load_and_leaves_time_to_fetch_the_result() {
    let mut trial = running();
    assert_eq!(trial.observe(2 * SECOND, Event::Terminate), [Action::Leave]);
    assert!(trial.is_leaving());
    assert_eq!(trial.snapshot(2 * SECOND, 0, Detail::Live), Ok(()));
    assert_eq!(trial.observe(3 * SECOND, Event::LoadEnded { attempt: 1 }), [Action::Disconnect]);
    assert_eq!(trial.snapshot(4 * SECOND, 0, Detail::Full), Ok(()));
    // Calls do not prolong it.
    assert_eq!(trial.deadline(), Some(30 * SECOND));
    assert_eq!(trial.tick(30 * SECOND - 1), []);
    assert_eq!(trial.tick(30 * SECOND), [Action::Exit(Exit::Terminated)]);
    // A load that was stopped before, and one that has ended, are not stopped again.
    let mut stopping = running();
    stopping.abort(2 * SECOND, 0, abort(None, AbortThen::Stop)).unwrap();
    for (mut trial, actions) in [(stopping, vec![]), (finished(), vec![Action::Disconnect])] {
        assert_eq!(trial.observe(2 * SECOND, Event::Terminate), actions);
        assert_eq!(trial.deadline(), Some(30 * SECOND), "{trial:?}");
    }
    // Nothing is left to fetch.
    let mut collected = finished();
    assert!(!collected.is_collected());
    collected.snapshot(2 * SECOND, 0, Detail::Full).unwrap();
    assert!(collected.is_collected());
    assert_eq!(collected.observe(2 * SECOND, Event::Terminate), [Action::Exit(Exit::Terminated)]);
}

#[test]
fn a_shard_that_leaves_takes_no_part_in_what_follows() {
    let leaving = || {
        let mut trial = finished();
        trial.observe(2 * SECOND, Event::Terminate);
        trial
    };
    let exit = || Ok(vec![Action::Exit(Exit::Terminated)]);
    assert_eq!(leaving().abort(3 * SECOND, 0, abort(Some(1), AbortThen::Rearm)), exit());
    assert_eq!(leaving().drain(3 * SECOND, order(0)), exit());
    let next = PlanRequest { hash: "next".into(), ..put(plan(), 0) };
    assert_eq!(code(leaving().plan(3 * SECOND, 1, next)), RefusalCode::WrongPhase);
    assert_eq!(leaving().release(3 * SECOND, order(0)), Ok(vec![Action::Exit(Exit::Released)]));
}

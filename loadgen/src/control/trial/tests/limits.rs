//! Limits of waiting: for the target, for calls and for the end of the load.

use super::super::progress::PATIENCE_NANOSECONDS;
use super::*;

#[test]
fn an_obstacle_is_waited_for_and_then_fails_the_trial() {
    let mut trial = preparing();
    let obstacle = || Event::Obstacle(failure(FailureReason::Unreachable));
    trial.observe(SECOND, obstacle());
    trial.observe(7 * SECOND, obstacle());
    assert_eq!(trial.deadline(), Some(SECOND + PATIENCE_NANOSECONDS));
    assert_eq!(trial.tick(PATIENCE_NANOSECONDS), []);
    assert_eq!(trial.tick(SECOND + PATIENCE_NANOSECONDS), [Action::Discard]);
    let failure = trial.state().failure.unwrap();
    assert_eq!((failure.reason, failure.message.as_str()), (FailureReason::Unreachable, "why (2 times in 20 s)"));
}

#[test]
fn a_server_that_goes_while_its_keys_are_written_is_given_up() {
    let mut trial = preparing();
    let refused = || Event::Obstacle(failure(FailureReason::Unreachable));
    let preload =
        [Event::TargetReady, ALL, Event::Preloading { commands: 3 }, Event::Connected { ready: 0, wanted: 4 }];
    for event in preload {
        trial.observe(0, event);
    }
    // Every connection is refused and no key is written.
    for second in 1..=20 {
        trial.observe(second * SECOND, refused());
        assert_eq!(trial.tick(second * SECOND), []);
    }
    assert_eq!(trial.tick(SECOND + PATIENCE_NANOSECONDS), [Action::Discard]);
    assert_eq!(trial.state().failure.unwrap().reason, FailureReason::Unreachable);
}

#[test]
fn progress_ends_an_obstacle() {
    let steps: [&[Event]; 3] = [
        &[Event::Waiting("loading".into())],
        &[Event::TargetReady],
        &[Event::TargetReady, Event::Obstacle(failure(FailureReason::Unreachable)), SOME],
    ];
    for events in steps {
        let mut trial = preparing();
        trial.observe(0, Event::Obstacle(failure(FailureReason::Unreachable)));
        for event in events {
            trial.observe(0, event.clone());
        }
        assert_eq!(trial.tick(PATIENCE_NANOSECONDS), []);
        assert_eq!(phase(&trial), ShardPhase::Preparing);
    }
}

#[test]
fn a_target_that_was_there_is_given_as_long_as_an_armed_shard() {
    let mut trial = armed();
    trial.observe(0, SOME);
    trial.observe(0, Event::Obstacle(failure(FailureReason::Unreachable)));
    assert_eq!(trial.tick(599 * SECOND), []);
    assert!(matches!(trial.tick(600 * SECOND)[..], [Action::Exit(Exit::LimitPassed(_))]));
}

#[test]
fn every_limit_ends_the_process() {
    let rearmed = || {
        let mut trial = running();
        trial.abort(0, 0, abort(Some(1), AbortThen::Rearm)).unwrap();
        trial
    };
    let drained = || {
        let mut trial = finished();
        trial.drain(2 * SECOND, order(0)).unwrap();
        trial
    };
    // With the exit code: a shard that holds a start must not be replaced.
    let cases = [
        (idle(), 900 * SECOND, 75),
        (preparing(), 600 * SECOND, 75),
        (armed(), 600 * SECOND, 75),
        (running(), 61 * SECOND, 76),
        (finished(), 502 * SECOND, 76),
        (rearmed(), 600 * SECOND, 75),
        (drained(), 502 * SECOND, 75),
    ];
    for (mut trial, limit, code) in cases {
        assert_eq!(trial.deadline(), Some(limit));
        assert_eq!(trial.tick(limit - 1), []);
        let actions = trial.tick(limit);
        let [Action::Exit(exit @ (Exit::LimitPassed(_) | Exit::Abandoned(_)))] = &actions[..] else {
            panic!("{actions:?}");
        };
        assert_eq!(exit.code(), code, "{trial:?}");
    }
}

#[test]
fn contact_prolongs_waiting_but_not_the_load() {
    for (mut trial, prolonged) in
        [(idle(), true), (preparing(), true), (finished(), true), (armed(), true), (running(), false)]
    {
        let before = trial.deadline();
        trial.contact(7 * SECOND);
        assert_eq!(trial.deadline() != before, prolonged, "{trial:?}");
    }
}

/// A shard that receives no calls cannot be told to stop.
#[test]
fn a_load_without_contact_stops_and_keeps_its_result() {
    let mut limited = plan();
    limited.limits.unattended_nanoseconds = 30 * SECOND;
    let mut trial = without_preload(limited);
    let accepted = AcceptedStart { attempt: 1, start_nanoseconds: SECOND };
    assert_eq!(trial.start(0, 0, start(1, SECOND)), Ok((accepted, vec![Action::Start(accepted)])));
    trial.contact(7 * SECOND);
    assert_eq!(trial.deadline(), Some(37 * SECOND));
    assert_eq!(trial.tick(37 * SECOND - 1), []);
    assert_eq!(trial.tick(37 * SECOND), [Action::Stop]);
    assert_eq!(trial.deadline(), Some(61 * SECOND), "only the trial's limit is left");
    assert_eq!(trial.observe(38 * SECOND, Event::LoadEnded { attempt: 1 }), []);
    assert_eq!(trial.deadline(), Some(561 * SECOND), "500 s after the planned end");
    assert_eq!(trial.snapshot(39 * SECOND, 0, Detail::Full), Ok(()));
    trial.contact(80 * SECOND);
    assert_eq!(trial.deadline(), Some(580 * SECOND), "a word prolongs it");
}

/// The conductor may be away for all of a long load and must still find the result.
#[test]
fn the_wait_for_the_conductor_begins_when_the_load_ends_or_fails() {
    let ended = |end: u64| {
        let mut trial = running();
        assert_eq!(trial.observe(end, Event::LoadEnded { attempt: 1 }), []);
        trial
    };
    let broken = |end: u64| {
        let mut trial = running();
        assert_eq!(trial.observe(end, Event::Failed(failure(FailureReason::Unreachable))), [Action::Discard]);
        trial
    };
    let hindered = |end: u64| {
        let mut trial = preparing();
        trial.observe(end - PATIENCE_NANOSECONDS, Event::Obstacle(failure(FailureReason::Unreachable)));
        assert_eq!(trial.tick(end), [Action::Discard]);
        trial
    };
    // Limits of 500 s without contact. An obstacle lasts at most as long as a shard may prepare without contact.
    for (mut trial, end) in [(ended(3600 * SECOND), 3600), (broken(3600 * SECOND), 3600), (hindered(550 * SECOND), 550)]
    {
        assert_eq!(trial.deadline(), Some((end + 500) * SECOND), "{trial:?}");
        assert_eq!(trial.tick((end + 500) * SECOND - 1), []);
        trial.contact((end + 499) * SECOND);
        assert_eq!(trial.deadline(), Some((end + 999) * SECOND), "a word prolongs it");
    }
}

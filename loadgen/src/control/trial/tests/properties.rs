//! Invariants over any sequence of calls and events.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Input {
    Plan { epoch: u64, trial: u32, other: bool },
    Start { epoch: u64, attempt: u32, ahead: u64 },
    Abort { epoch: u64, attempt: Option<u32>, then: AbortThen },
    Happens(Event),
    Tick,
}

fn inputs() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let event = prop_oneof![
        Just(Event::TargetReady),
        Just(ALL),
        Just(ALL),
        Just(SOME),
        Just(Event::Connected { ready: 0, wanted: 4 }),
        Just(Event::Preloaded),
        Just(Event::Preloading { commands: 1 }),
        Just(Event::Waiting("loading".into())),
        Just(Event::Obstacle(failure(FailureReason::Unreachable))),
        (1..4_u32).prop_map(|attempt| Event::LoadEnded { attempt }),
    ];
    let then = prop_oneof![Just(AbortThen::Stop), Just(AbortThen::Rearm)];
    let input = prop_oneof![
        1 => (0..3_u64, 0..3_u32, any::<bool>()).prop_map(|(epoch, trial, other)| Input::Plan { epoch, trial, other }),
        2 => (0..3_u64, 0..4_u32, 0..3_u64).prop_map(|(epoch, attempt, ahead)| Input::Start { epoch, attempt, ahead }),
        1 => (0..3_u64, proptest::option::of(0..4_u32), then)
            .prop_map(|(epoch, attempt, then)| Input::Abort { epoch, attempt, then }),
        6 => event.prop_map(Input::Happens),
        1 => Just(Input::Tick),
    ];
    proptest::collection::vec((0..3 * SECOND, input), 0..60)
}

proptest! {
    /// For any sequence of calls and events: the shard always has a deadline, starts only from Armed and once per attempt, keeps an
    /// accepted instant until it is aborted, and changes only epoch and contact on a refused call.
    #[test]
    fn invariants_hold(inputs in inputs()) {
        let mut trial = idle();
        let mut now = 0;
        let mut started = std::collections::HashSet::new();
        for (later, input) in inputs {
            now += later;
            let before = trial.state();
            let index = trial.plan_in_use().map_or(0, |plan| plan.trial);
            let mut dropped = false;
            let actions = match input {
                Input::Plan { epoch, trial: number, other } => {
                    let plan = TrialPlan { pipeline: 1 + u32::from(other), ..plan() };
                    trial.plan(now, number, put(plan, epoch))
                }
                Input::Start { epoch, attempt, ahead } => {
                    trial.start(now, index, StartRequest { epoch, ..start(attempt, now + ahead * SECOND) })
                        .map(|(_, actions)| actions)
                }
                Input::Abort { epoch, attempt, then } => {
                    dropped = then == AbortThen::Rearm;
                    trial.abort(now, index, AbortRequest { epoch, attempt, then })
                }
                Input::Happens(event) => Ok(trial.observe(now, event)),
                Input::Tick => Ok(trial.tick(now)),
            };
            let after = trial.state();
            prop_assert!(after.epoch >= before.epoch);
            prop_assert!(trial.deadline().is_some());
            match actions {
                Err(_) => {
                    prop_assert_eq!(&ShardState { epoch: before.epoch, ..after.clone() }, &before);
                }
                Ok(actions) => for action in actions {
                    match action {
                        Action::Start(accepted) => {
                            prop_assert_eq!(before.phase, ShardPhase::Armed);
                            prop_assert!(accepted.start_nanoseconds > now);
                            prop_assert!(started.insert((index, accepted.attempt)), "twice: {accepted:?}");
                        }
                        Action::Prepare(_) => dropped = true,
                        Action::Exit(_) => return Ok(()),
                        _ => {}
                    }
                },
            }
            if let Some(accepted) = before.accepted && !dropped {
                prop_assert_eq!(after.accepted, Some(accepted));
            }
            let begun = matches!(after.phase, ShardPhase::Running);
            prop_assert!(!begun || after.accepted.is_some());
        }
        let deadline = trial.deadline().unwrap_or_default();
        let actions = trial.tick(deadline.max(now));
        let ended = matches!(actions[..], [Action::Exit(_)]) || phase(&trial) == ShardPhase::Failed;
        prop_assert!(ended, "{:?}", trial);
    }
}

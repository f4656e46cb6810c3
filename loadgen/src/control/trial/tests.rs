use redisbench_wire::plan::{Preload, TrialPlan};

use super::*;
use crate::sample::{SECOND, plan};

mod leaving;
mod limits;
mod properties;
mod under_way;

fn part_of(trial: u32, plan: TrialPlan) -> ShardPlan {
    Arc::new(plan).part(&"run".into(), trial, 1)
}

fn put(plan: TrialPlan, epoch: u64) -> PlanRequest {
    PlanRequest { epoch, hash: plan.hash("run", 0), plan: plan.into() }
}

fn start(attempt: u32, start_nanoseconds: u64) -> StartRequest {
    StartRequest { epoch: 0, attempt, start_nanoseconds }
}

fn abort(attempt: Option<u32>, then: AbortThen) -> AbortRequest {
    AbortRequest { epoch: 0, attempt, then }
}

fn failure(reason: FailureReason) -> ShardFailure {
    ShardFailure { reason, message: "why".into() }
}

const LIMITS: ProcessLimits = ProcessLimits { idle: Duration::from_secs(900), leaving: Duration::from_secs(28) };
const ALL: Event = Event::Connected { ready: 4, wanted: 4 };
const SOME: Event = Event::Connected { ready: 3, wanted: 4 };

fn idle() -> Trial {
    Trial::new("run", 1, 0, LIMITS)
}

/// Armed by its connections alone.
fn without_preload(plan: TrialPlan) -> Trial {
    let mut trial = idle();
    trial.plan(0, 0, put(TrialPlan { preload: Preload::None, ..plan }, 0)).unwrap();
    trial.observe(0, Event::TargetReady);
    assert_eq!(trial.observe(0, ALL), []);
    trial
}

fn preparing() -> Trial {
    let mut trial = idle();
    let actions = trial.plan(0, 0, put(plan(), 0)).unwrap();
    assert_eq!(actions, [Action::Prepare(part_of(0, plan()))]);
    trial
}

fn armed() -> Trial {
    let mut trial = preparing();
    assert_eq!(trial.observe(0, Event::TargetReady), []);
    assert_eq!(trial.observe(0, SOME), []);
    assert_eq!(trial.observe(0, ALL), [Action::Preload]);
    assert_eq!(trial.observe(0, Event::Preloaded), []);
    trial
}

fn running() -> Trial {
    let mut trial = armed();
    let accepted = AcceptedStart { attempt: 1, start_nanoseconds: SECOND };
    assert_eq!(trial.start(0, 0, start(1, SECOND)), Ok((accepted, vec![Action::Start(accepted)])));
    trial
}

fn finished() -> Trial {
    let mut trial = running();
    assert_eq!(trial.observe(2 * SECOND, Event::LoadEnded { attempt: 1 }), []);
    trial
}

fn failed(reason: FailureReason) -> Trial {
    let mut trial = preparing();
    assert_eq!(trial.observe(0, Event::Failed(failure(reason))), [Action::Discard]);
    trial
}

fn phase(trial: &Trial) -> ShardPhase {
    trial.state().phase
}

fn code<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> RefusalCode {
    answer.unwrap_err().code
}

fn order(epoch: u64) -> EpochRequest {
    EpochRequest { epoch }
}

#[test]
fn keys_are_deleted_once_and_only_after_the_end() {
    let done = CleanupState { done: true, ..CleanupState::default() };
    assert_eq!(idle().cleanup(0, order(0)), Ok((done.clone(), vec![])));
    assert_eq!(preparing().cleanup(0, order(0)), Ok((done.clone(), vec![])), "it has written nothing");
    assert_eq!(code(armed().cleanup(0, order(0))), RefusalCode::WrongPhase);
    assert_eq!(code(running().cleanup(0, order(0))), RefusalCode::WrongPhase);
    let mut trial = finished();
    let begun = CleanupState::default();
    assert_eq!(trial.cleanup(0, order(2)), Ok((begun.clone(), vec![Action::Cleanup(part_of(0, plan()))])));
    assert_eq!(trial.cleanup(0, order(2)), Ok((begun, vec![])));
    assert_eq!(code(trial.cleanup(0, order(1))), RefusalCode::StaleEpoch);
    assert_eq!(trial.observe(0, Event::Cleanup(done.clone())), []);
    assert_eq!(trial.cleanup(0, order(2)), Ok((done.clone(), vec![])));
    // A re-armed shard must preload again and ignores reports of the old deletion.
    let rearm = AbortRequest { epoch: 2, ..abort(None, AbortThen::Rearm) };
    assert_eq!(trial.abort(0, 0, rearm), Ok(vec![Action::Prepare(part_of(0, plan()))]));
    assert_eq!(trial.observe(0, Event::Cleanup(done)), []);
    assert_eq!(code(trial.cleanup(0, order(2))), RefusalCode::WrongPhase);
}

#[test]
fn the_way_to_a_result() {
    assert_eq!(phase(&idle()), ShardPhase::Idle);
    assert_eq!(phase(&preparing()), ShardPhase::Preparing);
    assert_eq!(phase(&armed()), ShardPhase::Armed);
    assert_eq!(phase(&running()), ShardPhase::Running);
    let mut trial = finished();
    assert_eq!(phase(&trial), ShardPhase::Finished);
    assert_eq!(trial.snapshot(0, 0, Detail::Full), Ok(()));
    assert_eq!(trial.release(0, EpochRequest { epoch: 0 }), Ok(vec![Action::Exit(Exit::Released)]));
    assert_eq!(Exit::Released.code(), 0);
}

#[test]
fn progress_is_told() {
    let mut trial = preparing();
    assert_eq!(
        trial.state().preparation,
        Preparation { connections: 4, preload_commands: 3, ..Preparation::default() }
    );
    trial.observe(0, Event::TargetReady);
    trial.observe(0, Event::Obstacle(failure(FailureReason::Unreachable)));
    assert_eq!(trial.state().preparation.waiting_for.as_deref(), Some("why"));
    trial.observe(0, ALL);
    trial.observe(0, Event::Preloading { commands: 2 });
    let preparation = trial.state().preparation;
    assert_eq!((preparation.connected, preparation.preload_done, preparation.waiting_for), (4, 2, None));
}

#[test]
fn without_preload_connections_arm() {
    let trial = without_preload(plan());
    assert_eq!(phase(&trial), ShardPhase::Armed);
    assert_eq!(trial.state().preparation.preload_commands, 0);
}

#[test]
fn a_lower_epoch_is_refused_by_every_put_and_a_higher_one_is_kept() {
    let mut trial = armed();
    trial.abort(0, 0, AbortRequest { epoch: 5, ..abort(None, AbortThen::Rearm) }).unwrap();
    assert_eq!(trial.state().epoch, 5);
    assert_eq!(code(trial.plan(0, 0, put(plan(), 4))), RefusalCode::StaleEpoch);
    assert_eq!(code(trial.start(0, 0, start(1, SECOND))), RefusalCode::StaleEpoch);
    assert_eq!(code(trial.abort(0, 0, abort(None, AbortThen::Stop))), RefusalCode::StaleEpoch);
    assert_eq!(code(trial.release(0, EpochRequest { epoch: 4 })), RefusalCode::StaleEpoch);
    assert_eq!(phase(&trial), ShardPhase::Armed);
    assert_eq!(code(trial.start(0, 7, StartRequest { epoch: 6, ..start(1, SECOND) })), RefusalCode::Unknown);
    assert_eq!(trial.state().epoch, 6);
}

#[test]
fn a_plan_is_accepted_once() {
    let mut trial = preparing();
    assert_eq!(trial.plan(0, 0, put(plan(), 0)), Ok(vec![]));
    let other = TrialPlan { pipeline: 2, ..plan() };
    assert_eq!(code(trial.plan(0, 0, put(other, 0))), RefusalCode::PlanConflict);
    assert_eq!(finished().plan(0, 0, put(plan(), 0)), Ok(vec![]));
}

#[test]
fn a_shard_prepares_its_own_part_of_the_plan() {
    let plan = TrialPlan { connections: 8, concurrency: Some(7), ..plan() };
    let part = part_of(5, plan.clone());
    assert_eq!((part.connections, part.concurrency), (3, Some(2)));
    assert_eq!(idle().plan(0, 5, put(plan, 0)), Ok(vec![Action::Prepare(part)]));
}

#[test]
fn a_plan_that_cannot_be_run_fails_the_trial() {
    let mut trial = idle();
    assert_eq!(trial.plan(0, 0, put(TrialPlan { connections: 0, ..plan() }, 0)), Ok(vec![]));
    let failure = trial.state().failure.unwrap();
    assert_eq!(failure.reason, FailureReason::BadPlan);
    assert!(failure.message.contains("connections is 0"), "{}", failure.message);
}

#[test]
fn a_trial_that_is_over_closes_its_connections_when_told() {
    let drain = |trial: &mut Trial| trial.drain(0, EpochRequest { epoch: 0 });
    assert_eq!(drain(&mut idle()), Ok(Vec::new()));
    for mut trial in [preparing(), armed(), running()] {
        assert_eq!(code(drain(&mut trial)), RefusalCode::WrongPhase);
    }
    let mut trial = finished();
    assert_eq!(drain(&mut trial), Ok(vec![Action::Discard]));
    assert_eq!(phase(&trial), ShardPhase::Finished);
    // The measurement is dropped with the connections.
    assert_eq!(code(trial.snapshot(0, 0, Detail::Full)), RefusalCode::WrongPhase);
    assert_eq!(drain(&mut trial), Ok(Vec::new()));
    assert_eq!(
        code(trial.drain(0, EpochRequest { epoch: 5 }).and_then(|_| drain(&mut trial))),
        RefusalCode::StaleEpoch
    );
}

#[test]
fn the_next_trial_follows_only_a_finished_one() {
    let mut trial = finished();
    let next = trial.plan(0, 1, put(plan(), 0)).unwrap();
    assert_eq!(next, [Action::Prepare(part_of(1, plan()))]);
    assert_eq!((phase(&trial), trial.state().accepted), (ShardPhase::Preparing, None));
    assert_eq!(code(trial.snapshot(0, 0, Detail::Full)), RefusalCode::Unknown);
    assert_eq!(code(trial.plan(0, 2, put(plan(), 0))), RefusalCode::WrongPhase);
    assert_eq!(code(running().plan(0, 1, put(plan(), 0))), RefusalCode::WrongPhase);
    assert_eq!(code(trial.plan(0, 0, put(plan(), 0))), RefusalCode::WrongPhase);
}

#[test]
fn the_first_instant_of_an_attempt_stands() {
    let accepted = AcceptedStart { attempt: 1, start_nanoseconds: SECOND };
    for mut trial in [running(), finished()] {
        assert_eq!(trial.start(9 * SECOND, 0, start(1, 3 * SECOND)), Ok((accepted, vec![])));
        assert_eq!(trial.start(9 * SECOND, 0, start(1, SECOND)), Ok((accepted, vec![])));
        assert_eq!(code(trial.start(0, 0, start(2, SECOND))), RefusalCode::WrongPhase);
    }
}

#[test]
fn a_start_needs_an_armed_shard_and_an_instant_to_come() {
    assert_eq!(code(idle().start(0, 0, start(1, SECOND))), RefusalCode::Unknown);
    assert_eq!(code(preparing().start(0, 0, start(1, SECOND))), RefusalCode::WrongPhase);
    assert_eq!(code(failed(FailureReason::BadPlan).start(0, 0, start(1, SECOND))), RefusalCode::WrongPhase);
    assert_eq!(code(armed().start(SECOND, 0, start(1, SECOND))), RefusalCode::InstantPassed);
    assert_eq!(code(armed().start(0, 0, start(0, SECOND))), RefusalCode::Malformed);
    assert_eq!(code(armed().start(0, 0, start(1, 601 * SECOND))), RefusalCode::Malformed);
    assert_eq!(code(armed().start(0, 1, start(1, SECOND))), RefusalCode::Unknown);
}

#[test]
fn rearming_drops_an_attempt_and_closes_it() {
    for mut trial in [running(), finished()] {
        assert_eq!(trial.abort(0, 0, abort(Some(1), AbortThen::Rearm)), Ok(vec![Action::Rearm]));
        assert_eq!((phase(&trial), trial.state().accepted), (ShardPhase::Armed, None));
        // The aborted load reports its end late.
        assert_eq!(trial.observe(0, Event::LoadEnded { attempt: 1 }), []);
        assert_eq!(code(trial.start(0, 0, start(1, SECOND))), RefusalCode::WrongPhase);
        let (accepted, actions) = trial.start(0, 0, start(2, SECOND)).unwrap();
        assert_eq!(actions, [Action::Start(accepted)]);
        assert_eq!(trial.observe(0, Event::LoadEnded { attempt: 1 }), []);
        assert_eq!(phase(&trial), ShardPhase::Running);
        // A late abort of the first attempt does not affect the second.
        assert_eq!(trial.abort(0, 0, abort(Some(1), AbortThen::Rearm)), Ok(vec![]));
        assert_eq!(phase(&trial), ShardPhase::Running);
    }
}

#[test]
fn an_abort_overtakes_the_start_that_it_means() {
    let mut trial = armed();
    assert_eq!(trial.abort(0, 0, abort(Some(1), AbortThen::Rearm)), Ok(vec![]));
    assert_eq!(code(trial.start(0, 0, start(1, SECOND))), RefusalCode::WrongPhase);
    assert!(trial.start(0, 0, start(2, SECOND)).is_ok());
}

#[test]
fn rearming_with_broken_connections_mends_them_first() {
    let mut trial = running();
    trial.observe(0, SOME);
    assert_eq!(phase(&trial), ShardPhase::Running);
    trial.abort(0, 0, abort(None, AbortThen::Rearm)).unwrap();
    assert_eq!(phase(&trial), ShardPhase::Preparing);
    assert_eq!(trial.observe(0, ALL), []);
    assert_eq!(phase(&trial), ShardPhase::Armed);
}

#[test]
fn stopping_keeps_what_was_measured() {
    let mut trial = running();
    assert_eq!(trial.abort(0, 0, abort(None, AbortThen::Stop)), Ok(vec![Action::Stop]));
    assert_eq!(trial.abort(0, 0, abort(None, AbortThen::Stop)), Ok(vec![]));
    assert_eq!(phase(&trial), ShardPhase::Running);
    trial.observe(0, Event::LoadEnded { attempt: 1 });
    assert_eq!(phase(&trial), ShardPhase::Finished);
    assert_eq!(trial.snapshot(0, 0, Detail::Full), Ok(()));
    assert_eq!(trial.abort(0, 0, abort(None, AbortThen::Stop)), Ok(vec![]));
}

#[test]
fn stopping_before_the_start_leaves_nothing_to_collect() {
    for mut trial in [preparing(), armed()] {
        assert_eq!(trial.abort(0, 0, abort(None, AbortThen::Stop)), Ok(vec![Action::Discard]));
        assert_eq!(phase(&trial), ShardPhase::Finished);
        assert_eq!(code(trial.snapshot(0, 0, Detail::Full)), RefusalCode::WrongPhase);
        assert_eq!(code(trial.start(0, 0, start(1, SECOND))), RefusalCode::WrongPhase);
        let again = trial.abort(0, 0, abort(None, AbortThen::Rearm)).unwrap();
        assert_eq!(again, [Action::Prepare(part_of(0, plan()))]);
    }
    assert_eq!(code(idle().abort(0, 0, abort(None, AbortThen::Stop))), RefusalCode::Unknown);
}

#[test]
fn a_failed_shard_stays_until_it_was_read() {
    let mut trial = failed(FailureReason::AuthenticationFailed);
    assert_eq!(trial.state().failure, Some(failure(FailureReason::AuthenticationFailed)));
    assert_eq!(code(trial.abort(0, 0, abort(None, AbortThen::Rearm))), RefusalCode::WrongPhase);
    let exit = vec![Action::Exit(Exit::Failed(FailureReason::AuthenticationFailed))];
    assert_eq!(trial.abort(0, 0, abort(None, AbortThen::Stop)), Ok(exit.clone()));
    assert_eq!(trial.release(0, EpochRequest { epoch: 0 }), Ok(exit.clone()));
    assert_eq!(trial.tick(500 * SECOND), exit);
    assert_eq!(trial.observe(0, Event::Terminate), exit);
    assert_eq!(trial.observe(0, ALL), []);
    assert_eq!(phase(&trial), ShardPhase::Failed);
}

#[test]
fn exit_codes_tell_the_job_what_to_do() {
    let code = |reason| Exit::Failed(reason).code();
    assert_eq!(code(FailureReason::BadPlan), 64);
    assert_eq!(code(FailureReason::Unreachable), 64);
    assert_eq!(code(FailureReason::Internal), 70);
    assert_eq!(Exit::LimitPassed("x").code(), 75);
    assert_eq!(Exit::Abandoned("x").code(), 76);
    assert_eq!(Exit::Terminated.code(), 75);
}

#[test]
fn broken_connections_disarm_and_mended_ones_arm_again() {
    let mut trial = armed();
    trial.observe(0, SOME);
    assert_eq!(phase(&trial), ShardPhase::Preparing);
    assert_eq!(code(trial.start(0, 0, start(1, SECOND))), RefusalCode::WrongPhase);
    // The keys still exist, so there is no second preload. The limit counts from the first time.
    assert_eq!(trial.observe(9 * SECOND, ALL), []);
    assert_eq!(phase(&trial), ShardPhase::Armed);
    assert_eq!(trial.deadline(), Some(600 * SECOND));
}

#[test]
fn a_connection_that_breaks_late_gets_the_whole_limit() {
    let mut trial = armed();
    // Calls keep it armed for longer than the limit.
    for minute in 1..=20 {
        trial.contact(minute * 60 * SECOND);
        assert_eq!(trial.tick(minute * 60 * SECOND), []);
    }
    trial.observe(1_201 * SECOND, SOME);
    assert_eq!(trial.tick(1_201 * SECOND), []);
    trial.contact(1_202 * SECOND);
    assert_eq!(trial.deadline(), Some(1_801 * SECOND));
    trial.observe(1_203 * SECOND, ALL);
    assert_eq!(phase(&trial), ShardPhase::Armed);
}

#[test]
fn a_target_that_was_wholly_gone_while_armed_is_preloaded_again() {
    let none = Event::Connected { ready: 0, wanted: 4 };
    let mut trial = armed();
    assert_eq!(trial.observe(1, none.clone()), []);
    assert_eq!((phase(&trial), trial.state().preparation.preload_done), (ShardPhase::Preparing, 0));
    assert_eq!(trial.observe(2, SOME), []);
    assert_eq!(trial.observe(3, ALL), [Action::Preload]);
    assert_eq!(code(trial.start(3, 0, start(1, SECOND))), RefusalCode::WrongPhase);
    assert_eq!(trial.observe(4, Event::Preloaded), []);
    assert_eq!(phase(&trial), ShardPhase::Armed);

    let mut trial = without_preload(plan());
    trial.observe(1, none);
    assert_eq!(trial.observe(2, ALL), []);
    assert_eq!(phase(&trial), ShardPhase::Armed, "nothing was to be preloaded");
}

#[test]
fn snapshots_are_live_from_the_start_and_full_at_the_end() {
    for mut trial in [preparing(), armed(), failed(FailureReason::BadPlan)] {
        assert_eq!(code(trial.snapshot(0, 0, Detail::Live)), RefusalCode::WrongPhase);
        assert_eq!(code(trial.snapshot(0, 0, Detail::Full)), RefusalCode::WrongPhase);
    }
    assert_eq!(code(idle().snapshot(0, 0, Detail::Live)), RefusalCode::Unknown);
    assert_eq!(running().snapshot(0, 0, Detail::Live), Ok(()));
    assert_eq!(code(running().snapshot(0, 0, Detail::Full)), RefusalCode::WrongPhase);
    assert_eq!(finished().snapshot(0, 0, Detail::Live), Ok(()));
}

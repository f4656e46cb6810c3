//! Tests of a second conductor that takes over from a killed one.

use std::time::Duration;

use super::super::{ConductStage, Ending};
use super::{MEASURED, OnLost, Rig, WARMUP, evicted, failure, measuring, succeeded};

/// Kills the conductor of `rig` once `when` holds, and turns the rig into that of its successor.
fn kill(rig: &mut Rig, when: impl FnMut(&super::ConductProgress) -> bool) {
    rig.until(when);
    rig.kill();
    rig.pass(Duration::from_secs(5));
    rig.succeed();
}

/// The rig of a conductor whose predecessor was killed while the shards measured.
fn successor(count: u32) -> Rig {
    let mut rig = Rig::new(count);
    kill(&mut rig, measuring);
    rig
}

#[test]
fn in_mid_run_the_attempt_carries_on() {
    let mut rig = successor(3);
    let starts: Vec<_> = (0..3).map(|shard| rig.shards.true_start(shard)).collect();
    let outcome = rig.complete_all(1);
    assert!(outcome.start_skew.is_some() && outcome.clock_uncertainty.is_some());
    assert!(outcome.start_at_unix_nanoseconds.is_some());
    assert_eq!(rig.attempts(), [1], "no new start");
    for shard in 0..3 {
        assert_eq!(rig.shards.shard(shard).rearmed, 0);
        assert_eq!(rig.shards.true_start(shard), starts[usize::try_from(shard).unwrap()]);
    }
}

#[test]
fn after_the_end_the_result_is_collected() {
    let mut rig = successor(3);
    rig.pass(WARMUP + MEASURED);
    rig.complete_all(1);
}

#[test]
fn long_after_the_end_the_shards_are_still_asked() {
    let mut rig = successor(3);
    // Longer than the collect timeout, but no conductor has asked for results yet.
    rig.pass(WARMUP + MEASURED + rig.config.limits.collect * 2);
    rig.complete_all(1);
}

#[test]
fn one_slow_exchange_at_first_does_not_blur_the_clocks_for_good() {
    let mut rig = successor(2);
    rig.shards.shard(0).round_trip = Duration::from_millis(222);
    rig.until(|progress| progress.start_skew.is_some());
    assert!(rig.progress.clock_uncertainty.unwrap() >= Duration::from_millis(100));
    rig.shards.shard(0).round_trip = Duration::from_millis(2);
    let outcome = rig.complete(1);
    assert!(outcome.clock_uncertainty.unwrap() <= Duration::from_millis(2), "{:?}", outcome.clock_uncertainty);
}

#[test]
fn a_snapshot_is_also_an_exchange_of_clocks() {
    let mut rig = successor(2);
    rig.shards.shard(0).round_trip = Duration::from_millis(12);
    rig.until(|progress| progress.start_skew.is_some());
    assert!(rig.progress.clock_uncertainty.unwrap() >= Duration::from_millis(5));
    rig.shards.shard(0).round_trip = Duration::from_millis(2);
    let replies = rig.count_replies();
    let outcome = rig.complete(1);
    assert!(outcome.clock_uncertainty.unwrap() <= Duration::from_millis(2), "{:?}", outcome.clock_uncertainty);
    assert_eq!(replies.get()[0], 0, "no clock was read separately");
}

#[test]
fn while_preparing_the_plan_is_handed_over_again() {
    let mut rig = Rig::new(3);
    rig.shards.shard(1).arms_after = Some(Duration::from_secs(20));
    kill(&mut rig, |progress| progress.shards.armed == 2);
    assert_eq!(rig.config.resume, None);
    rig.complete(1);
    assert!((0..3).all(|shard| rig.shards.shard(shard).epoch == 2));
}

#[test]
fn fewer_than_all_begin_a_new_attempt() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).misses = vec![1];
    // Killed between the first start and the last.
    rig.run_until(|rig| rig.shards.shard(0).accepted.is_some());
    rig.succeed();
    rig.complete_all(2);
    assert_eq!(rig.attempts(), [1, 2]);
}

#[test]
fn a_shard_replaced_meanwhile_is_lost_and_never_armed() {
    let mut rig = successor(3);
    rig.replace(1);
    let outcome = rig.complete(1);
    assert!(outcome.shards[1].lost.is_some());
    assert!(rig.shards.shard(1).plan.is_none());
}

#[test]
fn a_shard_replaced_meanwhile_takes_part_in_the_attempt_that_it_causes() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = OnLost::Restart;
    kill(&mut rig, measuring);
    rig.replace(1);
    rig.complete_all(2);
}

#[test]
fn a_shard_that_is_silent_at_first_still_counts() {
    let mut rig = successor(3);
    rig.shards.shard(2).reachable = false;
    rig.until(|progress| progress.live.is_some() && progress.shards.unreachable == 1);
    assert_eq!(rig.progress.stage, ConductStage::Running);
    assert!(!rig.progress.live.as_ref().unwrap().complete);
    rig.shards.shard(2).reachable = true;
    rig.until(|progress| progress.live.as_ref().is_some_and(|live| live.complete));
    rig.complete_all(1);
}

#[test]
fn the_old_conductor_is_refused() {
    let mut rig = Rig::new(2);
    rig.shards.shard(0).misses = vec![1];
    rig.until(|progress| progress.shards.armed == 2);
    for shard in 0..2 {
        rig.shards.shard(shard).epoch = 7;
    }
    assert_eq!(rig.conduct().ending, Ending::Superseded);
}

#[test]
fn a_failure_meanwhile_is_found() {
    let mut rig = successor(2);
    rig.shards.shard(1).failure = Some(redisbench_wire::ShardFailure {
        reason: redisbench_wire::FailureReason::Internal,
        message: "gone wrong".into(),
    });
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).message, "shard 1 failed during the trial: gone wrong");
    assert!(outcome.shards[0].snapshot.as_ref().unwrap().aborted, "what the other measured is kept");
}

#[test]
fn an_abort_that_came_meanwhile_keeps_what_was_measured() {
    let mut rig = successor(2);
    rig.abort();
    let outcome = rig.conduct();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Aborted, 1));
    assert!(outcome.start_at_unix_nanoseconds.is_some());
    for shard in &outcome.shards {
        assert!(shard.snapshot.as_ref().unwrap().aborted && !shard.partial);
    }
}

#[test]
fn an_abort_that_came_after_the_load_was_over_changes_nothing() {
    let mut rig = successor(2);
    rig.pass(MEASURED * 2);
    rig.succeed();
    rig.abort();
    rig.complete_all(1);
}

#[test]
fn a_start_that_was_never_recorded_for_us_is_given_up() {
    let mut rig = successor(2);
    rig.config.resume = None;
    let outcome = rig.conduct();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 2), "never an attempt that a shard knows");
    assert_eq!(succeeded(&outcome), [60_000; 2]);
}

#[test]
fn a_stop_that_was_begun_is_no_completed_trial() {
    let mut rig = successor(2);
    // The predecessor stopped the shards, and died before it could report that.
    rig.abort();
    assert_eq!(rig.conduct().ending, Ending::Aborted);
    rig.control.abort = false;
    rig.succeed();
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, "StoppedEarly");
    assert!(outcome.shards.iter().all(|shard| shard.snapshot.is_some()), "what was measured is kept");
}

#[test]
fn a_link_that_is_cut_at_the_take_over_costs_no_load() {
    let mut rig = successor(3);
    let shards = std::sync::Arc::clone(&rig.shards);
    let cut = |reachable: bool| (0..3).for_each(|shard| shards.shard(shard).reachable = reachable);
    cut(false);
    rig.begin();
    rig.pass(Duration::from_secs(30));
    let progress = &rig.progress;
    assert_eq!((progress.stage, progress.attempt), (ConductStage::Running, 1));
    assert_eq!((progress.shards.unreachable, progress.shards.lost), (3, 0));
    cut(true);
    rig.complete_all(1);
    assert_eq!(rig.attempts(), [1]);
    assert!((0..3).all(|shard| rig.shards.shard(shard).rearmed == 0));
}

#[test]
fn a_silent_shard_that_was_never_started_begins_a_new_attempt_once_it_answers() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).misses = vec![1];
    rig.run_until(|rig| (0..2).all(|shard| rig.shards.shard(shard).accepted.is_some()));
    rig.succeed();
    rig.shards.shard(2).reachable = false;
    rig.until(|progress| progress.stage == ConductStage::Running && progress.shards.unreachable == 1);
    assert_eq!(rig.shards.shard(0).rearmed, 0);
    rig.shards.shard(2).reachable = true;
    rig.until(|progress| progress.missed == 1);
    rig.complete_all(2);
}

#[test]
fn who_stays_silent_is_lost_at_the_end_and_not_started_again() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Abort;
    kill(&mut rig, measuring);
    (0..2).for_each(|shard| rig.shards.shard(shard).reachable = false);
    let begun = rig.now();
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, "ShardLost");
    assert!(rig.since(begun) >= MEASURED / 2 + rig.config.limits.collect);
    assert_eq!(rig.attempts(), [1]);
    assert_eq!(outcome.lost().count(), 2);
}

#[test]
fn one_lost_shard_decides_nothing_while_the_other_may_never_have_started() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Abort;
    rig.shards.shard(0).misses = vec![1];
    rig.shards.shard(1).misses = vec![1];
    rig.until(|progress| progress.attempt == 1);
    rig.kill();
    rig.pass(Duration::from_secs(30));
    rig.succeed();
    rig.replace(0);
    rig.shards.shard(1).reachable = false;
    rig.until(|progress| progress.shards.unreachable == 1 && progress.shards.lost == 1);
    rig.shards.shard(1).reachable = true;
    rig.complete(2);
}

#[test]
fn a_recorded_start_counts_as_one_before_anybody_is_asked() {
    let mut rig = Rig::new(2);
    assert_eq!(
        super::ConductProgress::at_first(&rig.config, rig.clocks().unix_nanoseconds).stage,
        ConductStage::Preparing
    );
    kill(&mut rig, measuring);
    let first = super::ConductProgress::at_first(&rig.config, rig.clocks().unix_nanoseconds);
    assert_eq!((first.stage, first.attempt, first.shards.desired), (ConductStage::Running, 0, 2));
    assert_eq!(first.start_at_unix_nanoseconds, rig.config.resume.map(|record| record.start_at_unix_nanoseconds));
    rig.pass(MEASURED * 2);
    rig.succeed();
    assert_eq!(
        super::ConductProgress::at_first(&rig.config, rig.clocks().unix_nanoseconds).stage,
        ConductStage::Collecting
    );
}

/// An abort after the load has no effect: absent and unreachable shards are collected as usual.
#[test]
fn an_abort_after_the_load_leaves_a_successor_collecting() {
    let mut rig = successor(3);
    rig.pass(MEASURED * 2);
    rig.succeed();
    rig.abort();
    rig.set_presence(0, evicted());
    rig.shards.shard(1).reachable = false;
    rig.begin();
    rig.pass(Duration::from_secs(30));
    rig.shards.shard(1).reachable = true;
    let outcome = rig.complete(1);
    assert_eq!(succeeded(&outcome), [0, 60_000, 60_000]);
    assert_eq!(outcome.lost().map(|shard| shard.shard).collect::<Vec<_>>(), [0]);
}

/// By the successor's wall clock the load has not ended; the shards' answers decide.
#[test]
fn an_abort_after_the_load_is_seen_by_what_the_shards_say() {
    let mut rig = successor(3);
    rig.pass(MEASURED * 2);
    rig.behind = MEASURED * 2;
    rig.abort();
    rig.set_presence(0, evicted());
    let outcome = rig.complete(1);
    assert_eq!(outcome.shards[0].lost.as_deref(), Some("evicted"));
    assert_eq!(succeeded(&outcome), [0, 60_000, 60_000]);
}

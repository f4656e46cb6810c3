//! Tests of a second conductor that takes over from a killed one.

use std::time::Duration;

use tokio::time::sleep; // virtual time: it passes at once, and says when a fault comes

use super::super::{ConductStage, Ending, ShardPresence};
use super::OnLost;
use super::{MEASURED, Rig, WARMUP, failure, succeeded};

/// Kills the conductor of `rig` once `when` holds, and turns the rig into that of its successor.
async fn kill(rig: &mut Rig, when: impl FnMut(&super::Progress) -> bool) {
    let conducting = rig.spawn();
    rig.until(when).await;
    conducting.abort();
    assert!(conducting.await.unwrap_err().is_cancelled());
    sleep(Duration::from_secs(5)).await;
    rig.succeed();
}

fn measuring(progress: &super::Progress) -> bool {
    progress.live.as_ref().is_some_and(|live| live.measuring)
}

#[tokio::test(start_paused = true)]
async fn in_mid_run_the_attempt_carries_on() {
    let mut rig = Rig::new(3);
    kill(&mut rig, measuring).await;
    let starts: Vec<_> = (0..3).map(|shard| rig.shards.true_start(shard)).collect();
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 1));
    assert_eq!(succeeded(&outcome), [60_000; 3]);
    assert!(outcome.start_skew.is_some() && outcome.clock_uncertainty.is_some());
    assert!(outcome.start_at_unix_nanoseconds.is_some());
    assert_eq!(rig.attempts(), [1], "no new start");
    for shard in 0..3 {
        assert_eq!(rig.shards.shard(shard).rearmed, 0);
        assert_eq!(rig.shards.true_start(shard), starts[usize::try_from(shard).unwrap()]);
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_end_the_result_is_collected() {
    let mut rig = Rig::new(3);
    kill(&mut rig, measuring).await;
    sleep(WARMUP + MEASURED).await;
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 1));
    assert_eq!(succeeded(&outcome), [60_000; 3]);
}

#[tokio::test(start_paused = true)]
async fn long_after_the_end_the_shards_are_still_asked() {
    let mut rig = Rig::new(3);
    kill(&mut rig, measuring).await;
    // Longer than the collect timeout, but no conductor has asked for results yet.
    sleep(WARMUP + MEASURED + rig.config.limits.collect * 2).await;
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 1));
    assert_eq!(succeeded(&outcome), [60_000; 3]);
}

#[tokio::test(start_paused = true)]
async fn one_slow_exchange_at_first_does_not_blur_the_clocks_for_good() {
    let mut rig = Rig::new(2);
    kill(&mut rig, measuring).await;
    rig.shards.shard(0).round_trip = Duration::from_millis(222);
    let conducting = rig.spawn();
    rig.until(|progress| progress.start_skew.is_some()).await;
    assert!(rig.progress.borrow().clock_uncertainty.unwrap() >= Duration::from_millis(100));
    rig.shards.shard(0).round_trip = Duration::from_millis(2);
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert!(outcome.clock_uncertainty.unwrap() <= Duration::from_millis(2), "{:?}", outcome.clock_uncertainty);
}

#[tokio::test(start_paused = true)]
async fn while_preparing_the_plan_is_handed_over_again() {
    let mut rig = Rig::new(3);
    rig.shards.shard(1).arms_after = Some(Duration::from_secs(20));
    kill(&mut rig, |progress| progress.shards.armed == 2).await;
    assert_eq!(rig.config.resume, None);
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 1));
    assert!((0..3).all(|shard| rig.shards.shard(shard).epoch == 2));
}

#[tokio::test(start_paused = true)]
async fn fewer_than_all_begin_a_new_attempt() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).misses = vec![1];
    let conducting = rig.spawn();
    rig.until(|progress| progress.attempt == 1).await;
    // Killed between the first start and the last.
    while rig.shards.shard(0).accepted.is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    conducting.abort();
    rig.succeed();
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 2));
    assert_eq!(rig.attempts(), [1, 2]);
    assert_eq!(succeeded(&outcome), [60_000; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_shard_replaced_meanwhile_is_lost_and_never_armed() {
    let mut rig = Rig::new(3);
    kill(&mut rig, measuring).await;
    rig.shards.replace(1);
    rig.set_presence(1, ShardPresence::Present(rig.shards.endpoint(1)));
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 1));
    assert!(outcome.shards[1].lost.is_some());
    assert!(rig.shards.shard(1).plan.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shard_replaced_meanwhile_takes_part_in_the_attempt_that_it_causes() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = OnLost::Restart;
    kill(&mut rig, measuring).await;
    rig.shards.replace(1);
    rig.set_presence(1, ShardPresence::Present(rig.shards.endpoint(1)));
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 2));
    assert_eq!(succeeded(&outcome), [60_000; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_silent_at_first_still_counts() {
    let mut rig = Rig::new(3);
    kill(&mut rig, measuring).await;
    rig.shards.shard(2).reachable = false;
    let conducting = rig.spawn();
    rig.until(|progress| progress.stage == ConductStage::Running && progress.shards.unreachable == 1).await;
    rig.shards.shard(2).reachable = true;
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(succeeded(&outcome), [60_000; 3]);
}

#[tokio::test(start_paused = true)]
async fn the_old_conductor_is_refused() {
    let rig = Rig::new(2);
    rig.shards.shard(0).misses = vec![1];
    let old = rig.spawn();
    rig.until(|progress| progress.shards.armed == 2).await;
    for shard in 0..2 {
        rig.shards.shard(shard).epoch = 7;
    }
    assert_eq!(old.await.unwrap().ending, Ending::Superseded);
}

#[tokio::test(start_paused = true)]
async fn a_failure_meanwhile_is_found() {
    let mut rig = Rig::new(2);
    kill(&mut rig, measuring).await;
    rig.shards.shard(1).failure = Some(redisbench_wire::ShardFailure {
        reason: redisbench_wire::FailureReason::Internal,
        message: "gone wrong".into(),
    });
    let outcome = rig.conduct().await;
    assert_eq!(failure(&outcome).message, "shard 1 failed during the trial: gone wrong");
    assert!(outcome.shards[0].snapshot.as_ref().unwrap().aborted, "what the other measured is kept");
}

#[tokio::test(start_paused = true)]
async fn an_abort_that_came_meanwhile_keeps_what_was_measured() {
    let mut rig = Rig::new(2);
    kill(&mut rig, measuring).await;
    rig.control.send_modify(|control| control.abort = true);
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Aborted, 1));
    assert!(outcome.start_at_unix_nanoseconds.is_some());
    for shard in &outcome.shards {
        assert!(shard.snapshot.as_ref().unwrap().aborted && !shard.partial);
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_that_came_after_the_load_was_over_changes_nothing() {
    let mut rig = Rig::new(2);
    kill(&mut rig, measuring).await;
    sleep(MEASURED * 2).await;
    rig.succeed();
    rig.control.send_modify(|control| control.abort = true);
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 1));
    assert_eq!(succeeded(&outcome), [60_000; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_was_never_recorded_for_us_is_given_up() {
    let mut rig = Rig::new(2);
    kill(&mut rig, measuring).await;
    rig.config.resume = None;
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 2), "never an attempt that a shard knows");
    assert_eq!(succeeded(&outcome), [60_000; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_was_begun_is_no_completed_trial() {
    let mut rig = Rig::new(2);
    kill(&mut rig, measuring).await;
    // The predecessor stopped the shards, and died before it could report that.
    rig.control.send_modify(|control| control.abort = true);
    assert_eq!(rig.conduct().await.ending, Ending::Aborted);
    rig.control.send_modify(|control| control.abort = false);
    rig.succeed();
    let outcome = rig.conduct().await;
    assert_eq!(failure(&outcome).reason, "StoppedEarly");
    assert!(outcome.shards.iter().all(|shard| shard.snapshot.is_some()), "what was measured is kept");
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_cut_at_the_take_over_costs_no_load() {
    let mut rig = Rig::new(3);
    kill(&mut rig, measuring).await;
    let cut = |reachable: bool| (0..3).for_each(|shard| rig.shards.shard(shard).reachable = reachable);
    cut(false);
    let conducting = rig.spawn();
    sleep(Duration::from_secs(30)).await;
    {
        let progress = rig.progress.borrow();
        assert_eq!((progress.stage, progress.attempt), (ConductStage::Running, 1));
        assert_eq!((progress.shards.unreachable, progress.shards.lost), (3, 0));
    }
    cut(true);
    let outcome = conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 1));
    assert_eq!(succeeded(&outcome), [60_000; 3]);
    assert_eq!(rig.attempts(), [1]);
    assert!((0..3).all(|shard| rig.shards.shard(shard).rearmed == 0));
}

#[tokio::test(start_paused = true)]
async fn a_silent_shard_that_was_never_started_begins_a_new_attempt_once_it_answers() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).misses = vec![1];
    let conducting = rig.spawn();
    while rig.shards.shard(0).accepted.is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    conducting.abort();
    rig.succeed();
    rig.shards.shard(2).reachable = false;
    let conducting = rig.spawn();
    rig.until(|progress| progress.stage == ConductStage::Running && progress.shards.unreachable == 1).await;
    assert_eq!(rig.shards.shard(0).rearmed, 0);
    rig.shards.shard(2).reachable = true;
    rig.until(|progress| progress.missed == 1).await;
    let outcome = conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 2));
    assert_eq!(succeeded(&outcome), [60_000; 3]);
}

#[tokio::test(start_paused = true)]
async fn who_stays_silent_is_lost_at_the_end_and_not_started_again() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Abort;
    kill(&mut rig, measuring).await;
    (0..2).for_each(|shard| rig.shards.shard(shard).reachable = false);
    let begun = tokio::time::Instant::now();
    let outcome = rig.conduct().await;
    assert_eq!(failure(&outcome).reason, "ShardLost");
    assert!(begun.elapsed() >= MEASURED / 2 + rig.config.limits.collect);
    assert_eq!(rig.attempts(), [1]);
    assert_eq!(outcome.lost().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_lost_shard_decides_nothing_while_the_other_may_never_have_started() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Abort;
    rig.shards.shard(0).misses = vec![1];
    rig.shards.shard(1).misses = vec![1];
    let conducting = rig.spawn();
    rig.until(|progress| progress.attempt == 1).await;
    conducting.abort();
    sleep(Duration::from_secs(30)).await;
    rig.succeed();
    rig.shards.replace(0);
    rig.set_presence(0, ShardPresence::Present(rig.shards.endpoint(0)));
    rig.shards.shard(1).reachable = false;
    let conducting = rig.spawn();
    rig.until(|progress| progress.shards.unreachable == 1 && progress.shards.lost == 1).await;
    rig.shards.shard(1).reachable = true;
    let outcome = conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 2));
}

#[tokio::test(start_paused = true)]
async fn a_recorded_start_counts_as_one_before_anybody_is_asked() {
    let mut rig = Rig::new(2);
    assert_eq!(super::Progress::at_first(&rig.config).stage, ConductStage::Preparing);
    kill(&mut rig, measuring).await;
    let first = super::Progress::at_first(&rig.config);
    assert_eq!((first.stage, first.attempt, first.shards.desired), (ConductStage::Running, 0, 2));
    assert_eq!(first.start_at_unix_nanoseconds, rig.config.resume.map(|record| record.start_at_unix_nanoseconds));
    sleep(MEASURED * 2).await;
    rig.succeed();
    assert_eq!(super::Progress::at_first(&rig.config).stage, ConductStage::Collecting);
}

/// An abort after the load has no effect: absent and unreachable shards are collected as usual.
#[tokio::test(start_paused = true)]
async fn an_abort_after_the_load_leaves_a_successor_collecting() {
    let mut rig = Rig::new(3);
    kill(&mut rig, measuring).await;
    sleep(MEASURED * 2).await;
    rig.succeed();
    rig.control.send_modify(|control| control.abort = true);
    rig.set_presence(0, ShardPresence::Gone { why: "evicted".into(), replaced: true });
    rig.shards.shard(1).reachable = false;
    let conducting = rig.spawn();
    sleep(Duration::from_secs(30)).await;
    rig.shards.shard(1).reachable = true;
    let outcome = conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 1));
    assert_eq!(succeeded(&outcome), [0, 60_000, 60_000]);
    assert_eq!(outcome.lost().map(|shard| shard.shard).collect::<Vec<_>>(), [0]);
}

/// By the successor's wall clock the load has not ended; the shards' answers decide.
#[tokio::test(start_paused = true)]
async fn an_abort_after_the_load_is_seen_by_what_the_shards_say() {
    let mut rig = Rig::new(3);
    kill(&mut rig, measuring).await;
    sleep(MEASURED * 2).await;
    rig.control.send_modify(|control| control.abort = true);
    rig.set_presence(0, ShardPresence::Gone { why: "evicted".into(), replaced: true });
    let outcome = rig.conduct().await;
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.shards[0].lost.as_deref(), Some("evicted"));
    assert_eq!(succeeded(&outcome), [0, 60_000, 60_000]);
}

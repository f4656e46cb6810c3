//! Tests from the start to the outcome.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::snapshot::Stage;
use redisbench_wire::timeline::Span;
use redisbench_wire::{FailureReason, ShardFailure};
use tokio::time::{Instant, advance, sleep, timeout};

use super::super::{ConductStage, Ending, Outcome, ShardPresence, release};
use super::OnLost;
use super::{MEASURED, Rig, failure, succeeded};

fn evicted() -> ShardPresence {
    ShardPresence::Gone { why: "evicted".into(), replaced: true }
}

#[tokio::test(start_paused = true)]
async fn a_lost_shard_keeps_its_last_snapshot_and_the_rest_goes_on() {
    let rig = Rig::new(4);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    sleep(MEASURED / 2).await;
    rig.set_presence(2, evicted());
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    let lost: Vec<_> = outcome.lost().map(|shard| (shard.shard, shard.lost.as_deref(), shard.partial)).collect();
    assert_eq!(lost, [(2, Some("evicted"), true)]);
    let counts = succeeded(&outcome);
    assert!(counts[2] > 25_000 && counts[2] < 35_000, "{counts:?}");
    assert_eq!([counts[0], counts[1], counts[3]], [60_000; 3]);
    // The live picture is the sum of all accepted snapshots, including the lost shard's.
    let progress = rig.progress.borrow();
    let live = progress.live.as_ref().unwrap();
    assert_eq!(live.total.succeeded, counts.iter().sum::<u64>());
    assert_eq!(live.response.len(), live.total.succeeded);
    assert_eq!((progress.shards.finished, progress.shards.lost), (3, 1));
    // So is the sum over all seconds.
    let seconds = |of: fn(&Span) -> u64| outcome.timeline.iter().map(of).sum::<u64>();
    assert_eq!(seconds(|span| span.counts().succeeded), live.total.succeeded);
    assert_eq!(seconds(|span| span.warmup.succeeded), live.warmup.succeeded);
    assert_eq!(seconds(|span| span.sent_bytes), live.total.sent_bytes);
    // Over the last seconds, not over the whole run.
    assert_eq!(live.achieved_per_second, 3_000);
}

#[tokio::test(start_paused = true)]
async fn a_replaced_incarnation_is_lost_and_its_successor_counts_for_nothing() {
    let rig = Rig::new(3);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.shards.replace(1);
    rig.set_presence(1, ShardPresence::Present(rig.shards.endpoint(1)));
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    let shard = &outcome.shards[1];
    assert!(shard.lost.as_ref().unwrap().contains("replaced"));
    assert_eq!((shard.incarnation.as_str(), shard.partial), ("pod-1", true));
    let successor = rig.shards.shard(1);
    assert!(successor.plan.is_none() && successor.accepted.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_shard_is_not_lost() {
    let rig = Rig::new(3);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.shards.shard(0).reachable = false;
    rig.until(|progress| progress.shards.unreachable == 1).await;
    sleep(Duration::from_secs(30)).await;
    {
        let progress = rig.progress.borrow();
        assert_eq!((progress.shards.lost, progress.shards.running), (0, 3));
        assert!(progress.oldest_snapshot_age.unwrap() >= Duration::from_secs(25));
    }
    rig.shards.shard(0).reachable = true;
    rig.until(|progress| progress.shards.unreachable == 0).await;
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.lost().count(), 0);
    assert_eq!(succeeded(&outcome), [60_000; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_shard_without_a_final_snapshot_is_lost_after_the_collect_timeout() {
    let rig = Rig::new(2);
    let begun = Instant::now();
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.shards.shard(1).reachable = false;
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert!(outcome.shards[1].lost.as_ref().unwrap().contains("no final snapshot within 120 s"));
    assert!(begun.elapsed() >= MEASURED + rig.config.limits.collect);
}

#[tokio::test(start_paused = true)]
async fn a_conductor_that_stood_still_asks_before_it_gives_up() {
    let rig = Rig::new(2);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    // In one step, so that the next poll comes long after the collect timeout.
    advance(MEASURED + rig.config.limits.collect * 2).await;
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.lost().count(), 0);
    assert_eq!(succeeded(&outcome), [60_000; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_nobody_ends_times_out() {
    let rig = Rig::new(2);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.shards.shard(0).reachable = false;
    rig.shards.shard(1).reachable = false;
    let outcome = conducting.await.unwrap();
    assert_eq!(failure(&outcome).reason, "TrialTimedOut");
    assert!(outcome.shards.iter().all(|shard| shard.partial));
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_fails_in_the_trial_fails_the_run_and_the_others_are_kept() {
    let rig = Rig::new(3);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.shards.shard(1).failure =
        Some(ShardFailure { reason: FailureReason::CommandRefused, message: "unknown command FROB".into() });
    let outcome = conducting.await.unwrap();
    assert_eq!(failure(&outcome).reason, "CommandRefused");
    assert!(failure(&outcome).message.contains("unknown command FROB"));
    assert!(!outcome.shards[0].partial && outcome.shards[0].snapshot.as_ref().unwrap().aborted);
}

#[tokio::test(start_paused = true)]
async fn abort_stops_every_shard_and_keeps_what_was_measured() {
    let rig = Rig::new(3);
    rig.shards.shard(2).deaf_to_aborts = true;
    let conducting = rig.spawn();
    rig.until_measuring().await;
    sleep(Duration::from_secs(10)).await;
    let begun = Instant::now();
    rig.control.send_modify(|control| control.abort = true);
    let outcome = conducting.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(outcome.ending, Ending::Aborted);
    for shard in &outcome.shards[..2] {
        let snapshot = shard.snapshot.as_ref().unwrap();
        assert!(snapshot.aborted && snapshot.stage == Stage::Done && !shard.partial);
        assert!(snapshot.total.succeeded >= 10_000 && snapshot.total.succeeded < 20_000);
    }
    let deaf: Vec<_> = outcome.unacknowledged().map(|shard| (shard.shard, shard.partial)).collect();
    assert_eq!(deaf, [(2, true)], "the platform has to end it");
}

/// Requests over all seconds, and over all final snapshots.
fn counted(outcome: &Outcome) -> (u64, u64) {
    let seconds = outcome.timeline.iter().map(|span| span.counts().succeeded).sum();
    (seconds, succeeded(outcome).iter().sum())
}

#[tokio::test(start_paused = true)]
async fn the_seconds_of_a_stopped_load_are_fetched_however_many_answers_they_take() {
    let rig = Rig::new(3);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    // It has reported nothing since, and reports at most five seconds at a time.
    rig.shards.shard(1).reachable = false;
    rig.shards.shard(1).seconds_in_an_answer = 5;
    sleep(Duration::from_secs(30)).await;
    rig.control.send_modify(|control| control.abort = true);
    rig.shards.shard(1).reachable = true;
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Aborted);
    assert_eq!(outcome.lost().count(), 0);
    let (seconds, total) = counted(&outcome);
    assert_eq!(seconds, total);
    assert!(total > 75_000, "{total}");
}

/// A shard that never finishes reporting is given up.
#[tokio::test(start_paused = true)]
async fn seconds_that_do_not_come_to_an_end_are_given_up() {
    let rig = Rig::new(2);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.shards.shard(1).seconds_in_an_answer = 0;
    let begun = Instant::now();
    rig.control.send_modify(|control| control.abort = true);
    let outcome = conducting.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(15));
    let lost: Vec<_> = outcome.lost().map(|shard| (shard.shard, shard.partial)).collect();
    assert_eq!(lost, [(1, true)]);
}

#[tokio::test(start_paused = true)]
async fn abort_after_the_load_is_over_changes_nothing() {
    let rig = Rig::new(2);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    // Keeps the conductor collecting for longer than it would wait after an abort.
    rig.shards.shard(1).reachable = false;
    rig.until(|progress| progress.stage == ConductStage::Collecting).await;
    rig.control.send_modify(|control| control.abort = true);
    sleep(Duration::from_secs(60)).await;
    rig.shards.shard(1).reachable = true;
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(succeeded(&outcome), [60_000; 2]);
}

#[tokio::test(start_paused = true)]
async fn abort_while_preparing_measures_nothing() {
    let rig = Rig::new(2);
    rig.shards.shard(0).arms_after = None;
    let conducting = rig.spawn();
    rig.until(|progress| progress.shards.armed == 1).await;
    rig.control.send_modify(|control| control.abort = true);
    let outcome = conducting.await.unwrap();
    assert_eq!((outcome.ending, outcome.attempt), (Ending::Aborted, 0));
    assert!(outcome.shards.iter().all(|shard| shard.snapshot.is_none()));
    assert!(rig.shards.shard(0).aborted_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn on_lost_abort_stops_the_rest() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = OnLost::Abort;
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.set_presence(1, evicted());
    let outcome = conducting.await.unwrap();
    assert_eq!(failure(&outcome).reason, "ShardLost");
    assert!(failure(&outcome).message.contains("1 of 3 shards were lost; shard 1: evicted"));
    assert!(outcome.shards[0].snapshot.as_ref().unwrap().aborted);
}

#[tokio::test(start_paused = true)]
async fn on_lost_restart_begins_a_new_attempt_with_the_replacement() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = OnLost::Restart;
    let conducting = rig.spawn();
    for attempt in 1..=2 {
        rig.until(|progress| progress.attempt == attempt && progress.stage == ConductStage::Running).await;
        rig.set_presence(1, evicted());
        rig.until(|progress| progress.stage == ConductStage::Preparing).await;
        rig.shards.replace(1);
        rig.shards.shard(1).incarnation = format!("replacement-{attempt}");
        rig.set_presence(1, ShardPresence::Present(rig.shards.endpoint(1)));
    }
    let outcome = conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 3));
    assert_eq!(succeeded(&outcome), [60_000; 3]);
    assert_eq!(outcome.shards[1].incarnation, "replacement-2");
    assert_eq!(rig.attempts(), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn on_lost_restart_keeps_what_was_measured_if_nothing_takes_the_lost_ones_place() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = OnLost::Restart;
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.set_presence(1, ShardPresence::Gone { why: "signal 9".into(), replaced: false });
    let outcome = conducting.await.unwrap();
    assert_eq!(failure(&outcome).reason, "ShardLost");
    let lost: Vec<_> = outcome.lost().map(|shard| (shard.shard, shard.partial)).collect();
    assert_eq!(lost, [(1, true)]);
    assert!(outcome.start_at_unix_nanoseconds.is_some());
    assert_eq!(rig.attempts(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_gives_no_final_snapshot_can_take_part_in_the_new_attempt() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Restart;
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.shards.shard(1).reachable = false;
    rig.until(|progress| progress.attempt == 1 && progress.stage == ConductStage::Preparing).await;
    rig.shards.shard(1).reachable = true;
    let outcome = conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 2));
    assert_eq!(succeeded(&outcome), [60_000; 2]);
}

#[tokio::test(start_paused = true)]
async fn many_shards_are_polled_and_collected() {
    let rig = Rig::new(100);
    let outcome = rig.conduct().await;
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(succeeded(&outcome), vec![60_000; 100]);
}

#[tokio::test(start_paused = true)]
async fn release_is_repeated_until_every_shard_is_done() {
    let rig = Rig::new(2);
    rig.shards.shard(1).reachable = false;
    let releasing = tokio::spawn(release(1, Arc::clone(&rig.shards), rig.presence.subscribe()));
    sleep(Duration::from_secs(20)).await;
    assert!(rig.shards.shard(0).released && !releasing.is_finished());
    rig.set_presence(0, ShardPresence::Done);
    rig.shards.shard(1).reachable = true;
    sleep(Duration::from_secs(20)).await;
    assert!(rig.shards.shard(1).released && !releasing.is_finished());
    rig.set_presence(1, ShardPresence::Done);
    releasing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn release_ends_when_another_has_taken_over_or_nobody_looks_any_more() {
    // Virtual time: an endless release reaches the limit at once.
    let limit = Duration::from_secs(3600);
    let rig = Rig::new(1);
    rig.shards.shard(0).epoch = 2;
    timeout(limit, release(1, Arc::clone(&rig.shards), rig.presence.subscribe())).await.unwrap();
    assert!(!rig.shards.shard(0).released, "it is another's shard now");

    let Rig { shards, presence, .. } = Rig::new(1);
    let receiver = presence.subscribe();
    drop(presence);
    timeout(limit, release(1, shards, receiver)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_does_not_hear_the_abort_is_lost() {
    let rig = Rig::new(3);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.shards.shard(1).reachable = false;
    rig.control.send_modify(|control| control.abort = true);
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Aborted);
    let lost: Vec<_> = outcome.lost().map(|shard| (shard.shard, shard.partial)).collect();
    assert_eq!(lost, [(1, true)], "a part of its counts is no result of its own");
}

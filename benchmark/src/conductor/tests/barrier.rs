//! Tests of preparing, arming and starting.

use std::time::Duration;

use redisbench_wire::{FailureReason, ShardFailure};
use tokio::time::{Instant, sleep}; // virtual time: it passes at once

use super::super::{ConductStage, Ending, JournalError, ShardPresence};
use super::OnLost;
use super::{MEASURED, Rig, failure, succeeded};

const NO_TIME: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn all_shards_start_together_and_every_count_is_kept() {
    let rig = Rig::new(4);
    let outcome = rig.conduct().await;
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.attempt, 1);
    assert_eq!(rig.attempts(), [1]);
    assert_eq!(succeeded(&outcome), [60_000; 4]);
    for shard in &outcome.shards {
        assert!(!shard.partial && shard.lost.is_none() && !shard.unacknowledged);
        assert_eq!(
            (shard.incarnation.as_str(), shard.host.as_str()),
            (&*format!("pod-{}", shard.shard), &*format!("node-{}", shard.shard))
        );
    }
    let starts: Vec<_> = (0..4).map(|shard| rig.shards.true_start(shard)).collect();
    let spread = starts.iter().max().unwrap().abs_diff(*starts.iter().min().unwrap());
    let uncertainty = outcome.clock_uncertainty.unwrap();
    assert!(spread <= 2 * uncertainty, "{spread:?} with clocks known to {uncertainty:?}");
    assert!(outcome.start_skew.unwrap() <= 2 * uncertainty);
    let progress = rig.progress.borrow();
    assert_eq!(progress.stage, ConductStage::Done);
    let live = progress.live.as_ref().unwrap();
    assert_eq!((live.total.succeeded, live.response.len(), live.percent), (240_000, 240_000, 100));
    assert_eq!(progress.shards.finished, 4);
}

#[tokio::test(start_paused = true)]
async fn a_late_shard_shows_in_the_start_skew() {
    let rig = Rig::new(3);
    rig.shards.shard(2).starts_late_by = Duration::from_millis(70);
    let skew = rig.conduct().await.start_skew.unwrap();
    assert!(skew.abs_diff(Duration::from_millis(70)) <= Duration::from_millis(4), "{skew:?}");
}

#[tokio::test(start_paused = true)]
async fn a_single_shard_has_no_skew() {
    let outcome = Rig::new(1).conduct().await;
    assert_eq!((outcome.ending, outcome.start_skew), (Ending::Completed, None));
}

#[tokio::test(start_paused = true)]
async fn a_fatal_shard_fails_the_run_at_once_with_the_count_and_the_way_out() {
    let rig = Rig::new(4);
    for shard in 1..4 {
        rig.shards.shard(shard).failure = Some(ShardFailure {
            reason: FailureReason::AuthenticationFailed,
            message: "WRONGPASS; check auth.secretRef".into(),
        });
    }
    let begun = Instant::now();
    let outcome = rig.conduct().await;
    assert!(begun.elapsed() < NO_TIME);
    let failure = failure(&outcome);
    assert_eq!(failure.reason, "AuthenticationFailed");
    assert_eq!(failure.message, "3 of 4 shards failed; shard 1: WRONGPASS; check auth.secretRef");
    assert!(rig.attempts().is_empty());
    assert!(rig.shards.shard(0).aborted_at.is_some(), "the healthy shard must not go on preparing");
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_never_arms_fails_the_run_with_its_obstacle() {
    let rig = Rig::new(3);
    {
        let mut shard = rig.shards.shard(2);
        shard.arms_after = None;
        shard.waiting_for = Some("redis:6379 refuses connections".into());
    }
    let begun = Instant::now();
    let outcome = rig.conduct().await;
    assert!(begun.elapsed() >= rig.config.limits.prepare);
    let failure = failure(&outcome);
    assert_eq!(failure.reason, "PrepareTimedOut");
    assert!(failure.message.contains("1 of 3 shards"), "{failure}");
    assert!(failure.message.contains("shard 2: redis:6379 refuses connections"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_never_comes_fails_the_run_with_the_platforms_word() {
    let rig = Rig::new(2);
    let why = "Unschedulable: 0/3 nodes are available: insufficient cpu";
    rig.set_presence(1, ShardPresence::Absent { why: Some(why.into()) });
    let outcome = rig.conduct().await;
    assert!(failure(&outcome).message.contains(why), "{:?}", outcome.ending);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_cannot_be_dialled_hints_at_the_network() {
    let rig = Rig::new(2);
    rig.shards.shard(1).reachable = false;
    let outcome = rig.conduct().await;
    assert!(failure(&outcome).message.contains("NetworkPolicy"), "{:?}", outcome.ending);
}

#[tokio::test(start_paused = true)]
async fn preload_that_advances_extends_the_time() {
    let rig = Rig::new(2);
    let long = rig.config.limits.prepare * 2;
    {
        let mut shard = rig.shards.shard(0);
        shard.arms_after = Some(long);
        shard.preloads_per_second = 10;
    }
    let begun = Instant::now();
    assert_eq!(rig.conduct().await.ending, Ending::Completed);
    assert!(begun.elapsed() > long + MEASURED);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_ended_before_the_start_fails_the_run_unless_it_is_replaced() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Restart;
    rig.set_presence(0, ShardPresence::Gone { why: "exit code 137".into(), replaced: true });
    let conducting = rig.spawn();
    rig.until(|progress| progress.shards.armed == 1).await;
    rig.shards.replace(0);
    rig.set_presence(0, ShardPresence::Present(rig.shards.endpoint(0)));
    assert_eq!(conducting.await.unwrap().ending, Ending::Completed);

    let rig = Rig::new(2);
    rig.set_presence(0, ShardPresence::Gone { why: "exit code 64".into(), replaced: false });
    let outcome = rig.conduct().await;
    assert_eq!(failure(&outcome).reason, "ShardLost");
    assert!(failure(&outcome).message.contains("exit code 64"));
}

#[tokio::test(start_paused = true)]
async fn a_missed_acknowledgement_costs_one_attempt() {
    let rig = Rig::new(3);
    rig.shards.shard(1).misses = vec![1];
    let outcome = rig.conduct().await;
    assert_eq!((outcome.ending, outcome.attempt), (Ending::Completed, 2));
    assert_eq!(rig.attempts(), [1, 2]);
    for shard in 0..3 {
        let shard = rig.shards.shard(shard);
        assert_eq!(shard.accepted.unwrap().attempt, 2);
        assert!(shard.rearmed > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn three_missed_starts_fail_the_run() {
    let rig = Rig::new(3);
    rig.shards.shard(1).misses = vec![1, 2, 3];
    let outcome = rig.conduct().await;
    assert_eq!(failure(&outcome).reason, "StartMissed");
    assert!(failure(&outcome).message.contains("shard 1: reset"), "{:?}", outcome.ending);
    assert_eq!(rig.attempts(), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_clock_may_not_start() {
    let rig = Rig::new(2);
    rig.shards.shard(1).round_trip = Duration::from_millis(50);
    let outcome = rig.conduct().await;
    let failure = failure(&outcome);
    assert_eq!(failure.reason, "ClockUncertain");
    assert!(failure.message.contains("shard 1") && failure.message.contains("shards.maxStartSkew"), "{failure}");
    assert!(rig.attempts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_that_is_not_recorded() {
    let rig = Rig::new(2);
    *rig.journal.refuse.lock().unwrap() = Some(JournalError::Superseded);
    assert_eq!(rig.conduct().await.ending, Ending::Superseded);
    assert!(rig.shards.shard(0).accepted.is_none());

    let rig = Rig::new(2);
    *rig.journal.refuse.lock().unwrap() = Some(JournalError::Failed("no API server".into()));
    let outcome = rig.conduct().await;
    assert!(failure(&outcome).message.contains("no API server"));
    assert!(rig.shards.shard(0).accepted.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_higher_epoch_ends_the_conductor() {
    let rig = Rig::new(2);
    rig.shards.shard(1).epoch = 2;
    assert_eq!(rig.conduct().await.ending, Ending::Superseded);
    assert_eq!(rig.shards.shard(0).aborted_at, None, "the trial is the other's now");
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_is_away_costs_time_and_no_start() {
    let rig = Rig::new(2);
    *rig.journal.refuse.lock().unwrap() = Some(JournalError::Failed("no API server".into()));
    let conducting = rig.spawn();
    sleep(Duration::from_secs(60)).await;
    assert!(rig.shards.shard(0).accepted.is_none());
    let tries = rig.attempts().len();
    assert!((6..40).contains(&tries), "{tries} tries in a minute");
    *rig.journal.refuse.lock().unwrap() = None;
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(succeeded(&outcome), [60_000; 2]);
    assert_eq!(rig.shards.shard(0).rearmed, 0, "nobody had heard of a start");
    assert!(rig.attempts().is_sorted_by(|a, b| a < b), "an answer may be lost, so no number is used twice");
}

#[tokio::test(start_paused = true)]
async fn a_slow_journal_gets_more_time() {
    let rig = Rig::new(2);
    *rig.journal.takes.lock().unwrap() = Duration::from_secs(9);
    let outcome = rig.conduct().await;
    assert_eq!(outcome.ending, Ending::Completed);
    assert!(outcome.attempt > 1);
}

#[tokio::test(start_paused = true)]
async fn a_missed_start_is_told_until_one_is_measured() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Restart;
    rig.shards.shard(0).misses = vec![1, 3];
    let conducting = rig.spawn();
    rig.until(|progress| progress.missed == 1).await;
    rig.until(|progress| progress.stage == ConductStage::Running && progress.attempt == 2).await;
    rig.shards.shard(1).reachable = false;
    rig.until(|progress| progress.stage == ConductStage::Preparing).await;
    rig.shards.shard(1).reachable = true;
    rig.until(|progress| progress.attempt == 3).await;
    let outcome = conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 4));
    assert_eq!(rig.progress.borrow().missed, 1, "attempt 2 had load");
}

#[tokio::test(start_paused = true)]
async fn attempts_of_before_are_not_numbered_again() {
    let mut rig = Rig::new(2);
    rig.config.attempts = 4;
    let outcome = rig.conduct().await;
    assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, 5));
    assert_eq!(rig.attempts(), [5]);
}

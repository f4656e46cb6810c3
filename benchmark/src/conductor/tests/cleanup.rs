//! Tests of deleting the keys after the load.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::{ConductStage, Ending, ShardPresence};
use super::{Rig, succeeded};

fn rig(count: u32) -> Rig {
    let mut rig = Rig::new(count);
    rig.config.cleanup = true;
    rig
}

fn cleanups(rig: &Rig) -> Vec<u32> {
    (0..rig.config.plan.shards).map(|shard| rig.shards.shard(shard).cleanups).collect()
}

#[tokio::test(start_paused = true)]
async fn who_keeps_the_keys_asks_nobody() {
    let rig = Rig::new(2);
    let outcome = rig.conduct().await;
    assert_eq!((outcome.cleanup, cleanups(&rig)), (None, vec![0, 0]));
}

#[tokio::test(start_paused = true)]
async fn every_shard_deletes_its_part_after_the_results() {
    let rig = rig(100);
    // Needs four calls; the other shards are done after one.
    rig.shards.shard(7).removes = Some(250);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(cleanups(&rig), [0; 100]);
    let outcome = conducting.await.unwrap();
    assert_eq!(succeeded(&outcome), [60_000; 100]);
    let cleanup = outcome.cleanup.unwrap();
    assert_eq!((cleanup.removed_keys, cleanup.left.len()), (100_000, 0));
    assert_eq!(cleanup.summary(), "100,000 keys deleted");
    let asked = cleanups(&rig);
    assert_eq!((asked[7], asked.iter().sum::<u32>()), (4, 4 + 99));
    assert!((0..100).all(|shard| !rig.shards.shard(shard).released));
}

#[tokio::test(start_paused = true)]
async fn a_silent_shard_holds_nothing_up_and_is_named() {
    let rig = rig(3);
    rig.shards.shard(2).removes = None;
    let conducting = rig.spawn();
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(succeeded(&outcome), [60_000; 3]);
    let cleanup = outcome.cleanup.unwrap();
    assert_eq!(cleanup.left.iter().map(|(shard, _)| *shard).collect::<Vec<_>>(), [2]);
    assert_eq!(cleanup.removed_keys, 2_000);
    let summary = cleanup.summary();
    assert!(summary.contains("keys of 1 shards may be left") && summary.contains("shard 2:"), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_left() {
    let rig = rig(2);
    rig.shards.shard(1).removes = Some(1);
    let conducting = rig.spawn();
    rig.until(|progress| progress.shards.finished == 2).await;
    let begin = Instant::now();
    let cleanup = conducting.await.unwrap().cleanup.unwrap();
    assert!((60..63).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    assert_eq!(cleanup.left, [(1, "not finished within 60 s".to_owned())]);
    assert!(cleanup.removed_keys > 1_000 && cleanup.removed_keys < 2_000);
}

#[tokio::test(start_paused = true)]
async fn an_abort_deletes_too_but_asks_no_lost_shard() {
    let rig = rig(3);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.set_presence(1, ShardPresence::Gone { why: "evicted".into(), replaced: false });
    rig.until(|progress| progress.shards.lost == 1).await;
    rig.control.send_modify(|control| control.abort = true);
    let outcome = conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Aborted);
    let cleanup = outcome.cleanup.unwrap();
    assert_eq!(cleanup.left, [(1, "it is lost: evicted".to_owned())]);
    assert_eq!((cleanup.removed_keys, cleanups(&rig)), (2_000, vec![1, 0, 1]));
    assert_eq!(rig.progress.borrow().stage, ConductStage::Done);
}

#[tokio::test(start_paused = true)]
async fn who_was_superseded_says_so() {
    let rig = rig(2);
    rig.shards.shard(0).removes = Some(10);
    let conducting = rig.spawn();
    rig.until(|progress| progress.shards.finished == 2).await;
    rig.shards.shard(0).epoch = 2;
    assert_eq!(conducting.await.unwrap().ending, Ending::Superseded);
}

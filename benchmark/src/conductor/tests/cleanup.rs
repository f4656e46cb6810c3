//! Tests of deleting the keys after the load.

use std::time::Duration;

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

#[test]
fn who_keeps_the_keys_asks_nobody() {
    let mut rig = Rig::new(2);
    let outcome = rig.conduct();
    assert_eq!((outcome.cleanup, cleanups(&rig)), (None, vec![0, 0]));
}

#[test]
fn every_shard_deletes_its_part_after_the_results() {
    let mut rig = rig(100);
    // Needs four calls; the other shards are done after one.
    rig.shards.shard(7).removes = Some(250);
    rig.until_measuring();
    rig.pass(Duration::from_secs(30));
    assert_eq!(cleanups(&rig), [0; 100]);
    let outcome = rig.conduct();
    assert_eq!(succeeded(&outcome), [60_000; 100]);
    let cleanup = outcome.cleanup.unwrap();
    assert_eq!((cleanup.removed_keys, cleanup.left.len()), (100_000, 0));
    assert_eq!(cleanup.summary(), "100,000 keys deleted");
    let asked = cleanups(&rig);
    assert_eq!((asked[7], asked.iter().sum::<u32>()), (4, 4 + 99));
    assert!((0..100).all(|shard| !rig.shards.shard(shard).released));
}

#[test]
fn a_silent_shard_holds_nothing_up_and_is_named() {
    let mut rig = rig(3);
    rig.shards.shard(2).removes = None;
    let outcome = rig.complete_all(1);
    let cleanup = outcome.cleanup.unwrap();
    assert_eq!(cleanup.left.iter().map(|(shard, _)| *shard).collect::<Vec<_>>(), [2]);
    assert_eq!(cleanup.removed_keys, 2_000);
    let summary = cleanup.summary();
    assert!(summary.contains("keys of 1 shard may be left") && summary.contains("shard 2:"), "{summary}");
}

#[test]
fn what_takes_too_long_is_left() {
    let mut rig = rig(2);
    rig.shards.shard(1).removes = Some(1);
    rig.until(|progress| progress.shards.finished == 2);
    let begin = rig.now();
    let cleanup = rig.conduct().cleanup.unwrap();
    assert!((60..63).contains(&rig.since(begin).as_secs()), "{:?}", rig.since(begin));
    assert_eq!(cleanup.left, [(1, "not finished within 60 s".to_owned())]);
    assert!(cleanup.removed_keys > 1_000 && cleanup.removed_keys < 2_000);
}

#[test]
fn an_abort_deletes_too_but_asks_no_lost_shard() {
    let mut rig = rig(3);
    rig.until_measuring();
    rig.set_presence(1, ShardPresence::Gone { why: "evicted".into(), replaced: false });
    rig.until(|progress| progress.shards.lost == 1);
    rig.abort();
    let outcome = rig.conduct();
    assert_eq!(outcome.ending, Ending::Aborted);
    let cleanup = outcome.cleanup.unwrap();
    assert_eq!(cleanup.left, [(1, "it is lost: evicted".to_owned())]);
    assert_eq!((cleanup.removed_keys, cleanups(&rig)), (2_000, vec![1, 0, 1]));
    assert_eq!(rig.progress.stage, ConductStage::Done);
}

#[test]
fn who_was_superseded_says_so() {
    let mut rig = rig(2);
    rig.shards.shard(0).removes = Some(10);
    rig.until(|progress| progress.shards.finished == 2);
    rig.shards.shard(0).epoch = 2;
    assert_eq!(rig.conduct().ending, Ending::Superseded);
}

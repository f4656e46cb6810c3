//! Tests of warm-ups that end early. Fakes send at a constant rate from their start on.

use super::*;
use crate::api::settling::least_warmup;

const LONGEST: Duration = Duration::from_secs(60);

fn rig(count: u32) -> Rig {
    let mut rig = Rig::new(count);
    let plan = rig.plan();
    (plan.settle, plan.warmup_nanoseconds) = (true, u64::try_from(LONGEST.as_nanos()).unwrap());
    rig
}

/// The beginning of each shard's measurement, after its start.
fn begun(outcome: &Outcome) -> Vec<Duration> {
    let windows = outcome.shards.iter().map(|shard| shard.snapshot.as_ref().unwrap().window);
    windows.map(|window| Duration::from_nanos(window.measure_from_nanoseconds - window.start_nanoseconds)).collect()
}

#[test]
fn all_shards_measure_from_one_instant_as_soon_as_the_throughput_has_settled() {
    let outcome = rig(3).complete_all(1);
    let begun = begun(&outcome);
    assert!(begun.iter().all(|from| *from == begun[0]), "{begun:?}");
    // Ten rounds of a second, plus the time to order the end.
    assert!((Duration::from_secs(10)..Duration::from_secs(16)).contains(&begun[0]), "{begun:?}");
}

#[test]
fn a_steady_throughput_settles_within_the_shortest_warm_up_with_few_shards_and_many() {
    for count in [3, 500] {
        let least = least_warmup(count);
        let mut rig = rig(count);
        rig.plan().warmup_nanoseconds = u64::try_from(least.as_nanos()).unwrap();
        rig.until_measuring();
        let ordered: Vec<_> = (0..count).map(|index| rig.shards.shard(index).measures_after).collect();
        let is_early = ordered[0].is_some_and(|after| Duration::from_nanos(after) < least);
        assert!(is_early && ordered.iter().all(|after| *after == ordered[0]), "{count} shards, {least:?}: {ordered:?}");
    }
}

#[test]
fn shards_that_do_not_all_hear_of_it_begin_again() {
    let mut rig = rig(2);
    rig.shards.shard(1).deaf_to_measuring = Some(Duration::from_secs(8));
    rig.until(|progress| progress.attempt == 2 && progress.stage == ConductStage::Running);
    rig.shards.shard(1).deaf_to_measuring = None;
    let outcome = rig.complete(2);
    let begun = begun(&outcome);
    assert_eq!(begun[0], begun[1]);
    assert!(begun[0] < LONGEST);
}

#[test]
fn who_takes_over_begins_to_look_anew() {
    let mut rig = rig(2);
    rig.until(|progress| progress.stage == ConductStage::Running && progress.live.is_some());
    rig.pass(Duration::from_secs(5));
    rig.succeed();
    let outcome = rig.complete(1);
    let begun = begun(&outcome);
    assert_eq!(begun[0], begun[1]);
    assert!(begun[0] < LONGEST, "{begun:?}");
}

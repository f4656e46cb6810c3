//! Tests of probes. They follow these trials because fakes report nothing about servers or processors.

use redisbench_wire::Probe;
use redisbench_wire::plan::{Arrival, Load};
use redisbench_wire::snapshot::Tally;
use serde_json::json;

use super::fake::RATE;
use super::*;
use crate::sample;

const PROBED: u64 = 2_000_000_000;

/// One fake's result with half of its connections.
fn probe(room: u64) -> Probe {
    let succeeded = RATE;
    let tally = Tally { scheduled: succeeded, succeeded, ..Tally::default() };
    Probe { room, of_room: 2 * room, nanoseconds: PROBED, succeeded, mean_nanoseconds: 1_000_000, tally }
}

/// A closed loop of `count` shards, each with a different result of its probe.
pub fn rig(count: u32) -> Rig {
    let mut rig = Rig::new(count);
    let spec = sample::spec(count, &json!({"type": "ClosedLoop", "duration": "60s"}));
    rig.config.probe = Some(Arc::new(spec));
    rig.plan().load = Load::ClosedLoop;
    rig.plan().measurement.probe_nanoseconds = PROBED;
    for shard in 0..count {
        rig.shards.shard(shard).probe = Some(probe(u64::from(shard) + 1));
    }
    rig
}

/// When each shard was to begin its probe, after its start.
fn asked(rig: &Rig, count: u32) -> Vec<Option<u64>> {
    (0..count).map(|shard| rig.shards.shard(shard).probed_after).collect()
}

#[tokio::test(start_paused = true)]
async fn all_shards_probe_at_one_instant_once_the_result_is_here() {
    let rig = rig(3);
    let outcome = rig.conduct().await;
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.probes, [probe(1), probe(2), probe(3)]);
    let asked = asked(&rig, 3);
    assert!(asked[0].is_some() && asked.iter().all(|after| *after == asked[0]), "{asked:?}");
    assert!(asked[0] > Some(u64::try_from((WARMUP + MEASURED).as_nanos()).unwrap()));
    assert_eq!(succeeded(&outcome), [RATE * MEASURED.as_secs(); 3], "the probe is in no number");
}

#[tokio::test(start_paused = true)]
async fn what_the_result_tells_or_nobody_wants_to_know_is_not_probed() {
    let mut unwanted = rig(2);
    unwanted.config.probe = None;
    let mut forbidden = rig(2);
    forbidden.plan().measurement.probe_nanoseconds = 0;
    let mut met = rig(2);
    met.plan().load = Load::OpenLoop {
        rate_per_second: RATE,
        stages: Vec::new(),
        arrival: Arrival::Poisson,
        pacing_grid_nanoseconds: 0,
        unsent_after_nanoseconds: 1,
    };
    for rig in [unwanted, forbidden, met] {
        let outcome = rig.conduct().await;
        assert_eq!((outcome.ending, outcome.probes, asked(&rig, 2)), (Ending::Completed, Vec::new(), vec![None; 2]));
    }
}

#[tokio::test(start_paused = true)]
async fn without_every_shard_there_is_no_probe() {
    let rig = rig(2);
    let conducting = rig.spawn();
    rig.until_measuring().await;
    rig.set_presence(1, ShardPresence::Gone { why: "evicted".to_owned(), replaced: false });
    let outcome = conducting.await.unwrap();
    assert_eq!((outcome.ending, outcome.probes, asked(&rig, 2)), (Ending::Completed, Vec::new(), vec![None; 2]));
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_could_not_spoils_the_probe_and_nothing_else() {
    let rig = rig(2);
    rig.shards.shard(1).probe = None;
    let outcome = rig.conduct().await;
    assert_eq!(succeeded(&outcome), [RATE * MEASURED.as_secs(); 2]);
    assert_eq!((outcome.ending, outcome.probes), (Ending::Completed, Vec::new()));
    assert!(asked(&rig, 2).iter().all(Option::is_some));
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_an_earlier_conductor_told_another_instant_spoils_it_too() {
    let rig = rig(2);
    rig.shards.shard(0).probed_after = Some(66_000_000_000);
    let outcome = rig.conduct().await;
    assert_eq!((outcome.ending, outcome.probes), (Ending::Completed, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn who_aborts_does_not_wait_for_it() {
    let rig = rig(2);
    let conducting = rig.spawn();
    rig.until(|progress| progress.stage == ConductStage::Collecting && progress.shards.finished == 2).await;
    let shards = Arc::clone(&rig.shards);
    while shards.shard(1).probed_after.is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await; // virtual time: until it is ordered
    }
    let begun = Instant::now();
    rig.control.send_replace(Control { abort: true });
    let outcome = conducting.await.unwrap();
    assert_eq!((outcome.ending.clone(), outcome.probes.len()), (Ending::Completed, 0));
    assert!(begun.elapsed() < Duration::from_millis(PROBED / 1_000_000), "{:?} of virtual time", begun.elapsed());
    assert_eq!(succeeded(&outcome), [RATE * MEASURED.as_secs(); 2]);
}

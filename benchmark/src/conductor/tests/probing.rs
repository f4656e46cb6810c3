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

/// The ordered beginning of each shard's probe, after its start.
fn asked(rig: &Rig, count: u32) -> Vec<Option<u64>> {
    (0..count).map(|shard| rig.shards.shard(shard).probed_after).collect()
}

#[test]
fn all_shards_probe_at_one_instant_once_the_result_is_here() {
    let mut rig = rig(3);
    let outcome = rig.complete(1);
    assert_eq!(outcome.probes, [probe(1), probe(2), probe(3)]);
    let asked = asked(&rig, 3);
    assert!(asked[0].is_some() && asked.iter().all(|after| *after == asked[0]), "{asked:?}");
    assert!(asked[0] > Some(u64::try_from((WARMUP + MEASURED).as_nanos()).unwrap()));
    assert_eq!(succeeded(&outcome), [RATE * MEASURED.as_secs(); 3], "the probe is in no number");
}

#[test]
fn what_the_result_tells_or_nobody_wants_to_know_is_not_probed() {
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
    for mut rig in [unwanted, forbidden, met] {
        assert_eq!((rig.complete(1).probes, asked(&rig, 2)), (Vec::new(), vec![None; 2]));
    }
}

#[test]
fn without_every_shard_there_is_no_probe() {
    let mut rig = rig(2);
    rig.until_measuring();
    rig.set_presence(1, ShardPresence::Gone { why: "evicted".to_owned(), replaced: false });
    assert_eq!((rig.complete(1).probes, asked(&rig, 2)), (Vec::new(), vec![None; 2]));
}

#[test]
fn a_shard_that_could_not_spoils_the_probe_and_nothing_else() {
    let mut rig = rig(2);
    rig.shards.shard(1).probe = None;
    assert_eq!(rig.complete_all(1).probes, []);
    assert!(asked(&rig, 2).iter().all(Option::is_some));
}

#[test]
fn a_shard_that_an_earlier_conductor_told_another_instant_spoils_it_too() {
    let mut rig = rig(2);
    rig.shards.shard(0).probed_after = Some(66_000_000_000);
    assert_eq!(rig.complete(1).probes, []);
}

#[test]
fn who_aborts_does_not_wait_for_it() {
    let mut rig = rig(2);
    rig.until(|progress| progress.stage == ConductStage::Collecting && progress.shards.finished == 2);
    rig.run_until(|rig| rig.shards.shard(1).probed_after.is_some());
    let begun = rig.now();
    rig.abort();
    let outcome = rig.complete_all(1);
    assert_eq!(outcome.probes, []);
    assert!(rig.since(begun) < Duration::from_millis(PROBED / 1_000_000), "{:?} of virtual time", rig.since(begun));
}

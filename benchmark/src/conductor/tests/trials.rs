//! Tests of one trial after another on the same shards.

use std::sync::Arc;
use std::time::Duration;

use super::super::{ConductStage, Ending, ShardPresence};
use super::{MEASURED, Rig, evicted, plan, succeeded};

/// Turns the rig into that of trial `trial`, which uses the first `shards`.
fn next(rig: &mut Rig, trial: u32, shards: u32) {
    rig.config.epoch += 1;
    rig.config.of = 3;
    (rig.config.plan, rig.config.trial) = (Arc::new(plan(shards)), trial);
    rig.progress = super::ConductProgress::default();
}

/// A rig whose first trial has ended.
fn conducted(count: u32) -> Rig {
    let mut rig = Rig::new(count);
    rig.conduct();
    rig
}

#[test]
fn the_next_trial_runs_on_the_same_shards_without_the_connections_of_before() {
    let mut rig = Rig::new(3);
    rig.complete(1);
    assert_eq!(rig.shards.shard(0).drains, 0, "nothing is before the first");
    next(&mut rig, 1, 3);
    assert_eq!(rig.complete(1).of, 3);
    for shard in 0..3 {
        let shard = rig.shards.shard(shard);
        assert_eq!((shard.drains, shard.plan.as_ref().unwrap().0.trial), (1, 1));
        assert!(!shard.incarnation.contains("again"));
    }
    let progress = &rig.progress;
    assert_eq!((progress.trial, progress.of, progress.stage), (1, 3, ConductStage::Done));
}

#[test]
fn nobody_connects_while_another_still_holds_connections() {
    let mut rig = conducted(2);
    rig.shards.shard(1).reachable = false;
    next(&mut rig, 1, 2);
    rig.begin();
    rig.pass(Duration::from_secs(30));
    assert_eq!(rig.shards.shard(0).plan.as_ref().unwrap().0.trial, 0, "shard 1 may hold connections");
    rig.shards.shard(1).reachable = true;
    rig.complete(1);
}

#[test]
fn a_shard_that_never_lets_go_of_its_connections_fails_the_run() {
    let mut rig = conducted(2);
    rig.shards.shard(1).reachable = false;
    next(&mut rig, 1, 2);
    let failure = rig.fail();
    assert_eq!(failure.reason, "PrepareTimedOut");
    let message = &failure.message;
    assert!(message.contains("kept connections of the previous trial for 600 s; shard 1"), "{message}");
}

#[test]
fn shards_that_a_trial_does_not_need_hold_no_connections() {
    let mut rig = conducted(3);
    next(&mut rig, 1, 1);
    assert_eq!(succeeded(&rig.complete(1)), [60_000]);
    for idle in 1..3 {
        let shard = rig.shards.shard(idle);
        assert_eq!((shard.drained, shard.plan.as_ref().unwrap().0.trial), (Some(0), 0));
    }
}

#[test]
fn a_shard_that_was_given_up_and_runs_on_is_stopped_first() {
    let mut rig = Rig::measuring(2);
    // The next conductor has another trial to run.
    rig.kill();
    next(&mut rig, 1, 2);
    let began = rig.now();
    rig.complete(1);
    assert_eq!(rig.shards.shard(0).drains, 1);
    assert!(rig.since(began) < MEASURED + Duration::from_secs(30), "it was not waited for");
}

#[test]
fn who_takes_over_after_the_drain_goes_on_with_what_is_prepared() {
    let mut rig = conducted(2);
    rig.shards.shard(1).arms_after = Some(Duration::from_secs(60));
    next(&mut rig, 1, 2);
    rig.until(|progress| progress.shards.armed == 1);
    rig.kill();
    rig.config.epoch += 1;
    rig.complete(1);
    assert_eq!([0, 1].map(|shard| rig.shards.shard(shard).drains), [1, 1]);
}

#[test]
fn a_process_that_was_replaced_since_the_trial_before_has_nothing_to_drain() {
    let mut rig = conducted(2);
    rig.shards.replace(1);
    rig.set_presence(1, evicted());
    next(&mut rig, 1, 2);
    rig.begin();
    rig.pass(Duration::from_secs(5));
    rig.set_presence(1, ShardPresence::Present(rig.shards.endpoint(1)));
    let outcome = rig.complete(1);
    assert_eq!(outcome.shards[1].incarnation, "pod-1-again");
}

#[test]
fn nobody_is_connected_for_the_interval() {
    let mut rig = conducted(1);
    next(&mut rig, 1, 1);
    rig.config.interval = Duration::from_secs(120);
    let began = rig.now();
    rig.until(|progress| progress.shards.armed == 1);
    assert!(rig.since(began) >= Duration::from_secs(120));
    rig.complete(1);
}

#[test]
fn another_conductor_that_takes_over_during_the_drain_ends_it() {
    let mut rig = conducted(1);
    next(&mut rig, 1, 1);
    rig.shards.shard(0).epoch = 9;
    assert_eq!(rig.conduct().ending, Ending::Superseded);
    assert_eq!(rig.shards.shard(0).plan.as_ref().map(|(plan, _)| plan.trial), Some(0));
}

#[test]
fn shards_that_a_trial_does_not_need_hear_of_the_conductor_all_the_while() {
    let mut rig = conducted(3);
    next(&mut rig, 1, 1);
    let hour = 3_600_000_000_000;
    rig.plan().bound = redisbench_wire::plan::Bound::Duration { nanoseconds: hour };
    rig.complete(1);
    for idle in 1..3 {
        let shard = rig.shards.shard(idle);
        let since = rig.since(shard.asked_at.unwrap());
        // A shard exits after 600 s without contact.
        assert!(shard.longest_silence.max(since) < Duration::from_secs(300), "{:?}", shard.longest_silence);
    }
}

#[test]
fn a_shard_that_ends_while_it_is_idle_costs_no_trial_and_is_back_for_the_one_that_needs_it() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = super::OnLost::Restart;
    rig.conduct();
    next(&mut rig, 1, 1);
    rig.until_measuring();
    rig.set_presence(1, evicted());
    assert_eq!(rig.complete(1).lost().count(), 0);
    next(&mut rig, 2, 2);
    rig.begin();
    rig.pass(Duration::from_secs(20));
    assert!(rig.outcome.is_none(), "it waits for the shard that is missing");
    rig.replace(1);
    let outcome = rig.complete(1);
    assert_eq!(outcome.shards.len(), 2);
    assert_eq!(outcome.shards[1].incarnation, "pod-1-again");
}

#[test]
fn a_shard_that_never_comes_back_keeps_no_trial_from_a_restart_that_does_not_need_it() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = super::OnLost::Restart;
    rig.conduct();
    next(&mut rig, 1, 2);
    rig.set_presence(2, ShardPresence::Gone { why: "exit code 64".into(), replaced: false });
    rig.until_measuring();
    rig.replace(1);
    rig.complete(2);
}

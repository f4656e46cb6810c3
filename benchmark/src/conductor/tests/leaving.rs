//! Tests of shards that get SIGTERM.

use std::time::Duration;

use super::super::shards::{Shard, Standing};
use super::super::{ConductStage, Failure, GRACE_PERIOD, ShardPresence};
use super::fake::FakeShards;
use super::{MEASURED, OnLost, RATE, Rig, WARMUP, failure, part, succeeded};

const WHY: &str = "pod b on node n1: was deleted: EvictionByEvictionAPI";

impl Rig {
    /// Tells the process of `shard` to terminate. Returns the number of requests that it has measured.
    fn terminate(&mut self, shard: u32) -> u64 {
        let measured = self.since(self.shards.true_start(shard) + WARMUP);
        let now = self.now();
        let mut told = self.shards.shard(shard);
        let told_at = Some(u64::try_from((told.clock_offset + now).as_nanos()).unwrap());
        (told.aborted_at, told.terminated_at) = (told_at, told_at);
        u64::try_from(measured.as_nanos() * u128::from(RATE) / 1_000_000_000).unwrap()
    }

    /// The platform reports that the process of `shard` was told to terminate.
    fn report_leaving(&mut self, shard: u32) {
        let endpoint = self.shards.endpoint(shard);
        self.set_presence(shard, ShardPresence::Leaving { endpoint, why: WHY.to_owned(), replaced: true });
    }
}

#[test]
fn a_shard_that_is_told_to_terminate_is_lost_with_all_that_it_measured() {
    let mut rig = Rig::measuring(3);
    rig.pass(MEASURED / 2);
    let told_at = rig.now();
    let measured = rig.terminate(1);
    rig.report_leaving(1);
    rig.until(|progress| progress.shards.lost == 1);
    assert!(rig.since(told_at) < Duration::from_secs(2), "{:?}", rig.since(told_at));
    rig.set_presence(1, ShardPresence::Gone { why: "exit code 75".to_owned(), replaced: true });
    let outcome = rig.complete(1);
    let lost: Vec<_> = outcome.lost().map(|shard| (shard.shard, shard.lost.as_deref(), shard.partial)).collect();
    assert_eq!(lost, [(1, Some(WHY), true)]);
    assert_eq!(succeeded(&outcome), [60_000, measured, 60_000]);
}

#[test]
fn a_signal_that_the_platform_has_not_reported_is_no_early_stop() {
    let mut rig = Rig::measuring(2);
    let measured = rig.terminate(1);
    rig.until(|progress| progress.shards.lost == 1);
    let outcome = rig.complete(1);
    assert_eq!(outcome.shards[1].lost.as_deref(), Some("its process received SIGTERM"));
    assert_eq!(succeeded(&outcome), [60_000, measured]);
}

#[test]
fn the_failure_of_the_run_names_who_was_told_to_terminate() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Abort;
    rig.until_measuring();
    rig.pass(Duration::from_secs(10));
    let measured = rig.terminate(1);
    rig.report_leaving(1);
    let outcome = rig.conduct();
    let Failure { reason, message } = failure(&outcome);
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("ShardLost", &*format!("1 of 2 shards were lost; shard 1: {WHY}"))
    );
    assert_eq!(succeeded(&outcome)[1], measured);
}

/// As if the Job had ended: without a replacement there is nothing to restart with.
#[test]
fn what_was_measured_is_kept_if_no_process_takes_the_place() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Restart;
    rig.until_measuring();
    rig.pass(Duration::from_secs(10));
    let measured = rig.terminate(1);
    let endpoint = rig.shards.endpoint(1);
    rig.set_presence(1, ShardPresence::Leaving { endpoint, why: WHY.to_owned(), replaced: false });
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, "ShardLost");
    assert_eq!(succeeded(&outcome)[1], measured);
}

#[test]
fn a_process_that_serves_nothing_more_is_lost_when_it_has_ended() {
    let mut rig = Rig::measuring(2);
    let told_at = rig.now();
    rig.shards.shard(1).reachable = false;
    rig.report_leaving(1);
    rig.until(|progress| progress.shards.lost == 1);
    let waited = rig.since(told_at);
    assert!(waited >= GRACE_PERIOD && waited < GRACE_PERIOD + Duration::from_secs(2), "{waited:?}");
    assert_eq!(rig.complete(1).shards[1].lost.as_deref(), Some(WHY));
}

#[test]
fn a_shard_that_had_finished_before_it_was_told_to_terminate_is_not_lost() {
    let mut rig = Rig::measuring(2);
    // Its load ends before the signal reaches it.
    rig.until(|progress| progress.live.as_ref().is_some_and(|live| live.percent >= 98));
    rig.report_leaving(1);
    let outcome = rig.complete_all(1);
    assert_eq!(outcome.lost().count(), 0);
}

#[test]
fn a_shard_that_leaves_does_not_hold_up_the_end_of_the_warm_up() {
    let mut rig = Rig::new(3);
    let plan = rig.plan();
    (plan.settle, plan.warmup_nanoseconds) = (true, 60_000_000_000);
    rig.until(|progress| progress.stage == ConductStage::Running && progress.live.is_some());
    rig.pass(Duration::from_secs(9));
    rig.terminate(1);
    // An order to it would fail the attempt.
    rig.shards.shard(1).deaf_to_measuring = Some(Duration::from_secs(8));
    let outcome = rig.complete(1);
    assert_eq!(outcome.lost().map(|shard| shard.shard).collect::<Vec<_>>(), [1]);
    let begun = [0, 2].map(|shard| {
        let window = outcome.shards[shard].snapshot.as_ref().unwrap().window;
        window.measure_from_nanoseconds - window.start_nanoseconds
    });
    assert!(begun[0] == begun[1] && begun[0] < 60_000_000_000, "{begun:?}");
}

#[test]
fn a_successor_collects_what_a_leaving_shard_measured() {
    let mut rig = Rig::measuring(2);
    rig.pass(Duration::from_secs(10));
    let measured = rig.terminate(1);
    rig.succeed();
    let endpoint = rig.shards.endpoint(1);
    rig.presence[1] = ShardPresence::Leaving { endpoint, why: WHY.to_owned(), replaced: true };
    let outcome = rig.complete(1);
    assert_eq!(outcome.shards[1].lost.as_deref(), Some(WHY));
    assert_eq!(succeeded(&outcome), [60_000, measured]);
}

#[test]
fn a_leaving_process_takes_part_in_nothing_new_and_is_told_to_give_up_its_attempt() {
    let endpoint = FakeShards::new(1).endpoint(0);
    let leaving = ShardPresence::Leaving { endpoint: endpoint.clone(), why: WHY.to_owned(), replaced: true };
    let mut shard = Shard::new(part(0, 1), String::new());
    (shard.standing, shard.endpoint) = (Standing::MustRearm, Some(endpoint.clone()));
    shard.observe_before_start(&leaving).unwrap();
    assert_eq!((&shard.standing, shard.endpoint.as_ref()), (&Standing::MustRearm, Some(&endpoint)));
    shard.standing = Standing::Armed;
    shard.observe_before_start(&leaving).unwrap();
    assert_eq!((&shard.standing, shard.absence.as_deref()), (&Standing::Absent, Some(WHY)));
}

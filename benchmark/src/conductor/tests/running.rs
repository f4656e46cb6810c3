//! Tests from the start to the outcome.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::Bound;
use redisbench_wire::snapshot::{Cache, CacheCounts, Stage};
use redisbench_wire::timeline::Span;
use redisbench_wire::{FailureReason, ShardFailure};

use super::super::polled::Share;
use super::super::{
    CacheRates, ConductStage, Ending, Failure, Outcome, Reply, ResultMemory, ShardPresence, Unreachable,
};
use super::{MEASURED, OnLost, Rig, WARMUP, evicted, failure, lost, succeeded};
use crate::measurement::merge::{Merged, merge};
use crate::measurement::parts::histogram_bytes;
use crate::sample::encoded;

#[test]
fn a_lost_shard_keeps_its_last_snapshot_and_the_rest_goes_on() {
    let mut rig = Rig::measuring(4);
    rig.pass(MEASURED / 2);
    rig.set_presence(2, evicted());
    let outcome = rig.complete(1);
    let lost: Vec<_> = outcome.lost().map(|shard| (shard.shard, shard.lost.as_deref(), shard.partial)).collect();
    assert_eq!(lost, [(2, Some("evicted"), true)]);
    let counts = succeeded(&outcome);
    assert!(counts[2] > 25_000 && counts[2] < 35_000, "{counts:?}");
    assert_eq!([counts[0], counts[1], counts[3]], [60_000; 3]);
    // The live picture is the sum of all accepted snapshots, including the lost shard's.
    let progress = &rig.progress;
    let live = progress.live.as_ref().unwrap();
    assert_eq!(live.total.succeeded, counts.iter().sum::<u64>());
    assert_eq!(live.response.len(), live.total.succeeded);
    assert!(live.complete && live.snapshot_bytes > 0);
    assert_eq!((progress.shards.finished, progress.shards.lost), (3, 1));
    // So is the sum over all seconds.
    let seconds = |of: fn(&Span) -> u64| outcome.timeline.iter().map(of).sum::<u64>();
    assert_eq!(seconds(|span| span.counts().succeeded), live.total.succeeded);
    assert_eq!(seconds(|span| span.warmup.succeeded), live.warmup.succeeded);
    assert_eq!(seconds(|span| span.sent_bytes), live.total.sent_bytes);
    // Over the last seconds, not over the whole run.
    assert_eq!(live.achieved_per_second, 3_000);
    let shards: Vec<_> = live.shards.iter().map(|shard| (shard.lost, shard.achieved_per_second)).collect();
    assert_eq!(shards, [(false, 1_000), (false, 1_000), (true, 0), (false, 1_000)]);
}

#[test]
fn the_rates_of_caches_are_those_of_the_shards_that_run() {
    let mut rig = Rig::new(2);
    rig.lie = Some(Box::new(|_, reply| match reply {
        Ok(Reply::Snapshot(mut snapshot)) => {
            let succeeded = snapshot.total.succeeded;
            let counts = CacheCounts { hits: succeeded * 2, invalidations: succeeded / 10, ..CacheCounts::default() };
            snapshot.cache = Some(Cache { counts, invalidation: encoded(Kind::Request, &[]) });
            Ok(Reply::Snapshot(snapshot))
        }
        other => other,
    }));
    let rates = |rig: &Rig| rig.progress.live.as_ref().unwrap().caches;
    rig.until(|progress| progress.live.as_ref().is_some_and(|live| live.warmup.succeeded > 0));
    assert_eq!(rates(&rig), None, "only the measurement counts");
    rig.until_measuring();
    rig.pass(MEASURED / 2);
    assert_eq!(rates(&rig), Some(CacheRates { hits_per_second: 4_000, invalidations_per_second: 200 }));
    rig.set_presence(1, evicted());
    rig.complete(1);
    assert_eq!(rates(&rig), Some(CacheRates { hits_per_second: 2_000, invalidations_per_second: 100 }));
}

#[test]
fn a_replaced_incarnation_is_lost_and_its_successor_counts_for_nothing() {
    let mut rig = Rig::measuring(3);
    rig.replace(1);
    let outcome = rig.complete(1);
    let shard = &outcome.shards[1];
    assert!(shard.lost.as_ref().unwrap().contains("replaced"));
    assert_eq!((shard.incarnation.as_str(), shard.partial), ("pod-1", true));
    let successor = rig.shards.shard(1);
    assert!(successor.plan.is_none() && successor.accepted.is_none());
}

#[test]
fn an_unreachable_shard_is_not_lost() {
    let mut rig = Rig::measuring(3);
    rig.shards.shard(0).reachable = false;
    rig.until(|progress| progress.shards.unreachable == 1);
    rig.pass(Duration::from_secs(30));
    let progress = &rig.progress;
    assert_eq!((progress.shards.lost, progress.shards.running), (0, 3));
    assert!(progress.oldest_snapshot_age.unwrap() >= Duration::from_secs(25));
    rig.shards.shard(0).reachable = true;
    rig.until(|progress| progress.shards.unreachable == 0);
    let outcome = rig.complete(1);
    assert_eq!(outcome.lost().count(), 0);
    assert_eq!(succeeded(&outcome), [60_000; 3]);
}

#[test]
fn a_shard_without_a_final_snapshot_is_lost_after_the_collect_timeout() {
    let mut rig = Rig::new(2);
    let begun = rig.now();
    rig.until_measuring();
    rig.shards.shard(1).reachable = false;
    let outcome = rig.complete(1);
    assert!(outcome.shards[1].lost.as_ref().unwrap().contains("no final snapshot within 120 s"));
    assert!(rig.since(begun) >= MEASURED + rig.config.limits.collect);
}

/// Its report would not be a whole measurement, so waiting for it would only delay the result of the others.
#[test]
fn a_shard_that_must_have_stopped_by_itself_is_not_waited_for() {
    for (unattended, arrives, successor, waits) in [
        (40, false, false, false),
        (59, false, false, true),
        (40, false, true, true),
        // Only the answers are lost, so it goes on to the end.
        (40, true, false, true),
    ] {
        let mut rig = Rig::new(3);
        rig.plan().limits.unattended_nanoseconds = unattended * 1_000_000_000;
        rig.until_measuring();
        if arrives {
            rig.lie = Some(Box::new(|endpoint, reply| match endpoint.shard {
                1 => Err(Unreachable::TimedOut(Duration::from_secs(8)).into()),
                _ => reply,
            }));
        } else {
            rig.shards.shard(1).reachable = false;
        }
        let end = rig.shards.true_start(0) + WARMUP + MEASURED;
        if successor {
            // It does not know whether the first conductor reached the shard.
            rig.pass(MEASURED / 2);
            rig.succeed();
        }
        let outcome = rig.complete(1);
        assert_eq!(lost(&outcome), [(1, !successor)]);
        let waited = rig.since(end);
        let limit = if waits { rig.config.limits.collect } else { Duration::ZERO };
        let context = format!("{unattended} s, {arrives}, {successor}: {waited:?}");
        assert!((limit..limit + Duration::from_secs(6)).contains(&waited), "{context}");
    }
}

/// A rig with a load of six seconds. Shard 0 also reads the servers' counters.
fn short_load(count: u32) -> Rig {
    let mut rig = Rig::new(count);
    let plan = rig.plan();
    plan.warmup_nanoseconds = 1_000_000_000;
    plan.bound = Bound::Duration { nanoseconds: 5_000_000_000 };
    plan.measurement.server_stats = true;
    rig
}

/// Conducts until the load of `rig` is ordered. Returns when it ends.
fn end_of_load(rig: &mut Rig) -> Duration {
    rig.until(|progress| progress.stage == ConductStage::Running);
    rig.shards.true_start(0) + Duration::from_secs(6)
}

#[test]
fn a_poll_is_one_call_once_the_first_send_is_known() {
    let mut rig = Rig::new(3);
    rig.until(|progress| progress.stage == ConductStage::Running);
    let replies = rig.count_replies();
    rig.until_measuring();
    let [clocks, before] = replies.get();
    assert_eq!(clocks, 3, "one for each shard after the start");
    rig.pass(Duration::from_secs(10));
    let [clocks, snapshots] = replies.get();
    assert_eq!(clocks, 3);
    assert!((27..=31).contains(&(snapshots - before)), "{} snapshots in 10 s", snapshots - before);
}

#[test]
fn benchmarks_share_the_rate_of_snapshots() {
    let mut rig = Rig::measuring(200);
    let others = Share::of(Arc::clone(&rig.config.polled), 20_000);
    // Until the polls that are already due have been made.
    rig.pass(Duration::from_secs(2));
    let replies = rig.count_replies();
    rig.pass(Duration::from_secs(20));
    let [_, slow] = replies.get();
    drop(others);
    rig.pass(Duration::from_secs(3));
    let [_, before] = replies.get();
    rig.pass(Duration::from_secs(10));
    let fast = replies.get()[1] - before;
    let ten_of_each = 1_800..=2_000;
    assert!(ten_of_each.contains(&slow) && ten_of_each.contains(&fast), "{slow} in 20 s, then {fast} in 10 s");
}

#[test]
fn all_results_arrive_soon_after_the_end_of_the_load() {
    for (count, milliseconds) in [(3, 500), (500, 1_500)] {
        let mut rig = short_load(count);
        let end = end_of_load(&mut rig);
        let (shards, snapshots) = (Arc::clone(&rig.shards), Rc::new(Cell::new(0)));
        let counted = Rc::clone(&snapshots);
        rig.lie = Some(Box::new(move |_, reply| {
            let late = shards.now() > end && matches!(reply, Ok(Reply::Snapshot(_)));
            counted.set(counted.get() + u32::from(late));
            reply
        }));
        let mut finished = BTreeSet::new();
        rig.run_until(|rig| {
            finished.insert(rig.progress.shards.finished);
            rig.outcome.is_some()
        });
        let outcome = rig.complete(1);
        assert!(rig.since(end) < Duration::from_millis(milliseconds), "{count} shards: {:?}", rig.since(end));
        assert!(finished.len() < 12, "published too often: {finished:?}");
        assert_eq!(succeeded(&outcome), vec![5_000; outcome.shards.len()]);
        assert!((0..count).all(|shard| rig.shards.shard(shard).fulls == 1));
        // The full one alone, except of shard 0 and of shards that were being polled at the end.
        assert!(snapshots.get() < count + 10, "{} snapshots of {count} shards", snapshots.get());
    }
}

/// The first polls of a conductor are spread over an interval, which is 4 s here.
#[test]
fn a_takeover_just_before_the_end_delays_no_result() {
    let mut rig = short_load(400);
    let _others = Share::of(Arc::clone(&rig.config.polled), 40_000);
    let end = end_of_load(&mut rig);
    rig.pass(end.saturating_sub(rig.now()).saturating_sub(Duration::from_secs(1)));
    rig.succeed();
    let outcome = rig.complete(1);
    assert!(rig.since(end) < Duration::from_millis(1_500), "{:?}", rig.since(end));
    assert_eq!(succeeded(&outcome), [5_000; 400]);
}

#[test]
fn a_shard_with_requests_in_flight_at_the_end_is_asked_again() {
    let mut rig = short_load(3);
    rig.shards.shard(1).drains_for = Duration::from_millis(700);
    let end = end_of_load(&mut rig);
    rig.run_until(|rig| {
        assert_eq!((rig.progress.shards.unreachable, rig.progress.shards.lost), (0, 0));
        rig.outcome.is_some()
    });
    assert!(rig.since(end) < Duration::from_millis(1_300), "{:?}", rig.since(end));
    assert_eq!(succeeded(&rig.complete(1)), [5_000; 3]);
    assert_eq!([0, 1, 2].map(|shard| rig.shards.shard(shard).fulls), [1; 3]);
}

#[test]
fn a_conductor_that_stood_still_asks_before_it_gives_up() {
    let mut rig = Rig::measuring(2);
    // In one step, so that the next poll comes long after the collect timeout.
    rig.shards.set_now(rig.now() + MEASURED + rig.config.limits.collect * 2);
    let outcome = rig.complete(1);
    assert_eq!(outcome.lost().count(), 0);
    assert_eq!(succeeded(&outcome), [60_000; 2]);
}

#[test]
fn a_trial_that_nobody_ends_times_out() {
    let mut rig = Rig::measuring(2);
    rig.shards.shard(0).reachable = false;
    rig.shards.shard(1).reachable = false;
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, "TrialTimedOut");
    assert!(outcome.shards.iter().all(|shard| shard.partial));
}

#[test]
fn a_shard_that_fails_in_the_trial_fails_the_run_and_the_others_are_kept() {
    let mut rig = Rig::measuring(3);
    rig.shards.shard(1).failure =
        Some(ShardFailure { reason: FailureReason::CommandRefused, message: "unknown command FROB".into() });
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, "CommandRefused");
    assert!(failure(&outcome).message.contains("unknown command FROB"));
    assert!(!outcome.shards[0].partial && outcome.shards[0].snapshot.as_ref().unwrap().aborted);
}

/// Without the stopped shard, the others would measure a target that gets less load than was asked for.
#[test]
fn a_shard_that_stopped_by_itself_ends_the_load_of_the_others() {
    let mut rig = Rig::measuring(3);
    let begun = rig.now();
    let mut stopped = rig.shards.shard(1);
    stopped.aborted_at = Some(u64::try_from((stopped.clock_offset + begun).as_nanos()).unwrap());
    drop(stopped);
    let outcome = rig.conduct();
    let Failure { reason, message } = failure(&outcome);
    assert_eq!(reason, "StoppedEarly");
    assert!(message.starts_with("shard 1 was stopped early"), "{message}");
    assert!(rig.since(begun) < Duration::from_secs(10), "{:?}", rig.since(begun));
    for shard in &outcome.shards {
        let snapshot = shard.snapshot.as_ref().unwrap();
        assert!(snapshot.aborted && snapshot.stage == Stage::Done && !shard.partial, "{snapshot:?}");
    }
}

/// A partition heals gradually: shards that stopped by themselves hold their results until they are heard.
#[test]
fn shards_that_stopped_by_themselves_may_be_heard_late() {
    let mut rig = Rig::measuring(3);
    let begun = rig.now();
    for index in 1..3 {
        let mut stopped = rig.shards.shard(index);
        stopped.aborted_at = Some(u64::try_from((stopped.clock_offset + begun).as_nanos()).unwrap());
        stopped.reachable = index == 1;
    }
    rig.pass(Duration::from_secs(30));
    rig.shards.shard(2).reachable = true;
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, "StoppedEarly");
    assert_eq!(lost(&outcome), []);
    assert!(outcome.unacknowledged().next().is_none());
}

#[test]
fn abort_stops_every_shard_and_keeps_what_was_measured() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).deaf_to_aborts = true;
    rig.until_measuring();
    rig.pass(Duration::from_secs(10));
    let begun = rig.now();
    rig.abort();
    let outcome = rig.conduct();
    assert!(rig.since(begun) < Duration::from_secs(5));
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

#[test]
fn the_seconds_of_a_stopped_load_are_fetched_however_many_answers_they_take() {
    let mut rig = Rig::measuring(3);
    // It has reported nothing since, and reports at most five seconds at a time.
    rig.shards.shard(1).reachable = false;
    rig.shards.shard(1).seconds_in_an_answer = 5;
    rig.pass(Duration::from_secs(30));
    rig.shards.shard(1).reachable = true;
    rig.abort();
    let outcome = rig.conduct();
    assert_eq!(outcome.ending, Ending::Aborted);
    assert_eq!(outcome.lost().count(), 0);
    let (seconds, total) = counted(&outcome);
    assert_eq!(seconds, total);
    assert!(total > 75_000, "{total}");
}

#[test]
fn seconds_that_take_many_answers_take_one_full_snapshot() {
    let mut rig = Rig::measuring(2);
    rig.shards.shard(1).reachable = false;
    rig.shards.shard(1).seconds_in_an_answer = 5;
    rig.pass(MEASURED + Duration::from_secs(10));
    rig.shards.shard(1).reachable = true;
    let outcome = rig.complete_all(1);
    let (seconds, total) = counted(&outcome);
    assert_eq!(seconds, total);
    assert_eq!([0, 1].map(|shard| rig.shards.shard(shard).fulls), [1, 1]);
}

/// A shard that never finishes reporting is given up.
#[test]
fn seconds_that_do_not_come_to_an_end_are_given_up() {
    let mut rig = Rig::measuring(2);
    rig.shards.shard(1).seconds_in_an_answer = 0;
    let begun = rig.now();
    rig.abort();
    let outcome = rig.conduct();
    assert!(rig.since(begun) < Duration::from_secs(15));
    assert_eq!(lost(&outcome), [(1, true)]);
}

#[test]
fn abort_after_the_load_is_over_changes_nothing() {
    let mut rig = Rig::measuring(2);
    // Keeps the conductor collecting for longer than it would wait after an abort.
    rig.shards.shard(1).reachable = false;
    rig.until(|progress| progress.stage == ConductStage::Collecting);
    rig.abort();
    rig.pass(Duration::from_secs(60));
    rig.shards.shard(1).reachable = true;
    rig.complete_all(1);
}

/// The last shard of an attempt gives no final snapshot, so the attempt is void before the abort takes effect.
#[test]
fn an_abort_does_not_revive_an_attempt_that_was_given_up() {
    for resumes in [false, true] {
        let mut rig = Rig::new(2);
        rig.config.on_lost = OnLost::Restart;
        rig.until_measuring();
        if resumes {
            rig.succeed();
            rig.until(|progress| progress.stage == ConductStage::Running);
        }
        rig.shards.shard(1).reachable = false;
        rig.until(|progress| progress.stage == ConductStage::Collecting);
        rig.abort();
        rig.until(|progress| progress.stage == ConductStage::Preparing);
        rig.shards.shard(1).reachable = true;
        let outcome = rig.conduct();
        assert_eq!(outcome.ending, Ending::Aborted, "resumes: {resumes}");
        assert_eq!((outcome.snapshots().count(), outcome.start_at_unix_nanoseconds), (0, None));
    }
}

#[test]
fn abort_while_preparing_measures_nothing() {
    let mut rig = Rig::new(2);
    rig.shards.shard(0).arms_after = None;
    rig.until(|progress| progress.shards.armed == 1);
    rig.abort();
    let outcome = rig.conduct();
    assert_eq!((outcome.ending, outcome.attempt), (Ending::Aborted, 0));
    assert!(outcome.shards.iter().all(|shard| shard.snapshot.is_none()));
    assert!(rig.shards.shard(0).aborted_at.is_some());
}

#[test]
fn on_lost_abort_stops_the_rest() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = OnLost::Abort;
    rig.until_measuring();
    rig.set_presence(1, evicted());
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, "ShardLost");
    assert!(failure(&outcome).message.contains("1 of 3 shards were lost; shard 1: evicted"));
    assert!(outcome.shards[0].snapshot.as_ref().unwrap().aborted);
}

#[test]
fn on_lost_restart_begins_a_new_attempt_with_the_replacement() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = OnLost::Restart;
    for attempt in 1..=2 {
        rig.until(|progress| progress.attempt == attempt && progress.stage == ConductStage::Running);
        rig.set_presence(1, evicted());
        rig.until(|progress| progress.stage == ConductStage::Preparing);
        rig.shards.replace(1);
        rig.shards.shard(1).incarnation = format!("replacement-{attempt}");
        rig.set_presence(1, ShardPresence::Present(rig.shards.endpoint(1)));
    }
    let outcome = rig.complete_all(3);
    assert_eq!(outcome.shards[1].incarnation, "replacement-2");
    assert_eq!(rig.attempts(), [1, 2, 3]);
}

#[test]
fn on_lost_restart_keeps_what_was_measured_if_nothing_takes_the_lost_ones_place() {
    let mut rig = Rig::new(3);
    rig.config.on_lost = OnLost::Restart;
    rig.until_measuring();
    rig.set_presence(1, ShardPresence::Gone { why: "signal 9".into(), replaced: false });
    let outcome = rig.conduct();
    assert_eq!(failure(&outcome).reason, "ShardLost");
    assert_eq!(lost(&outcome), [(1, true)]);
    assert!(outcome.start_at_unix_nanoseconds.is_some());
    assert_eq!(rig.attempts(), [1]);
}

#[test]
fn a_shard_that_gives_no_final_snapshot_can_take_part_in_the_new_attempt() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Restart;
    rig.until_measuring();
    rig.shards.shard(1).reachable = false;
    rig.until(|progress| progress.attempt == 1 && progress.stage == ConductStage::Preparing);
    rig.shards.shard(1).reachable = true;
    rig.complete_all(2);
}

#[test]
fn a_shard_that_does_not_hear_the_abort_is_lost() {
    let mut rig = Rig::measuring(3);
    rig.shards.shard(1).reachable = false;
    rig.abort();
    let outcome = rig.conduct();
    assert_eq!(outcome.ending, Ending::Aborted);
    assert_eq!(lost(&outcome), [(1, true)], "a part of its counts is no result of its own");
}

fn merged(rig: &Rig, outcome: &Outcome) -> Merged {
    merge(&rig.config.plan, outcome).unwrap().unwrap()
}

#[test]
fn final_snapshots_beyond_the_memory_are_merged_as_they_arrive() {
    let mut rig = Rig::new(4);
    let whole = rig.complete_all(1);
    assert!(whole.shards.iter().all(|shard| shard.own_latency.is_none()));
    let bytes = whole.snapshots().map(histogram_bytes).max().unwrap();
    let whole = merged(&rig, &whole);
    // At the first one, and at the third.
    for per_trial in [0, 2 * bytes] {
        let mut rig = Rig::new(4);
        rig.config.memory = Arc::new(ResultMemory::new(0, 1 << 20, per_trial));
        let outcome = rig.complete_all(1);
        assert!(outcome.shards.iter().all(|shard| shard.own_latency.is_some()));
        assert_eq!(merged(&rig, &outcome), whole);
        let live = rig.progress.live.as_ref().unwrap();
        assert_eq!((live.total.succeeded, live.response.len()), (240_000, 240_000));
        // Nothing is kept, so others have all of the memory.
        assert_eq!(rig.config.memory.used(), [0, 0]);
    }
}

#[test]
fn a_new_attempt_forgets_what_was_merged_of_the_last() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Restart;
    rig.config.memory = Arc::new(ResultMemory::new(0, 0, 0));
    rig.until_measuring();
    rig.shards.shard(1).reachable = false;
    rig.until(|progress| progress.shards.finished == 1);
    rig.until(|progress| progress.attempt == 1 && progress.stage == ConductStage::Preparing);
    rig.shards.shard(1).reachable = true;
    let outcome = rig.complete_all(2);
    let total = merged(&rig, &outcome).total;
    assert_eq!((total.tally.succeeded, total.response.len()), (120_000, 120_000));
}

//! Tests of preparing, arming and starting.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use redisbench_wire::plan::Preload;
use redisbench_wire::{FailureReason, ShardFailure};

use super::super::{ConductStage, Ending, JournalError, Reply, ShardPresence, StartRecord};
use super::{BEGINNING, MEASURED, OnLost, Rig};

const NO_TIME: Duration = Duration::from_secs(5);

#[test]
fn all_shards_start_together_and_every_count_is_kept() {
    let mut rig = Rig::new(4);
    let outcome = rig.complete_all(1);
    assert_eq!(rig.attempts(), [1]);
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
    let progress = &rig.progress;
    assert_eq!(progress.stage, ConductStage::Done);
    let live = progress.live.as_ref().unwrap();
    assert_eq!((live.total.succeeded, live.response.len(), live.percent), (240_000, 240_000, 100));
    assert_eq!(progress.shards.finished, 4);
}

/// It cannot know whether they came in time.
#[test]
fn a_conductor_that_stands_still_trusts_no_acknowledgement_that_it_finds_afterwards() {
    let mut rig = Rig::new(2);
    rig.run_until(|rig| !rig.attempts().is_empty());
    rig.shards.shard(1).round_trip = Duration::from_secs(1);
    rig.pass(Duration::from_millis(700));
    assert!(rig.shards.shard(1).accepted.is_some(), "its acknowledgement is on the way");
    rig.shards.set_now(rig.now() + Duration::from_secs(3));
    rig.shards.shard(1).round_trip = Duration::from_millis(2);
    rig.complete_all(2);
    assert_eq!(rig.attempts(), [1, 2]);
}

#[test]
fn a_late_shard_shows_in_the_start_skew() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).starts_late_by = Duration::from_millis(70);
    let skew = rig.conduct().start_skew.unwrap();
    assert!(skew.abs_diff(Duration::from_millis(70)) <= Duration::from_millis(4), "{skew:?}");
}

#[test]
fn a_single_shard_has_no_skew() {
    assert_eq!(Rig::new(1).complete(1).start_skew, None);
}

#[test]
fn a_fatal_shard_fails_the_run_at_once_with_the_count_and_the_way_out() {
    let mut rig = Rig::new(4);
    for shard in 1..4 {
        rig.shards.shard(shard).failure = Some(ShardFailure {
            reason: FailureReason::AuthenticationFailed,
            message: "WRONGPASS; check auth.secretRef".into(),
        });
    }
    let begun = rig.now();
    let failure = rig.fail();
    assert!(rig.since(begun) < NO_TIME);
    assert_eq!(failure.reason, "AuthenticationFailed");
    assert_eq!(failure.message, "3 of 4 shards failed; shard 1: WRONGPASS; check auth.secretRef");
    assert!(rig.attempts().is_empty());
    assert!(rig.shards.shard(0).aborted_at.is_some(), "the healthy shard must not go on preparing");
}

#[test]
fn a_shard_that_never_arms_fails_the_run_with_its_obstacle() {
    let mut rig = Rig::new(3);
    {
        let mut shard = rig.shards.shard(2);
        shard.arms_after = None;
        shard.waiting_for = Some("redis:6379 refuses connections".into());
    }
    let begun = rig.now();
    let failure = rig.fail();
    assert!(rig.since(begun) >= rig.config.limits.prepare);
    assert_eq!(failure.reason, "PrepareTimedOut");
    assert!(failure.message.contains("1 of 3 shards"), "{failure}");
    assert!(failure.message.contains("shard 2: redis:6379 refuses connections"), "{failure}");
}

#[test]
fn a_pod_that_never_comes_fails_the_run_with_the_platforms_word() {
    let mut rig = Rig::new(2);
    let why = "Unschedulable: 0/3 nodes are available: insufficient cpu";
    rig.set_presence(1, ShardPresence::Absent { why: Some(why.into()) });
    let failure = rig.fail();
    assert!(failure.message.contains(why), "{failure}");
}

/// A queue may hold a run back for hours.
#[test]
fn the_time_in_a_queue_does_not_count_as_preparing() {
    let mut rig = Rig::new(2);
    let admitted: Vec<_> = (0..2).map(|shard| rig.shards.endpoint(shard)).collect();
    (0..2).for_each(|shard| rig.set_presence(shard, ShardPresence::Queued));
    rig.begin();
    rig.pass(rig.config.limits.prepare * 3);
    for endpoint in admitted {
        rig.set_presence(endpoint.shard, ShardPresence::Present(endpoint));
    }
    rig.complete(1);
}

#[test]
fn a_shard_that_cannot_be_dialled_hints_at_the_network() {
    let mut rig = Rig::new(2);
    rig.shards.shard(1).reachable = false;
    let failure = rig.fail();
    assert!(failure.message.contains("NetworkPolicy"), "{failure}");
}

#[test]
fn preload_that_advances_extends_the_time() {
    let mut rig = Rig::new(2);
    let long = rig.config.limits.prepare * 2;
    {
        let mut shard = rig.shards.shard(0);
        shard.arms_after = Some(long);
        shard.preloads_per_second = 10;
    }
    let begun = rig.now();
    rig.complete(1);
    assert!(rig.since(begun) > long + MEASURED);
}

#[test]
fn no_shard_preloads_before_all_are_present() {
    let mut rig = Rig::new(3);
    rig.plan().preload = Preload::Always;
    let last = rig.presence[2].clone();
    rig.presence[2] = ShardPresence::Absent { why: None };
    rig.begin();
    rig.pass(Duration::from_secs(300));
    for shard in 0..2 {
        let shard = rig.shards.shard(shard);
        assert!(shard.plan.is_none(), "no shard may preload");
        assert!(shard.asked_at.is_some() && shard.longest_silence <= Duration::from_secs(60), "it would exit");
    }
    rig.set_presence(2, last);
    rig.complete_all(1);
}

#[test]
fn a_shard_that_ends_after_the_preload_began_does_not_hold_back_the_others() {
    let mut rig = Rig::new(3);
    rig.plan().preload = Preload::Always;
    rig.run_until(|rig| rig.shards.shard(2).plan.is_some());
    rig.set_presence(2, ShardPresence::Gone { why: "exit code 137".into(), replaced: true });
    rig.until(|progress| progress.shards.armed == 2);
    rig.replace(2);
    rig.complete_all(1);
}

#[test]
fn a_run_whose_shards_never_come_names_the_missing_one_and_writes_nothing() {
    let mut rig = Rig::new(2);
    rig.plan().preload = Preload::FillMissing;
    let why = "Unschedulable: 0/3 nodes are available: insufficient cpu";
    rig.presence[1] = ShardPresence::Absent { why: Some(why.into()) };
    let failure = rig.fail();
    assert_eq!(failure.reason, "PrepareTimedOut");
    assert!(failure.message.contains(&format!("shard 1: {why}")), "{failure}");
    assert!(rig.shards.shard(0).plan.is_none());
}

/// Whose State calls are counted, by shard.
fn count_states(rig: &mut Rig) -> Rc<RefCell<BTreeMap<u32, u32>>> {
    let counts = Rc::new(RefCell::new(BTreeMap::new()));
    let heard = Rc::clone(&counts);
    rig.lie = Some(Box::new(move |endpoint, reply| {
        if matches!(reply, Ok(Reply::State(_))) {
            *heard.borrow_mut().entry(endpoint.shard).or_default() += 1;
        }
        reply
    }));
    counts
}

#[test]
fn shards_that_cannot_be_reached_do_not_delay_the_others() {
    let mut rig = Rig::new(20);
    for shard in 16..20 {
        rig.shards.shard(shard).reachable = false;
    }
    let begun = rig.now();
    rig.until(|progress| progress.shards.armed == 16);
    // A dial to a machine that is gone takes 3 s.
    assert!(rig.since(begun) < Duration::from_secs(2), "{:?}", rig.since(begun));
    rig.pass(Duration::from_secs(60));
    for shard in 16..20 {
        rig.shards.shard(shard).reachable = true;
    }
    let back = rig.now();
    rig.until(|progress| progress.stage == ConductStage::Running);
    assert!(rig.since(back) < Duration::from_secs(15), "{:?}", rig.since(back));
}

#[test]
fn armed_shards_are_asked_rarely_and_never_forgotten() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).arms_after = Some(Duration::from_secs(120));
    let counts = count_states(&mut rig);
    rig.until(|progress| progress.shards.armed == 2);
    rig.pass(Duration::from_secs(100));
    let asked = counts.borrow().get(&0).copied().unwrap_or_default();
    assert!((15..30).contains(&asked), "{asked} calls in 100 s");
    rig.complete_all(1);
    assert!(rig.shards.shard(0).longest_silence < Duration::from_secs(10));
}

/// With slow calls at different times, some call is in flight at any time.
#[test]
fn calls_in_flight_do_not_delay_the_start() {
    let mut rig = Rig::new(20);
    rig.config.limits.max_start_skew = Duration::from_secs(10);
    for index in 0..20 {
        let mut shard = rig.shards.shard(index);
        shard.round_trip = Duration::from_millis(500);
        shard.arms_after = Some(Duration::from_secs(1) + Duration::from_millis(250) * index);
    }
    rig.shards.shard(19).arms_after = Some(Duration::from_secs(60));
    let counts = count_states(&mut rig);
    rig.until(|progress| progress.shards.armed == 19);
    counts.borrow_mut().clear();
    let begun = rig.now();
    rig.until(|progress| progress.shards.armed == 20);
    let armed = rig.since(begun);
    let asked = counts.borrow().iter().filter(|(shard, _)| **shard < 19).map(|(_, asked)| *asked).max().unwrap();
    assert!((8..14).contains(&asked), "{asked} calls in {armed:?}");
    rig.until(|progress| progress.stage == ConductStage::Running);
    assert!(rig.since(begun) < armed + Duration::from_secs(25), "{:?}", rig.since(begun));
}

#[test]
fn a_process_that_comes_back_during_a_call_is_not_called_twice() {
    let mut rig = Rig::new(3);
    rig.shards.shard(0).round_trip = Duration::from_secs(1);
    rig.shards.shard(2).arms_after = None;
    let counts = count_states(&mut rig);
    rig.begin();
    rig.pass(Duration::from_millis(1_300));
    for _ in 0..3 {
        let present = rig.presence[0].clone();
        rig.set_presence(0, ShardPresence::Absent { why: None });
        rig.set_presence(0, present);
    }
    rig.until(|progress| progress.shards.armed == 2);
    counts.borrow_mut().clear();
    rig.pass(Duration::from_secs(60));
    let asked = counts.borrow().get(&0).copied().unwrap_or_default();
    assert!((8..12).contains(&asked), "{asked} calls in 60 s");
}

#[test]
fn an_armed_shard_that_cannot_be_reached_is_named() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).arms_after = Some(Duration::from_secs(30));
    rig.until(|progress| progress.shards.armed == 2);
    rig.shards.shard(1).reachable = false;
    let message = rig.fail().message;
    assert!(message.starts_with("1 of 3 shards were not armed") && message.contains("; shard 1: "), "{message}");
}

#[test]
fn a_process_that_takes_an_armed_ones_place_gets_the_plan() {
    let mut rig = Rig::new(3);
    rig.shards.shard(2).arms_after = Some(Duration::from_secs(30));
    rig.until(|progress| progress.shards.armed == 2);
    rig.replace(0);
    rig.complete_all(1);
}

#[test]
fn a_shard_that_ended_before_the_start_fails_the_run_unless_it_is_replaced() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Restart;
    rig.set_presence(0, ShardPresence::Gone { why: "exit code 137".into(), replaced: true });
    rig.until(|progress| progress.shards.armed == 1);
    rig.replace(0);
    rig.complete(1);

    let mut rig = Rig::new(2);
    rig.set_presence(0, ShardPresence::Gone { why: "exit code 64".into(), replaced: false });
    let failure = rig.fail();
    assert_eq!(failure.reason, "ShardLost");
    assert!(failure.message.contains("exit code 64"));
}

#[test]
fn two_thousand_ready_shards_start_within_ten_seconds() {
    let mut rig = Rig::new(2_000);
    let begun = rig.now();
    rig.run_until(|rig| rig.shards.shard(1_999).accepted.is_some());
    let started = rig.shards.true_start(1_999).checked_sub(begun).unwrap();
    assert!(started < Duration::from_secs(10), "{started:?}");
}

/// From recording each attempt to its start.
fn leads(rig: &Rig) -> Vec<Duration> {
    let lead = |(record, at): &(StartRecord, Duration)| {
        Duration::from_nanos(record.start_at_unix_nanoseconds).checked_sub(BEGINNING + *at).unwrap()
    };
    rig.journal.written.iter().map(lead).collect()
}

#[test]
fn the_lead_follows_from_the_exchange_of_clocks() {
    // 500 shards, eight of them at once.
    for (round_trip, least, most) in [(2, 2_600, 2_700), (10, 5_100, 5_300), (20, 7_000, 7_000)] {
        let mut rig = Rig::new(500);
        (0..500).for_each(|shard| rig.shards.shard(shard).round_trip = Duration::from_millis(round_trip));
        rig.run_until(|rig| !rig.attempts().is_empty());
        let lead = leads(&rig)[0].as_millis();
        assert!((least..=most).contains(&lead), "{lead} ms with round trips of {round_trip} ms");
    }
}

#[test]
fn a_missed_start_of_many_shards_is_repeated_with_the_longest_lead() {
    let mut rig = Rig::new(500);
    rig.shards.shard(1).misses = vec![1];
    rig.run_until(|rig| rig.attempts().len() == 2);
    let leads = leads(&rig);
    assert!(leads[0] < Duration::from_secs(3) && leads[1] == Duration::from_secs(7), "{leads:?}");
}

#[test]
fn a_record_that_leaves_no_time_for_the_calls_starts_nothing() {
    let mut rig = Rig::new(500);
    (0..500).for_each(|shard| rig.shards.shard(shard).round_trip = Duration::from_millis(10));
    rig.journal.takes = Duration::from_secs(2);
    rig.complete_all(2);
    assert_eq!(rig.shards.shard(0).rearmed, 0, "a shard had received a start");
}

#[test]
fn shards_are_asked_soon_after_they_got_their_plans() {
    let mut rig = Rig::new(200);
    rig.plan().preload = Preload::Always;
    (0..200).for_each(|shard| rig.shards.shard(shard).arms_after = Some(Duration::from_millis(500)));
    let last = rig.presence[199].clone();
    rig.presence[199] = ShardPresence::Absent { why: None };
    rig.begin();
    rig.pass(Duration::from_secs(60));
    let begun = rig.now();
    rig.set_presence(199, last);
    rig.until(|progress| progress.shards.armed == 200);
    assert!(rig.since(begun) < Duration::from_millis(1_500), "{:?}", rig.since(begun));
}

#[test]
fn a_missed_acknowledgement_costs_one_attempt() {
    let mut rig = Rig::new(3);
    rig.shards.shard(1).misses = vec![1];
    rig.complete(2);
    assert_eq!(rig.attempts(), [1, 2]);
    for shard in 0..3 {
        let shard = rig.shards.shard(shard);
        assert_eq!(shard.accepted.unwrap().attempt, 2);
        assert!(shard.rearmed > 0);
    }
}

#[test]
fn three_missed_starts_fail_the_run() {
    let mut rig = Rig::new(3);
    rig.shards.shard(1).misses = vec![1, 2, 3];
    let failure = rig.fail();
    assert_eq!(failure.reason, "StartMissed");
    assert!(failure.message.contains("shard 1: reset"), "{failure}");
    assert_eq!(rig.attempts(), [1, 2, 3]);
}

#[test]
fn an_uncertain_clock_may_not_start() {
    let mut rig = Rig::new(2);
    rig.shards.shard(1).round_trip = Duration::from_millis(50);
    let failure = rig.fail();
    assert_eq!(failure.reason, "ClockUncertain");
    assert!(failure.message.contains("shard 1") && failure.message.contains("shards.maxStartSkew"), "{failure}");
    assert!(rig.attempts().is_empty());
}

/// Other work on a shard's machine may delay its replies for seconds.
#[test]
fn a_clock_that_becomes_certain_may_start() {
    let mut rig = Rig::new(2);
    rig.shards.shard(1).round_trip = Duration::from_millis(50);
    rig.begin();
    rig.pass(Duration::from_secs(8));
    rig.shards.shard(1).round_trip = Duration::from_millis(1);
    rig.complete(1);
}

#[test]
fn nothing_starts_that_is_not_recorded() {
    let mut rig = Rig::new(2);
    rig.journal.refuse = Some(JournalError::Superseded);
    assert_eq!(rig.conduct().ending, Ending::Superseded);
    assert!(rig.shards.shard(0).accepted.is_none());

    let mut rig = Rig::new(2);
    rig.journal.refuse = Some(JournalError::Failed("no API server".into()));
    let failure = rig.fail();
    assert!(failure.message.contains("no API server"));
    assert!(rig.shards.shard(0).accepted.is_none());
}

#[test]
fn a_higher_epoch_ends_the_conductor() {
    let mut rig = Rig::new(2);
    rig.shards.shard(1).epoch = 2;
    assert_eq!(rig.conduct().ending, Ending::Superseded);
    assert_eq!(rig.shards.shard(0).aborted_at, None, "the trial is the other's now");
}

#[test]
fn a_journal_that_is_away_costs_time_and_no_start() {
    let mut rig = Rig::new(2);
    rig.journal.refuse = Some(JournalError::Failed("no API server".into()));
    rig.begin();
    rig.pass(Duration::from_secs(60));
    assert!(rig.shards.shard(0).accepted.is_none());
    let tries = rig.attempts().len();
    assert!((6..40).contains(&tries), "{tries} tries in a minute");
    rig.journal.refuse = None;
    let attempt = u32::try_from(rig.attempts().len()).unwrap() + 1;
    rig.complete_all(attempt);
    assert_eq!(rig.shards.shard(0).rearmed, 0, "a shard had received a start");
    assert!(rig.attempts().is_sorted_by(|a, b| a < b), "an answer may be lost, so no number is used twice");
}

#[test]
fn a_slow_journal_gets_more_time() {
    let mut rig = Rig::new(2);
    rig.journal.takes = Duration::from_secs(9);
    let outcome = rig.conduct();
    assert!(outcome.ending == Ending::Completed && outcome.attempt > 1, "{outcome:?}");
}

#[test]
fn a_missed_start_is_told_until_one_is_measured() {
    let mut rig = Rig::new(2);
    rig.config.on_lost = OnLost::Restart;
    rig.shards.shard(0).misses = vec![1, 3];
    rig.until(|progress| progress.missed == 1);
    rig.until(|progress| progress.stage == ConductStage::Running && progress.attempt == 2);
    rig.shards.shard(1).reachable = false;
    rig.until(|progress| progress.stage == ConductStage::Preparing);
    rig.shards.shard(1).reachable = true;
    rig.until(|progress| progress.attempt == 3);
    rig.complete(4);
    assert_eq!(rig.progress.missed, 1, "attempt 2 had load");
}

#[test]
fn attempts_of_before_are_not_numbered_again() {
    let mut rig = Rig::new(2);
    rig.config.attempts = 4;
    rig.complete(5);
    assert_eq!(rig.attempts(), [5]);
}

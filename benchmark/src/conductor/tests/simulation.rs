//! Random faults of shards and conductors: the trial always ends, and no number is made up.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::super::{Ending, Outcome, ShardPresence};
use super::OnLost;
use super::fake::FakeShards;
use super::{Rig, reason};

const SEEDS: u64 = 40;

/// Upper bound of a trial's length under any faults.
const AT_MOST: Duration = Duration::from_secs(7_200);

fn seconds(random: &mut StdRng, at_most: u64) -> Duration {
    Duration::from_millis(random.random_range(0..=at_most * 1_000))
}

fn rig(random: &mut StdRng) -> Rig {
    let count = random.random_range(1..=4);
    let mut rig = Rig::new(count);
    rig.config.on_lost = [OnLost::Invalidate, OnLost::Abort, OnLost::Restart][random.random_range(0..3)];
    for index in 0..count {
        let mut shard = rig.shards.shard(index);
        shard.round_trip = Duration::from_micros(random.random_range(100..18_000));
        shard.arms_after = Some(seconds(random, 20));
        shard.deaf_to_aborts = random.random_bool(0.05);
        shard.misses = (1..=3).filter(|_| random.random_bool(0.15)).collect();
    }
    rig
}

/// Makes shards unreachable for a while, or replaces them.
async fn havoc(mut random: StdRng, shards: Arc<FakeShards>, presence: watch::Sender<Vec<ShardPresence>>) {
    let count = u32::try_from(presence.borrow().len()).unwrap();
    for _ in 0..random.random_range(0..5) {
        sleep(seconds(&mut random, 40)).await;
        let index = random.random_range(0..count);
        let set = |new| presence.send_modify(|all| all[usize::try_from(index).unwrap()] = new);
        if random.random_bool(0.7) {
            shards.shard(index).reachable = false;
            sleep(seconds(&mut random, 50)).await;
            shards.shard(index).reachable = true;
        } else {
            shards.shard(index).reachable = false;
            set(ShardPresence::Gone { why: "evicted".into(), replaced: true });
            sleep(seconds(&mut random, 10)).await;
            shards.replace(index);
            shards.shard(index).incarnation = format!("pod-{index}-{}", random.random::<u32>());
            set(ShardPresence::Present(shards.endpoint(index)));
        }
    }
}

/// Conducts to the end, through the deaths of up to two conductors.
async fn conduct(rig: &mut Rig, random: &mut StdRng) -> Outcome {
    for _ in 0..random.random_range(0..3) {
        let mut conducting = rig.spawn();
        if let Ok(outcome) = timeout(seconds(random, 90), &mut conducting).await {
            return outcome.unwrap();
        }
        conducting.abort();
        let _ = conducting.await;
        sleep(seconds(random, 20)).await;
        rig.succeed();
    }
    let mut conducting = rig.spawn();
    if random.random_bool(0.2) {
        let wait = seconds(random, 90);
        match timeout(wait, &mut conducting).await {
            Ok(outcome) => return outcome.unwrap(),
            Err(_) => rig.control.send_modify(|control| control.abort = true),
        }
    }
    conducting.await.unwrap()
}

fn check(rig: &Rig, outcome: &Outcome) {
    let attempts = rig.attempts();
    assert!(attempts.is_sorted_by(|a, b| a < b), "{attempts:?}");
    let mut sum = 0;
    for shard in &outcome.shards {
        if let Some(snapshot) = &shard.snapshot {
            assert_eq!((snapshot.shard, snapshot.attempt), (shard.shard, outcome.attempt));
            assert!(snapshot.total.balances());
            sum += snapshot.total.succeeded;
        }
        if outcome.ending == Ending::Completed && shard.lost.is_none() {
            assert!(!shard.partial);
            assert_eq!(shard.snapshot.as_ref().unwrap().total.succeeded, 60_000);
        }
        let known = rig.shards.shard(shard.shard).incarnation == shard.incarnation;
        if known && shard.lost.is_none() && !shard.unacknowledged {
            assert!(!rig.shards.has_load(shard.shard), "load of shard {} goes on", shard.shard);
        }
    }
    let live = rig.progress.borrow().live.clone();
    if let (Some(_), Some(live)) = (outcome.start_at_unix_nanoseconds, live) {
        assert_eq!(live.total.succeeded, sum);
    }
    match &outcome.ending {
        Ending::Completed => {
            let finished = outcome.shards.iter().filter(|shard| shard.lost.is_none());
            let starts: Vec<_> = finished.map(|shard| rig.shards.true_start(shard.shard)).collect();
            let spread = starts.iter().max().unwrap().abs_diff(*starts.iter().min().unwrap());
            assert!(spread <= rig.config.limits.max_start_skew, "{spread:?}");
        }
        Ending::Failed(failure) => {
            let expected =
                [reason::SHARD_LOST, reason::START_MISSED, reason::TRIAL_TIMED_OUT, reason::PREPARE_TIMED_OUT];
            assert!(expected.contains(&&*failure.reason), "{failure:?}");
        }
        Ending::Aborted => assert!(rig.control.borrow().abort),
        Ending::Superseded => panic!("superseded by nobody"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_trial_ends_with_numbers_that_add_up() {
    let mut endings = [0; 3];
    for seed in 0..SEEDS {
        let mut random = StdRng::seed_from_u64(seed);
        let mut rig = rig(&mut random);
        let chaos = StdRng::seed_from_u64(seed + SEEDS);
        let havoc = tokio::spawn(havoc(chaos, Arc::clone(&rig.shards), rig.presence.clone()));
        let begun = Instant::now();
        let outcome = timeout(AT_MOST, conduct(&mut rig, &mut random)).await;
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed} does not end"));
        havoc.abort();
        println!("seed {seed}: {:?} after {:?}, attempt {}", outcome.ending, begun.elapsed(), outcome.attempt);
        check(&rig, &outcome);
        match outcome.ending {
            Ending::Completed => endings[0] += 1,
            Ending::Failed(_) => endings[1] += 1,
            Ending::Aborted | Ending::Superseded => endings[2] += 1,
        }
    }
    assert!(endings.iter().all(|count| *count > 0), "the faults are too tame or too wild: {endings:?}");
}

//! Tests of what performs the machine's actions, and of releasing, on tokio's paused clock.

use std::sync::Mutex;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::conductor::calls::CALLS_IN_FLIGHT;
use crate::conductor::{Journal, ShardCalls, conduct, release};

/// The fakes of a rig, on tokio's clock, each call with a delay.
struct Calls {
    shards: Arc<FakeShards>,
    origin: Instant,
    /// Calls made, those in flight, and the most of those at once.
    counts: Mutex<[usize; 3]>,
}

impl Calls {
    fn new(rig: &Rig) -> Arc<Self> {
        Arc::new(Self { shards: Arc::clone(&rig.shards), origin: Instant::now(), counts: Mutex::default() })
    }
}

impl ShardCalls for Calls {
    async fn call(&self, endpoint: &Endpoint, call: &Call) -> Result<Reply, CallError> {
        {
            let [made, in_flight, most] = &mut *self.counts.lock().unwrap();
            (*made, *in_flight, *most) = (*made + 1, *in_flight + 1, (*most).max(*in_flight + 1));
        }
        sleep(Duration::from_millis(1)).await;
        self.shards.set_now(self.origin.elapsed());
        let reply = match self.shards.way(endpoint, call) {
            Ok(_) => self.shards.answer(endpoint, call),
            Err((after, error)) => {
                sleep(after).await;
                Err(error)
            }
        };
        self.counts.lock().unwrap()[1] -= 1;
        reply
    }
}

struct Durable;

impl Journal for Durable {
    async fn record_start(&self, _: StartRecord) -> Result<(), JournalError> {
        Ok(())
    }
}

struct Driven {
    calls: Arc<Calls>,
    presence: watch::Sender<Vec<ShardPresence>>,
    control: watch::Sender<Control>,
    progress: watch::Receiver<ConductProgress>,
    conducting: JoinHandle<Outcome>,
}

impl Driven {
    fn begin(rig: &Rig) -> Self {
        let calls = Calls::new(rig);
        let (presence, seen) = watch::channel(rig.presence.clone());
        let (control, controlled) = watch::channel(Control::default());
        let (publish, progress) = watch::channel(ConductProgress::default());
        let conducting =
            tokio::spawn(conduct(rig.config.clone(), Arc::clone(&calls), Durable, seen, controlled, publish));
        Self { calls, presence, control, progress, conducting }
    }

    async fn until_measuring(&mut self) {
        timeout(PATIENCE, self.progress.wait_for(measuring)).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_trial_is_driven_to_its_end_with_a_bounded_number_of_calls_at_once() {
    let driven = Driven::begin(&Rig::new(200));
    let outcome = driven.conducting.await.unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(succeeded(&outcome), vec![60_000; 200]);
    assert_eq!(driven.calls.counts.lock().unwrap()[2], CALLS_IN_FLIGHT);
    assert_eq!(driven.progress.borrow().stage, ConductStage::Done);
}

#[tokio::test(start_paused = true)]
async fn what_user_and_platform_report_reaches_the_conductor() {
    let mut driven = Driven::begin(&Rig::new(2));
    driven.until_measuring().await;
    driven.presence.send_modify(|all| all[1] = ShardPresence::Gone { why: "evicted".into(), replaced: false });
    timeout(PATIENCE, driven.progress.wait_for(|progress| progress.shards.lost == 1)).await.unwrap().unwrap();
    driven.control.send_replace(Control { abort: true });
    let outcome = driven.conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.lost().count()), (&Ending::Aborted, 1));
    assert!(!driven.calls.shards.has_load(0));
}

#[tokio::test(start_paused = true)]
async fn an_abort_reaches_every_shard_although_many_cannot_be_reached() {
    let mut driven = Driven::begin(&Rig::new(400));
    driven.until_measuring().await;
    for shard in (0..400).step_by(4) {
        driven.calls.shards.shard(shard).reachable = false;
    }
    driven.control.send_replace(Control { abort: true });
    sleep(Duration::from_millis(900)).await;
    let loaded = (0..400).filter(|shard| shard % 4 != 0 && driven.calls.shards.has_load(*shard)).count();
    assert_eq!(loaded, 0);
    let outcome = driven.conducting.await.unwrap();
    assert_eq!((&outcome.ending, outcome.lost().count()), (&Ending::Aborted, 100));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_conductor_calls_nobody_and_leaves_the_shards_as_they_are() {
    let mut driven = Driven::begin(&Rig::new(2));
    driven.until_measuring().await;
    driven.conducting.abort();
    assert!(driven.conducting.await.unwrap_err().is_cancelled());
    let made = driven.calls.counts.lock().unwrap()[0];
    sleep(Duration::from_secs(5)).await; // virtual time: it would have polled them
    assert_eq!(driven.calls.counts.lock().unwrap()[0], made);
    assert!((0..2).all(|shard| driven.calls.shards.has_load(shard)));
}

#[tokio::test(start_paused = true)]
async fn release_is_repeated_until_every_shard_is_done() {
    let rig = Rig::new(2);
    rig.shards.shard(1).reachable = false;
    let presence = watch::Sender::new(rig.presence.clone());
    let releasing = tokio::spawn(release(1, Calls::new(&rig), presence.subscribe()));
    sleep(Duration::from_secs(20)).await;
    assert!(rig.shards.shard(0).released && !releasing.is_finished());
    presence.send_modify(|all| all[0] = ShardPresence::Done);
    rig.shards.shard(1).reachable = true;
    sleep(Duration::from_secs(20)).await;
    assert!(rig.shards.shard(1).released && !releasing.is_finished());
    // A queue that takes the pods away leaves nothing to release either.
    presence.send_modify(|all| all[1] = ShardPresence::Queued);
    releasing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_exit_costs_no_call_to_the_others() {
    let rig = Rig::new(50);
    let (presence, calls) = (watch::Sender::new(rig.presence.clone()), Calls::new(&rig));
    let releasing = tokio::spawn(release(1, Arc::clone(&calls), presence.subscribe()));
    for shard in 0..50 {
        sleep(Duration::from_millis(100)).await;
        presence.send_modify(|all| all[shard] = ShardPresence::Done);
    }
    releasing.await.unwrap();
    assert_eq!(calls.counts.lock().unwrap()[0], 50);
}

#[tokio::test(start_paused = true)]
async fn release_ends_when_another_has_taken_over_or_nobody_looks_any_more() {
    // Virtual time: an endless release reaches the limit at once.
    let limit = Duration::from_secs(3600);
    let rig = Rig::new(1);
    rig.shards.shard(0).epoch = 2;
    let presence = watch::Sender::new(rig.presence.clone());
    timeout(limit, release(1, Calls::new(&rig), presence.subscribe())).await.unwrap();
    assert!(!rig.shards.shard(0).released, "it is another's shard now");

    let (sender, receiver) = watch::channel(rig.presence.clone());
    drop(sender);
    timeout(limit, release(1, Calls::new(&Rig::new(1)), receiver)).await.unwrap();
}

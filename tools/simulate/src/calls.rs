//! The conductor's calls over a network that delays, drops and repeats.

use std::net::IpAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redisbench_benchmark::conductor::{Call, CallError, Endpoint, Reply, ShardCalls, Unreachable};
use redisbench_wire::Detail;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::cluster::is_terminal;
use crate::ground_truth::Try;
use crate::scenario::Way;
use crate::shards::deliver;
use crate::world::{Freezer, World, lock};

const DIAL: Duration = Duration::from_secs(3);
const CALL: Duration = Duration::from_secs(8);
const FULL_SNAPSHOT: Duration = Duration::from_secs(30);

/// The event of a conductor that panicked.
pub const PANICKED: &str = "- a conductor panicked";

/// The calls of one conducting task of one operator.
pub struct SimulatedCalls {
    pub world: Arc<World>,
    pub operator: String,
    pub freezer: Arc<Freezer>,
    pub run: String,
    /// The epoch of its first release; 0 before.
    pub released: AtomicU64,
}

type Received = (String, Result<Reply, redisbench_wire::Refusal>);

impl ShardCalls for SimulatedCalls {
    async fn call(&self, shard: &Endpoint, call: &Call) -> Result<Reply, CallError> {
        let limit = match call {
            Call::Snapshot(_, Detail::Full, _) => FULL_SNAPSHOT,
            _ => CALL,
        };
        self.spring_triggers(call);
        self.freezer.pass().await;
        self.before_sending(call);
        let address = shard.address.ip();
        let dialled = async {
            if self.world.is_cut(address) && self.world.chance(0.5) {
                sleep(DIAL).await;
                return Err(Unreachable::DialTimedOut(shard.address).into());
            }
            let received = send(&self.world, address, call.clone()).await;
            let Some((incarnation, answer)) = received else {
                return Err(Unreachable::Connection(format!("connection to {} refused", shard.address)).into());
            };
            if incarnation != shard.incarnation {
                return Err(Unreachable::Foreign(format!("incarnation is {incarnation}")).into());
            }
            answer.map_err(CallError::Refused)
        };
        timeout(limit, dialled).await.unwrap_or_else(|_| Err(Unreachable::TimedOut(limit).into()))
    }
}

impl SimulatedCalls {
    /// Panics or freezes the operator if that is due before `call`.
    fn spring_triggers(&self, call: &Call) {
        if lock(&self.world.triggers).panics() {
            self.world.tell("a conductor panics");
            let mut ground_truth = lock(&self.world.ground_truth);
            ground_truth.count(PANICKED);
            ground_truth.run(&self.run).panics += 1;
            drop(ground_truth);
            // As a panic does, without its message on stderr.
            resume_unwind(Box::new("a bug"));
        }
        if matches!(call, Call::Start(..))
            && let Some(calls) = lock(&self.world.triggers).halts(&self.operator)
        {
            self.world.tell(format_args!("{} is frozen after {calls} calls of the start", self.operator));
            self.freezer.freeze();
        }
    }

    /// After a release only releases may follow, and none may precede a durable end.
    fn before_sending(&self, call: &Call) {
        let Some(epoch) = call.epoch() else {
            return self.world.check(self.released.load(Ordering::Relaxed) == 0, || format!("{call:?} after release"));
        };
        match call {
            Call::Cleanup(_) => {
                self.world.check(self.world.scenario.preload, || "keys are deleted without a request".to_owned());
            }
            Call::Release(_) => {
                // The status of a re-created benchmark belongs to another run.
                if let Some(status) = lock(&self.world.cluster).status().filter(|status| status["runId"] == self.run) {
                    self.world.check(is_terminal(status), || {
                        format!("shards are released while the status is {}", status["phase"])
                    });
                }
                self.released.store(epoch, Ordering::Relaxed);
                let mut ground_truth = lock(&self.world.ground_truth);
                let run = ground_truth.run(&self.run);
                run.released = run.released.max(Some(epoch));
                return;
            }
            _ => {}
        }
        let released = lock(&self.world.ground_truth).run(&self.run).released;
        self.world.check(released.is_none_or(|released| epoch < released), || {
            format!("epoch {epoch} makes a mutating call after the release by epoch {}", released.unwrap_or_default())
        });
    }
}

/// The way in which a start is lost, if it is.
fn loss(world: &World, address: IpAddr, attempt: Try) -> Option<Way> {
    let shard = lock(&world.processes).get(&address)?.shard;
    lock(&world.triggers).loses(shard, attempt)
}

/// Sends `call` and waits for the answer, forever if it is lost. None if no process listens.
async fn send(world: &Arc<World>, address: IpAddr, call: Call) -> Option<Received> {
    let network = &world.scenario.network;
    let (answer, answered) = oneshot::channel();
    let (there, back) = (world.latency(), world.latency());
    let (mut lost_there, mut lost_back) = (world.chance(network.lost), world.chance(network.lost));
    if let Call::Start(trial, start) = &call {
        match loss(world, address, (*trial, start.attempt)) {
            Some(Way::There) => lost_there = true,
            Some(Way::Back) => lost_back = true,
            None => {}
        }
    }
    // Repeats only calls that change something; the others have no effect.
    if !matches!(call, Call::Clock | Call::State | Call::Snapshot(..)) && world.chance(network.repeated) {
        let (again, late) = (call.clone(), there + world.latency() * 3);
        world.after(late, move |world| {
            if !world.is_cut(address) {
                drop(deliver(world, address, again));
            }
        });
    }
    let world = world.clone();
    // Separate task: the network delivers even if the caller no longer waits.
    tokio::spawn(async move {
        sleep(there).await;
        if lost_there || world.is_cut(address) {
            return std::future::pending().await;
        }
        let received = deliver(&world, address, call);
        sleep(back).await;
        if lost_back || world.is_cut(address) {
            return std::future::pending().await;
        }
        let _ = answer.send(received);
    });
    match answered.await {
        Ok(received) => received,
        Err(_) => std::future::pending().await,
    }
}

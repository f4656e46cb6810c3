//! The conductor's calls over a network that delays, drops and repeats.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redisbench_benchmark::conductor::{CallError, Endpoint, ShardCalls, Unreachable};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{
    AbortRequest, AcceptedStart, CleanupState, ClockReading, Detail, EpochRequest, MeasureRequest, PlanRequest,
    ProbeRequest, ProbeState, ShardState, StartRequest,
};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::process::{Answer, Call};
use crate::triggers::Way;
use crate::world::{Freezer, World, lock};

const DIAL: Duration = Duration::from_secs(3);
const CALL: Duration = Duration::from_secs(8);
const FULL_SNAPSHOT: Duration = Duration::from_secs(30);

/// The calls of one conducting task of one operator.
pub struct SimulatedCalls {
    pub world: Arc<World>,
    pub operator: String,
    pub freezer: Arc<Freezer>,
    /// The runId.
    pub run: String,
    /// The epoch of its first release; 0 before.
    pub released: AtomicU64,
}

type Received = (String, Result<Answer, redisbench_wire::Refusal>);

impl SimulatedCalls {
    async fn call(&self, shard: &Endpoint, call: Call) -> Result<Answer, CallError> {
        let limit = match &call {
            Call::Snapshot(_, Detail::Full, _) => FULL_SNAPSHOT,
            _ => CALL,
        };
        if let Call::Start(..) = &call {
            self.world.halt_at_start(&self.operator, &self.freezer);
        }
        self.freezer.pass().await;
        self.before_sending(&call);
        let address = shard.address.ip();
        let dialled = async {
            if self.world.is_cut(address) && self.world.chance(0.5) {
                sleep(DIAL).await;
                return Err(Unreachable::DialTimedOut(shard.address).into());
            }
            let received = send(&self.world, address, call).await;
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

    /// After a release only releases may follow, and none may precede a durable end.
    fn before_sending(&self, call: &Call) {
        let epoch = match call {
            Call::Plan(_, request) => request.epoch,
            Call::Start(_, request) => request.epoch,
            Call::Measure(_, request) => request.epoch,
            Call::Probe(_, request) => request.epoch,
            Call::Abort(_, request) => request.epoch,
            Call::Drain(request) => request.epoch,
            Call::Cleanup(request) => {
                self.world.check(self.world.scenario.preload, || "keys are deleted without a request".to_owned());
                request.epoch
            }
            Call::Release(request) => {
                let epoch = request.epoch;
                // The status of a re-created benchmark belongs to another run.
                if let Some(status) = lock(&self.world.cluster).status().filter(|status| status["runId"] == self.run) {
                    self.world.check(crate::is_terminal(status), || {
                        format!("shards are released while the status is {}", status["phase"])
                    });
                }
                self.released.store(epoch, Ordering::Relaxed);
                let mut ground_truth = lock(&self.world.ground_truth);
                let run = ground_truth.run(&self.run);
                run.released = run.released.max(Some(epoch));
                return;
            }
            Call::Clock | Call::State | Call::Snapshot(..) => {
                self.world.check(self.released.load(Ordering::Relaxed) == 0, || format!("{call:?} after release"));
                return;
            }
        };
        let released = lock(&self.world.ground_truth).run(&self.run).released;
        self.world.check(released.is_none_or(|released| epoch < released), || {
            format!("epoch {epoch} makes a mutating call after the release by epoch {}", released.unwrap_or_default())
        });
    }
}

/// Sends `call` and waits for the answer, forever if it is lost. None if no process listens.
async fn send(world: &Arc<World>, address: IpAddr, call: Call) -> Option<Received> {
    let network = &world.scenario.network;
    let (answer, answered) = oneshot::channel();
    let (there, back) = (world.latency(), world.latency());
    let (mut lost_there, mut lost_back) = (world.chance(network.lost), world.chance(network.lost));
    if let Call::Start(trial, start) = &call {
        match world.lose_start(address, (*trial, start.attempt)) {
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
                drop(world.deliver(address, again));
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
        let received = world.deliver(address, call);
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

fn unexpected<T>(answer: &Answer) -> Result<T, CallError> {
    Err(Unreachable::Malformed(format!("{answer:?}")).into())
}

impl ShardCalls for SimulatedCalls {
    async fn clock(&self, shard: &Endpoint) -> Result<ClockReading, CallError> {
        match self.call(shard, Call::Clock).await? {
            Answer::Clock(reading) => Ok(reading),
            other => unexpected(&other),
        }
    }

    async fn state(&self, shard: &Endpoint) -> Result<ShardState, CallError> {
        state(self.call(shard, Call::State).await?)
    }

    async fn put_plan(&self, shard: &Endpoint, trial: u32, request: &PlanRequest) -> Result<ShardState, CallError> {
        state(self.call(shard, Call::Plan(trial, request.clone())).await?)
    }

    async fn start(&self, shard: &Endpoint, trial: u32, request: &StartRequest) -> Result<AcceptedStart, CallError> {
        match self.call(shard, Call::Start(trial, *request)).await? {
            Answer::Start(accepted) => Ok(accepted),
            other => unexpected(&other),
        }
    }

    async fn measure(&self, shard: &Endpoint, trial: u32, request: &MeasureRequest) -> Result<ShardState, CallError> {
        state(self.call(shard, Call::Measure(trial, *request)).await?)
    }

    async fn probe(&self, shard: &Endpoint, trial: u32, request: &ProbeRequest) -> Result<ProbeState, CallError> {
        match self.call(shard, Call::Probe(trial, *request)).await? {
            Answer::Probe(state) => Ok(state),
            other => unexpected(&other),
        }
    }

    async fn snapshot(&self, shard: &Endpoint, trial: u32, detail: Detail, from: u32) -> Result<Snapshot, CallError> {
        match self.call(shard, Call::Snapshot(trial, detail, from)).await? {
            Answer::Snapshot(snapshot) => Ok(*snapshot),
            other => unexpected(&other),
        }
    }

    async fn abort(&self, shard: &Endpoint, trial: u32, request: &AbortRequest) -> Result<ShardState, CallError> {
        state(self.call(shard, Call::Abort(trial, *request)).await?)
    }

    async fn cleanup(&self, shard: &Endpoint, request: &EpochRequest) -> Result<CleanupState, CallError> {
        match self.call(shard, Call::Cleanup(*request)).await? {
            Answer::Cleanup(state) => Ok(state),
            other => unexpected(&other),
        }
    }

    async fn drain(&self, shard: &Endpoint, request: &EpochRequest) -> Result<ShardState, CallError> {
        state(self.call(shard, Call::Drain(*request)).await?)
    }

    async fn release(&self, shard: &Endpoint, request: &EpochRequest) -> Result<ShardState, CallError> {
        state(self.call(shard, Call::Release(*request)).await?)
    }
}

fn state(answer: Answer) -> Result<ShardState, CallError> {
    match answer {
        Answer::State(state) => Ok(*state),
        other => unexpected(&other),
    }
}

//! A running engine, through which the cold side commands its workers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;

use redisbench_wire::plan::{CacheScope, Load, ShardPlan};
use redisbench_wire::snapshot::{ClientUsage, Snapshot};
use redisbench_wire::{Detail, limits};
use tokio::sync::{mpsc, oneshot};

use super::api::{Access, EngineConfig, EngineError, EngineEvent};
use super::assembly::Assembly;
use super::common::Common;
use super::cpus::share_of_processor;
use super::mailbox::{Command, Mailbox};
use super::own::OwnNodes;
use super::together::Together;
use super::worker::Worker;
use crate::cluster::{Group, Topology};
use crate::record::WorkerReport;
use crate::schedule::Seat;
use crate::sys::Waker;
use crate::verify;
use crate::workload::Workload;

/// A running engine. Dropping it stops the load, closes all connections and joins the threads, which takes some milliseconds.
#[derive(Debug)]
pub struct Engine {
    workers: Vec<WorkerHandle>,
    assembly: Assembly,
    connections: u32,
}

#[derive(Debug)]
struct WorkerHandle {
    mailbox: Mailbox,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts the worker threads, which wait for commands.
    ///
    /// # Errors
    /// Fails if the plan cannot be run or the kernel refuses a thread.
    pub fn spawn(config: EngineConfig, events: mpsc::Sender<EngineEvent>) -> Result<Self, EngineError> {
        let EngineConfig { plan, workers, topology, reads, access, may_evict, host } = config;
        let bad_plan = |error: crate::workload::WorkloadError| EngineError::BadPlan(error.to_string());
        if topology.nodes.is_empty() {
            return Err(EngineError::BadPlan("the target has no server".into()));
        }
        if topology.nodes.len() > limits::NODES {
            let message = format!("the target has {} servers, more than {}", topology.nodes.len(), limits::NODES);
            return Err(EngineError::BadPlan(message));
        }
        // A worker without a caller would do nothing.
        let callers = plan.concurrency.filter(|_| plan.load == Load::ClosedLoop);
        let workers = callers.map_or(workers, |callers| workers.min(callers as usize));
        // A followed key has a single owner, which knows what was written. So has a cache that connections share.
        let own = verify::own_workload(&plan);
        let shared = plan.workload.options.caching.as_ref().is_some_and(|caching| caching.scope == CacheScope::Shard);
        let workers = if own.is_some() || shared { 1 } else { workers };
        let trial = Workload::of_trial(own.as_ref().unwrap_or(&plan)).map_err(bad_plan)?;
        let own_nodes = own_nodes(&plan, &topology, &trial)?.map(Arc::new);
        let used = own_nodes
            .as_ref()
            .map_or_else(|| vec![true; topology.nodes.len()], |own| own.used(topology.nodes.len(), topology.maps()));
        let split = split(plan.connections, workers, &used);
        let assembly = Assembly::new(plan.clone(), host, Arc::clone(&topology));
        let common = Arc::new(Common {
            threads: Arc::clone(assembly.threads()),
            meter: Arc::clone(assembly.meter()),
            preload: trial.preload_walks(&plan).map_err(bad_plan)?,
            last_read: trial.last_read(&plan).map_err(bad_plan)?.map(Arc::new),
            trial: Arc::new(trial),
            own: own_nodes,
            may_evict,
            plan: plan.clone(),
            processor: share_of_processor(split.len()),
            reads,
            events,
            ready: AtomicU32::new(0),
            wanted: AtomicU32::new(split.iter().flatten().sum()),
        });
        let access = Arc::new(access);
        let connections = common.wanted.load(Relaxed);
        let mut engine = Self { workers: Vec::new(), assembly, connections };
        for (index, connections) in split.iter().enumerate() {
            let seat =
                Seat { shard: plan.shard, shards: plan.shards, worker: index as u32, workers: split.len() as u32 };
            let worker = spawn_worker(Arc::clone(&common), Arc::clone(&access), seat, &topology, connections);
            let worker = worker.map_err(EngineError::Start)?;
            engine.workers.push(worker);
        }
        Ok(engine)
    }

    /// Connections that the workers make at first: those of the plan, or more if it has fewer connections than the cluster has primaries.
    pub fn connections(&self) -> u32 {
        self.connections
    }
}

#[allow(clippy::missing_errors_doc, reason = "all of these fail only if a worker cannot be reached")]
impl Engine {
    /// Makes all connections and keeps them up. While no load runs, they are pinged every 5 s.
    pub fn connect(&self) -> Result<(), EngineError> {
        self.tell_all(|| Command::Connect)
    }

    /// Writes this shard's keys as planned. Ends with [`EngineEvent::Preloaded`], at once if there is nothing to do, or
    /// [`EngineEvent::PreloadFailed`].
    pub fn preload(&self) -> Result<(), EngineError> {
        let together = self.together(0);
        self.tell_all(|| Command::Preload(Arc::clone(&together)))
    }

    /// Runs the trial, beginning at `start_nanoseconds` of the monotonic clock ([`monotonic_nanoseconds`](super::monotonic_nanoseconds)).
    /// Ends with [`EngineEvent::Finished`].
    pub fn start(&self, start_nanoseconds: u64, attempt: u32) -> Result<(), EngineError> {
        let together = self.together(attempt);
        let watched = Arc::clone(&together);
        self.assembly.begin(start_nanoseconds, attempt, move || watched.remaining.load(Relaxed) == 0);
        self.tell_all(|| Command::Start { start: start_nanoseconds, together: Arc::clone(&together) })
    }

    /// Ends the warm-up at `from_nanoseconds` of the monotonic clock. Without effect unless that instant is in the future and before the
    /// end of the warm-up.
    pub fn measure_from(&self, from_nanoseconds: u64) -> Result<(), EngineError> {
        self.tell_all(|| Command::MeasureFrom(from_nanoseconds))
    }

    /// Stops the load (preload or trial) at once. Measurements are kept; requests in flight stay counted as such.
    pub fn abort(&self) -> Result<(), EngineError> {
        self.tell_all(|| Command::Abort)
    }

    /// Stops any load, drops its measurements, and prepares for another [`Self::start`]. The preload's counts are kept.
    pub fn rearm(&self) -> Result<(), EngineError> {
        self.tell_all(|| Command::Rearm)
    }

    /// Closes all connections after the load has finished. Measurements are kept. Returns when the servers have closed their ends too, or
    /// after half a second. [`Self::connect`] makes the connections again.
    pub async fn disconnect(&self) -> Result<(), EngineError> {
        self.ask_all(|done| Command::Disconnect { done }).await.map(drop)
    }

    /// Replaces the topology, in response to [`EngineEvent::TopologyStale`].
    pub fn update_topology(&self, topology: &Arc<Topology>) -> Result<(), EngineError> {
        self.assembly.follow(topology);
        self.tell_all(|| Command::Topology(Arc::clone(topology)))
    }

    /// Replaces credentials and TLS settings after a Secret was rotated. Existing connections stay; new ones use `access`.
    pub fn update_access(&self, access: Access) -> Result<(), EngineError> {
        let access = Arc::new(access);
        self.tell_all(|| Command::Access(Arc::clone(&access)))
    }

    /// The cumulative snapshot of all workers, with every second.
    pub async fn snapshot(&self, detail: Detail) -> Result<Snapshot, EngineError> {
        self.snapshot_since(detail, 0).await
    }

    /// Like [`Self::snapshot`], with only the seconds from `from` on.
    pub async fn snapshot_since(&self, detail: Detail, from: u32) -> Result<Snapshot, EngineError> {
        let reports: Vec<Box<WorkerReport>> = self.ask_all(|answer| Command::Snapshot { detail, from, answer }).await?;
        let reports = reports.into_iter().map(|report| *report).collect();
        let snapshot = self.assembly.snapshot(reports, detail, from)?;
        Ok(Snapshot { client: self.usage(), ..snapshot })
    }

    /// Usage of the load, if the engine is a client under test.
    fn usage(&self) -> Option<ClientUsage> {
        let plan = self.assembly.plan();
        plan.client.as_ref()?;
        Some(ClientUsage {
            version: concat!("redisbench ", env!("CARGO_PKG_VERSION")).to_owned(),
            connections: self.connections,
            callers: plan.concurrency.unwrap_or(plan.connections.saturating_mul(plan.pipeline)),
            ..self.assembly.meter().usage()?
        })
    }

    fn together(&self, attempt: u32) -> Arc<Together> {
        Arc::new(Together { attempt, remaining: AtomicUsize::new(self.workers.len()), ..Together::default() })
    }

    async fn ask_all<T>(&self, command: impl Fn(oneshot::Sender<T>) -> Command) -> Result<Vec<T>, EngineError> {
        let mut answers = Vec::with_capacity(self.workers.len());
        for worker in &self.workers {
            let (sender, answer) = oneshot::channel();
            if !worker.mailbox.send(command(sender)) {
                return Err(EngineError::Unreachable);
            }
            answers.push(answer);
        }
        let mut all = Vec::with_capacity(answers.len());
        for answer in answers {
            all.push(answer.await.map_err(|_| EngineError::Unreachable)?);
        }
        Ok(all)
    }

    fn tell_all(&self, command: impl Fn() -> Command) -> Result<(), EngineError> {
        // Sends to all workers even if one fails: an abort should reach as many as it can.
        let reached = self.workers.iter().filter(|worker| worker.mailbox.send(command())).count();
        if reached == self.workers.len() { Ok(()) } else { Err(EngineError::Unreachable) }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.mailbox.close();
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A panic was already printed to stderr.
                let _ = thread.join();
            }
        }
    }
}

fn spawn_worker(
    common: Arc<Common>,
    access: Arc<Access>,
    seat: Seat,
    topology: &Topology,
    connections: &[u32],
) -> std::io::Result<WorkerHandle> {
    let waker = Arc::new(Waker::new()?);
    let (mailbox, mail) = Mailbox::new(Arc::clone(&waker));
    let events = common.events.clone();
    let worker = Worker::new(common, access, seat, topology, connections, &waker, mail)?;
    let last_word = LastWord::reserve(events);
    let thread = std::thread::Builder::new().name(format!("worker-{}", seat.worker)).spawn(move || {
        if catch_unwind(AssertUnwindSafe(|| worker.run())).is_err() {
            last_word.say(format!("worker {} panicked, see stderr", seat.worker));
        }
    })?;
    Ok(WorkerHandle { mailbox, thread: Some(thread) })
}

/// A reserved place in the event channel. If a worker ended silently, its load would seem to continue.
enum LastWord {
    Reserved(mpsc::OwnedPermit<EngineEvent>),
    /// The channel is too small to reserve a place.
    Unreserved(mpsc::Sender<EngineEvent>),
}

impl LastWord {
    fn reserve(events: mpsc::Sender<EngineEvent>) -> Self {
        match events.try_reserve_owned() {
            Ok(permit) => Self::Reserved(permit),
            Err(mpsc::error::TrySendError::Full(events) | mpsc::error::TrySendError::Closed(events)) => {
                Self::Unreserved(events)
            }
        }
    }

    fn say(self, message: String) {
        let event = EngineEvent::WorkerFailed { message };
        match self {
            Self::Reserved(permit) => drop(permit.send(event)),
            Self::Unreserved(events) => drop(events.try_send(event)),
        }
    }
}

/// The nodes of a cluster that the shard loads, if not all.
fn own_nodes(plan: &ShardPlan, topology: &Topology, trial: &Workload) -> Result<Option<OwnNodes>, EngineError> {
    let (Some(nodes), Some(slots)) = (plan.nodes_per_shard, &topology.slots) else { return Ok(None) };
    let group = Group::new(plan.shard, plan.shards, nodes, slots);
    let group = group.map_err(|error| EngineError::BadPlan(error.to_string()))?;
    OwnNodes::new(group, trial, plan).map(Some).map_err(EngineError::BadPlan)
}

/// Connections per worker and node. Every worker has at least one connection to every node that is `used`, and none to others. With too few
/// connections, fewer workers are started; if one worker still has too few, connections are added.
fn split(connections: u32, workers: usize, used: &[bool]) -> Vec<Vec<u32>> {
    let nodes = used.iter().filter(|used| **used).count().max(1);
    let most = (connections as usize / nodes).clamp(1, limits::WORKERS);
    let workers = workers.clamp(1, most);
    let cells = (workers * nodes) as u64;
    let connections = u64::from(connections).max(cells);
    let share = |cell: usize| {
        let part = crate::workload::part_of(connections, cell as u64, cells);
        (part.end - part.start) as u32
    };
    let of_worker = |worker: usize| -> Vec<u32> {
        let mut cells = worker * nodes..;
        used.iter().map(|used| if *used { cells.next().map_or(0, share) } else { 0 }).collect()
    };
    (0..workers).map(of_worker).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_worker_is_told_however_full_the_channel_is() {
        let (events, mut told) = mpsc::channel(2);
        let last_word = LastWord::reserve(events.clone());
        events.try_send(EngineEvent::TopologyStale).unwrap();
        assert!(events.try_send(EngineEvent::TopologyStale).is_err());
        last_word.say("worker 0 panicked".into());
        told.try_recv().unwrap();
        assert!(matches!(told.try_recv(), Ok(EngineEvent::WorkerFailed { .. })));
        // An unused reservation is given back.
        drop(LastWord::reserve(events.clone()));
        events.try_send(EngineEvent::TopologyStale).unwrap();
        events.try_send(EngineEvent::TopologyStale).unwrap();
    }

    #[test]
    fn connections_are_split_evenly_and_none_is_lost() {
        let all = |connections, workers, nodes| split(connections, workers, &vec![true; nodes]);
        assert_eq!(all(5, 2, 1), [[2], [3]]);
        assert_eq!(all(1, 8, 1), [[1]]);
        assert_eq!(all(7, 2, 3), [[1, 1, 1], [1, 1, 2]]);
        assert_eq!(all(5, 4, 3), [[1, 2, 2]]);
        assert_eq!(all(2, 4, 3), [[1, 1, 1]]);
        assert_eq!(all(50, 2, 3).iter().flatten().sum::<u32>(), 50);
        assert_eq!(split(5, 2, &[false, true, true, false]), [[0, 1, 1, 0], [0, 1, 2, 0]]);
    }
}

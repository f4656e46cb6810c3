//! Parts of every driver's snapshots besides its workers' reports: their numbers, the machine, and changes of the topology.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use redisbench_wire::Detail;
use redisbench_wire::plan::ShardPlan;
use redisbench_wire::snapshot::{Snapshot, Stage};
use redisbench_wire::topology::TopologyReport;

use super::api::EngineError;
use crate::cluster::Topology;
use crate::record::{Machine, Meta, WorkerReport, merge};
use crate::selfcheck::{Meter, Observer, RunQueue, Threads};
use crate::sys::monotonic_nanoseconds;
use crate::timeline::Timeline;

/// Makes a driver's snapshots.
#[derive(Debug)]
pub struct Assembly {
    plan: ShardPlan,
    host: String,
    sequence: AtomicU64,
    attempt: AtomicU32,
    /// Kernel counters of the machine while the load runs.
    observer: Observer,
    threads: Arc<Threads>,
    meter: Arc<Meter>,
    /// Changes of the topology during the trial.
    timeline: Timeline,
}

impl Assembly {
    pub fn new(plan: ShardPlan, host: String, topology: Arc<Topology>) -> Self {
        Self {
            plan,
            host,
            sequence: AtomicU64::new(0),
            attempt: AtomicU32::new(0),
            observer: Observer::default(),
            threads: Arc::default(),
            meter: Arc::default(),
            timeline: Timeline::new(topology),
        }
    }

    pub(super) fn plan(&self) -> &ShardPlan {
        &self.plan
    }

    /// The threads that send requests.
    pub(super) fn threads(&self) -> &Arc<Threads> {
        &self.threads
    }

    /// Measures what the load uses, from [`Self::begin`] on. Who counts the last outcome ends it.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Counts the calling thread among those that send requests. Returns its statistics.
    pub fn add_this_thread(&self) -> RunQueue {
        self.threads.add_this();
        RunQueue::of_this_thread().elsewhere()
    }

    /// An attempt begins at `start_nanoseconds`. Observes the machine until `is_over`.
    pub fn begin(&self, start_nanoseconds: u64, attempt: u32, is_over: impl Fn() -> bool + Send + 'static) {
        self.attempt.store(attempt, Relaxed);
        self.timeline.begin();
        self.meter.begin();
        self.observer.begin(start_nanoseconds, &self.threads, is_over);
    }

    /// The latest attempt.
    pub fn attempt(&self) -> u32 {
        self.attempt.load(Relaxed)
    }

    /// Replaces the topology.
    pub fn follow(&self, topology: &Arc<Topology>) {
        self.timeline.update(topology, monotonic_nanoseconds());
    }

    /// The snapshot of all workers, whose reports have the seconds from `from` on.
    ///
    /// # Errors
    /// Fails if a histogram cannot be encoded.
    pub fn snapshot(&self, reports: Vec<WorkerReport>, detail: Detail, from: u32) -> Result<Snapshot, EngineError> {
        let meta = Meta {
            sequence: self.sequence.fetch_add(1, Relaxed) + 1,
            shard: self.plan.shard,
            attempt: self.attempt.load(Relaxed),
            detail,
            from,
        };
        let over = reports.iter().all(|report| report.stage == Stage::Done);
        let mut seen = self.observer.look(over);
        let full = detail == Detail::Full;
        seen.environment = seen.environment.filter(|_| full);
        let strain = if full { self.observer.strain() } else { None };
        let machine = Machine { host: self.host.clone(), strain, seen };
        let operations = self.plan.operation_names().into_iter().filter(|_| self.plan.breakdown.operation);
        let names: Vec<String> = operations.map(str::to_owned).collect();
        let mut snapshot = merge(reports, meta, machine, &names).map_err(EngineError::Encode)?;
        let TopologyReport { outages, outages_left_out, .. } = snapshot.topology;
        snapshot.topology = TopologyReport { outages, outages_left_out, ..self.timeline.report() };
        Ok(snapshot)
    }
}

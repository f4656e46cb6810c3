//! A driver without sockets, in the place of the engine: it reports a computed load, and notes the truth in the [`Ledger`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::control::driver::{Answer, Driver};
use redisbench_loadgen::engine::{Access, EngineConfig, EngineError, EngineEvent, monotonic_nanoseconds};
use redisbench_wire::Detail;
use redisbench_wire::plan::ShardPlan;
use tokio::sync::{Notify, mpsc};

use crate::load::Load;

/// The truth about a run, by the machine's monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// The time at which the last shard was ready.
    pub ready_at: u64,
    /// The start instants, as the shards accepted them.
    pub starts: BTreeMap<u32, u64>,
    /// The end of each shard's load.
    pub ends: BTreeMap<u32, u64>,
    /// The time at which the load of each shard was first stopped, by a call or by the end of its container.
    pub aborts: BTreeMap<u32, u64>,
    /// Measured requests of each shard whose load has ended.
    pub measured: BTreeMap<u32, u64>,
    /// Measured requests in the last two snapshots of each shard.
    pub reported: BTreeMap<u32, [u64; 2]>,
    /// Shards whose final snapshot was taken.
    pub collected: BTreeSet<u32>,
    /// The longest time without a snapshot, of any shard during its load.
    pub oldest_snapshot: u64,
    /// Number of snapshots taken.
    pub snapshots: u64,
}

/// The requests and snapshots of the shards of this process, by run.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<BTreeMap<String, Truth>>);

static LEDGER: LazyLock<Ledger> = LazyLock::new(Ledger::default);

impl Ledger {
    pub fn of(run: &str) -> Truth {
        Self::look(run, Truth::clone)
    }

    /// Reads a part of the truth without a copy of the rest.
    pub fn look<T>(run: &str, look: impl FnOnce(&Truth) -> T) -> T {
        let runs = LEDGER.lock();
        look(runs.get(run).unwrap_or(&Truth::default()))
    }

    fn note(plan: &ShardPlan, note: impl FnOnce(&mut Truth)) {
        let mut runs = LEDGER.lock();
        if !runs.contains_key(&*plan.run) {
            runs.insert(plan.run.to_string(), Truth::default());
        }
        if let Some(truth) = runs.get_mut(&*plan.run) {
            note(truth);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Truth>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub struct Computed {
    plan: ShardPlan,
    host: String,
    events: mpsc::Sender<EngineEvent>,
    sequence: AtomicU64,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    load: Mutex<Option<Load>>,
    /// The load has a new end.
    changed: Notify,
    snapshot_at: AtomicU64,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Option<Load>> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a driver for a shard of the farm.
///
/// # Errors
/// Never.
#[expect(clippy::unnecessary_wraps, reason = "the signature of every driver")]
pub fn spawn(config: EngineConfig, events: mpsc::Sender<EngineEvent>) -> Result<Arc<dyn Driver>, EngineError> {
    let EngineConfig { plan, host, .. } = config;
    Ok(Arc::new(Computed { plan, host, events, sequence: AtomicU64::new(0), state: Arc::default() }))
}

impl Computed {
    fn tell(&self, event: EngineEvent) -> Result<(), EngineError> {
        self.events.try_send(event).map_err(|_| EngineError::Unreachable)
    }

    fn change(&self, change: impl FnOnce(&mut Load)) {
        if let Some(load) = self.state.lock().as_mut() {
            change(load);
        }
        self.state.changed.notify_one();
    }
}

/// Ends the load of `attempt` at its time, which may change.
async fn end(state: Arc<State>, attempt: u32, events: mpsc::Sender<EngineEvent>) {
    loop {
        let now = monotonic_nanoseconds();
        let until = {
            let mut load = state.lock();
            let Some(load) = load.as_mut().filter(|load| load.attempt == attempt) else { return };
            let until = load.end();
            load.ended = now >= until;
            until
        };
        if now >= until {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_nanos(until - now)) => {}
            () = state.changed.notified() => {}
        }
    }
    let Some(load) = state.lock().clone() else { return };
    Ledger::note(&load.plan, |truth| {
        truth.ends.insert(load.plan.shard, load.end());
        truth.measured.insert(load.plan.shard, load.total(load.end()).succeeded);
    });
    // Sending fails if the shard is gone.
    let _ = events.send(EngineEvent::Finished { attempt, aborted: load.stopped_at.is_some() }).await;
}

impl Driver for Computed {
    fn connections(&self) -> u32 {
        self.plan.connections
    }

    fn connect(&self) -> Result<(), EngineError> {
        let wanted = self.plan.connections;
        let now = monotonic_nanoseconds();
        Ledger::note(&self.plan, |truth| truth.ready_at = truth.ready_at.max(now));
        self.tell(EngineEvent::Connected { ready: wanted, wanted })
    }

    fn preload(&self) -> Result<(), EngineError> {
        self.tell(EngineEvent::Preloaded { keys: 0 })
    }

    fn start(&self, start_nanoseconds: u64, attempt: u32) -> Result<(), EngineError> {
        Ledger::note(&self.plan, |truth| {
            truth.starts.insert(self.plan.shard, start_nanoseconds);
            truth.aborts.remove(&self.plan.shard);
        });
        self.state.snapshot_at.store(start_nanoseconds, Ordering::Relaxed);
        *self.state.lock() = Some(Load::new(self.plan.clone(), attempt, start_nanoseconds));
        tokio::spawn(end(self.state.clone(), attempt, self.events.clone()));
        Ok(())
    }

    fn measure_from(&self, from_nanoseconds: u64) -> Result<(), EngineError> {
        self.change(|load| load.warmup = from_nanoseconds.saturating_sub(load.start));
        Ok(())
    }

    fn abort(&self) -> Result<(), EngineError> {
        let now = monotonic_nanoseconds();
        Ledger::note(&self.plan, |truth| {
            truth.aborts.entry(self.plan.shard).or_insert(now);
        });
        self.change(|load| _ = load.stopped_at.get_or_insert(now));
        Ok(())
    }

    fn rearm(&self) -> Result<(), EngineError> {
        *self.state.lock() = None;
        self.state.changed.notify_one();
        Ok(())
    }

    fn disconnect(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn update_topology(&self, _: &Arc<Topology>) -> Result<(), EngineError> {
        Ok(())
    }

    fn update_access(&self, _: Access) -> Result<(), EngineError> {
        Ok(())
    }

    fn snapshot_since(&self, detail: Detail, from: u32) -> Answer<'_, redisbench_wire::snapshot::Snapshot> {
        let now = monotonic_nanoseconds();
        let load = self.state.lock().clone();
        Box::pin(async move {
            let load = load.ok_or(EngineError::Unreachable)?;
            // The last snapshot of a load is of its end.
            let until = now.min(load.end());
            let before = self.state.snapshot_at.fetch_max(until, Ordering::Relaxed);
            let measured = load.total(now).succeeded;
            Ledger::note(&self.plan, |truth| {
                truth.oldest_snapshot = truth.oldest_snapshot.max(until.saturating_sub(before));
                truth.snapshots += 1;
                let [_, last] = truth.reported.get(&self.plan.shard).copied().unwrap_or_default();
                truth.reported.insert(self.plan.shard, [last, measured]);
                if load.ended && detail == Detail::Full {
                    truth.collected.insert(self.plan.shard);
                }
            });
            let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(load.snapshot(now, sequence, (detail, from), &self.host))
        })
    }
}

//! The loop of a shard: receives calls and events from target, driver and clock, passes them to the state machine, and performs the
//! resulting actions. It makes no decisions of its own.

mod answers;
mod background;
mod calls;

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redisbench_wire::plan::{ShardPlan, Topology as Kind};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{CleanupState, Detail, FailureReason, Probe, ShardFailure, ShardPhase, ShardState, limits};
use serde_json::json;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use self::background::Background;
pub use self::calls::{ReplySender, ShardAnswer, ShardCall, Sources};
use super::driver::{Driver, Spawn};
use super::exit::Exit;
use super::identity::Identity;
use super::spans::Exporter;
use super::trial::{Action, Event, ProcessLimits, Trial};
use super::{data, descriptors, failure, probe};
use crate::clock::timer_at;
use crate::cluster::Topology;
use crate::engine::{Access, EngineConfig, EngineError, EngineEvent, monotonic_nanoseconds};
use crate::target::{self, Again, ClusterWatch, Finding, FoundTarget, Mounts, ServerWatch};

/// Progress events of a handful of workers plus the last event of each. The engine drops progress beyond this.
const EVENTS: usize = 256 + limits::WORKERS;
/// Equal maps in a row before a cluster counts as settled. Slots move with pauses in between.
const SETTLED: u32 = 5;
/// Timeout for the last counters before the process exits.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Shortest time between two reads of the Secrets.
const RENEWAL: Duration = Duration::from_secs(1);

/// Interval of checks whether a snapshot still uses a driver that ends.
const SHARED_DRIVER: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct Settings {
    pub identity: Identity,
    /// Directories of the target's secrets.
    pub mounts: Mounts,
    /// Directory of `values`, the file that values are read from.
    pub data: PathBuf,
    /// The most worker threads.
    pub workers: usize,
    pub limits: ProcessLimits,
    /// Starts the engine, or the client that a plan names.
    pub spawn: Spawn,
}

#[derive(Debug)]
pub struct Shard {
    settings: Settings,
    trial: Trial,
    driver: Option<Arc<dyn Driver>>,
    /// Dropped drivers with connections still open, and the task that queries the servers.
    ending: TaskTracker,
    driver_events: Option<mpsc::Receiver<EngineEvent>>,
    /// The driver's configuration, with the current map and access.
    config: Option<EngineConfig>,
    probing: Option<Background<Option<Probe>>>,
    /// The look at the target: the first one, or another because the map is stale.
    search: Option<Search>,
    /// Number of looks in a row that must still show the same map before it counts as settled.
    unsettled: u32,
    /// Where to look at the target again.
    cluster_watch: Arc<Mutex<ClusterWatch>>,
    cleanup: Option<Background<CleanupState>>,
    /// Reports a failover that breaks no connection.
    sentinels: Option<Background<()>>,
    /// The last re-read of the Secrets after a connection broke or failed, and when it began.
    renewal: Option<(Instant, Background<Access>)>,
    /// True if connections set a client name.
    named: bool,
    /// Queries the servers' statistics while a load runs.
    servers: Option<ServerWatch>,
    /// Takes traced requests to their collector.
    exporter: Option<Exporter>,
    /// Set before a load is stopped because the process was told to terminate. Snapshots look at it once they are taken.
    terminated: CancellationToken,
    /// The last phase in the log.
    logged: ShardPhase,
    exit: Option<Exit>,
}

/// A running look at the target.
#[derive(Debug)]
struct Search {
    plan: ShardPlan,
    /// `None` for the first look.
    why: Option<Again>,
    findings: Background<Finding>,
}

impl Shard {
    pub fn new(settings: Settings) -> Self {
        let Identity { run, index, .. } = &settings.identity;
        let trial = Trial::new(run.as_str(), *index, monotonic_nanoseconds(), settings.limits);
        let ending = TaskTracker::new();
        // A closed tracker can be waited for, and still accepts new tasks.
        ending.close();
        Self {
            settings,
            trial,
            driver: None,
            ending,
            driver_events: None,
            config: None,
            probing: None,
            search: None,
            unsettled: 0,
            cluster_watch: Arc::default(),
            cleanup: None,
            sentinels: None,
            renewal: None,
            named: false,
            servers: None,
            exporter: None,
            terminated: CancellationToken::new(),
            logged: ShardPhase::Idle,
            exit: None,
        }
    }

    /// Runs until the shard ends. `terminated` resolves on a signal to terminate.
    pub async fn run(mut self, mut calls: mpsc::Receiver<ShardCall>, terminated: impl Future<Output = ()>) -> Exit {
        let mut terminated = std::pin::pin!(terminated);
        loop {
            self.log_phase();
            if let Some(exit) = self.exit.take() {
                self.last_word(&exit).await;
                return exit;
            }
            let deadline = self.trial.deadline();
            tokio::select! {
                () = &mut terminated, if !self.trial.is_leaving() => {
                    info!("received SIGTERM");
                    self.observe(Event::Terminate);
                }
                Some(call) = calls.recv() => self.answer(call),
                Some(event) = when(self.driver_events.as_mut().map(mpsc::Receiver::recv)) => self.driver_event(event),
                Some(finding) = when(self.search.as_mut().map(|look| look.findings.next())) => self.finding(finding),
                Some(state) = when(self.cleanup.as_mut().map(Background::next)) => {
                    if state.done || state.failure.is_some() {
                        info!(removed = state.removed_keys, failure = state.failure, "the keys were deleted");
                        self.cleanup = None;
                    }
                    self.observe(Event::Cleanup(state));
                }
                Some(probe) = when(self.probing.as_mut().map(Background::next)) => {
                    self.probing = None;
                    self.observe(Event::Probed(probe));
                }
                Some(()) = when(self.sentinels.as_mut().map(Background::next)) => self.search_again(Again::Moved),
                Some(access) = when(self.renewal.as_mut().map(|(_, renewal)| renewal.next())) => self.renewed(access),
                () = when(deadline.map(|deadline| sleep_until(timer_at(deadline)))) => {
                    let actions = self.trial.tick(monotonic_nanoseconds());
                    if actions.contains(&Action::Stop) {
                        warn!("the load stops: no call came for safety.unattended");
                    }
                    self.perform(actions);
                }
            }
        }
    }

    fn driver_event(&mut self, event: EngineEvent) {
        let event = match event {
            EngineEvent::Connected { ready, wanted } => Event::Connected { ready, wanted },
            EngineEvent::ConnectFailed { reason, message } => {
                self.renew();
                // A replica may have replaced the failed node. No other event reports that.
                self.search_again(Again::NodeGone);
                let Some(plan) = self.trial.plan_in_use() else { return };
                Event::Obstacle(failure::of_connecting(reason, &message, &plan.target))
            }
            EngineEvent::ConnectionLost { message } => {
                info!(message, "lost a connection");
                self.renew();
                match self.trial.plan_in_use().map(|plan| plan.target.topology) {
                    // A primary that becomes a replica closes all its connections, but continues to serve reads.
                    Some(Kind::Sentinel) => self.search_again(Again::Moved),
                    // No other event reports that a name has other addresses while the known ones still accept connections.
                    Some(Kind::Pool) => self.search_again(Again::NodeGone),
                    _ => {}
                }
                return;
            }
            EngineEvent::PreloadProgress { commands } => Event::Preloading { commands },
            EngineEvent::Preloaded { .. } => Event::Preloaded,
            EngineEvent::PreloadFailed { message } => {
                let target = self.target_name();
                let message = format!("target {target}: failed to preload its keys: {message}");
                Event::Failed(target::failure(FailureReason::PreloadFailed, &message))
            }
            EngineEvent::TopologyStale => return self.search_again(Again::Moved),
            EngineEvent::Unanswered => return self.search_again(Again::Unanswered),
            EngineEvent::Traced(traced) => {
                if let Some(exporter) = &self.exporter {
                    exporter.send(traced);
                }
                return;
            }
            EngineEvent::Finished { attempt, .. } => {
                if let Some(servers) = &self.servers {
                    servers.load_is_over();
                }
                Event::LoadEnded { attempt }
            }
            EngineEvent::WorkerFailed { message } => Event::Failed(target::failure(FailureReason::Internal, &message)),
        };
        self.observe(event);
    }

    fn target_name(&self) -> String {
        self.trial.plan_in_use().map_or_else(String::new, |plan| plan.target.name.clone())
    }

    fn finding(&mut self, finding: Finding) {
        match finding {
            Finding::Waiting(reason) => self.observe(Event::Waiting(reason)),
            Finding::Obstacle(failure) => self.observe(Event::Obstacle(failure)),
            Finding::Failed(failure) => self.observe(Event::Failed(failure)),
            Finding::Found(found) => self.found(*found),
            Finding::Map(map) => {
                let why = self.search.take().and_then(|search| search.why);
                self.moved(map, why);
            }
        }
    }

    /// The target matches the plan: connects to it, or passes the new map to a driver that is already connected.
    fn found(&mut self, found: FoundTarget) {
        let Some((plan, why)) = self.search.take().map(|search| (search.plan.clone(), search.why)) else { return };
        if self.driver.is_some() {
            return self.moved(found.topology, why);
        }
        let topology = Arc::new(found.topology);
        info!(nodes = topology.nodes.len(), "the target matches the plan");
        if plan.target.topology == Kind::Sentinel {
            let known = topology.nodes.first().map(|node| node.label.clone()).unwrap_or_default();
            let watch = |sender| target::watch(plan.clone(), self.settings.mounts.clone(), known, sender);
            self.sentinels = Some(Background::begin(tokio::spawn, watch));
        }
        self.named = found.named;
        let (sender, events) = mpsc::channel(EVENTS);
        let config = EngineConfig {
            plan,
            workers: self.settings.workers,
            topology: topology.clone(),
            reads: found.reads,
            access: found.access,
            may_evict: found.may_evict,
            host: self.settings.identity.host.clone(),
        };
        self.config = Some(config.clone());
        match self.settings.spawn.driver(config, sender).and_then(|driver| driver.connect().map(|()| driver)) {
            Ok(driver) => {
                self.driver = Some(driver);
                self.driver_events = Some(events);
                self.observe(Event::TargetReady);
                self.await_members(&topology);
            }
            Err(error) => self.observe(Event::Failed(failure::of_engine(&error))),
        }
    }

    /// Polls while a node is down, because no event reports its return.
    fn await_members(&mut self, topology: &Topology) {
        if topology.members.iter().any(|member| !member.healthy) {
            self.search_again(Again::NodeGone);
        }
    }

    /// Passes the new map to the driver, which is already connected.
    fn moved(&mut self, topology: Topology, why: Option<Again>) {
        let topology = Arc::new(topology);
        let Some((driver, config)) = self.driver.as_ref().zip(self.config.as_mut()) else { return };
        let before = std::mem::replace(&mut config.topology, topology.clone());
        let done = driver.update_topology(&topology);
        if let Some(servers) = &self.servers {
            servers.update_topology(topology.clone());
        }
        if before != topology {
            info!(nodes = topology.nodes.len(), "the target's map has changed");
            self.unsettled = if topology.slots.is_some() { SETTLED } else { 1 };
        } else if why == Some(Again::Settling) {
            self.unsettled = self.unsettled.saturating_sub(1);
        }
        // Slots move one by one, and a slot without requests causes no redirect.
        if self.unsettled > 0 {
            self.search_again(Again::Settling);
        } else {
            self.await_members(&topology);
        }
        if let Err(error) = done {
            self.observe(Event::Failed(failure::of_engine(&error)));
        }
    }

    fn observe(&mut self, event: Event) {
        let actions = self.trial.observe(monotonic_nanoseconds(), event);
        self.perform(actions);
    }

    fn log_phase(&mut self) {
        let ShardState { phase, failure, .. } = self.trial.state();
        if phase == std::mem::replace(&mut self.logged, phase) {
            return;
        }
        if let Some(ShardFailure { reason, message }) = failure {
            warn!(?reason, message, "the trial failed");
        } else {
            info!(?phase, "the phase changed");
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            if let Err(error) = self.act(action) {
                return self.observe(Event::Failed(failure::of_engine(&error)));
            }
        }
    }

    fn act(&mut self, action: Action) -> Result<(), EngineError> {
        match action {
            Action::Prepare(plan) => {
                self.discard();
                self.prepare(plan);
            }
            Action::Preload => self.with_driver(|driver| driver.preload())?,
            Action::Start(start) => {
                self.probing = None;
                self.watch_servers(start.start_nanoseconds);
                self.begin_exporter(start.attempt);
                self.with_driver(|driver| driver.start(start.start_nanoseconds, start.attempt))?;
            }
            Action::Measure(from) => {
                if let Some(servers) = &self.servers {
                    servers.measure_from(from);
                }
                self.with_driver(|driver| driver.measure_from(from))?;
            }
            Action::Stop => self.with_driver(|driver| driver.abort())?,
            Action::Leave => {
                self.terminated.cancel();
                self.with_driver(|driver| driver.abort())?;
            }
            Action::Disconnect => {
                if let Some(driver) = self.driver.clone() {
                    // Fails only if the driver has ended, and its connections with it.
                    self.ending.spawn(async move { drop(driver.disconnect().await) });
                }
            }
            Action::Probe(instant) => self.begin_probe(instant),
            Action::Rearm => {
                self.probing = None;
                // A probe closes the trial's connections.
                self.with_driver(|driver| driver.rearm().and_then(|()| driver.connect()))?;
            }
            Action::Cleanup(plan) => {
                self.probing = None;
                // With the keys that were read at first: their file may have changed since.
                let plan = match &self.config {
                    Some(config) if plan.workload.key_file.is_some() => config.plan.clone(),
                    _ => plan,
                };
                let mounts = self.settings.mounts.clone();
                let deletion = |sender| target::clean_up(plan, mounts, sender);
                self.cleanup = Some(Background::begin(tokio::spawn, deletion));
            }
            Action::Discard => self.discard(),
            Action::Exit(exit) => self.exit = Some(exit),
        }
        Ok(())
    }

    fn begin_probe(&mut self, instant: u64) {
        let Some((driver, config)) = self.driver.clone().zip(self.config.clone()) else {
            return self.observe(Event::Probed(None));
        };
        let spawn = self.settings.spawn.clone();
        let probing = |sender: mpsc::Sender<Option<Probe>>| async move {
            // Sending fails if another trial has begun, which needs no probe.
            let _ = sender.send(probe::run(driver, &spawn, config, instant).await).await;
        };
        // Tracked, so that a drain also waits for the probe's connections.
        self.probing = Some(Background::begin(|work| self.ending.spawn(work), probing));
    }

    /// All shards are armed and none has started, so counts up to now do not belong to the load.
    fn watch_servers(&mut self, start: u64) {
        self.servers = None;
        if let (Some(plan), Some(config)) = (self.trial.plan_in_use(), &self.config)
            && plan.measurement.server_stats
            && plan.shard == 0
        {
            let mounts = self.settings.mounts.clone();
            // With what was read from files.
            let plan = config.plan.clone();
            let (watch, task) = ServerWatch::begin(plan, mounts, config.topology.clone(), &config.reads, start);
            self.servers = Some(watch);
            // Tracked, so that a drain also waits for these connections.
            self.ending.spawn(task);
        }
    }

    fn begin_exporter(&mut self, attempt: u32) {
        let exporter = self.config.as_ref().and_then(|config| Exporter::begin(&config.plan, attempt));
        self.exporter = exporter.map(|(exporter, task)| {
            // Tracked, so that a drain also waits for the last batch.
            self.ending.spawn(task);
            exporter
        });
    }

    fn with_driver(&self, command: impl FnOnce(&dyn Driver) -> Result<(), EngineError>) -> Result<(), EngineError> {
        self.driver.as_ref().map_or(Err(EngineError::Unreachable), |driver| command(&**driver))
    }

    fn prepare(&mut self, plan: ShardPlan) {
        info!(trial = plan.trial, target = plan.target.name, connections = plan.connections, "preparing");
        if let Err(message) = descriptors::raise_limit(plan.connections) {
            return self.observe(Event::Failed(ShardFailure { reason: FailureReason::Resources, message }));
        }
        let plan = match data::with_files(plan, &self.settings.data) {
            Ok(plan) => plan,
            Err(message) => return self.observe(Event::Failed(target::failure(FailureReason::BadPlan, &message))),
        };
        let mounts = self.settings.mounts.clone();
        let findings = Background::begin(tokio::spawn, |sender| target::search(plan.clone(), mounts, sender));
        self.search = Some(Search { plan, why: None, findings });
    }

    /// One look at a time: a running look is replaced only by a more urgent one.
    fn search_again(&mut self, why: Again) {
        let under_way = self.search.as_ref().is_some_and(|search| search.why.is_none_or(|other| other >= why));
        if under_way || !self.trial.wants_target() {
            return;
        }
        if let (Some(plan), Some(config)) = (self.trial.plan_in_use(), &self.config)
            && (target::may_move(&plan.target) || !plan.workload.options.scripts.is_empty())
        {
            let (mounts, cluster_watch) = (self.settings.mounts.clone(), self.cluster_watch.clone());
            let plan = config.plan.clone();
            let known = config.topology.clone();
            let look = |sender| target::search_again(plan.clone(), mounts, cluster_watch, known, why, sender);
            self.search = Some(Search { findings: Background::begin(tokio::spawn, look), plan, why: Some(why) });
        }
    }

    /// Re-reads the Secrets, so that new connections use the current credentials. A failed connection is retried and triggers this again.
    fn renew(&mut self) {
        let recent = self.renewal.as_ref().is_some_and(|(since, _)| since.elapsed() < RENEWAL);
        if let (Some(plan), Some(_), false) = (self.trial.plan_in_use(), &self.driver, recent) {
            let (mounts, named) = (self.settings.mounts.clone(), self.named);
            let renewal = |sender| target::renew(plan, mounts, named, sender);
            self.renewal = Some((Instant::now(), Background::begin(tokio::spawn, renewal)));
        }
    }

    fn renewed(&mut self, access: Access) {
        if let Some(config) = &mut self.config {
            config.access.clone_from(&access);
        }
        if let Some(driver) = &self.driver
            && let Err(error) = driver.update_access(access)
        {
            self.observe(Event::Failed(failure::of_engine(&error)));
        }
    }

    fn discard(&mut self) {
        self.search = None;
        self.renewal = None;
        self.cleanup = None;
        self.sentinels = None;
        self.servers = None;
        self.exporter = None;
        self.cluster_watch = Arc::default();
        self.driver_events = None;
        (self.config, self.probing) = (None, None);
        if let Some(driver) = self.driver.take() {
            self.ending.spawn(end(driver));
        }
    }

    /// Ends the load, and logs the counters that were not collected.
    async fn last_word(&mut self, exit: &Exit) {
        info!(reason = ?exit, code = exit.code(), "the shard exits");
        if let Some(driver) = &self.driver
            && *exit != Exit::Released
            && !self.trial.is_collected()
        {
            if let Err(error) = driver.abort() {
                warn!(error = %error, "failed to stop the load");
            }
            match timeout(LAST_WORD, driver.snapshot_since(Detail::Full, 0)).await {
                Ok(Ok(snapshot)) => warn!(counters = counters(&snapshot), "the result was not collected"),
                Ok(Err(error)) => warn!(error = %error, "failed to read the counters"),
                Err(_) => warn!("timed out reading the counters"),
            }
        }
        let has_traces = self.exporter.is_some();
        self.discard();
        if has_traces {
            // The last batches: the exporter bounds its own time.
            let _ = timeout(LAST_WORD, self.ending.wait()).await;
        }
    }
}

/// Closes the driver's connections and joins its threads, which takes some milliseconds, on a blocking thread. Waits until no snapshot uses
/// the driver, so that its connections are closed when this returns.
async fn end(driver: Arc<dyn Driver>) {
    // The shard has given it up, so the number of owners only falls.
    while Arc::strong_count(&driver) > 1 {
        sleep(SHARED_DRIVER).await;
    }
    // Not left to the drop, because a client in a program of its own stays for the next trial only if this one takes its leave. Fails only if
    // the driver has ended.
    let _ = driver.disconnect().await;
    // Fails only by a panic, which the log shows.
    let _ = tokio::task::spawn_blocking(move || drop(driver)).await;
}

/// A trial's counters as one line of JSON, for a result that was never collected.
fn counters(snapshot: &Snapshot) -> String {
    let Snapshot { shard, attempt, stage, window, total, warmup, preloaded_keys, errors, .. } = snapshot;
    let counters = json!({
        "shard": shard, "attempt": attempt, "stage": stage, "window": window, "total": total, "warmup": warmup,
        "preloadedKeys": preloaded_keys, "errors": errors,
    });
    counters.to_string()
}

/// The output of a future, which never comes without one.
async fn when<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

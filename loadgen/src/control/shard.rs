//! The driver: hears calls, the target, the engine and the clock, asks the state machine what follows, and does it.
//! Decides nothing itself.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::{ShardPlan, Topology as Kind};
use redisbench_wire::snapshot::Probe;
use redisbench_wire::{
    AbortRequest, AcceptedStart, CleanupState, Detail, EpochRequest, FailureReason, MeasureRequest, PlanRequest,
    Refusal, RefusalCode, ShardFailure, ShardPhase, ShardState, StartRequest, limits,
};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::clock::timer_at;
use super::exit::Exit;
use super::identity::Identity;
use super::trial::{Action, Event, Trial, refusal};
use super::{descriptors, failure, probe, report};
use crate::cluster::Topology;
use crate::engine::{Engine, EngineConfig, EngineError, EngineEvent, monotonic_nanoseconds};
use crate::target::{self, Again, Finding, Found, Lookout, Mounts, ServerView, ServerWatch};

/// Progress of a handful of workers, of which the engine drops what is more, and the last word of each.
const EVENTS: usize = 256 + limits::WORKERS;
/// One look is told before the next begins.
const FINDINGS: usize = 4;
/// Looks at a cluster that show the same map before it is at rest: slots move with pauses in between.
const SETTLED: u32 = 5;
/// For the last counters to come in before the process ends.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Between two looks whether an engine is still asked for a snapshot.
const SHARED_ENGINE: Duration = Duration::from_millis(5);

/// An answer and the trial that it speaks of.
#[derive(Debug)]
pub struct Answered<T> {
    /// The trial that was asked for, else the present one.
    pub trial: Option<u32>,
    /// The answer itself.
    pub body: T,
}

/// Where the answer to a call goes.
pub type Reply<T> = oneshot::Sender<Answered<Result<T, Refusal>>>;

/// Who knows what a snapshot tells.
#[derive(Debug)]
pub struct Sources {
    /// What was measured.
    pub engine: Arc<Engine>,
    /// What the target's servers said, if they are asked.
    pub servers: Option<ServerView>,
    /// The load is over, and what comes after it is not.
    pub probing: bool,
    /// What came of that.
    pub probe: Option<Probe>,
}

/// A call of a conductor that presented the credential.
#[derive(Debug)]
pub enum Call {
    /// `GET /v1/state`.
    State(Reply<ShardState>),
    /// `PUT /v1/trials/{t}`.
    Plan(u32, Box<PlanRequest>, Reply<ShardState>),
    /// `PUT /v1/trials/{t}/start`.
    Start(u32, StartRequest, Reply<AcceptedStart>),
    /// `PUT /v1/trials/{t}/measure`.
    Measure(u32, MeasureRequest, Reply<ShardState>),
    /// `PUT /v1/trials/{t}/abort`.
    Abort(u32, AbortRequest, Reply<ShardState>),
    /// `GET /v1/trials/{t}/snapshot`: whom to ask, so that encoding holds up no other call.
    Snapshot(u32, Detail, Reply<Sources>),
    /// `PUT /v1/cleanup`.
    Cleanup(EpochRequest, Reply<CleanupState>),
    /// `PUT /v1/drain`.
    Drain(EpochRequest, Reply<ShardState>),
    /// `PUT /v1/release`.
    Release(EpochRequest, Reply<ShardState>),
}

/// What the driver is given.
#[derive(Debug)]
pub struct Settings {
    /// Who this shard is.
    pub identity: Identity,
    /// Where the target's secrets are mounted.
    pub mounts: Mounts,
    /// The most worker threads.
    pub workers: usize,
}

/// The driver's state.
#[derive(Debug)]
pub struct Shard {
    settings: Settings,
    trial: Trial,
    engine: Option<Arc<Engine>>,
    /// Engines that are dropped and have not closed their connections yet, and who asks the servers.
    engines: TaskTracker,
    engine_events: Option<mpsc::Receiver<EngineEvent>>,
    /// How the engine was started.
    config: Option<EngineConfig>,
    /// The perturbation under way, after which the trial is over.
    probing: Option<Probing>,
    /// What came of it.
    probe: Option<Probe>,
    /// Looks at the target until it is found to be what the plan says, or again when its map is stale.
    search: Option<Search>,
    /// So many looks in a row must show the same map, before it is taken for the last one.
    unsettled: u32,
    /// Where it is looked at again.
    lookout: Arc<Mutex<Lookout>>,
    cleanup: Option<Cleanup>,
    /// Hears of a failover that breaks no connection.
    watch: Option<Watch>,
    topology: Option<Arc<Topology>>,
    /// Of each operation, whether it only reads.
    reads: Vec<bool>,
    /// Asks the servers of themselves while a load runs.
    servers: Option<ServerWatch>,
    /// The phase that the log told last.
    logged: ShardPhase,
    exit: Option<Exit>,
}

/// A look at the target under way. Dropping it ends it.
#[derive(Debug)]
struct Search {
    plan: Arc<ShardPlan>,
    /// None: it is the first one.
    why: Option<Again>,
    findings: mpsc::Receiver<Finding>,
    task: JoinHandle<()>,
}

impl Search {
    fn begin<F>(plan: &Arc<ShardPlan>, why: Option<Again>, look: impl FnOnce(mpsc::Sender<Finding>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, findings) = mpsc::channel(FINDINGS);
        Self { plan: plan.clone(), why, findings, task: tokio::spawn(look(sender)) }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The deletion of keys under way. Dropping it ends it.
#[derive(Debug)]
struct Cleanup {
    progress: mpsc::Receiver<CleanupState>,
    task: JoinHandle<()>,
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A probe under way, after an attempt's load. Dropping it ends it.
#[derive(Debug)]
struct Probing {
    attempt: u32,
    result: mpsc::Receiver<Option<Probe>>,
    task: JoinHandle<()>,
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The watch of a target's sentinels. Dropping it ends it.
#[derive(Debug)]
struct Watch {
    moved: mpsc::Receiver<()>,
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shard {
    /// A shard without a plan.
    pub fn new(settings: Settings) -> Self {
        let trial = Trial::new(&settings.identity.run, settings.identity.index, monotonic_nanoseconds());
        let engines = TaskTracker::new();
        // Closed, it can be waited for; engines are added all the same.
        engines.close();
        Self {
            settings,
            trial,
            engine: None,
            engines,
            engine_events: None,
            config: None,
            probing: None,
            probe: None,
            search: None,
            unsettled: 0,
            lookout: Arc::default(),
            cleanup: None,
            watch: None,
            topology: None,
            reads: Vec::new(),
            servers: None,
            logged: ShardPhase::Idle,
            exit: None,
        }
    }

    /// Runs until the shard has to end. `terminated` resolves when the process is asked to.
    pub async fn run(mut self, mut calls: mpsc::Receiver<Call>, terminated: impl Future<Output = ()>) -> Exit {
        let mut terminated = std::pin::pin!(terminated);
        loop {
            self.log_phase();
            if let Some(exit) = self.exit.take() {
                self.last_word(&exit).await;
                return exit;
            }
            let deadline = self.trial.deadline();
            tokio::select! {
                () = &mut terminated => self.observe(Event::Terminate),
                Some(call) = calls.recv() => self.answer(call),
                Some(event) = next(self.engine_events.as_mut()) => self.engine_event(event),
                Some(finding) = next(self.search.as_mut().map(|search| &mut search.findings)) => self.finding(finding),
                Some(state) = next(self.cleanup.as_mut().map(|cleanup| &mut cleanup.progress)) => {
                    if state.done || state.failure.is_some() {
                        info!(removed = state.removed_keys, failure = state.failure, "the keys were deleted");
                        self.cleanup = None;
                    }
                    self.observe(Event::Cleanup(state));
                }
                Some(probe) = next(self.probing.as_mut().map(|probing| &mut probing.result)) => self.probed(probe),
                Some(()) = next(self.watch.as_mut().map(|watch| &mut watch.moved)) => self.search_again(Again::Moved),
                () = until(deadline) => {
                    let actions = self.trial.tick(monotonic_nanoseconds());
                    self.perform(actions);
                }
            }
        }
    }

    fn answer(&mut self, call: Call) {
        let now = monotonic_nanoseconds();
        match call {
            Call::State(reply) => {
                self.trial.contact(now);
                send(reply, self.trial.index(), Ok(self.trial.state()));
            }
            Call::Plan(trial, request, reply) => {
                let accepted = self.trial.plan(now, trial, *request);
                self.reply_state(reply, Some(trial), accepted);
            }
            Call::Start(trial, request, reply) => {
                let answer = self.trial.start(now, trial, request).map(|(accepted, actions)| {
                    self.perform(actions);
                    accepted
                });
                send(reply, Some(trial), answer);
            }
            Call::Measure(trial, request, reply) => {
                let accepted = self.trial.measure(now, trial, request);
                self.reply_state(reply, Some(trial), accepted);
            }
            Call::Abort(trial, request, reply) => {
                let accepted = self.trial.abort(now, trial, request);
                self.reply_state(reply, Some(trial), accepted);
            }
            Call::Snapshot(trial, detail, reply) => {
                let allowed = self.trial.snapshot(now, trial, detail);
                let sources = allowed.and_then(|()| {
                    let engine = self.engine.clone();
                    let engine = engine.ok_or_else(|| refusal(RefusalCode::Unavailable, "the engine is gone"))?;
                    let servers = self.servers.as_ref().map(ServerWatch::view);
                    Ok(Sources { engine, servers, probing: self.probing.is_some(), probe: self.probe })
                });
                send(reply, Some(trial), sources);
            }
            Call::Cleanup(request, reply) => {
                let answer = self.trial.cleanup(now, request).map(|(state, actions)| {
                    self.perform(actions);
                    state
                });
                send(reply, self.trial.index(), answer);
            }
            Call::Drain(request, reply) => {
                let accepted = self.trial.drain(now, request);
                let answer = accepted.map(|actions| {
                    self.perform(actions);
                    self.trial.state()
                });
                let (trial, engines) = (self.trial.index(), self.engines.clone());
                // Asked again, it waits again, so that no answer comes while a connection is left.
                tokio::spawn(async move {
                    engines.wait().await;
                    send(reply, trial, answer);
                });
            }
            Call::Release(request, reply) => {
                let accepted = self.trial.release(now, request);
                self.reply_state(reply, self.trial.index(), accepted);
            }
        }
    }

    /// Does what follows from a call before the state is told.
    fn reply_state(&mut self, reply: Reply<ShardState>, trial: Option<u32>, accepted: Result<Vec<Action>, Refusal>) {
        let answer = accepted.map(|actions| {
            self.perform(actions);
            self.trial.state()
        });
        send(reply, trial, answer);
    }

    fn engine_event(&mut self, event: EngineEvent) {
        let event = match event {
            EngineEvent::Connected { ready, wanted } => Event::Connected { ready, wanted },
            EngineEvent::ConnectFailed { reason, message } => {
                // A replica may have taken over from a node that is gone, and nobody else would tell.
                self.search_again(Again::NodeGone);
                Event::Obstacle(failure::of_connecting(reason, &message, &self.target_name()))
            }
            EngineEvent::ConnectionLost { message } => {
                info!(message, "a connection broke");
                // A primary that becomes a replica closes them all, and would serve reads as if nothing were.
                if self.trial.plan_in_use().is_some_and(|plan| plan.target.topology == Kind::Sentinel) {
                    self.search_again(Again::Moved);
                }
                return;
            }
            EngineEvent::PreloadProgress { keys } => Event::Preloading { keys },
            EngineEvent::Preloaded { .. } => Event::Preloaded,
            EngineEvent::PreloadFailed { message } => {
                let target = self.target_name();
                let message = format!("target {target}: preloading its keys stopped: {message}");
                Event::Failed(failure::of(FailureReason::PreloadFailed, &message))
            }
            EngineEvent::TopologyStale => return self.search_again(Again::Moved),
            EngineEvent::Unanswered => return self.search_again(Again::Unanswered),
            EngineEvent::Finished { attempt, aborted } => {
                if let Some(servers) = &self.servers {
                    servers.load_is_over();
                }
                if !aborted && self.begin_probe(attempt) {
                    return;
                }
                Event::LoadEnded { attempt }
            }
            EngineEvent::WorkerFailed { message } => Event::Failed(failure::of(FailureReason::Internal, &message)),
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

    /// The target is what the plan says: connect to it, or hand the new map to the engine that is connected already.
    fn found(&mut self, found: Found) {
        let Some((plan, why)) = self.search.take().map(|search| (search.plan.clone(), search.why)) else { return };
        if self.engine.is_some() {
            return self.moved(found.topology, why);
        }
        let topology = Arc::new(found.topology);
        self.topology = Some(topology.clone());
        info!(nodes = topology.nodes.len(), "the target is as expected");
        if plan.target.topology == Kind::Sentinel {
            let (sender, moved) = mpsc::channel(1);
            let known = topology.nodes.first().map(|node| node.label.clone()).unwrap_or_default();
            let task = tokio::spawn(target::watch(plan.clone(), self.settings.mounts.clone(), known, sender));
            self.watch = Some(Watch { moved, task });
        }
        self.reads.clone_from(&found.reads);
        let (sender, events) = mpsc::channel(EVENTS);
        let config = EngineConfig {
            plan,
            workers: self.settings.workers,
            topology,
            reads: found.reads,
            handshake: found.handshake,
            tls: found.tls,
            may_evict: found.may_evict,
            host: self.settings.identity.host.clone(),
        };
        self.config = Some(config.clone());
        match Engine::spawn(config, sender).and_then(|engine| engine.connect().map(|()| engine)) {
            Ok(engine) => {
                self.engine = Some(Arc::new(engine));
                self.engine_events = Some(events);
                self.observe(Event::TargetReady);
                if let Some(topology) = self.topology.clone() {
                    self.await_members(&topology);
                }
            }
            Err(error) => self.observe(Event::Failed(failure::of_engine(&error))),
        }
    }

    /// Nodes that do not serve may come back, and nobody would tell.
    fn await_members(&mut self, topology: &Topology) {
        if topology.members.iter().any(|member| !member.healthy) {
            self.search_again(Again::NodeGone);
        }
    }

    /// Hands the target's map to the engine, which is connected already.
    fn moved(&mut self, topology: Topology, why: Option<Again>) {
        let topology = Arc::new(topology);
        let before = self.topology.replace(topology.clone());
        let Some(engine) = &self.engine else { return };
        let done = engine.update_topology(&topology);
        if let Some(servers) = &self.servers {
            servers.update_topology(topology.clone());
        }
        if before.as_ref() != Some(&topology) {
            info!(nodes = topology.nodes.len(), "the target's map has changed");
            self.unsettled = if topology.slots.is_some() { SETTLED } else { 1 };
        } else if why == Some(Again::Settling) {
            self.unsettled = self.unsettled.saturating_sub(1);
        }
        // Slots move one by one, and of those that no request meets any more nobody tells.
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
            let done = match action {
                Action::Prepare(plan) => {
                    self.discard();
                    self.prepare(&plan);
                    Ok(())
                }
                Action::Preload => self.with_engine(Engine::preload),
                Action::Start(start) => {
                    (self.probing, self.probe) = (None, None);
                    self.watch_servers(start.start_nanoseconds);
                    self.with_engine(|engine| engine.start(start.start_nanoseconds, start.attempt))
                }
                Action::Measure(from) => {
                    if let Some(servers) = &self.servers {
                        servers.measure_from(from);
                    }
                    self.with_engine(|engine| engine.measure_from(from))
                }
                Action::Stop => {
                    let done = self.with_engine(Engine::abort);
                    // The load itself has ended already, and tells nothing more.
                    if self.probing.is_some() {
                        self.probed(None);
                    }
                    done
                }
                Action::Rearm => {
                    (self.probing, self.probe) = (None, None);
                    self.with_engine(Engine::rearm)
                }
                Action::Cleanup(plan) => {
                    let (sender, progress) = mpsc::channel(FINDINGS);
                    let mounts = self.settings.mounts.clone();
                    let task = tokio::spawn(target::clean_up(plan, mounts, sender));
                    self.cleanup = Some(Cleanup { progress, task });
                    Ok(())
                }
                Action::Discard => {
                    self.discard();
                    Ok(())
                }
                Action::Exit(exit) => {
                    self.exit = Some(exit);
                    Ok(())
                }
            };
            if let Err(error) = done {
                return self.observe(Event::Failed(failure::of_engine(&error)));
            }
        }
    }

    /// Begins the probe after the load of `attempt`, if the plan wants one and its instant is not too near.
    fn begin_probe(&mut self, attempt: u32) -> bool {
        let start = self.trial.state().accepted.filter(|accepted| accepted.attempt == attempt);
        let (Some(start), Some(engine), Some(config)) = (start, &self.engine, &self.config) else { return false };
        let warmup = self.trial.warmup_nanoseconds();
        let Some(instant) = probe::instant(&config.plan, start.start_nanoseconds, warmup) else { return false };
        let topology = self.topology.clone().unwrap_or_else(|| config.topology.clone());
        let config = EngineConfig { topology, ..config.clone() };
        let (sender, result) = mpsc::channel(1);
        let connections = engine.connections();
        let task = self.engines.spawn(async move {
            // Nobody waits any more if the trial was stopped.
            let _ = sender.send(probe::run(config, connections, instant).await).await;
        });
        self.probing = Some(Probing { attempt, result, task });
        true
    }

    fn probed(&mut self, probe: Option<Probe>) {
        let Some(probing) = self.probing.take() else { return };
        self.probe = probe;
        self.observe(Event::LoadEnded { attempt: probing.attempt });
    }

    /// All shards are armed and none has begun: what the servers have counted until now is not the load's.
    fn watch_servers(&mut self, start: u64) {
        self.servers = None;
        if let (Some(plan), Some(topology)) = (self.trial.plan_in_use(), self.topology.clone())
            && plan.measurement.server_stats
            && plan.shard == 0
        {
            let mounts = self.settings.mounts.clone();
            let (watch, task) = ServerWatch::begin(plan, mounts, topology, &self.reads, start);
            self.servers = Some(watch);
            // Whoever drains waits for its connections too.
            self.engines.spawn(task);
        }
    }

    fn with_engine(&self, command: impl FnOnce(&Engine) -> Result<(), EngineError>) -> Result<(), EngineError> {
        self.engine.as_ref().map_or(Err(EngineError::Unreachable), |engine| command(engine))
    }

    fn prepare(&mut self, plan: &Arc<ShardPlan>) {
        info!(trial = plan.trial, target = plan.target.name, connections = plan.connections, "preparing");
        if let Err(message) = descriptors::raise_limit(plan.connections) {
            return self.observe(Event::Failed(ShardFailure { reason: FailureReason::Resources, message }));
        }
        let mounts = self.settings.mounts.clone();
        self.search = Some(Search::begin(plan, None, |sender| target::search(plan.clone(), mounts, sender)));
    }

    /// One look at a time: a stale map that is being replaced already is not looked at again, unless that is more urgent
    /// now.
    fn search_again(&mut self, why: Again) {
        let under_way = self.search.as_ref().is_some_and(|search| search.why.is_none_or(|other| other >= why));
        if under_way || !self.trial.wants_target() {
            return;
        }
        if let (Some(plan), Some(known)) = (self.trial.plan_in_use(), self.topology.clone())
            && (target::may_move(&plan.target) || !plan.workload.options.scripts.is_empty())
        {
            let (mounts, lookout) = (self.settings.mounts.clone(), self.lookout.clone());
            let look = |sender| target::search_again(plan.clone(), mounts, lookout, known, why, sender);
            self.search = Some(Search::begin(&plan, Some(why), look));
        }
    }

    fn discard(&mut self) {
        self.search = None;
        self.cleanup = None;
        self.watch = None;
        self.topology = None;
        self.servers = None;
        self.lookout = Arc::default();
        self.engine_events = None;
        (self.config, self.probing, self.probe) = (None, None, None);
        if let Some(engine) = self.engine.take() {
            self.engines.spawn(end(engine));
        }
    }

    /// Ends the load and writes the counters that nobody collected to the log.
    async fn last_word(&mut self, exit: &Exit) {
        info!(reason = ?exit, code = exit.code(), "the shard ends");
        if let Some(engine) = &self.engine
            && exit.loses_counters()
        {
            if let Err(error) = engine.abort() {
                warn!(error = %error, "failed to stop the load");
            }
            match timeout(LAST_WORD, engine.snapshot(Detail::Full)).await {
                Ok(Ok(snapshot)) => warn!(counters = report::counters(&snapshot), "the result was not collected"),
                Ok(Err(error)) => warn!(error = %error, "the counters were not to be had"),
                Err(_) => warn!("the counters were not to be had in time"),
            }
        }
        self.discard();
    }
}

/// Joining the engine's threads takes some milliseconds, so it happens elsewhere. Whoever encodes a snapshot of it is
/// waited for, so that its connections are closed when this is over.
async fn end(mut engine: Arc<Engine>) {
    loop {
        match Arc::try_unwrap(engine) {
            Ok(last) => {
                // It cannot fail but by a panic, which the log tells.
                let _ = tokio::task::spawn_blocking(move || drop(last)).await;
                return;
            }
            Err(shared) => engine = shared,
        }
        sleep(SHARED_ENGINE).await;
    }
}

fn send<T>(reply: Reply<T>, trial: Option<u32>, body: Result<T, Refusal>) {
    if let Err(refused) = &body {
        info!(refusal = %refused, "refused a call");
    }
    // A caller that hung up has no use for the answer.
    let _ = reply.send(Answered { trial, body });
}

async fn next<T>(receiver: Option<&mut mpsc::Receiver<T>>) -> Option<T> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => pending().await,
    }
}

async fn until(deadline: Option<u64>) {
    match deadline {
        Some(deadline) => sleep_until(timer_at(deadline)).await,
        None => pending().await,
    }
}

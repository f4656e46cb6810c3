//! The driver of a client library. Preload and inspection are the engine's; a trial's requests go through the library.

use std::fmt;
use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::control::driver::{Answer, Driver};
use redisbench_loadgen::engine::{
    Access, Assembly, ConnectFailure, Engine, EngineConfig, EngineError, EngineEvent, monotonic_nanoseconds,
};
use redisbench_loadgen::schedule::Seat;
use redisbench_loadgen::workload::{Workload, part_of};
use redisbench_wire::Detail;
use redisbench_wire::plan::{Client, Library};
use redisbench_wire::snapshot::{ClientUsage, Snapshot};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::caller::Desk;
use crate::library::{Connections, Setup};
use crate::threads::{self, Threads};

/// Maximum memory for the requests of all callers, in bytes.
const REQUEST_BYTES: usize = 1 << 30;

/// The engine's connections, which inspect and preload.
const PRELOADERS: u32 = 4;

/// Events of the engine that wait to be passed on.
const EVENTS: usize = 256;

/// The pause after a library failed to connect.
const PAUSE: Duration = Duration::from_secs(1);

/// A client library as a shard's driver.
pub struct ClientDriver {
    engine: Arc<Engine>,
    shared: Arc<Shared>,
    // Dropped last: tasks refer to the rest.
    runtimes: Vec<Threads>,
}

impl fmt::Debug for ClientDriver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientDriver").field("client", &self.shared.client.name).finish_non_exhaustive()
    }
}

/// What tasks of the runtimes and calls of the shard share.
struct Shared {
    client: Client,
    /// What new connections use.
    setup: Mutex<Setup>,
    assembly: Arc<Assembly>,
    seats: Vec<Place>,
    events: mpsc::Sender<EngineEvent>,
    /// Connections of the library, in all and ready.
    wanted: u32,
    ready: AtomicU32,
    /// Those of the engine, ready and wanted.
    engine: Mutex<(u32, u32)>,
    /// The preload is over, and the engine's connections are closed.
    is_prepared: AtomicBool,
    tasks: Mutex<Vec<AbortHandle>>,
    callers: u32,
    /// The attempt in progress.
    attempt: Mutex<Arc<Attempt>>,
}

/// A thread's part: its desk, its callers and its connections.
struct Place {
    desk: Desk,
    runtime: usize,
    callers: u64,
    connections: usize,
    open: Mutex<Option<Arc<Connections>>>,
}

/// An attempt, to find out which caller ends it.
#[derive(Debug, Default)]
struct Attempt {
    number: u32,
    /// Callers that have not finished.
    remaining: AtomicUsize,
    has_ended: AtomicBool,
}

/// The word of a caller that a library's panic ends. Without it, the trial would wait for this caller.
struct LastWord {
    shared: Arc<Shared>,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let message = format!("client {}: it panicked, see stderr", self.shared.client.name);
            // Of many callers that panic, the first is enough.
            let _ = self.shared.events.try_send(EngineEvent::WorkerFailed { message });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientDriver {
    /// Starts the threads of `client`, which then wait.
    ///
    /// # Errors
    /// Fails if the plan cannot be run or the kernel refuses a thread.
    pub fn spawn(
        config: EngineConfig,
        client: Client,
        events: mpsc::Sender<EngineEvent>,
    ) -> Result<Arc<dyn Driver>, EngineError> {
        let mut plan = config.plan.clone();
        let setup = Setup::new(&config, client.clone());
        let workload = Workload::of_trial(&plan).map_err(|error| EngineError::BadPlan(error.to_string()))?;
        let workload = Arc::new(workload);
        let callers = plan.concurrency.unwrap_or(plan.connections.saturating_mul(plan.pipeline)).max(1);
        let bytes = (callers as usize).saturating_mul(workload.longest());
        if bytes > REQUEST_BYTES {
            return Err(EngineError::BadPlan(format!(
                "{callers} callers with requests of up to {} bytes need more than {REQUEST_BYTES} bytes in a shard: lower \
                 load.connections, load.pipeline or workload.values.size, or raise shards.count",
                workload.longest()
            )));
        }
        plan.concurrency = Some(callers);
        let assembly = Arc::new(Assembly::new(plan.clone(), config.host.clone(), Arc::clone(&config.topology)));
        let threads = client.threads.min(callers).min(plan.connections).max(1);
        let started = threads::start(client.runtime, threads as usize, &assembly);
        let (runtimes, queues) = started.map_err(EngineError::Start)?;
        let seat = |worker: u32| Seat { shard: plan.shard, shards: plan.shards, worker, workers: threads };
        let place = |(worker, (runtime, queue)): (u32, _)| {
            let part = part_of(plan.connections.into(), worker.into(), threads.into());
            Place {
                desk: Desk::new(&plan, seat(worker), &workload, queue),
                runtime,
                callers: seat(worker).share(0, callers.into()),
                connections: usize::try_from(part.end - part.start).unwrap_or(1),
                open: Mutex::default(),
            }
        };
        let seats: Vec<Place> = (0..threads).zip(queues).map(place).collect();
        let wanted = if client.library == Library::Null { 0 } else { plan.connections };
        let (sender, of_engine) = mpsc::channel(EVENTS);
        let engine = Engine::spawn(of_preload(config), sender)?;
        let shared = Arc::new(Shared {
            client,
            setup: Mutex::new(setup),
            assembly,
            seats,
            events,
            wanted,
            ready: AtomicU32::new(0),
            engine: Mutex::new((0, engine.connections())),
            is_prepared: AtomicBool::new(false),
            tasks: Mutex::default(),
            callers,
            // Nothing has begun that could end.
            attempt: Mutex::new(Arc::new(Attempt { has_ended: AtomicBool::new(true), ..Attempt::default() })),
        });
        let engine = Arc::new(engine);
        let passing = pass_on(Arc::downgrade(&engine), Arc::clone(&shared), of_engine);
        tokio::spawn(passing);
        Ok(Arc::new(Self { engine, shared, runtimes }))
    }

    /// Runs `task` on the runtime of `place` until it ends or is aborted.
    fn run(&self, place: &Place, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(threads) = self.runtimes.get(place.runtime) {
            lock(&self.shared.tasks).push(threads.handle.spawn(task).abort_handle());
        }
    }

    fn stop(&self) {
        lock(&self.shared.tasks).drain(..).for_each(|task| task.abort());
        let now = monotonic_nanoseconds();
        self.shared.seats.iter().for_each(|place| place.desk.lane().abort(now));
    }
}

/// The engine that prepares the target for a client.
fn of_preload(config: EngineConfig) -> EngineConfig {
    let mut plan = config.plan.with(|plan| plan.client = None);
    (plan.connections, plan.concurrency) = (plan.connections.min(PRELOADERS), None);
    EngineConfig { plan, workers: 1, ..config }
}

/// Passes on the engine's events while it prepares the target.
async fn pass_on(engine: std::sync::Weak<Engine>, shared: Arc<Shared>, mut events: mpsc::Receiver<EngineEvent>) {
    while let Some(event) = events.recv().await {
        match event {
            EngineEvent::Connected { ready, wanted } => {
                *lock(&shared.engine) = (ready, wanted);
                shared.tell_connected();
                continue;
            }
            EngineEvent::Preloaded { .. } => {
                if let Some(engine) = engine.upgrade() {
                    shared.leave_to_client(&engine).await;
                }
            }
            EngineEvent::ConnectFailed { .. } | EngineEvent::ConnectionLost { .. }
                if shared.is_prepared.load(Relaxed) =>
            {
                continue;
            }
            _ => {}
        }
        if shared.events.send(event).await.is_err() {
            return;
        }
    }
}

impl Shared {
    /// Closes the engine's connections: they would count among the client's.
    async fn leave_to_client(&self, engine: &Engine) {
        if !self.is_prepared.swap(true, Relaxed) {
            // Fails only if a worker has ended, which is an event of its own.
            let _ = engine.disconnect().await;
        }
    }

    fn tell_connected(&self) {
        if self.is_prepared.load(Relaxed) {
            return;
        }
        let (ready, wanted) = *lock(&self.engine);
        let (ready, wanted) = (ready + self.ready.load(Relaxed), wanted + self.wanted);
        // Only the last state matters, and the next change sends it again.
        let _ = self.events.try_send(EngineEvent::Connected { ready, wanted });
    }

    /// Opens the connections of a place, however often that takes.
    async fn open(self: Arc<Self>, index: usize) {
        let Some(place) = self.seats.get(index) else { return };
        let opened = loop {
            let setup = lock(&self.setup).clone();
            match Connections::open(&setup, place.connections).await {
                Ok(opened) => break opened,
                Err(message) => {
                    let event = EngineEvent::ConnectFailed { reason: ConnectFailure::Broken, message };
                    // The next failure is sent again.
                    let _ = self.events.try_send(event);
                    sleep(PAUSE).await;
                }
            }
        };
        let before = lock(&place.open).replace(Arc::new(opened));
        if let Some(before) = before {
            before.close().await;
        }
        if self.wanted > 0 {
            self.ready.fetch_add(u32::try_from(place.connections).unwrap_or(0), Relaxed);
        }
        self.tell_connected();
    }

    /// Makes calls until the load of `attempt` ends.
    async fn call(self: Arc<Self>, index: usize, attempt: Arc<Attempt>) {
        let Some(place) = self.seats.get(index) else { return };
        let _last_word = LastWord { shared: Arc::clone(&self) };
        let open = lock(&place.open).clone();
        let served: io::Result<()> = match open {
            Some(connections) => place.desk.serve(&connections).await,
            None => Err(io::Error::other("the client is not connected")),
        };
        if let Err(error) = served {
            let message = format!("client {}: {error}", self.client.name);
            // Fails only after the shard has dropped its end.
            let _ = self.events.send(EngineEvent::WorkerFailed { message }).await;
            return;
        }
        if attempt.remaining.fetch_sub(1, AcqRel) == 1 {
            self.end(&attempt, false);
        }
    }

    /// Ends an attempt, once. Without an await, because a task that is stopped in between would lose the event.
    fn end(&self, attempt: &Attempt, aborted: bool) {
        if attempt.has_ended.swap(true, AcqRel) {
            return;
        }
        self.assembly.meter().end();
        let event = EngineEvent::Finished { attempt: attempt.number, aborted };
        if let Err(TrySendError::Full(event)) = self.events.try_send(event) {
            let events = self.events.clone();
            tokio::spawn(async move { events.send(event).await });
        }
    }

    /// What the load has used, once it has ended.
    fn usage(&self) -> Option<ClientUsage> {
        let measured = self.assembly.meter().usage()?;
        let version = lock(&self.setup).version().to_owned();
        Some(ClientUsage { version, connections: self.wanted, callers: self.callers, ..measured })
    }
}

impl Driver for ClientDriver {
    fn connections(&self) -> u32 {
        self.shared.wanted
    }

    fn connect(&self) -> Result<(), EngineError> {
        self.shared.is_prepared.store(false, Relaxed);
        self.shared.ready.store(0, Relaxed);
        for (index, place) in self.shared.seats.iter().enumerate() {
            if self.shared.client.library == Library::Null {
                // Ready at once: no event says so, because there is nothing to wait for.
                *lock(&place.open) = Some(Arc::new(Connections::Null));
            } else {
                self.run(place, Arc::clone(&self.shared).open(index));
            }
        }
        self.engine.connect()
    }

    fn preload(&self) -> Result<(), EngineError> {
        self.engine.preload()
    }

    fn start(&self, start_nanoseconds: u64, attempt: u32) -> Result<(), EngineError> {
        self.stop();
        let shared = &self.shared;
        // Without a preload, the engine is still connected.
        let (leaving, engine) = (Arc::clone(shared), Arc::clone(&self.engine));
        tokio::spawn(async move { leaving.leave_to_client(&engine).await });
        let watched = Arc::clone(shared);
        shared
            .assembly
            .begin(start_nanoseconds, attempt, move || watched.seats.iter().all(|place| place.desk.lane().is_done()));
        let now = monotonic_nanoseconds();
        shared.seats.iter().for_each(|place| place.desk.lane().start(start_nanoseconds, now));
        let callers = shared.seats.iter().map(|place| usize::try_from(place.callers).unwrap_or(1)).sum();
        let attempt = Arc::new(Attempt { number: attempt, remaining: AtomicUsize::new(callers), ..Attempt::default() });
        *lock(&shared.attempt) = Arc::clone(&attempt);
        for (index, place) in shared.seats.iter().enumerate() {
            for _ in 0..place.callers {
                self.run(place, Arc::clone(shared).call(index, Arc::clone(&attempt)));
            }
        }
        Ok(())
    }

    fn measure_from(&self, from_nanoseconds: u64) -> Result<(), EngineError> {
        let now = monotonic_nanoseconds();
        self.shared.seats.iter().for_each(|place| place.desk.lane().measure_from(from_nanoseconds, now));
        Ok(())
    }

    fn abort(&self) -> Result<(), EngineError> {
        self.stop();
        self.engine.abort()?;
        let attempt = Arc::clone(&lock(&self.shared.attempt));
        // Callers that were stopped cannot end it, even if every request has its outcome.
        self.shared.end(&attempt, true);
        Ok(())
    }

    fn rearm(&self) -> Result<(), EngineError> {
        self.stop();
        lock(&self.shared.attempt).has_ended.store(true, Relaxed);
        let now = monotonic_nanoseconds();
        self.shared.seats.iter().for_each(|place| place.desk.lane().rearm(now));
        Ok(())
    }

    fn disconnect(&self) -> Answer<'_, ()> {
        self.stop();
        Box::pin(async move {
            for place in &self.shared.seats {
                let open = lock(&place.open).take();
                if let Some(open) = open {
                    open.close().await;
                }
            }
            self.engine.disconnect().await
        })
    }

    fn update_topology(&self, topology: &Arc<Topology>) -> Result<(), EngineError> {
        self.shared.assembly.follow(topology);
        self.engine.update_topology(topology)
    }

    fn update_access(&self, access: Access) -> Result<(), EngineError> {
        lock(&self.shared.setup).log_in_with(&access);
        self.engine.update_access(access)
    }

    fn snapshot_since(&self, detail: Detail, from: u32) -> Answer<'_, Snapshot> {
        Box::pin(async move {
            let report = |place: &Place| place.desk.lane().report(detail, from, monotonic_nanoseconds());
            let reports = self.shared.seats.iter().map(report).collect();
            let mut snapshot = self.shared.assembly.snapshot(reports, detail, from)?;
            snapshot.client = self.shared.usage();
            let prepared = self.engine.snapshot_since(Detail::Live, 0).await?;
            (snapshot.preloaded_keys, snapshot.preload_commands) = (prepared.preloaded_keys, prepared.preload_commands);
            Ok(snapshot)
        })
    }
}

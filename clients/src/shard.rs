//! The driver of a client library. Preload and inspection are the engine's; a trial's requests go through the library.

use std::fmt;
use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
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
use crate::contract::{CALLERS, TO_DRIVER_BYTES};
use crate::drivers::{Drivers, Socket};
use crate::library::{Connections, Setup};
use crate::session::Fault;
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

/// Shared by tasks of the runtimes and calls of the shard.
struct Shared {
    client: Client,
    /// Settings of new connections.
    setup: Mutex<Setup>,
    assembly: Arc<Assembly>,
    seats: Vec<Place>,
    events: mpsc::Sender<EngineEvent>,
    /// Connections of the library.
    wanted: u32,
    connected: Connected,
    tasks: Mutex<Vec<AbortHandle>>,
    callers: u32,
    /// The attempt in progress.
    attempt: Mutex<Arc<Attempt>>,
}

/// The ready connections while the target is prepared, and their reports.
struct Connected {
    state: Mutex<State>,
    events: mpsc::Sender<EngineEvent>,
}

/// Numbers of connections, ready and wanted.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    library: (u32, u32),
    engine: (u32, u32),
    /// The preload is over, and the engine's connections are closed.
    is_prepared: bool,
}

impl Connected {
    fn new(library: u32, engine: u32, events: mpsc::Sender<EngineEvent>) -> Self {
        Self { state: Mutex::new(State { library: (0, library), engine: (0, engine), is_prepared: false }), events }
    }

    fn is_prepared(&self) -> bool {
        lock(&self.state).is_prepared
    }

    /// Applies `change`, and reports the numbers until the target is prepared. Under the lock, because the last report must be of the last
    /// state.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        change(&mut state);
        if !state.is_prepared {
            // The next change sends it again.
            let _ = self.events.try_send(state.event());
        }
    }

    /// No connection of the library is ready any more. Reports nothing, because a report without any would mean that the server had lost its
    /// data.
    fn begin_again(&self) {
        let mut state = lock(&self.state);
        (state.library.0, state.is_prepared) = (0, false);
    }

    /// Ends the reports. Returns the last one, or none if they had ended.
    fn prepared(&self) -> Option<EngineEvent> {
        let mut state = lock(&self.state);
        (!std::mem::replace(&mut state.is_prepared, true)).then(|| state.event())
    }
}

impl State {
    fn event(&self) -> EngineEvent {
        let (ready, wanted) = (self.library.0 + self.engine.0, self.library.1 + self.engine.1);
        EngineEvent::Connected { ready, wanted }
    }
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
    /// True if a caller has reported why none can continue.
    has_failed: AtomicBool,
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
        drivers: &Drivers,
        events: mpsc::Sender<EngineEvent>,
    ) -> Result<Arc<dyn Driver>, EngineError> {
        let mut plan = config.plan.clone();
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
        let driver = driver_of(&client, drivers, callers, workload.longest()).map_err(EngineError::BadPlan)?;
        let setup = Setup::new(&config, client.clone(), callers, driver);
        let assembly = Arc::new(Assembly::new(plan.clone(), config.host.clone(), Arc::clone(&config.topology)));
        // A driver has one socket.
        let threads = if setup.driver.is_some() { 1 } else { client.threads };
        let threads = threads.min(callers).min(plan.connections).max(1);
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
            connected: Connected::new(wanted, engine.connections(), events.clone()),
            events,
            wanted,
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

/// The driver of a client, if it has one and that can make the calls of its plan.
fn driver_of(client: &Client, drivers: &Drivers, callers: u32, longest: usize) -> Result<Option<Arc<Socket>>, String> {
    let Library::Driver { name } = &client.library else { return Ok(None) };
    if callers > u32::from(CALLERS) {
        return Err(format!(
            "{callers} callers in a shard are more than the {CALLERS} of a driver: lower load.connections or load.pipeline, or \
             raise shards.count"
        ));
    }
    if longest > TO_DRIVER_BYTES / 2 {
        return Err(format!(
            "requests of up to {longest} bytes are larger than the {} that a driver gets: lower workload.values.size",
            TO_DRIVER_BYTES / 2
        ));
    }
    drivers.socket(name).map(Some).map_err(|why| format!("client {}: {why}", client.name))
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
                shared.connected.change(|state| state.engine = (ready, wanted));
                continue;
            }
            EngineEvent::Preloaded { .. } => {
                if let Some(engine) = engine.upgrade() {
                    shared.leave_to_client(&engine).await;
                }
            }
            EngineEvent::ConnectFailed { .. } | EngineEvent::ConnectionLost { .. }
                if shared.connected.is_prepared() =>
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
        if let Some(last) = self.connected.prepared() {
            // An earlier one may have found the channel full. Fails only after the shard has dropped its end.
            let _ = self.events.send(last).await;
            // Fails only if a worker has ended, which is an event of its own.
            let _ = engine.disconnect().await;
        }
    }

    /// Opens the connections of a place, however often that takes.
    async fn open(self: Arc<Self>, index: usize) {
        let Some(place) = self.seats.get(index) else { return };
        // First, because a driver has one socket.
        let before = lock(&place.open).take();
        if let Some(before) = before {
            before.close().await;
        }
        let opened = loop {
            let setup = lock(&self.setup).clone();
            match Connections::open(&setup, place.connections).await {
                Ok(opened) => break opened,
                Err(Fault::Refused(message)) => {
                    let event = EngineEvent::ConnectFailed { reason: ConnectFailure::Broken, message };
                    // The next failure is sent again.
                    let _ = self.events.try_send(event);
                    sleep(PAUSE).await;
                }
                Err(Fault::Broken(message)) => return self.fail(&message).await,
            }
        };
        if let Some((library, process)) = opened.elsewhere() {
            library.clone_into(&mut lock(&self.setup).version);
            self.assembly.meter().measure(process);
        }
        *lock(&place.open) = Some(Arc::new(opened));
        self.connected.change(|state| state.library.0 += u32::try_from(place.connections).unwrap_or(0));
    }

    /// Fails the trial.
    async fn fail(&self, why: &str) {
        let message = format!("client {}: {why}", self.client.name);
        // Fails only after the shard has dropped its end.
        let _ = self.events.send(EngineEvent::WorkerFailed { message }).await;
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
            // All callers fail for the same reason.
            if !attempt.has_failed.swap(true, Relaxed) {
                self.fail(&error.to_string()).await;
            }
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
        self.tell_traced();
        let event = EngineEvent::Finished { attempt: attempt.number, aborted };
        if let Err(TrySendError::Full(event)) = self.events.try_send(event) {
            let events = self.events.clone();
            tokio::spawn(async move { events.send(event).await });
        }
    }

    /// Passes on the traced requests, as far as there is room.
    fn tell_traced(&self) {
        for place in &self.seats {
            let Ok(room) = self.events.try_reserve() else { return };
            let traced = place.desk.lane().take_traced();
            if let Some(traced) = traced {
                room.send(EngineEvent::Traced(traced));
            }
        }
    }

    /// Usage of the load, once it has ended.
    fn usage(&self) -> Option<ClientUsage> {
        let measured = self.assembly.meter().usage()?;
        let version = lock(&self.setup).version.clone();
        Some(ClientUsage { version, connections: self.wanted, callers: self.callers, ..measured })
    }
}

impl Driver for ClientDriver {
    fn connections(&self) -> u32 {
        self.shared.wanted
    }

    fn connect(&self) -> Result<(), EngineError> {
        self.shared.connected.begin_again();
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
            self.shared.tell_traced();
            let mut snapshot = self.shared.assembly.snapshot(reports, detail, from)?;
            snapshot.client = self.shared.usage();
            let prepared = self.engine.snapshot_since(Detail::Live, 0).await?;
            (snapshot.preloaded_keys, snapshot.preload_commands) = (prepared.preloaded_keys, prepared.preload_commands);
            Ok(snapshot)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads report at once: the engine's connection and the library's.
    #[test]
    fn the_last_report_is_of_the_last_state() {
        for _ in 0..2_000 {
            let (sender, mut events) = mpsc::channel(8);
            let connected = Connected::new(1, 1, sender);
            std::thread::scope(|scope| {
                scope.spawn(|| connected.change(|state| state.engine.0 = 1));
                scope.spawn(|| connected.change(|state| state.library.0 = 1));
            });
            let last = std::iter::from_fn(|| events.try_recv().ok()).last();
            assert!(matches!(last, Some(EngineEvent::Connected { ready: 2, wanted: 2 })), "{last:?}");
        }
    }

    #[test]
    fn the_reports_end_once_the_target_is_prepared() {
        let (sender, mut events) = mpsc::channel(8);
        let connected = Connected::new(1, 1, sender);
        connected.change(|state| state.engine.0 = 1);
        assert!(matches!(connected.prepared(), Some(EngineEvent::Connected { ready: 1, wanted: 2 })));
        assert!(connected.prepared().is_none());
        connected.change(|state| state.engine.0 = 0);
        assert!(events.try_recv().is_ok() && events.try_recv().is_err());
        connected.begin_again();
        assert!(events.try_recv().is_err(), "no connection is ready, which would cost a second preload");
        connected.change(|state| state.library.0 = 1);
        assert!(matches!(events.try_recv(), Ok(EngineEvent::Connected { ready: 1, wanted: 2 })));
    }
}

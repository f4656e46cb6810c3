//! The side of a shard that sends requests, as its cold side commands it: the engine, or a client library in the engine's place.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use redisbench_wire::Detail;
use redisbench_wire::plan::Library;
use redisbench_wire::snapshot::Snapshot;
use tokio::sync::mpsc;

use crate::cluster::Topology;
use crate::engine::{Access, Engine, EngineConfig, EngineError, EngineEvent};

/// The answer of a driver, once it has one.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + Send + 'a>>;

/// Starts the driver of a plan.
type Start = dyn Fn(EngineConfig, mpsc::Sender<EngineEvent>) -> Result<Arc<dyn Driver>, EngineError> + Send + Sync;

/// Starts the drivers of plans.
#[derive(Clone)]
pub struct Spawn(Arc<Start>);

impl fmt::Debug for Spawn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Spawn")
    }
}

impl Spawn {
    pub fn new(
        start: impl Fn(EngineConfig, mpsc::Sender<EngineEvent>) -> Result<Arc<dyn Driver>, EngineError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(start))
    }

    /// Starts the driver of a plan, which then waits for commands. It reports by events, as the engine does.
    ///
    /// # Errors
    /// Fails if the plan cannot be run or the kernel refuses a thread.
    pub fn driver(
        &self,
        config: EngineConfig,
        events: mpsc::Sender<EngineEvent>,
    ) -> Result<Arc<dyn Driver>, EngineError> {
        (self.0)(config, events)
    }
}

/// Connects, preloads, and runs a trial. Commands return at once, and events report their outcome; [`Engine`] says what each means.
/// Dropping a driver stops its load, closes its connections and joins its threads, which takes some milliseconds.
#[allow(clippy::missing_errors_doc, reason = "all of these fail only if the driver cannot be reached")]
pub trait Driver: Send + Sync + fmt::Debug {
    /// Connections that it makes at first.
    fn connections(&self) -> u32;

    /// Makes all connections and keeps them up. Reports [`EngineEvent::Connected`].
    fn connect(&self) -> Result<(), EngineError>;

    /// Writes this shard's keys as planned. Ends with [`EngineEvent::Preloaded`] or [`EngineEvent::PreloadFailed`].
    fn preload(&self) -> Result<(), EngineError>;

    /// Runs the trial, beginning at `start_nanoseconds` of the monotonic clock. Ends with [`EngineEvent::Finished`].
    fn start(&self, start_nanoseconds: u64, attempt: u32) -> Result<(), EngineError>;

    /// Ends the warm-up at `from_nanoseconds`, unless that instant has passed or the warm-up ends sooner.
    fn measure_from(&self, from_nanoseconds: u64) -> Result<(), EngineError>;

    /// Stops the load at once. Measurements are kept.
    fn abort(&self) -> Result<(), EngineError>;

    /// Stops any load, drops its measurements, and prepares for another start.
    fn rearm(&self) -> Result<(), EngineError>;

    /// Closes all connections after the load has finished.
    fn disconnect(&self) -> Answer<'_, ()>;

    /// Replaces the topology.
    fn update_topology(&self, topology: &Arc<Topology>) -> Result<(), EngineError>;

    /// Replaces credentials and TLS settings of new connections.
    fn update_access(&self, access: Access) -> Result<(), EngineError>;

    /// The cumulative snapshot, with only the seconds from `from` on.
    fn snapshot_since(&self, detail: Detail, from: u32) -> Answer<'_, Snapshot>;
}

/// Starts the engine.
///
/// # Errors
/// Fails if the plan cannot be run or the kernel refuses a thread.
pub fn engine(config: EngineConfig, events: mpsc::Sender<EngineEvent>) -> Result<Arc<dyn Driver>, EngineError> {
    if let Some(client) = config.plan.client.as_ref().filter(|client| client.library != Library::Engine) {
        return Err(EngineError::BadPlan(format!(
            "load.clients: this load generator has no client libraries, which {} needs: set clients.image in the \
             operator's chart, or use redisbench-clients",
            client.name
        )));
    }
    Ok(Arc::new(Engine::spawn(config, events)?))
}

impl Driver for Engine {
    fn connections(&self) -> u32 {
        self.connections()
    }

    fn connect(&self) -> Result<(), EngineError> {
        self.connect()
    }

    fn preload(&self) -> Result<(), EngineError> {
        self.preload()
    }

    fn start(&self, start_nanoseconds: u64, attempt: u32) -> Result<(), EngineError> {
        self.start(start_nanoseconds, attempt)
    }

    fn measure_from(&self, from_nanoseconds: u64) -> Result<(), EngineError> {
        self.measure_from(from_nanoseconds)
    }

    fn abort(&self) -> Result<(), EngineError> {
        self.abort()
    }

    fn rearm(&self) -> Result<(), EngineError> {
        self.rearm()
    }

    fn disconnect(&self) -> Answer<'_, ()> {
        Box::pin(self.disconnect())
    }

    fn update_topology(&self, topology: &Arc<Topology>) -> Result<(), EngineError> {
        self.update_topology(topology)
    }

    fn update_access(&self, access: Access) -> Result<(), EngineError> {
        self.update_access(access)
    }

    fn snapshot_since(&self, detail: Detail, from: u32) -> Answer<'_, Snapshot> {
        Box::pin(self.snapshot_since(detail, from))
    }
}

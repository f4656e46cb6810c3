//! Client libraries as drivers of a shard: the plan, the schedule, the start and the measurement are those of the load generator, and a
//! library sends the requests.

mod caller;
mod command;
pub mod conformance;
pub mod contract;
pub mod drivers;
mod library;
mod session;
mod shard;
mod threads;

use std::sync::Arc;

use redisbench_loadgen::control::driver::{self, Driver};
use redisbench_loadgen::engine::{EngineConfig, EngineError, EngineEvent};
use redisbench_wire::plan::Library;
use tokio::sync::mpsc;

use drivers::Drivers;
use shard::ClientDriver;

/// Starts the driver of the client that the plan names: the engine if it names none. Programs in other languages are among `drivers`.
///
/// # Errors
/// Fails if the plan cannot be run or the kernel refuses a thread.
pub fn spawn(
    config: EngineConfig,
    drivers: &Drivers,
    events: mpsc::Sender<EngineEvent>,
) -> Result<Arc<dyn Driver>, EngineError> {
    match config.plan.client.clone() {
        Some(client) if client.library != Library::Engine => ClientDriver::spawn(config, client, drivers, events),
        _ => driver::engine(config, events),
    }
}

//! The engine: worker threads that make connections, preload, and send a trial's requests, and the handle with which
//! the cold side commands them.

mod api;
mod connection;
mod cpus;
mod handle;
mod mailbox;
mod pipeline;
mod run;
mod sys;
mod worker;

pub use api::{ConnectFailure, EngineConfig, EngineError, EngineEvent, Handshake};
pub use cpus::available_workers;
pub use handle::Engine;
pub use sys::monotonic_nanoseconds;

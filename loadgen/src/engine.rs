//! The engine: worker threads that connect, preload and send a trial's requests, and the handle through which the cold side commands
//! them.
#![allow(
    clippy::cast_possible_truncation,
    reason = "counts of connections and nodes are u32 in the plan, and the system is 64-bit"
)]

mod api;
mod connect_rate;
mod connection;
mod cpus;
mod handle;
mod integral;
mod mailbox;
mod pipeline;
mod queue;
mod run;
mod stream;
pub(crate) mod sys;
mod vigil;
mod worker;

pub use api::{Access, ConnectFailure, EngineConfig, EngineError, EngineEvent, Handshake, Tls};
pub use cpus::available_workers;
pub use handle::Engine;
pub use sys::monotonic_nanoseconds;

//! The engine: worker threads that connect, preload and send a trial's requests, and the handle through which the cold side commands
//! them.
#![allow(
    clippy::cast_possible_truncation,
    reason = "counts of connections and nodes are u32 in the plan, and the system is 64-bit"
)]

mod api;
mod assembly;
mod caching;
mod checker;
mod common;
mod compound;
mod connections;
mod cpus;
mod depth;
mod integral;
mod kind;
mod lane;
mod links;
mod load;
mod mailbox;
mod outbox;
mod own;
mod pipeline;
mod progress;
mod queue;
mod router;
mod running;
mod stream;
mod together;
mod vigil;
mod worker;

pub use crate::selfcheck::{Meter, RunQueue};
pub use crate::sys::{Alarm, monotonic_nanoseconds};
pub use api::{Access, ConnectFailure, EngineConfig, EngineError, EngineEvent, Handshake, Login, Tls, TlsParts};
pub use assembly::Assembly;
pub use cpus::available_workers;
pub use lane::{Call, Failed, Lane, Next, Outcome};
pub use running::Engine;

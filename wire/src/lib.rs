//! The contract between the operator (or the command line) and a shard: the plan of one shard, the calls, their
//! answers, and the bounds of everything in them.
//!
//! The shard serves HTTPS with JSON bodies. Every answer is wrapped in an [`Answer`] that names wire version, run,
//! incarnation and trial, so that an answer from the wrong process is recognised as such. Times are nanoseconds, and
//! instants are readings of the answering shard's own monotonic clock.
//!
//! Knows neither Kubernetes nor Redis, but for the names of its commands that only read.

mod answer;
mod bounded;
mod call;
mod check;
mod credential;
pub mod histogram;
pub mod limits;
pub mod outage;
pub mod plan;
mod probe;
pub mod rate;
mod selfcheck;
mod server_stats;
pub mod snapshot;
pub mod strain;
pub mod timeline;
pub mod topology;
mod verification;

#[cfg(test)]
mod hostile;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

pub use answer::{Answer, Refusal, RefusalCode};
pub use call::{
    AbortRequest, AbortThen, AcceptedStart, CleanupState, ClockReading, Detail, EpochRequest, FailureReason,
    MeasureRequest, PlanRequest, Preparation, ShardFailure, ShardPhase, ShardState, StartRequest, path,
};
pub use credential::RunToken;
pub use probe::{Probe, ProbeRequest, ProbeState};

/// Where to listen on `port` of every interface, in the order to try: IPv6, which takes IPv4 too, and IPv4 alone where the
/// machine has no IPv6.
pub fn every_interface(port: u16) -> [SocketAddr; 2] {
    [(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]
}

/// The version of this contract. A conductor speaks its own and the one before.
pub const WIRE_VERSION: u32 = 1;

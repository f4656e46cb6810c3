//! The contract between the operator (or the command line) and a shard: the plan of a trial, the calls, their answers, and the bounds of
//! everything in them.
//!
//! The shard serves HTTPS with JSON bodies. Every answer is wrapped in an [`Answer`] that names wire version, run, incarnation and trial,
//! so that an answer from the wrong process is detected. Times are nanoseconds, and instants are readings of the answering shard's own
//! monotonic clock.
//!
//! Independent of Kubernetes and Redis, except for lists of Redis' commands and the lines of MONITOR.

#![warn(missing_docs)]

mod answer;
mod bounded;
mod cache;
mod call;
mod check;
mod churn;
mod client;
mod credential;
pub mod exit;
pub mod histogram;
pub mod limits;
mod log;
pub mod outage;
pub mod plan;
mod probe;
pub mod rate;
mod selfcheck;
mod server_stats;
pub mod snapshot;
pub mod strain;
mod tally;
pub mod timeline;
#[cfg(feature = "tls")]
mod tls;
pub mod topology;
mod verification;

#[cfg(test)]
mod hostile;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

pub use answer::{Answer, Refusal, RefusalCode};
pub use call::{
    AbortRequest, AbortThen, AcceptedStart, AfterRequest, CleanupState, ClockReading, Detail, EpochRequest,
    FailureReason, PlanRequest, Preparation, ShardFailure, ShardPhase, ShardState, StartRequest, path,
};
pub use credential::RunToken;
pub use log::LogFormat;
pub use probe::{Probe, ProbeState};
#[cfg(feature = "tls")]
pub use tls::CertificateVerifier;

/// Addresses to listen on for `port` of every interface, in the order to try: IPv6, which accepts IPv4 too, then IPv4 alone for machines
/// without IPv6.
pub fn every_interface(port: u16) -> [SocketAddr; 2] {
    [(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]
}

/// The version of this contract. A conductor supports its own version and the previous one.
pub const WIRE_VERSION: u32 = 1;

//! The load generator: one shard of a benchmark. Knows no Kubernetes.

mod clock;
pub mod cluster;
pub mod control;
pub mod engine;
pub mod null_server;
#[cfg(test)]
#[path = "../tests/support/open_loop.rs"]
mod open_loop;
pub mod program;
pub mod record;
pub mod resp;
#[cfg(test)]
mod sample;
pub mod schedule;
mod selfcheck;
mod sys;
mod target;
mod timeline;
mod verify;
pub mod workload;

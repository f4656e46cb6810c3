//! The engine against real servers: its counts must equal theirs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::large_stack_arrays,
    reason = "tests end at the first surprise, and their numbers are small"
)]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod commands;
mod deferred;
mod exchange;
mod fills;
mod harness;
mod hostile;
mod identity;
mod in_flight;
mod isolation;
mod null_server;
mod outages;
mod peer;
mod rate;
mod ratio;
mod readonly;
mod resp3;
mod room;
mod rooms;
mod stalled;
mod standalone;
mod tls;
mod verify;
mod window;

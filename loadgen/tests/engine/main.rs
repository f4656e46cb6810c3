//! The engine against real servers: its counts must equal theirs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::large_stack_arrays,
    reason = "tests end at the first surprise, and their numbers are small"
)]

mod caching;
mod churn;
mod cluster;
mod commands;
mod deferred;
mod fills;
mod harness;
mod hostile;
mod identity;
mod in_flight;
mod isolation;
mod null_server;
#[path = "../support/open_loop.rs"]
mod open_loop;
mod outages;
mod peer;
mod rate;
mod ratio;
mod readonly;
mod replay;
mod resp3;
mod room;
mod rooms;
mod stall;
mod stalled;
mod standalone;
mod storm;
mod streams;
mod tls;
mod transaction;
mod verify;
mod window;

//! A server that stops for a while. The latency that callers would see is known exactly and must be reported.
//!
//! The figures need a machine with time to sample the drain, so `make test-timing` runs these tests. `engine/stalled.rs` checks on any
//! machine that the whole stop is counted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::large_stack_arrays,
    reason = "tests end at the first surprise, and their numbers are small"
)]
#![allow(dead_code, reason = "the harness is made for more tests than these")]

#[path = "../engine/harness.rs"]
mod harness;
#[path = "../open_loop.rs"]
mod open_loop;

mod cluster;
mod drain;
mod quiet;
mod standalone;

//! A server that stops for a while: what callers would have felt is known exactly, and must be what is reported.
//!
//! The figures need a machine that has time to see the drain, so `make test-timing` runs these. `engine/stalled.rs` holds on any
//! machine that no time of a stop is left out.
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
#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod drain;
mod quiet;
mod standalone;
